"""Runs that an extractor ended: how many in a row, of one method, whatever it is called."""

from collections.abc import Iterator
from typing import NamedTuple

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.events import AuditEvent, EntryKind
from geneb_ci.audit.identity import Identity, identity_of, why_same
from geneb_ci.audit.keys import RevokedKey, TrustedKey, check_revoked
from geneb_ci.audit.record import ID_DIGITS, Record
from geneb_ci.audit.repository import AuditRepository
from geneb_ci.audit.withdrawal import Withdrawn


class _Run(NamedTuple):
    """A run that ended, with a record or an abort."""

    at: tuple[int, str]
    """Its entry in the log, 0 where none is kept, and when it ended."""
    audit_id: str
    is_abort: bool
    identity: Identity
    submission: str


def aborted_in_a_row(repository: AuditRepository) -> dict[str, tuple[str, ...]]:
    """Return the ids of the last runs of each submission's method, where too many were aborted.

    The key is the digest of a submission that one of these runs was for. What is not in the log yet
    does not count where one is kept, nor what a revoked key signed.
    """
    runs = sorted(_runs(repository), key=lambda one: (one.at, one.audit_id))
    limit = repository.inputs.policy.aborts
    found: dict[str, tuple[str, ...]] = {}
    for own in {one.submission: one for one in runs if one.is_abort}.values():
        last: list[str] = []
        for one in runs:
            if why_same(one.identity, own.identity):
                last = [*last, one.audit_id] if one.is_abort else []
        if len(last) >= limit:
            found[own.submission] = tuple(last[-limit:])
    return found


def _runs(repository: AuditRepository) -> Iterator[_Run]:
    for event in repository.events.values():
        if isinstance(event, AuditEvent) and event.aborted is not None:
            aborted = event.aborted
            entry = _entry(repository, EntryKind.ABORT, event.sha256, event.signer)
            yield from _run(
                entry, event.sha256, aborted.finished_at, event.commitment, is_abort=True
            )
    for path in repository.files:
        record = repository.parsed(path)
        if isinstance(record, Record) and not isinstance(
            repository.withdrawals.get(path), Withdrawn
        ):
            outcome = record.outcome
            entry = _entry(repository, EntryKind.RESULT, record.sha256, record.signer)
            commitment = outcome.plan.commitment
            yield from _run(entry, record.sha256, outcome.finished_at, commitment, is_abort=False)


def _run(
    entry: int | None, sha256: str, ended: str, commitment: Commitment, *, is_abort: bool
) -> Iterator[_Run]:
    if entry is not None:
        identity, name = identity_of(commitment), sha256[:ID_DIGITS]
        yield _Run((entry, ended), name, is_abort, identity, commitment.submission_sha256)


def _entry(
    repository: AuditRepository, kind: EntryKind, sha256: str, signer: TrustedKey
) -> int | None:
    """Return the entry of a run in the log, 0 where none is kept; None if it does not count."""
    index = None
    if repository.logged is not None:
        index = repository.logged.log.index_of(kind, sha256)
        if index is None:
            return None
    try:
        check_revoked(signer, index)
    except RevokedKey:
        return None
    return index or 0
