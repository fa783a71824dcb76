"""Appends to the log what is signed and not in it yet: one batch, in a defined order."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pydantic_core

from geneb_ci.audit.canonical import StepMismatch, digest
from geneb_ci.audit.commitment import Commitment, identity_digest
from geneb_ci.audit.log.check import check_committed, sha256_of
from geneb_ci.audit.log.entries import (
    FOLDER,
    FORMAT,
    LOG,
    RESTORE_LOG,
    LogBroken,
    LogEntry,
    files_with_entries,
)
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.events import AuditEvent, EntryKind, kind_of
from geneb_ci.audit.record.keys import Signer, check_revoked, signer_of
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import WITHDRAWN, Record, read_record, withdrawal_files
from geneb_ci.audit.sampling.beacon import QUICKNET
from geneb_ci.audit.sampling.beacon_source import RELAYS, fetch_round, parse_round
from geneb_ci.audit.sampling.embedding_draw import recompute_any
from geneb_ci.audit.sampling.plan import DrandBeacon, Plan, RowPlan
from geneb_ci.audit.trust.applicability import LogContent
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.common.finding import Fault
from geneb_ci.submission.reading import read_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LATENESS = 6
"""Seconds after which every relay has a round: the newest one that is older is asked for."""


class UnloggedFile(NamedTuple):
    """A file that is not in the log and cannot be added, and why."""

    file: str
    reason: str


class Batch(NamedTuple):
    """What an append adds, and what it cannot add."""

    entries: tuple[LogEntry, ...]
    refused: tuple[UnloggedFile, ...]


class _SignedFile(NamedTuple):
    """A file that is not in the log, parsed."""

    kind: EntryKind
    file: str
    sha256: str
    signer: Signer
    commitment: Commitment | None
    plan: Plan | RowPlan | None


def recent_round(now: float, file: Path | None, relays: tuple[str, ...]) -> DrandBeacon:
    """Return a round that is public now: the newest one, of a relay or of a file.

    Raises BeaconUnavailable, StepMismatch for a round that is not genuine, and NothingChecked for a
    file that cannot be read.
    """
    if file is None:
        number = (int(now) - LATENESS - QUICKNET.genesis) // QUICKNET.period + 1
        return fetch_round(number, relays or RELAYS)
    raw = read_bytes(file)
    fix = f"download {RELAYS[0]}/{QUICKNET.hash}/public/latest"
    if isinstance(raw, Fault):
        raise NothingChecked(f"{file}: {raw.message}", fix)
    try:
        number = pydantic_core.from_json(raw)["round"]
    except (ValueError, TypeError, KeyError) as error:
        raise NothingChecked(f"{file}: this is not a round of the beacon", fix) from error
    return parse_round(raw, number)


def batch_of(repository: AuditRepository, logged: LogContent, beacon: DrandBeacon) -> Batch:
    """Return what is signed and not in the log, as entries in order of kind and path.

    Raises LogBroken where the log is broken or a file that it lists is lost, UsageProblem where the
    round is older than that of the last entry.
    """
    for reason in logged.lost.values():
        raise LogBroken(reason)
    last = logged.log.entries[-1].round if logged.log.entries else 0
    if beacon.round < last:
        raise UsageProblem(
            f"round {beacon.round} of the beacon is older than that of the last entry, {last}",
            "pass a newer round: without --beacon-file the newest one is fetched",
        )
    entries: list[LogEntry] = []
    refused: list[UnloggedFile] = []
    for candidate in _new(repository, logged):
        if isinstance(candidate, UnloggedFile):
            refused.append(candidate)
            continue
        try:
            _check_addition(candidate, entries, logged)
        except StepMismatch as error:
            refused.append(UnloggedFile(candidate.file, error.message))
        else:
            entries.append(_entry(candidate, beacon))
    return Batch((*entries, *_revocations(repository, logged, beacon)), tuple(refused))


def extended_log(
    batch: Batch, logged: LogContent, key: "Ed25519PrivateKey", audits: Path
) -> dict[Path, dict[str, bytes]]:
    """Return the files to write: folder to name to content, the checkpoint last.

    Raises LogBroken for entries that may not follow.
    """
    files = files_with_entries(logged.log, batch.entries, logged.log.checkpoint.origin, key)
    files_by_folder: dict[Path, dict[str, bytes]] = {}
    for path, content in files.items():
        destination = audits / FOLDER / path
        files_by_folder.setdefault(destination.parent, {})[destination.name] = content
    return files_by_folder


def _new(repository: AuditRepository, logged: LogContent) -> Iterator[_SignedFile | UnloggedFile]:
    """Yield what the log lacks, in order of kind and path."""
    log, candidates = logged.log, [*_events(repository), *_results(repository)]
    order = list(EntryKind)
    signed = [candidate for candidate in candidates if isinstance(candidate, _SignedFile)]
    yield from (candidate for candidate in candidates if isinstance(candidate, UnloggedFile))
    for event in sorted(signed, key=lambda event: (order.index(event.kind), event.file)):
        if log.index_of(event.kind, event.sha256) is None:
            yield event


def _events(repository: AuditRepository) -> Iterator[_SignedFile | UnloggedFile]:
    for path, event in repository.events.items():
        file = f"{path.parent.name}/{path.name}"
        if isinstance(event, AuditEvent):
            yield _SignedFile(
                event.kind, file, event.sha256, event.signer, event.commitment, event.plan
            )
        else:
            yield UnloggedFile(file, event.message)


def _results(repository: AuditRepository) -> Iterator[_SignedFile | UnloggedFile]:
    for path in repository.files:
        file, record = f"{path.parent.name}/{path.name}", repository.parsed(path)
        if isinstance(record, Record):
            plan = record.outcome.plan
            yield _SignedFile(
                kind_of(path.name), file, record.sha256, record.signer, plan.commitment, plan
            )
        else:
            yield UnloggedFile(file, record.message)
    audits = repository.layout.audits
    for path in withdrawal_files(audits) if audits is not None else ():
        file = f"{path.parent.name}/{path.name}"
        try:
            raw = read_record(path)
            signer, sha256 = signer_of(parse_envelope(raw), repository.keys), sha256_of(raw)
        except StepMismatch as error:
            yield UnloggedFile(file, error.message)
        else:
            yield _SignedFile(EntryKind.WITHDRAWAL, file, sha256, signer, None, None)


def _check_addition(candidate: _SignedFile, before: list[LogEntry], logged: LogContent) -> None:
    """Raise StepMismatch for what may not follow the log and the entries of the batch before it."""
    check_revoked(candidate.signer, len(logged.log.entries))
    if candidate.plan is not None:
        recompute_any(candidate.plan)
        check_committed(candidate.plan, logged)
        commitment = candidate.plan.commitment_sha256
        started = any(
            (entry.kind, entry.commitment) == (EntryKind.START, commitment) for entry in before
        )
        if candidate.kind is not EntryKind.START and not (
            started or logged.log.indices_of(EntryKind.START, commitment)
        ):
            raise StepMismatch(LOG, "no start of this draw is in the log", RESTORE_LOG)
    if candidate.kind is EntryKind.WITHDRAWAL:
        record = f"{candidate.file.removesuffix(WITHDRAWN)}.json"
        if not any(entry.file == record for entry in (*logged.log.entries, *before)):
            raise StepMismatch(LOG, f"the record that it withdraws, {record}, is not in the log")


def _entry(signed: _SignedFile, beacon: DrandBeacon) -> LogEntry:
    commitment = signed.commitment
    return LogEntry(
        format=FORMAT,
        kind=signed.kind.value,
        file=signed.file,
        statement=signed.sha256,
        signer=signed.signer.keyid,
        commitment=commitment.sha256 if commitment is not None else None,
        identity=identity_digest(commitment) if commitment is not None else None,
        round=beacon.round,
        signature=beacon.signature,
    )


def _revocations(
    repository: AuditRepository, logged: LogContent, beacon: DrandBeacon
) -> Iterator[LogEntry]:
    """Yield an entry for each revocation of a key that the log lacks."""
    for key in repository.keys.values():
        if key.revoked_at is None:
            continue
        sha256 = digest([key.keyid, key.revoked_at, key.revoked_from])
        if logged.log.index_of(EntryKind.REVOCATION, sha256) is None:
            yield LogEntry(
                format=FORMAT,
                kind="revocation",
                file="",
                statement=sha256,
                signer=key.keyid,
                commitment=None,
                identity=None,
                round=beacon.round,
                signature=beacon.signature,
            )
