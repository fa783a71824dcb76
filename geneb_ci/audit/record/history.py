"""The order of signed statements: each names the heads, the newest statements of its time.

So the statements of a repository are linked: one that was deleted, changed or signed again is still
named by those that followed. Two audits at once make two heads, and the next statement names both.
Statements that were signed before name nothing; where they are in an old log, its rules hold.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from geneb_ci.audit.canonical import moment_of, seconds_of
from geneb_ci.audit.commitment import Commitment, identity_of, same_method_reason
from geneb_ci.audit.errors import MissingInput, StepMismatch
from geneb_ci.audit.record.events import AuditEvent, StatementKind
from geneb_ci.audit.record.keys import KEYS_FILE, Keys, Signer
from geneb_ci.audit.record.old_log import CHECKPOINT, FOLDER, LINKS, RESTORE, AuditLog, LogBroken
from geneb_ci.audit.record.statement import Record
from geneb_ci.audit.sampling.beacon import DELAY, time_of
from geneb_ci.audit.sampling.plan import AnyPlan, DrandBeacon
from geneb_ci.common.config import is_practice

OLD_LOG = f"{FOLDER}/{CHECKPOINT}"
"""Name of the old log among statements: its checkpoint."""
DIGITS = 12
"""Hex digits of a commit in messages."""
_START, _COMMITMENT = StatementKind.START, StatementKind.COMMITMENT


class SignedFile(NamedTuple):
    """A file of the audits: a record, an event or a withdrawal."""

    sha256: str
    """Digest of its bytes, by which other statements name it."""
    statement: str = ""
    """SHA-256 of the signed bytes, as an old log has it; "" where it cannot be read."""
    keyid: str = ""
    signer: Signer | None = None
    """None where the signature is not that of a listed key."""
    heads: Mapping[str, str] | None = None
    """The heads that it names, path to SHA-256; None where it names none, or its signature is not
    valid."""
    event: AuditEvent | None = None
    plan: AnyPlan | None = None
    """The plan of a record, a start or an abort; None for another statement."""


def revocation_name(keyid: str) -> str:
    """Return the name of the revocation of a key, which is a fact of keys.json, not a file."""
    return f"{KEYS_FILE}/{keyid}"


@dataclass(frozen=True)
class History:
    """The signed statements of a repository, by path below the folder of audits."""

    files: Mapping[str, SignedFile] = field(default_factory=dict)
    other_facts: Mapping[str, str] = field(default_factory=dict)
    """Facts that statements name as they name files: an old log's checkpoint, revoked keys."""
    log: AuditLog | None = None
    """The old log; None where the policy names none."""
    log_fault: str = ""
    """Why the old log is broken."""
    keys: Keys = field(default_factory=dict)
    _reached: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)
    """Results of `_up_to`, by its argument."""

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """Every statement, name to digest, in order of name."""
        digests = {name: file.sha256 for name, file in self.files.items()} | dict(self.other_facts)
        return dict(sorted(digests.items()))

    @functools.cached_property
    def heads(self) -> dict[str, str]:
        """The statements that no other names: a new one names these, in order of name.

        One that is not signed validly, or by a key that was revoked before, is never named.
        """
        superseded = {name for path in self._counted for name in self.files[path].heads or {}}
        valid = {name for name, file in self.files.items() if self.is_valid(name, file)}
        names = (valid | set(self.other_facts)) - superseded
        return {name: digest for name, digest in self.digests.items() if name in names}

    def is_valid(self, name: str, file: SignedFile) -> bool:
        """Whether a statement is signed by a listed key that was not revoked before."""
        signer = file.signer
        return signer is not None and (signer.revoked_at is None or self.is_covered(signer, name))

    def is_covered(self, signer: Signer, name: str) -> bool:
        """Whether a statement came before the heads up to which a revoked key goes on counting."""
        after = signer.revoked_after
        return bool(after) and name in self._up_to(tuple(after))

    def _up_to(self, digests: tuple[str, ...]) -> frozenset[str]:
        """Return the names of the statements of these digests, and of all that they come after."""
        if digests not in self._reached:
            heads = {
                path: file.sha256 for path, file in self.files.items() if file.sha256 in digests
            }
            self._reached[digests] = self.with_predecessors(heads)
        return self._reached[digests]

    def counts(self, name: str, kind: StatementKind) -> bool:
        """Whether a statement names others, or is older than any that does.

        An older one is in the old log, where there is one, and else among those that the first
        linked statements name: later ones cannot bring in what was signed without links.
        """
        file = self.files.get(name)
        if file is None or file.heads is not None:
            return True
        if self.log is not None:
            return self.log.index_of(kind.value, file.statement) is not None
        return not self._is_linked or name in self._older

    @functools.cached_property
    def _is_linked(self) -> bool:
        """Whether a statement by a key that counts names others."""
        return any(
            file.heads is not None and self.is_valid(name, file)
            for name, file in self.files.items()
        )

    @functools.cached_property
    def _older(self) -> frozenset[str]:
        """The statements without links that the first linked ones name."""
        older: set[str] = set()
        for name, file in self.files.items():
            if file.heads is None or not self.is_valid(name, file):
                continue
            earlier = self.with_predecessors(file.heads)
            if all(self.files[path].heads is None for path in earlier):
                older |= earlier
        return frozenset(older)

    def before_revocation(self, name: str, kind: StatementKind) -> tuple[int | None, bool]:
        """Return the entry of a statement in the old log, and whether it is covered."""
        file = self.files.get(name)
        if file is None:
            return None, False
        index = self.log.index_of(kind.value, file.statement) if self.log is not None else None
        return index, file.signer is not None and self.is_covered(file.signer, name)

    @functools.cached_property
    def _counted(self) -> frozenset[str]:
        """The statements whose links hold: by keys that count, and what these name.

        A thief's statement cannot make others look lost, and one that honest statements name
        cannot be taken out by revoking its key.
        """
        return self.with_predecessors(
            {
                name: file.sha256
                for name, file in self.files.items()
                if file.heads is not None and self.is_valid(name, file)
            }
        )

    def with_predecessors(self, heads: Mapping[str, str]) -> frozenset[str]:
        """Return the names of these statements and of all that they come after."""
        reached: set[str] = set()
        pending = list(heads.items())
        while pending:
            name, sha256 = pending.pop()
            file = self.files.get(name)
            if name not in reached and file is not None and file.sha256 == sha256:
                reached.add(name)
                pending += (file.heads or {}).items()
        return frozenset(reached)

    def position(self, name: str) -> int:
        """Return how many statements a statement comes after: more than any of them does."""
        return (
            len(self.with_predecessors(self.files[name].heads or {})) if name in self.files else 0
        )

    @functools.cached_property
    def lost(self) -> dict[str, str]:
        """Statements that were deleted or changed since they were named: name to reason."""
        reasons = {OLD_LOG: self.log_fault} if self.log_fault else {}
        for number, entry in enumerate(self.log.entries if self.log is not None else ()):
            if entry.kind == StatementKind.REVOCATION.value:
                if not self._is_revoked(entry.signer):
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
                if file.statement != entry.statement
                else "was signed again by another key"
                if file.keyid != entry.signer
                else ""
            )
            if change:
                reasons[entry.file] = f"{entry.file} {change}: it is entry {number} of the log"
        for path in sorted(self._counted):
            reasons |= self.missing(path)
        return reasons

    def missing(self, path: str) -> dict[str, str]:
        """Return the statements that one names and that are lost or changed: name to reason."""
        reasons = {}
        for name, sha256 in (self.files[path].heads or {}).items():
            if self.digests.get(name) == sha256:
                continue
            if name.startswith(f"{KEYS_FILE}/"):
                reason = f"{path} names the revocation of the key {name[-64:][:16]}..., and "
                reasons[KEYS_FILE] = f"{reason}{KEYS_FILE} does not revoke it"
            else:
                change = "was changed" if name in self.digests else "was deleted"
                reasons[name] = f"{name} {change}: {path} names it"
        return reasons

    def losses_of(self, model_id: str | None) -> dict[str, str]:
        """Return the lost statements of a model and those of all models; None for every model."""
        return {
            name: reason
            for name, reason in self.lost.items()
            if model_id is None or name in {OLD_LOG, KEYS_FILE} or name.split("/")[0] == model_id
        }

    def _is_revoked(self, keyid: str) -> bool:
        key = self.keys.get(keyid)
        return key is not None and key.revoked_at is not None

    def events(self, kind: StatementKind) -> Iterator[tuple[str, AuditEvent]]:
        """Yield path and event of each event of a kind that is signed validly."""
        for name, file in self.files.items():
            if file.event is not None and file.event.kind is kind and self.is_valid(name, file):
                yield name, file.event

    @functools.cached_property
    def drawn(self) -> frozenset[str]:
        """Digests of the commitments that were drawn, by the beacon that their benchmark has."""
        plans = (file.plan for file in self.files.values())
        return frozenset(
            plan.commitment_sha256
            for plan in plans
            if plan is not None
            and plan.commitment.sha256 == plan.commitment_sha256
            and (plan.beacon.kind != "practice" or is_practice(plan.commitment.benchmark.sha256))
        )

    def undrawn(self, commitment: Commitment) -> Iterator[tuple[str, str]]:
        """Yield path and reason of each other commitment to this method that was never drawn.

        One for another benchmark, or another version of it, is no try at this draw.
        """
        identity = identity_of(commitment)
        for name, event in self.events(_COMMITMENT):
            sha256 = event.commitment.sha256
            is_other = sha256 != commitment.sha256 and sha256 not in self.drawn
            if is_other and event.commitment.benchmark.sha256 == commitment.benchmark.sha256:
                reason = same_method_reason(identity_of(event.commitment), identity)
                if reason:
                    yield name, reason

    def check_undrawn(self, commitment: Commitment) -> None:
        """Refuse a draw that passes over a commitment to the same method.

        Raises StepMismatch, of the step "links".
        """
        for name, reason in self.undrawn(commitment):
            raise _passed_over(StepMismatch, name, reason)

    def check_here(self, model_id: str) -> None:
        """Raise LogBroken where something of a model was lost."""
        for reason in self.losses_of(model_id).values():
            raise LogBroken(reason)


def _passed_over(kind: type[StepMismatch], name: str, reason: str) -> StepMismatch:
    return kind(
        LINKS,
        f"{name} is a commitment {reason}, and its tasks were never drawn",
        f"draw it: geneb-ci audit plan leaderboard/audits/{name} --committed-at TIME --key KEY "
        "--output PLAN.json",
    )


NO_SERVER_NAMED = "no server is named that shows its commitment: the time is its signer's word"
UNLINKED = "it names nothing that came before: what was signed before may be lost"


def check_history(record: Record, history: History) -> str:
    """Check that all that came before a record is here; return what is to be known of its time.

    Raises LogBroken or StepMismatch, of the step "links"; MissingInput for a record that does not
    count yet.
    """
    plan = record.outcome.plan
    name = f"{plan.commitment.model_id}/{record.audit_id}.json"
    history.check_here(plan.commitment.model_id)
    if record.heads is None:
        _check_unlinked(record, name, history)
        return UNLINKED if history.log is None else ""
    before = history.with_predecessors(record.heads)
    time_text = _check_time(plan, before, history)
    for undrawn, reason in history.undrawn(plan.commitment):
        if undrawn in before:
            raise _passed_over(StepMismatch, undrawn, reason)
        if name not in history.with_predecessors(history.files[undrawn].heads or {}):
            raise _passed_over(MissingInput, undrawn, reason)
    return time_text


def _check_time(plan: AnyPlan, before: frozenset[str], history: History) -> str:
    """Check when the commitment of a linked record was made, and return who says so."""
    if plan.beacon.kind == "practice":
        return "a practice draw, which anybody could foresee"
    starts = [
        (name, event)
        for name, event in history.events(_START)
        if name in before and event.plan == plan
    ]
    if not starts:
        raise MissingInput(LINKS, "no start of this draw is among what it comes after", RESTORE)
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
        _check_not_dated_back(plan, name, event, history)
    status_commit = next((event.shown_on for _, event in starts if event.shown_on), "")
    if status_commit:
        sha = status_commit[:DIGITS]
        return f"its commitment is a status of commit {sha} on GitHub, which dates it"
    return NO_SERVER_NAMED


def _check_not_dated_back(plan: AnyPlan, name: str, event: AuditEvent, history: History) -> None:
    """Refuse a time before the rounds of the beacon that a commitment comes after."""
    at = seconds_of(plan.committed_at)
    for path in history.with_predecessors(history.files[name].heads or {}):
        earlier = history.files[path].plan
        if earlier is None or not isinstance(earlier.beacon, DrandBeacon):
            continue
        due = time_of(earlier.beacon.round)
        if at < due:
            raise StepMismatch(
                LINKS,
                f"the plan says that the commitment was public at {plan.committed_at}; {name} "
                f"comes after {path}, which has a round of the beacon of {moment_of(due)}",
                "do not trust this draw: its commitment is dated back",
            )
    if event.signed_after and seconds_of(event.signed_after) > at + DELAY:
        raise StepMismatch(
            LINKS,
            f"the plan says that the commitment was public at {plan.committed_at}; it was signed "
            f"after {event.signed_after}, by the certificate of its workflow",
            "do not trust this draw: its commitment is dated back",
        )


def _check_unlinked(record: Record, name: str, history: History) -> None:
    """Check a record that names nothing: by the old log, or that linked ones name it."""
    if history.log is not None:
        _check_logged(record, history.log, history)
        return
    if not history.counts(name, StatementKind.RESULT):
        raise StepMismatch(
            LINKS,
            "it names no earlier statement, and is not among what the first linked statements name",
            "sign it again with this version: geneb-ci audit FILE",
        )


def _check_logged(record: Record, log: AuditLog, history: History) -> None:
    """Check a record by the old log: commitment, start and record are entries, in this order."""
    plan = record.outcome.plan
    committed = min(log.indices_of(_COMMITMENT.value, plan.commitment_sha256), default=None)
    if committed is None:
        raise StepMismatch(LINKS, "its commitment is not in the log: when it was made is not known")
    if plan.committed_at != log.entries[committed].not_before:
        raise StepMismatch(
            LINKS,
            f"the plan says that the commitment was public at {plan.committed_at}; the log has it "
            f"as entry {committed}, at {log.entries[committed].not_before}",
        )
    for _, event in history.events(_COMMITMENT):
        is_own = event.commitment.sha256 == plan.commitment_sha256
        if (
            is_own
            and event.signed_after
            and seconds_of(event.signed_after) > (seconds_of(plan.committed_at) + DELAY)
        ):
            raise StepMismatch(
                LINKS,
                f"its commitment was signed after {event.signed_after}, by the certificate of its "
                f"workflow; entry {committed} has it at {plan.committed_at}",
                "do not trust this draw: the entry is dated back",
            )
    index = log.index_of(StatementKind.RESULT.value, record.sha256)
    if index is None:
        raise MissingInput(
            LINKS,
            "it names nothing that came before, and is not in the log: it does not count",
            "sign it again with this version: geneb-ci audit FILE",
        )
    starts = log.indices_of(_START.value, plan.commitment_sha256)
    if not starts or not committed < min(starts) < index:
        raise StepMismatch(
            LINKS,
            f"the order of its entries is wrong: commitment {committed}, start "
            f"{min(starts) if starts else 'none'}, record {index}",
            RESTORE,
        )
    for undrawn, reason in history.undrawn(plan.commitment):
        entry = log.index_of(_COMMITMENT.value, history.files[undrawn].statement)
        if entry is not None and entry < committed:
            raise _passed_over(StepMismatch, undrawn, reason)
