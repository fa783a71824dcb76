"""The log of a repository beside its files: what it lists and is lost, and what it lacks."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from geneb_ci.audit.applicability import Logged
from geneb_ci.audit.envelope import parse_envelope
from geneb_ci.audit.events import AuditEvent, EntryKind
from geneb_ci.audit.keys import Keys, LogKeys
from geneb_ci.audit.log import FOLDER, LOG, AuditLog, LogBroken, LogEntry, log_files, read_log
from geneb_ci.audit.log_check import BROKEN, KEYS
from geneb_ci.audit.note import Checkpoint, checkpoint_text
from geneb_ci.audit.record import read_record
from geneb_ci.audit.steps import StepMismatch
from geneb_ci.common.merkle import root_of
from geneb_ci.submission.paths import is_folder


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


def logged_of(
    keys: LogKeys,
    audits: Path | None,
    events: Mapping[Path, AuditEvent | StepMismatch],
    trusted: Keys,
) -> Logged:
    """Return the log of a folder of audits, and each file that it lists and that is lost.

    `events` are the commitments, starts and aborts of the folder.
    """
    try:
        log = log_at(audits, keys)
    except LogBroken as error:
        return Logged(empty_log(keys.origin), {}, {BROKEN: error.message.removeprefix(f"{LOG}: ")})
    commitments = {
        event.commitment.sha256: event.commitment
        for event in events.values()
        if isinstance(event, AuditEvent)
        and event.kind is EntryKind.COMMITMENT
        and log.index_of(event.kind, event.sha256) is not None
    }
    return Logged(log, commitments, dict(_lost(log, audits, trusted)))


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
        found = parse_envelope(read_record(path))
    except StepMismatch:
        return "was changed"
    if hashlib.sha256(found.payload).hexdigest() != entry.statement:
        return "was changed"
    return "" if found.keyid == entry.signer else "was signed again by another key"
