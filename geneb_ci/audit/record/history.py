"""The order of signed statements: each statement names the heads, the newest ones of its time.

Thus a statement that was deleted, changed or signed again is detected, since later statements name
it by its digest. Two audits at the same time make two heads, and the next statement names both.
Older statements name none; if an old log contains them, the rules of that log apply.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from geneb_ci.audit.canonical import moment_of, seconds_of
from geneb_ci.audit.commitment import Commitment, method_identity, same_method_reason
from geneb_ci.audit.errors import MissingInput, StepMismatch
from geneb_ci.audit.record.events import AuditEvent, StatementKind
from geneb_ci.audit.record.keys import KEYS_FILE, Keys, Signer
from geneb_ci.audit.record.old_log import (
    CHECKPOINT,
    LINKS_STEP,
    LOG_FOLDER,
    RESTORE_FIX,
    AuditLog,
    LogBroken,
)
from geneb_ci.audit.record.statement import Record
from geneb_ci.audit.sampling.beacon import DELAY_SECONDS, time_of_round
from geneb_ci.audit.sampling.plan import BasePlan, DrandBeacon
from geneb_ci.common.config import is_practice

OLD_LOG_NAME = f"{LOG_FOLDER}/{CHECKPOINT}"
"""Name of the old log in the heads of statements: the path of its checkpoint."""
COMMIT_DIGITS = 12
"""Number of hex digits of a git commit that messages have."""
_START, _COMMITMENT = StatementKind.START, StatementKind.COMMITMENT


class SignedFile(NamedTuple):
    """A file of the audits: a record, an event or a withdrawal."""

    sha256: str
    """Digest of the bytes of the file, by which other statements name it."""
    statement_sha256: str = ""
    """SHA-256 of the signed bytes, which an old log contains; "" if it cannot be read."""
    keyid: str = ""
    """Id of the key or workflow that the file names as its signer; "" if it cannot be read."""
    signer: Signer | None = None
    """The trusted key or workflow that signed the file; None if no trusted one did."""
    heads: Mapping[str, str] | None = None
    """SHA-256 of each head, a newest statement of its time, that the file names, by path; None if
    the file names none or its signature is invalid."""
    event: AuditEvent | None = None
    """The commitment, start or abort in the file; None for another file or an invalid one."""
    plan: BasePlan | None = None
    """The plan of a record, a start or an abort; None for another statement."""


def revocation_name(keyid: str) -> str:
    """Return the name that the revocation of a key has in the heads of statements."""
    return f"{KEYS_FILE}/{keyid}"


@dataclass(frozen=True)
class History:
    """The signed statements of a repository, in the order that follows from their links.

    A statement links to the heads of its time: the newest statements, which it names by digest.
    """

    files: Mapping[str, SignedFile] = field(default_factory=dict)
    """Each signed file, by its path below the folder of audits."""
    other_digests: Mapping[str, str] = field(default_factory=dict)
    """Digests of the old log's checkpoint and of each revocation of a key, which statements name
    like files, by name."""
    log: AuditLog | None = None
    """The old log; None if the policy names none."""
    log_fault: str = ""
    """Why the old log is broken, or ""."""
    keys: Keys = field(default_factory=dict)
    """The trusted keys and workflows, by keyid."""
    _names_by_digests: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)
    """Cache of `_names_up_to`, by its argument."""

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """The digest of every statement, by name, in order of name."""
        digests = {name: file.sha256 for name, file in self.files.items()} | dict(
            self.other_digests
        )
        return dict(sorted(digests.items()))

    @functools.cached_property
    def heads(self) -> dict[str, str]:
        """The digests of the heads, which no other statement names, by name, in order of name.

        A new statement names all of these. Statements with an invalid signature, or by a key that
        was revoked before, are left out.
        """
        names_in_others = {
            name for path in self._counted_names for name in self.files[path].heads or {}
        }
        valid_names = {name for name, file in self.files.items() if self.is_valid(name, file)}
        head_names = (valid_names | set(self.other_digests)) - names_in_others
        return {name: digest for name, digest in self.digests.items() if name in head_names}

    def is_valid(self, name: str, file: SignedFile) -> bool:
        """Whether a statement is signed by a listed key that was not revoked before it."""
        signer = file.signer
        return signer is not None and (
            signer.revoked_at is None or self.precedes_compromise(signer, name)
        )

    def precedes_compromise(self, signer: Signer, name: str) -> bool:
        """Whether a statement was made while its revoked key was safe, as `revoked_after` shows."""
        safe_heads = signer.revoked_after
        return bool(safe_heads) and name in self._names_up_to(tuple(safe_heads))

    def _names_up_to(self, digests: tuple[str, ...]) -> frozenset[str]:
        """Return the names of the statements with these digests, and of all their predecessors."""
        if digests not in self._names_by_digests:
            heads = {
                path: file.sha256 for path, file in self.files.items() if file.sha256 in digests
            }
            self._names_by_digests[digests] = self.with_predecessors(heads)
        return self._names_by_digests[digests]

    def is_counted(self, name: str, kind: StatementKind) -> bool:
        """Whether a statement counts: it names others, or is older than every statement that does.

        The old log lists the older statements. Without such a log, a statement counts as older if
        the first statements with links name it, so that nobody can add one afterwards.
        """
        file = self.files.get(name)
        if file is None or file.heads is not None:
            return True
        if self.log is not None:
            return self.log.index_of(kind.value, file.statement_sha256) is not None
        return not self._has_links or name in self._names_before_links

    @functools.cached_property
    def _has_links(self) -> bool:
        """Whether any statement with a valid signature names others."""
        return any(
            file.heads is not None and self.is_valid(name, file)
            for name, file in self.files.items()
        )

    @functools.cached_property
    def _names_before_links(self) -> frozenset[str]:
        """Names of the statements without links that the first statements with links name."""
        older_names: set[str] = set()
        for name, file in self.files.items():
            if file.heads is None or not self.is_valid(name, file):
                continue
            earlier = self.with_predecessors(file.heads)
            if all(self.files[path].heads is None for path in earlier):
                older_names |= earlier
        return frozenset(older_names)

    def revocation_arguments(self, name: str, kind: StatementKind) -> tuple[int | None, bool]:
        """Return the arguments `log_index` and `precedes_compromise` of `check_revoked`."""
        file = self.files.get(name)
        if file is None:
            return None, False
        log_index = None
        if self.log is not None:
            log_index = self.log.index_of(kind.value, file.statement_sha256)
        return log_index, file.signer is not None and self.precedes_compromise(file.signer, name)

    @functools.cached_property
    def _counted_names(self) -> frozenset[str]:
        """Names of the valid statements with links, and of all their predecessors.

        A statement by a stolen key cannot make others look lost, and a statement that honest ones
        name is not removed by revoking its key.
        """
        return self.with_predecessors(
            {
                name: file.sha256
                for name, file in self.files.items()
                if file.heads is not None and self.is_valid(name, file)
            }
        )

    def with_predecessors(self, heads: Mapping[str, str]) -> frozenset[str]:
        """Return the names of these statements and of all their predecessors."""
        names: set[str] = set()
        pending = list(heads.items())
        while pending:
            name, sha256 = pending.pop()
            file = self.files.get(name)
            if name not in names and file is not None and file.sha256 == sha256:
                names.add(name)
                pending += (file.heads or {}).items()
        return frozenset(names)

    def predecessor_count(self, name: str) -> int:
        """Return the number of predecessors of a statement, which orders statements in time."""
        return (
            len(self.with_predecessors(self.files[name].heads or {})) if name in self.files else 0
        )

    @functools.cached_property
    def loss_reasons(self) -> dict[str, str]:
        """Why each lost statement counts as deleted or changed, by its name."""
        reasons = {OLD_LOG_NAME: self.log_fault} if self.log_fault else {}
        for number, entry in enumerate(self.log.entries if self.log is not None else ()):
            if entry.kind == StatementKind.REVOCATION.value:
                signer = self.keys.get(entry.signer)
                if signer is None or signer.revoked_at is None:
                    reasons[KEYS_FILE] = (
                        f"entry {number} of the log revokes the key {entry.signer[:16]}..., and "
                        f"{KEYS_FILE} does not"
                    )
                continue
            file = self.files.get(entry.file)
            change = (
                "was deleted"
                if file is None
                else "was changed"
                if file.statement_sha256 != entry.statement
                else "was signed again by another key"
                if file.keyid != entry.signer
                else ""
            )
            if change:
                reasons[entry.file] = f"{entry.file} {change}: it is entry {number} of the log"
        for path in sorted(self._counted_names):
            reasons |= self.loss_reasons_of_heads(path)
        return reasons

    def loss_reasons_of_heads(self, path: str) -> dict[str, str]:
        """Return, by name, why each lost head of a statement counts as deleted or changed."""
        reasons = {}
        for head, sha256 in (self.files[path].heads or {}).items():
            if self.digests.get(head) == sha256:
                continue
            if head.startswith(f"{KEYS_FILE}/"):
                reason = f"{path} names the revocation of the key {head[-64:][:16]}..., and "
                reasons[KEYS_FILE] = f"{reason}{KEYS_FILE} does not revoke it"
            else:
                change = "was changed" if head in self.digests else "was deleted"
                reasons[head] = f"{head} {change}: {path} names it"
        return reasons

    def loss_reasons_of_model(self, model_id: str | None) -> dict[str, str]:
        """Return, by name, why each lost statement counts as lost: of a model, or of all if None.

        Lost statements about no model, such as a revocation, are always included.
        """
        return {
            name: reason
            for name, reason in self.loss_reasons.items()
            if model_id is None
            or name in {OLD_LOG_NAME, KEYS_FILE}
            or name.split("/")[0] == model_id
        }

    def events(self, kind: StatementKind) -> Iterator[tuple[str, AuditEvent]]:
        """Yield path and event of each event of a kind with a valid signature."""
        for name, file in self.files.items():
            if file.event is not None and file.event.kind is kind and self.is_valid(name, file):
                yield name, file.event

    @functools.cached_property
    def drawn_commitments(self) -> frozenset[str]:
        """Digests of the commitments that were drawn by a beacon that their benchmark allows."""
        plans = (file.plan for file in self.files.values())
        return frozenset(
            plan.commitment_sha256
            for plan in plans
            if plan is not None
            and plan.commitment.sha256 == plan.commitment_sha256
            and (plan.beacon.kind != "practice" or is_practice(plan.commitment.benchmark.sha256))
        )

    def undrawn_commitments(self, commitment: Commitment) -> Iterator[tuple[str, str]]:
        """Yield path and reason of each other commitment to the same method that was never drawn.

        The reason is why the method is the same, such as "of the same model id". Commitments
        for another benchmark, or another version of it, are left out.
        """
        identity = method_identity(commitment)
        for name, event in self.events(_COMMITMENT):
            sha256 = event.commitment.sha256
            is_other = sha256 != commitment.sha256 and sha256 not in self.drawn_commitments
            if is_other and event.commitment.benchmark.sha256 == commitment.benchmark.sha256:
                reason = same_method_reason(method_identity(event.commitment), identity)
                if reason:
                    yield name, reason

    def check_no_undrawn(self, commitment: Commitment) -> None:
        """Refuse a draw if an earlier commitment to the same method was never drawn.

        Raises StepMismatch, of the step "links".
        """
        for name, reason in self.undrawn_commitments(commitment):
            raise _never_drawn_error(StepMismatch, name, reason)

    def check_no_losses(self, model_id: str) -> None:
        """Raise LogBroken if a statement about a model was lost."""
        for loss in self.loss_reasons_of_model(model_id).values():
            raise LogBroken(loss)


def _never_drawn_error(error_class: type[StepMismatch], name: str, reason: str) -> StepMismatch:
    """Return the error about `name`, a commitment to the same method that was never drawn."""
    return error_class(
        LINKS_STEP,
        f"{name} is a commitment {reason}, and it was never drawn",
        f"draw it: geneb-ci audit plan leaderboard/audits/{name} --committed-at TIME --key KEY "
        "--output PLAN.json",
    )


NO_SERVER_REMARK = (
    "the draw names no server that shows its commitment: only its signer says when it was made"
)
UNLINKED_REMARK = (
    "the record names no earlier statement: if one were deleted, nothing would show it"
)


def check_history(record: Record, history: History) -> str:
    """Return a remark on the time of a record's draw, after looking for lost predecessors.

    Raises LogBroken or StepMismatch, of the step "links"; MissingInput for a record that does not
    count yet.
    """
    plan = record.outcome.plan
    record_name = f"{plan.commitment.model_id}/{record.audit_id}.json"
    history.check_no_losses(plan.commitment.model_id)
    if record.heads is None:
        _check_unlinked(record, record_name, history)
        return UNLINKED_REMARK if history.log is None else ""
    predecessors = history.with_predecessors(record.heads)
    time_remark = _time_remark(plan, predecessors, history)
    for undrawn, reason in history.undrawn_commitments(plan.commitment):
        if undrawn in predecessors:
            raise _never_drawn_error(StepMismatch, undrawn, reason)
        if record_name not in history.with_predecessors(history.files[undrawn].heads or {}):
            raise _never_drawn_error(MissingInput, undrawn, reason)
    return time_remark


def _time_remark(plan: BasePlan, predecessors: frozenset[str], history: History) -> str:
    """Return a remark on who attests the time of a commitment, from the predecessors of its record.

    Raises MissingInput if no start of the draw precedes the record, StepMismatch if the time is
    backdated.
    """
    if plan.beacon.kind == "practice":
        return "a practice draw, which anybody could foresee"
    starts = [
        (name, event)
        for name, event in history.events(_START)
        if name in predecessors and event.plan == plan
    ]
    if not starts:
        raise MissingInput(
            LINKS_STEP, "no signed start of the draw precedes the record", RESTORE_FIX
        )
    commitments = [
        (name, event)
        for name, event in history.events(_COMMITMENT)
        if event.commitment == plan.commitment
        and any(
            name in history.with_predecessors(history.files[start].heads or {})
            for start, _ in starts
        )
    ]
    for name, event in commitments:
        _check_not_backdated(plan, name, event, history)
    status_commit = next((event.shown_on for _, event in starts if event.shown_on), "")
    if status_commit:
        sha = status_commit[:COMMIT_DIGITS]
        return f"GitHub dates the commitment: its digest is in a status of commit {sha}"
    return NO_SERVER_REMARK


def _check_not_backdated(plan: BasePlan, name: str, event: AuditEvent, history: History) -> None:
    """Refuse a plan whose `committed_at` is earlier than the commitment can be.

    The commitment is later than every beacon round of the statements that it names, and than the
    certificate of the workflow that signed it. Raises StepMismatch, of the step "links".
    """
    committed_at = seconds_of(plan.committed_at)
    for path in history.with_predecessors(history.files[name].heads or {}):
        earlier = history.files[path].plan
        if earlier is None or not isinstance(earlier.beacon, DrandBeacon):
            continue
        round_time = time_of_round(earlier.beacon.round)
        if committed_at < round_time:
            raise StepMismatch(
                LINKS_STEP,
                f"the plan dates the commitment to {plan.committed_at}, but the commitment {name} "
                f"refers to {path}, which was drawn after {moment_of(round_time)}",
                "do not trust this draw: its commitment is backdated",
            )
    if event.signed_after and seconds_of(event.signed_after) > committed_at + DELAY_SECONDS:
        raise StepMismatch(
            LINKS_STEP,
            f"the plan dates the commitment to {plan.committed_at}; the certificate of the "
            f"workflow that signed it is valid only from {event.signed_after} on",
            "do not trust this draw: its commitment is backdated",
        )


def _check_unlinked(record: Record, record_name: str, history: History) -> None:
    """Refuse a record without links, unless the old log or a statement with links contains it."""
    if history.log is not None:
        _check_logged(record, history.log, history)
        return
    if not history.is_counted(record_name, StatementKind.RESULT):
        raise StepMismatch(
            LINKS_STEP,
            "nothing shows when the record was made: it names no earlier statement, and the first "
            "statements that name others do not name it",
            "run the audit again with this version of geneb-ci: `geneb-ci audit SUBMISSION.json`",
        )


def _check_logged(record: Record, log: AuditLog, history: History) -> None:
    """Refuse a record unless commitment, start and record are entries of the old log, in order."""
    plan = record.outcome.plan
    commitment_entry = min(log.indices_of(_COMMITMENT.value, plan.commitment_sha256), default=None)
    if commitment_entry is None:
        raise StepMismatch(
            LINKS_STEP, "the commitment is not in the old log, so its time is unknown"
        )
    if plan.committed_at != log.entries[commitment_entry].not_before:
        raise StepMismatch(
            LINKS_STEP,
            f"the plan dates the commitment to {plan.committed_at}; entry {commitment_entry} of "
            f"the log dates it to {log.entries[commitment_entry].not_before}",
        )
    for _, event in history.events(_COMMITMENT):
        is_own = event.commitment.sha256 == plan.commitment_sha256
        if (
            is_own
            and event.signed_after
            and seconds_of(event.signed_after) > (seconds_of(plan.committed_at) + DELAY_SECONDS)
        ):
            raise StepMismatch(
                LINKS_STEP,
                f"entry {commitment_entry} of the log dates the commitment to {plan.committed_at}; "
                "the certificate of the workflow that signed it is valid only from "
                f"{event.signed_after} on",
                "do not trust this draw: the entry is backdated",
            )
    record_entry = log.index_of(StatementKind.RESULT.value, record.sha256)
    if record_entry is None:
        raise MissingInput(
            LINKS_STEP,
            "the record does not count, because nothing shows when it was made: it names no "
            "earlier statement, and the old log does not list it",
            "run the audit again with this version of geneb-ci: `geneb-ci audit SUBMISSION.json`",
        )
    start_entries = log.indices_of(_START.value, plan.commitment_sha256)
    if not start_entries or not commitment_entry < min(start_entries) < record_entry:
        raise StepMismatch(
            LINKS_STEP,
            f"the entries of the log are out of order: commitment {commitment_entry}, start "
            f"{min(start_entries) if start_entries else 'none'}, record {record_entry}; expected "
            "the commitment first and the record last",
            RESTORE_FIX,
        )
    for undrawn, reason in history.undrawn_commitments(plan.commitment):
        entry = log.index_of(_COMMITMENT.value, history.files[undrawn].statement_sha256)
        if entry is not None and entry < commitment_entry:
            raise _never_drawn_error(StepMismatch, undrawn, reason)
