"""Reads the Merkle log of audits that boards kept before signed statements named each other.

Such a log is no longer extended. Its entries still count, and every later statement names its
checkpoint. The folder `log` of the audits contains a checkpoint as in c2sp.org/tlog-checkpoint,
signed by a key of the log, and bundles of entries as in c2sp.org/tlog-tiles, from which the root of
the checkpoint is computed.
"""

import base64
import binascii
import functools
import hashlib
import operator
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from geneb_ci.audit.canonical import canonical_json, moment_of
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import is_valid_ed25519
from geneb_ci.audit.sampling.beacon import time_of_round
from reference_harness.formats.base import Hex64, Name, Positive, StrictModel, first_error
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.merkle import leaf_hash, root_of
from reference_harness.formats.text import plural

LOG_FOLDER, CHECKPOINT = "log", "checkpoint"
"""Folder of the old log below the folder of audits, and its file with the signed root."""
LINKS_STEP = "links"
"""Step of a verification: whether all predecessors of a record still exist."""
RESTORE_FIX = "restore leaderboard/audits from the main branch: what was signed is never removed"
"""The fix of an error in the old log."""
CHECKPOINT_BYTES_MAX = 200_000
"""Largest size of a checkpoint, in bytes: with sixteen post-quantum signatures it has 80 kB."""
BUNDLE_WIDTH = 256
"""Number of entries in a full bundle; a bundle is a file with consecutive entries of the log."""
LOG_FILES_MAX = 100_000
"""Largest number of files of a log."""
_LENGTH_BYTES = 2
"""Number of bytes before each entry of a bundle that contain the length of the entry."""
LOG_FILE_BYTES_MAX = BUNDLE_WIDTH * (2**16 - 1 + _LENGTH_BYTES)
"""Largest size of a file of a log, in bytes: that of a full bundle of the longest entries."""
_NUMBERS_PER_FOLDER = 1000
"""Number of bundles or folders in one folder of the log: names have three digits."""
_ED25519_TYPE = 1
"""The byte before an Ed25519 key in the notation of c2sp.org/signed-note."""
_ID_BYTES, _KEY_BYTES = 4, 32
_SIGNATURE_PREFIX = "\N{EM DASH} "
"""Beginning of each line of a checkpoint that has a signature."""
_CHECKPOINT_PATTERN = re.compile(r"([^\n]+)\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n")
"""The signed lines of a checkpoint: name of the log, number of entries, Merkle root."""


class LogBroken(StepMismatch):
    """A log that does not match its checkpoint, or a signed file that was lost."""

    def __init__(self, message: str) -> None:
        super().__init__(LINKS_STEP, message, RESTORE_FIX)


class LogKeys(StrictModel):
    """The name, the keys and the witnesses of a log of audits."""

    origin: Name
    """Name of the log, as the first line of its checkpoints: an address without `https://`."""
    keys: Annotated[list[Name], Field(min_length=1)]
    """Keys of the log, NAME+ID+KEY as in c2sp.org/signed-note; one of them has to sign a
    checkpoint."""
    witnesses: list[Name] = Field(default=[], exclude_if=operator.not_)
    """Keys of witnesses in the same form, whose signatures are not verified."""

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        """Refuse a key that is malformed, or of another log."""
        for text in self.keys:
            _raw_key(self.origin, text)
        return self


def _raw_key(origin: str, text: str) -> bytes:
    """Return the Ed25519 key in a text. Raises ValueError unless it is a key of this log."""
    raw = _decoded_base64(text.rpartition("+")[2])
    if len(raw) != 1 + _KEY_BYTES or raw[0] != _ED25519_TYPE or text != key_text(origin, raw[1:]):
        raise ValueError(f"keys: {text!r} is not a key of the log {origin}, NAME+ID+KEY of type 1")
    return raw[1:]


def key_text(origin: str, raw: bytes) -> str:
    """Return a key of a log as text: name, id and key, with a plus sign between them."""
    encoded = base64.b64encode(bytes([_ED25519_TYPE]) + raw).decode()
    return f"{origin}+{log_key_id(origin, raw).hex()}+{encoded}"


def log_key_id(origin: str, raw: bytes) -> bytes:
    """Return the id of a key: four bytes of SHA-256 over name, newline, type and key."""
    identity = origin.encode() + b"\n" + bytes([_ED25519_TYPE]) + raw
    return hashlib.sha256(identity).digest()[:_ID_BYTES]


class Checkpoint(NamedTuple):
    """The name of a log, the number of its entries, and their Merkle root."""

    origin: str
    size: int
    """Number of entries."""
    root: bytes
    """Merkle root of the entries."""
    text: str
    """The signed text, with its final newline."""
    signatures: tuple[tuple[str, bytes], ...]
    """For each signature, the name of its signer, and the bytes of key id and signature."""


def parse_checkpoint(raw: bytes) -> Checkpoint:
    """Parse a checkpoint without verifying signatures. Raises LogBroken."""
    objection = "the checkpoint of the log cannot be used: "
    try:
        note = raw.decode() if len(raw) <= CHECKPOINT_BYTES_MAX else ""
    except UnicodeDecodeError as error:
        raise LogBroken(f"{objection}it is not UTF-8") from error
    text, _, lines = note.rpartition("\n\n")
    head = _CHECKPOINT_PATTERN.match(f"{text}\n")
    if head is None or not lines.endswith("\n"):
        raise LogBroken(f"{objection}expected the lines name, size, root and signatures")
    signatures = []
    for line in lines[:-1].split("\n"):
        signer, _, encoded = line.removeprefix(_SIGNATURE_PREFIX).partition(" ")
        signatures.append((signer, _decoded_base64(encoded)))
    return Checkpoint(
        head[1], int(head[2]), _decoded_base64(head[3]), f"{text}\n", tuple(signatures)
    )


def _decoded_base64(text: str) -> bytes:
    """Return the bytes of a base64 text; b"" for malformed text and for unusual notations."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return raw if base64.b64encode(raw).decode() == text else b""


def _check_signed(checkpoint: Checkpoint, keys: LogKeys) -> None:
    """Raise LogBroken unless a key of the log signed the checkpoint; others may have signed too."""
    if checkpoint.origin != keys.origin:
        raise LogBroken(
            f"this is the log {checkpoint.origin!r}, expected {keys.origin!r} of the policy"
        )
    for text in keys.keys:
        raw = _raw_key(keys.origin, text)
        expected_id = log_key_id(keys.origin, raw)
        for signer, signature in checkpoint.signatures:
            if (signer, signature[:_ID_BYTES]) == (keys.origin, expected_id) and is_valid_ed25519(
                signature[_ID_BYTES:], checkpoint.text.encode(), raw
            ):
                return
    raise LogBroken("the checkpoint of the log cannot be used: none of the log's keys signed it")


class LogEntry(StrictModel):
    """An entry of the log: a signed statement, its signer, and a beacon round that dates it."""

    format: Literal["geneb-audit-log-v1"]
    kind: Literal["commitment", "start", "abort", "result", "withdrawal", "revocation"]
    file: Annotated[str, Field(max_length=300)]
    """Path of the signed file below the folder of audits; "" for the revocation of a key."""
    statement: Hex64
    """SHA-256 of the signed bytes; for a revocation, of the canonical JSON of its facts."""
    signer: Hex64
    """Id of the key that signed; for a revocation, of the revoked key."""
    commitment: Hex64 | None
    """Digest of the commitment; null for a withdrawal and a revocation."""
    identity: Hex64 | None
    """Digest of code, options and weights; null without a commitment."""
    round: Positive
    """A round of the beacon that was public when the entry was made. It never decreases."""
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{96}$")]
    """The beacon's signature of that round."""

    @property
    def raw(self) -> bytes:
        """The bytes of the entry: its canonical JSON."""
        return canonical_json(self.model_dump())

    @property
    def not_before(self) -> str:
        """The time of the beacon round in the entry, before which the entry was not made."""
        return moment_of(time_of_round(self.round))


@dataclass(frozen=True)
class AuditLog:
    """The entries of a verified log."""

    entries: tuple[LogEntry, ...] = ()

    def index_of(self, kind: str, sha256: str) -> int | None:
        """Return the index of the entry of a statement, given by the SHA-256 of its signed bytes.

        Returns None if the log does not contain it.
        """
        return self._index_by_statement.get((kind, sha256))

    def indices_of(self, kind: str, commitment: str) -> list[int]:
        """Return the indices of the entries of a kind for a commitment, given by its digest."""
        return [
            number
            for number, entry in enumerate(self.entries)
            if entry.kind == kind and entry.commitment == commitment
        ]

    @functools.cached_property
    def _index_by_statement(self) -> dict[tuple[str, str], int]:
        """The index of each entry, by the kind and digest of its statement."""
        return {(entry.kind, entry.statement): number for number, entry in enumerate(self.entries)}


def log_files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file of a log, by its path below the folder. Raises LogBroken."""
    contents: dict[str, bytes] = {}
    for parent, folders, file_names in os.walk(folder):
        folders.sort()
        for file_name in sorted(file_names):
            path = Path(parent) / file_name
            try:
                content = read_regular(path, LOG_FILE_BYTES_MAX, links=False)
            except NotReadable as error:
                raise LogBroken(f"{path}: {error.reason}") from error
            contents[path.relative_to(folder).as_posix()] = content
            if len(contents) > LOG_FILES_MAX:
                raise LogBroken(f"{folder} has more than {LOG_FILES_MAX} files")
    return contents


def read_log(files: Mapping[str, bytes], keys: LogKeys) -> AuditLog:
    """Return the verified log in the files of its folder. Raises LogBroken.

    The checkpoint must be signed by a key of the log, its root must be that of the entries, and the
    rounds of the entries must not decrease. Tiles of hashes, which follow from the entries, are not
    read.
    """
    if CHECKPOINT not in files:
        raise LogBroken("the checkpoint of the log cannot be used: it is missing")
    checkpoint = parse_checkpoint(files[CHECKPOINT])
    _check_signed(checkpoint, keys)
    raw_entries = _entries_of(files, checkpoint.size)
    if root_of([leaf_hash(raw) for raw in raw_entries]) != checkpoint.root:
        raise LogBroken(
            f"the Merkle root of the log's {len(raw_entries)} entries is not that of its "
            "checkpoint: an entry was changed"
        )
    entries = _parsed_entries(raw_entries)
    for number, entry in enumerate(entries[1:], 1):
        if entry.round < entries[number - 1].round:
            raise LogBroken(
                f"entry {number} of the log has an earlier beacon round than the one before it"
            )
    if len({(entry.kind, entry.statement) for entry in entries}) < len(entries):
        raise LogBroken("the log contains an entry twice")
    return AuditLog(entries)


def entries_in(files: Mapping[str, bytes]) -> tuple[LogEntry, ...]:
    """Return the entries in the files of a log, without verifying signature and root.

    Raises LogBroken.
    """
    return _parsed_entries(_entries_of(files, parse_checkpoint(files.get(CHECKPOINT, b"")).size))


def check_extends(files: Mapping[str, bytes], raw_earlier_checkpoint: bytes) -> None:
    """Raise LogBroken unless a log begins with the entries of an earlier checkpoint."""
    if CHECKPOINT not in files:
        raise LogBroken("the checkpoint of the log is missing, and existed before")
    current_checkpoint, earlier_checkpoint = (
        parse_checkpoint(files[CHECKPOINT]),
        parse_checkpoint(raw_earlier_checkpoint),
    )
    leaves = [leaf_hash(raw) for raw in _entries_of(files, current_checkpoint.size)]
    if earlier_checkpoint.size > len(leaves):
        raise LogBroken(
            f"the log has {plural(len(leaves), 'entry')}, and had {earlier_checkpoint.size} "
            "before: entries were removed"
        )
    if (
        current_checkpoint.origin != earlier_checkpoint.origin
        or root_of(leaves[: earlier_checkpoint.size]) != earlier_checkpoint.root
    ):
        raise LogBroken(
            f"the log's first {earlier_checkpoint.size} entries are not those of the earlier "
            "checkpoint: one was changed or removed"
        )


def _entries_of(files: Mapping[str, bytes], size: int) -> list[bytes]:
    """Return the first `size` entries of a log. Raises LogBroken."""
    entries: list[bytes] = []
    while len(entries) < size:
        entry_count = min(BUNDLE_WIDTH, size - len(entries))
        path = bundle_path(len(entries) // BUNDLE_WIDTH, entry_count)
        if path not in files:
            raise LogBroken(f"{path} is missing")
        bundle = _bundle_entries(files[path])
        if bundle is None or len(bundle) != entry_count:
            raise LogBroken(
                f"{path} does not hold {entry_count} entries, each preceded by its length"
            )
        entries += bundle
    return entries


def bundle_path(number: int, entry_count: int) -> str:
    """Return the path of a bundle of `entry_count` entries: its number in groups of three digits.

    Each group but the last begins with `x`; a bundle that is not full ends in `.p/` and the number
    of its entries.
    """
    groups = [f"{number % _NUMBERS_PER_FOLDER:03}"]
    while number := number // _NUMBERS_PER_FOLDER:
        groups.insert(0, f"x{number % _NUMBERS_PER_FOLDER:03}")
    return f"tile/entries/{'/'.join(groups)}" + (
        f".p/{entry_count}" if entry_count < BUNDLE_WIDTH else ""
    )


def _bundle_entries(raw: bytes) -> list[bytes] | None:
    """Return the entries of a bundle; None if the last one is incomplete."""
    entries, end = [], 0
    while end < len(raw):
        start = end + _LENGTH_BYTES
        end = start + int.from_bytes(raw[end:start], "big")
        if start > len(raw) or end > len(raw):
            return None
        entries.append(raw[start:end])
    return entries


def _parsed_entries(raw_entries: Sequence[bytes]) -> tuple[LogEntry, ...]:
    """Return entries from their bytes. Raises LogBroken for bytes that are no canonical JSON."""
    entries = []
    for number, raw in enumerate(raw_entries):
        try:
            entry = LogEntry.model_validate_json(raw)
        except ValidationError as error:
            raise LogBroken(f"entry {number}: {first_error(error)}") from error
        if entry.raw != raw:
            raise LogBroken(f"entry {number} is not canonical JSON")
        entries.append(entry)
    return tuple(entries)
