"""What the log says of a record: that it is an entry, and follows its commitment and its start."""

from geneb_ci.audit.applicability import Logged, NotHere
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.events import EntryKind
from geneb_ci.audit.identity import identity_of, why_same
from geneb_ci.audit.log import LOG, RESTORE_LOG, LogBroken, LogEntry
from geneb_ci.audit.plan import Plan
from geneb_ci.audit.record import Record
from geneb_ci.audit.steps import StepMismatch

BROKEN, KEYS = "log/checkpoint", "policy/keys.json"
"""Names of the log and of the keys among what is lost: they concern every model."""


def check_log(record: Record, logged: Logged | None) -> None:
    """Check a record against the log: commitment, start and record are entries, in this order.

    Does nothing where no log is kept. Raises LogBroken or StepMismatch, of the step "log"; NotHere
    for a record that is not in the log yet.
    """
    if logged is None:
        return
    plan, log = record.outcome.plan, logged.log
    check_kept(plan.commitment.model_id, logged)
    committed = check_committed(plan, logged)
    index = log.index_of(EntryKind.RESULT, record.sha256)
    if index is None:
        raise NotHere(
            LOG,
            "the record is not in the log yet, so it does not count",
            "a maintainer adds it: geneb-ci audit log append",
        )
    starts = log.indices_of(EntryKind.START, plan.commitment_sha256)
    if not starts or not committed < min(starts) < index:
        raise StepMismatch(
            LOG,
            f"the order of its entries is wrong: commitment {committed}, start "
            f"{min(starts) if starts else 'none'}, record {index}",
            RESTORE_LOG,
        )
    if log.entries[index].signer != record.signer.keyid:
        raise StepMismatch(LOG, f"entry {index} names another signer", RESTORE_LOG)
    check_drawn(plan.commitment, committed, logged)


def check_kept(model_id: str, logged: Logged) -> None:
    """Raise LogBroken if the log is broken, or lists a file of a model that is not there."""
    for reason in lost_of(model_id, logged).values():
        raise LogBroken(reason)


def lost_of(model_id: str | None, logged: Logged) -> dict[str, str]:
    """Return what the log lists and is lost, of one model or of all: path to reason."""
    return {
        name: reason
        for name, reason in logged.lost.items()
        if model_id is None or name in {BROKEN, KEYS} or name.partition("/")[0] == model_id
    }


def check_committed(plan: Plan, logged: Logged) -> int:
    """Return the number of the entry of a plan's commitment, which fixes its time.

    Raises StepMismatch, of the step "log", where there is none, or the plan has another time.
    """
    index = committed_index(plan.commitment_sha256, logged)
    if index is None:
        raise StepMismatch(
            LOG,
            "its commitment is not in the log: when it was made is not known",
            "sign the commitment, have it added to the log, and audit again",
        )
    entry = logged.log.entries[index]
    if plan.committed_at != entry.not_before:
        raise StepMismatch(
            LOG,
            f"the plan says that the commitment was public at {plan.committed_at}; the log has it "
            f"as entry {index}, at {entry.not_before}",
            "draw again: the time of a commitment is that of its entry",
        )
    return index


def committed_index(commitment: str, logged: Logged) -> int | None:
    """Return the number of the entry of a commitment, given by its digest; None without one."""
    return min(logged.log.indices_of(EntryKind.COMMITMENT, commitment), default=None)


def check_drawn(commitment: Commitment, before: int, logged: Logged) -> None:
    """Refuse to pass over a commitment to the same method that was never drawn.

    Looks at the entries before the number `before`. Raises StepMismatch, of the step "log".
    """
    own = identity_of(commitment)
    drawn = {one.commitment for one in logged.log.entries if one.kind in _DRAWN}
    for number, entry in enumerate(logged.log.entries[:before]):
        if entry.kind != EntryKind.COMMITMENT.value or entry.commitment in drawn:
            continue
        other = logged.commitments.get(str(entry.commitment))
        why = why_same(identity_of(other), own) if other is not None else ""
        if why:
            raise StepMismatch(
                LOG,
                f"entry {number} is a commitment {why}, and its tasks were never drawn: "
                f"{entry.file}",
                f"draw it: geneb-ci audit plan leaderboard/audits/{entry.file} --key KEY --output "
                "PLAN.json, and have the log extended",
            )


_DRAWN = frozenset({EntryKind.START.value, EntryKind.ABORT.value, EntryKind.RESULT.value})


def open_starts(entries: tuple[LogEntry, ...]) -> list[int]:
    """Return the numbers of the starts that neither an abort nor a record of that draw follows."""
    ended = {
        one.commitment
        for one in entries
        if one.kind in {EntryKind.ABORT.value, EntryKind.RESULT.value}
    }
    return [
        number
        for number, one in enumerate(entries)
        if one.kind == EntryKind.START.value and one.commitment not in ended
    ]
