"""Signed notes, their keys, checkpoints of a log and cosignatures of witnesses.

Specifications: c2sp.org/signed-note, c2sp.org/tlog-checkpoint and c2sp.org/tlog-cosignature.
"""

import base64
import binascii
import hashlib
import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from geneb_ci.audit.record.envelope import is_ed25519
from reference_harness.formats.base import Name, StrictModel

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519, COSIGNATURE = 1, 4
"""Types of signatures: of a log over the text, and of a witness over a time and the text."""
NOTE_BYTES_MAX = 200_000
"""Sixteen signatures, which every reader has to accept, take 80 kB where they are post-quantum."""
_DASH = "\N{EM DASH} "
_ID_BYTES, _TIME_BYTES, _KEY_BYTES, _HASH_BYTES = 4, 8, 32, 32
_HEAD_LINES = 3
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f]")


class NoteKey(NamedTuple):
    """A key that signs notes: of a log, or of a witness."""

    name: str
    kind: int
    raw: bytes
    """The Ed25519 public key, 32 bytes."""

    @property
    def id(self) -> bytes:
        """The four bytes by which a signature names the key."""
        return note_key_id(self.name, self.kind, self.raw)

    @property
    def text(self) -> str:
        """The key as text: name, id and key, with a plus sign between them."""
        return f"{self.name}+{self.id.hex()}+{_base64(bytes([self.kind]) + self.raw)}"


class NoteSignature(NamedTuple):
    """A signature line of a note."""

    name: str
    id: bytes
    signature: bytes
    line: str


class Checkpoint(NamedTuple):
    """The head of a log: how many entries it has, and the root over them."""

    origin: str
    size: int
    root: bytes
    text: str
    """What is signed, with its final newline."""
    signatures: tuple[NoteSignature, ...] = ()

    @property
    def note(self) -> str:
        """The checkpoint with its signatures, as it is written."""
        return self.text + "\n" + "".join(f"{signature.line}\n" for signature in self.signatures)


class NotANote(ValueError):  # noqa: N818 (named after what is wrong)
    """Text that is no checkpoint, or no key; the message says why."""


def note_key_id(name: str, kind: int, raw: bytes) -> bytes:
    """Return the id of a key: four bytes of SHA-256 over name, newline, type and key."""
    return hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + raw).digest()[:_ID_BYTES]


def parse_key(text: str) -> NoteKey:
    """Parse a key of a log or of a witness. Raises NotANote."""
    name, plus, rest = text.partition("+")
    written, colon, encoded = rest.partition("+")
    if not plus or not colon or not is_key_name(name):
        raise NotANote("a key is written NAME+ID+KEY, and its name has no space")
    raw = _bytes(encoded)
    if raw is None or len(raw) != 1 + _KEY_BYTES or raw[0] not in {ED25519, COSIGNATURE}:
        raise NotANote("the key is not base64 of a type, 1 or 4, and 32 bytes of Ed25519")
    key = NoteKey(name, raw[0], raw[1:])
    if key.text != text:
        raise NotANote(f"its id is {written!r}, that of this name and key is {key.id.hex()}")
    return key


class LogKeys(StrictModel):
    """The log of audits: its name, its keys and the witnesses that may cosign its checkpoints."""

    origin: Name
    """Name of the log, as the first line of its checkpoints: an address without `https://`."""
    keys: Annotated[list[Name], Field(min_length=1)]
    """Keys whose signature a checkpoint needs one of: NAME+ID+KEY as c2sp.org/signed-note
    writes them, each with the name of the log."""
    witnesses: list[Name] = Field(default=[], exclude_if=operator.not_)
    """Keys of witnesses, in the same form; their cosignatures are verified and shown."""

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        wrong = [key.name for key in self.signers if (key.name, key.kind) != (self.origin, ED25519)]
        if wrong:
            raise ValueError(f"keys has one that is not of the log {self.origin} and of type 1")
        if any(key.kind != COSIGNATURE for key in self.observers):
            raise ValueError("witnesses has a key that is not of type 4")
        return self

    @property
    def signers(self) -> list[NoteKey]:
        """The keys of the log."""
        return [parse_key(text) for text in self.keys]

    @property
    def observers(self) -> list[NoteKey]:
        """The keys of the witnesses."""
        return [parse_key(text) for text in self.witnesses]


def is_key_name(name: str) -> bool:
    """Whether a text may name a key: not empty, no space, no plus sign, no control character."""
    return bool(name) and "+" not in name and name.isprintable() and not re.search(r"\s", name)


def checkpoint_text(origin: str, size: int, root: bytes) -> str:
    """Return what a log signs: its name, the number of entries and the root."""
    return f"{origin}\n{size}\n{_base64(root)}\n"


def signed_checkpoint(origin: str, size: int, root: bytes, key: "Ed25519PrivateKey") -> Checkpoint:
    """Return a checkpoint with the signature of the log, whose key has the name of the log."""
    text = checkpoint_text(origin, size, root)
    own = note_key_id(origin, ED25519, key.public_key().public_bytes_raw())
    signature = key.sign(text.encode())
    line = f"{_DASH}{origin} {_base64(own + signature)}"
    return Checkpoint(origin, size, root, text, (NoteSignature(origin, own, signature, line),))


def parse_checkpoint(raw: bytes) -> Checkpoint:
    """Parse a checkpoint; no signature is verified. Raises NotANote."""
    if len(raw) > NOTE_BYTES_MAX:
        raise NotANote(f"it has {len(raw):,} bytes, at most {NOTE_BYTES_MAX:,} are read")
    try:
        note = raw.decode()
    except UnicodeDecodeError as error:
        raise NotANote("it is not UTF-8") from error
    body, blank, lines = note.rpartition("\n\n")
    if not blank or not lines.endswith("\n") or _CONTROLS.search(note):
        raise NotANote("it is not a text, an empty line and signatures, each line with its end")
    signatures = tuple(_signature(line) for line in lines[:-1].split("\n"))
    head = body.split("\n")
    if len(head) < _HEAD_LINES or not all(head):
        raise NotANote("it has not three lines or more, none of them empty")
    origin, size, root = head[:_HEAD_LINES]
    digest = _bytes(root)
    if not _NUMBER.fullmatch(size) or digest is None or len(digest) != _HASH_BYTES:
        raise NotANote("its second and third line are not a number of entries and a root")
    return Checkpoint(origin, int(size), digest, body + "\n", signatures)


def _signature(line: str) -> NoteSignature:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    raw = _bytes(encoded)
    if not line.startswith(_DASH) or not is_key_name(name) or raw is None or len(raw) <= _ID_BYTES:
        raise NotANote("a line after the empty one is not a signature")
    return NoteSignature(name, raw[:_ID_BYTES], raw[_ID_BYTES:], line)


def check_signed(checkpoint: Checkpoint, keys: Sequence[NoteKey]) -> None:
    """Raise NotANote unless a key of the log signed; a wrong signature of one refuses the note.

    Signatures of unknown keys are ignored, as the specification requires.
    """
    valid = 0
    for key in keys:
        for signature in checkpoint.signatures:
            if (signature.name, signature.id) != (key.name, key.id):
                continue
            if not is_ed25519(signature.signature, checkpoint.text.encode(), key.raw):
                raise NotANote(f"the signature by {key.name} is not over this text")
            valid += 1
    if not valid:
        raise NotANote("none of the log's keys signed it")


class WitnessSignature(NamedTuple):
    """A witness that saw a checkpoint as the newest one of its log."""

    name: str
    time: int
    """Seconds since 1970, by the clock of the witness."""


def witnesses_of(checkpoint: Checkpoint, witnesses: Sequence[NoteKey]) -> list[WitnessSignature]:
    """Return the known witnesses that signed. Raises NotANote for a wrong signature of one."""
    signed_by = []
    for key in witnesses:
        for signature in checkpoint.signatures:
            if (signature.name, signature.id) != (key.name, key.id):
                continue
            time = int.from_bytes(signature.signature[:_TIME_BYTES], "big")
            message = f"cosignature/v1\ntime {time}\n{checkpoint.text}".encode()
            if not is_ed25519(signature.signature[_TIME_BYTES:], message, key.raw):
                raise NotANote(f"the cosignature by {key.name} is not over this text and time")
            signed_by.append(WitnessSignature(key.name, time))
    return signed_by


def hash_lines(hashes: Sequence[bytes]) -> str:
    """Return hashes in base64, one a line, as proofs are written."""
    return "".join(f"{_base64(digest)}\n" for digest in hashes)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: str) -> bytes | None:
    """Return the bytes of canonical base64; None for any other text."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _base64(raw) == text else None
