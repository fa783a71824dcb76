"""What the log says of a record, and of a repository beside its files: what is lost or lacks."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from geneb_ci.audit.canonical import StepMismatch, seconds_of
from geneb_ci.audit.commitment import Commitment, identity_of, same_method_reason
from geneb_ci.audit.log.checkpoint import Checkpoint, LogKeys, checkpoint_text
from geneb_ci.audit.log.entries import (
    FOLDER,
    LOG,
    RESTORE_LOG,
    AuditLog,
    LogBroken,
    LogEntry,
    log_files,
    read_log,
)
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.events import AuditEvent, EntryKind
from geneb_ci.audit.record.keys import Keys
from geneb_ci.audit.record.statement import Record, read_record
from geneb_ci.audit.sampling.beacon import DELAY
from geneb_ci.audit.sampling.plan import AnyPlan
from geneb_ci.audit.trust.applicability import LogContent, MissingInput
from geneb_ci.submission.reading import is_folder
from reference_harness.formats.merkle import root_of

BROKEN, KEYS = "log/checkpoint", "policy/keys.json"
"""Names of the log and of the keys among what is lost: they concern every model."""


def check_log(record: Record, logged: LogContent | None) -> None:
    """Check a record against the log: commitment, start and record are entries, in this order.

    Does nothing where no log is kept. Raises LogBroken or StepMismatch, of the step "log";
    MissingInput for a record that is not in the log yet.
    """
    if logged is None:
        return
    plan, log = record.outcome.plan, logged.log
    check_kept(plan.commitment.model_id, logged)
    committed = check_committed(plan, logged)
    index = log.index_of(EntryKind.RESULT, record.sha256)
    if index is None:
        raise MissingInput(
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


def check_kept(model_id: str, logged: LogContent) -> None:
    """Raise LogBroken if the log is broken, or lists a file of a model that is not there."""
    for reason in lost_files(model_id, logged).values():
        raise LogBroken(reason)


def lost_files(model_id: str | None, logged: LogContent) -> dict[str, str]:
    """Return what the log lists and is lost, of one model or of all: path to reason."""
    return {
        name: reason
        for name, reason in logged.lost.items()
        if model_id is None or name in {BROKEN, KEYS} or name.partition("/")[0] == model_id
    }


def check_committed(plan: AnyPlan, logged: LogContent) -> int:
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
    begins = logged.begins.get(plan.commitment_sha256)
    if begins is not None and seconds_of(begins) > seconds_of(plan.committed_at) + DELAY:
        raise StepMismatch(
            LOG,
            f"its commitment was signed after {begins}, by the certificate of its workflow; entry "
            f"{index} has it at {entry.not_before}, so the draw was known before it was made",
            "do not trust this draw: the entry is dated back",
        )
    return index


def committed_index(commitment: str, logged: LogContent) -> int | None:
    """Return the number of the entry of a commitment, given by its digest; None without one."""
    return min(logged.log.indices_of(EntryKind.COMMITMENT, commitment), default=None)


def check_drawn(commitment: Commitment, before: int, logged: LogContent) -> None:
    """Refuse to pass over a commitment to the same method that was never drawn.

    Looks at the entries before the number `before`. Raises StepMismatch, of the step "log".
    """
    own = identity_of(commitment)
    drawn = {
        logged_entry.commitment
        for logged_entry in logged.log.entries
        if logged_entry.kind in _DRAWN
    }
    for number, entry in enumerate(logged.log.entries[:before]):
        if entry.kind != EntryKind.COMMITMENT.value or entry.commitment in drawn:
            continue
        other = logged.commitments.get(str(entry.commitment))
        reason = same_method_reason(identity_of(other), own) if other is not None else ""
        if reason:
            raise StepMismatch(
                LOG,
                f"entry {number} is a commitment {reason}, and its tasks were never drawn: "
                f"{entry.file}",
                f"draw it: geneb-ci audit plan leaderboard/audits/{entry.file} --key KEY --output "
                "PLAN.json, and have the log extended",
            )


_DRAWN = frozenset({EntryKind.START.value, EntryKind.ABORT.value, EntryKind.RESULT.value})


def open_starts(entries: tuple[LogEntry, ...]) -> list[int]:
    """Return the numbers of the starts that neither an abort nor a record of that draw follows."""
    ended = {
        entry.commitment
        for entry in entries
        if entry.kind in {EntryKind.ABORT.value, EntryKind.RESULT.value}
    }
    return [
        number
        for number, entry in enumerate(entries)
        if entry.kind == EntryKind.START.value and entry.commitment not in ended
    ]


def sha256_of(raw: bytes) -> str:
    """Return the digest of what an envelope holds. Raises StepMismatch, of the step "envelope"."""
    return hashlib.sha256(parse_envelope(raw).payload).hexdigest()


def empty_log(origin: str) -> AuditLog:
    """Return the log before its first entry."""
    root = root_of([])
    return AuditLog(Checkpoint(origin, 0, root, checkpoint_text(origin, 0, root)), (), ())


def log_at(audits: Path | None, keys: LogKeys) -> AuditLog:
    """Return the log of a folder of audits; an empty one where it has none. Raises LogBroken."""
    if audits is None or not is_folder(audits / FOLDER):
        return empty_log(keys.origin)
    return read_log(log_files(audits / FOLDER), keys)


def log_content(
    keys: LogKeys,
    audits: Path | None,
    events: Mapping[Path, AuditEvent | StepMismatch],
    trusted: Keys,
) -> LogContent:
    """Return the log of a folder of audits, and each file that it lists and that is lost.

    `events` are the commitments, starts and aborts of the folder.
    """
    try:
        log = log_at(audits, keys)
    except LogBroken as error:
        return LogContent(
            empty_log(keys.origin), {}, {BROKEN: error.message.removeprefix(f"{LOG}: ")}
        )
    committed = [
        event
        for event in events.values()
        if isinstance(event, AuditEvent)
        and event.kind is EntryKind.COMMITMENT
        and log.index_of(event.kind, event.sha256) is not None
    ]
    return LogContent(
        log,
        {
            event_committed.commitment.sha256: event_committed.commitment
            for event_committed in committed
        },
        dict(_lost(log, audits, trusted)),
        {
            event_committed.commitment.sha256: event_committed.begins
            for event_committed in committed
            if event_committed.begins
        },
    )


def _lost(log: AuditLog, audits: Path | None, trusted: Keys) -> Iterator[tuple[str, str]]:
    """Yield path and reason of each file that the log lists and that is not as it was."""
    for number, entry in enumerate(log.entries):
        if entry.kind == EntryKind.REVOCATION.value:
            key = trusted.get(entry.signer)
            if key is None or key.revoked_at is None:
                reason = f"entry {number} of the log revokes the key {entry.signer[:16]}..., and "
                yield KEYS, reason + "keys.json does not"
        elif reason := _change(entry, audits):
            yield entry.file, f"{entry.file} {reason}: it is entry {number} of the log"


def _change(entry: LogEntry, audits: Path | None) -> str:
    """Return how the file of an entry differs from what was logged, as a predicate; "" if not."""
    path = Path(str(audits)) / entry.file
    if audits is None or not path.is_file():
        return "was deleted"
    try:
        envelope = parse_envelope(read_record(path))
    except StepMismatch:
        return "was changed"
    if hashlib.sha256(envelope.payload).hexdigest() != entry.statement:
        return "was changed"
    return "" if envelope.keyid == entry.signer else "was signed again by another key"
