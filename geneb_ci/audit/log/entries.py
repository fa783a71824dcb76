"""The log of audits: entries in an append-only Merkle tree, with a signed checkpoint.

It lies in `leaderboard/audits/log/` as c2sp.org/tlog-tiles lays a log out. Every file of it is a
function of the entries but the checkpoint, which the log's key signs.
"""

import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from geneb_ci.audit.canonical import StepMismatch, canonical, moment_of
from geneb_ci.audit.log.checkpoint import (
    Checkpoint,
    LogKeys,
    NotANote,
    WitnessSignature,
    check_signed,
    parse_checkpoint,
    signed_checkpoint,
    witnesses_of,
)
from geneb_ci.audit.log.tiles import ENTRY_BYTES_MAX, BadBundle, read_entries, tile_files
from geneb_ci.audit.record.events import EntryKind
from geneb_ci.audit.sampling.beacon import time_of
from reference_harness.formats.base import Hex64, Positive, StrictModel, first_error
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.merkle import leaf_hash, root_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FOLDER, CHECKPOINT = "log", "checkpoint"
LOG = "log"
"""Step of a verification."""
FORMAT: Literal["geneb-audit-log-v1"] = "geneb-audit-log-v1"
FILE_BYTES_MAX = 256 * (ENTRY_BYTES_MAX + 2)
"""A full bundle of the largest entries."""
FILES_MAX = 100_000
"""An append adds at most five files; more than this are no log of audits."""
RESTORE_LOG = (
    "restore leaderboard/audits/log and what it lists from the main branch: entries are only added"
)


class LogEntry(StrictModel):
    """One entry: what was signed, by whom, and a beacon's round that was public before."""

    format: Literal["geneb-audit-log-v1"]
    kind: Literal["commitment", "start", "abort", "result", "withdrawal", "revocation"]
    file: Annotated[str, Field(max_length=300)]
    """Path of the signed file below the folder of audits; "" for the revocation of a key."""
    statement: Hex64
    """SHA-256 of the signed bytes; of the canonical JSON of its facts for a revocation."""
    signer: Hex64
    """Key that signed; the one that is revoked, for a revocation."""
    commitment: Hex64 | None
    """Digest of the commitment; null for a withdrawal and a revocation."""
    identity: Hex64 | None
    """Digest of code, options and weights; null where there is no commitment."""
    round: Positive
    """A round of the beacon that was public when the entry was made. It never decreases."""
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{96}$")]
    """The beacon's signature of that round."""

    @property
    def raw(self) -> bytes:
        """The bytes of the entry: its canonical JSON."""
        return canonical(self.model_dump())

    @property
    def not_before(self) -> str:
        """The time of its round: the entry was not made earlier."""
        return moment_of(time_of(self.round))


class LogBroken(StepMismatch):
    """A log that is not what its checkpoint says, or that lost an entry."""

    def __init__(self, message: str) -> None:
        super().__init__(LOG, message, RESTORE_LOG)


@dataclass(frozen=True)
class AuditLog:
    """A log that was read: its checkpoint is signed, and its root is that of the entries."""

    checkpoint: Checkpoint
    entries: tuple[LogEntry, ...]
    leaves: tuple[bytes, ...]
    witnesses: tuple[WitnessSignature, ...] = ()

    def index_of(self, kind: EntryKind, sha256: str) -> int | None:
        """Return the number of the entry of a signed file, by the digest of what was signed."""
        return self._by_statement.get((kind.value, sha256))

    def indices_of(self, kind: EntryKind, commitment: str) -> list[int]:
        """Return the numbers of the entries of a kind for a commitment, given by its digest."""
        return [
            number
            for number, entry in enumerate(self.entries)
            if entry.kind == kind.value and entry.commitment == commitment
        ]

    @functools.cached_property
    def _by_statement(self) -> dict[tuple[str, str], int]:
        return {(entry.kind, entry.statement): number for number, entry in enumerate(self.entries)}

    def check_follows(self, earlier: Checkpoint) -> None:
        """Raise LogBroken unless the log begins with the tree of an earlier checkpoint of it."""
        if earlier.origin != self.checkpoint.origin:
            raise LogBroken(
                f"the checkpoint is of the log {earlier.origin!r}, this one is "
                f"{self.checkpoint.origin!r}"
            )
        if earlier.size > len(self.leaves):
            raise LogBroken(
                f"it has {len(self.leaves)} entries, and had {earlier.size} before: entries were "
                "removed"
            )
        if root_of(self.leaves[: earlier.size]) != earlier.root:
            raise LogBroken(
                f"its first {earlier.size} entries are not those of the earlier checkpoint: one "
                "was changed or removed"
            )


def log_files(folder: Path) -> dict[str, bytes]:
    """Read every file of a log: path below its folder to content. Raises LogBroken."""
    contents: dict[str, bytes] = {}
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            try:
                content = read_regular(path, FILE_BYTES_MAX, links=False)
            except NotReadable as error:
                raise LogBroken(f"{path}: {error.reason}") from error
            contents[path.relative_to(folder).as_posix()] = content
            if len(contents) > FILES_MAX:
                raise LogBroken(f"{folder} has more than {FILES_MAX} files")
    return contents


def read_log(files: Mapping[str, bytes], keys: LogKeys) -> AuditLog:
    """Return a log from its files, recomputed from its entries.

    Raises LogBroken when the checkpoint is not signed by the log, or anything is not what follows
    from the entries.
    """
    try:
        checkpoint = parse_checkpoint(files.get(CHECKPOINT, b""))
        check_signed(checkpoint, keys.signers)
        seen = witnesses_of(checkpoint, keys.observers)
    except NotANote as error:
        missing = "it is missing" if CHECKPOINT not in files else str(error)
        raise LogBroken(f"its checkpoint cannot be used: {missing}") from error
    if checkpoint.origin != keys.origin:
        raise LogBroken(f"it is the log {checkpoint.origin!r}, the policy names {keys.origin!r}")
    try:
        raws = read_entries(files, checkpoint.size)
    except BadBundle as error:
        raise LogBroken(str(error)) from error
    leaves = tuple(leaf_hash(raw_entry) for raw_entry in raws)
    if root_of(leaves) != checkpoint.root:
        raise LogBroken(
            f"the root over its {len(raws)} entries is not that of the checkpoint: one was changed"
        )
    _check_files(files, raws)
    entries = tuple(_entry(number, raw) for number, raw in enumerate(raws))
    _check_order(entries)
    return AuditLog(checkpoint, entries, leaves, tuple(seen))


def entries_in(files: Mapping[str, bytes]) -> tuple[LogEntry, ...]:
    """Return the entries that the files of a log hold; no signature and no root is verified.

    Raises LogBroken.
    """
    try:
        size = parse_checkpoint(files.get(CHECKPOINT, b"")).size
        return tuple(_entry(number, raw) for number, raw in enumerate(read_entries(files, size)))
    except (NotANote, BadBundle) as error:
        raise LogBroken(str(error)) from error


def check_extends(files: Mapping[str, bytes], earlier: Mapping[str, bytes]) -> None:
    """Refuse a log that does not begin with an earlier one; both are given by their files.

    Of the earlier one the checkpoint is enough; no signature is verified. Raises LogBroken.
    """
    if CHECKPOINT not in files:
        raise LogBroken("it is missing, and was there before")
    try:
        own = parse_checkpoint(files[CHECKPOINT])
        before = parse_checkpoint(earlier[CHECKPOINT])
        leaves = tuple(leaf_hash(raw_entry) for raw_entry in read_entries(files, own.size))
    except (NotANote, BadBundle) as error:
        raise LogBroken(str(error)) from error
    AuditLog(own, (), leaves).check_follows(before)


def _entry(number: int, raw: bytes) -> LogEntry:
    try:
        entry = LogEntry.model_validate_json(raw)
    except ValidationError as error:
        raise LogBroken(f"entry {number}: {first_error(error)}") from error
    if entry.raw != raw:
        raise LogBroken(f"entry {number} is not canonical JSON")
    return entry


def _check_files(files: Mapping[str, bytes], raws: Sequence[bytes]) -> None:
    """Refuse tiles that do not follow from the entries, and files that do not belong to the log."""
    expected = tile_files(raws)
    whole = {path.partition(".p/")[0]: content for path, content in expected.items()}
    for path, content in files.items():
        tile, partial, _ = path.partition(".p/")
        # A partial tile of an earlier checkpoint stays.
        is_earlier = bool(partial) and whole.get(tile, b"").startswith(content)
        if path != CHECKPOINT and expected.get(path) != content and not is_earlier:
            raise LogBroken(f"{path} does not follow from the entries")
    for path in expected:
        if path not in files:
            raise LogBroken(f"{path} is missing")


def _check_order(entries: Sequence[LogEntry]) -> None:
    for number, (before, after) in enumerate(itertools.pairwise(entries), 1):
        if after.round < before.round:
            raise LogBroken(
                f"entry {number} names round {after.round} of the beacon, the entry before it "
                f"round {before.round}: time goes forward"
            )
    seen: dict[tuple[str, str], int] = {}
    for number, entry in enumerate(entries):
        first = seen.setdefault((entry.kind, entry.statement), number)
        if first != number:
            raise LogBroken(f"entry {number} is entry {first} again")


def files_with_entries(
    log: AuditLog | None, new: Sequence[LogEntry], origin: str, key: "Ed25519PrivateKey"
) -> dict[str, bytes]:
    """Return the files of a log with new entries: path below its folder to content.

    Files of earlier checkpoints are not among them: they stay as they are.
    Raises LogBroken for entries that may not follow, such as one with an earlier round.
    """
    entries = [*(log.entries if log is not None else ()), *new]
    _check_order(entries)
    raws = [entry.raw for entry in entries]
    if any(len(raw) > ENTRY_BYTES_MAX for raw in raws):
        raise LogBroken(f"an entry has more than {ENTRY_BYTES_MAX} bytes")
    root = root_of([leaf_hash(raw) for raw in raws])
    checkpoint = signed_checkpoint(origin, len(raws), root, key)
    return {**tile_files(raws), CHECKPOINT: checkpoint.note.encode()}
