"""Texts of a board's files, put together from pieces, so that a later build makes only new ones.

A piece that the file already has is copied from it. The file must have the digest that it was
written with: what anybody changed, cut or exchanged is made again.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from geneb_ci.common.errors import unwritable
from geneb_ci.common.files import MODE, KeptBytes, in_processes, numbers_text, opened

if TYPE_CHECKING:
    import io

KEY_BYTES = 16


class KeptPieces(KeptBytes, Protocol):
    """What keeps bytes, or perhaps nothing, as `Parts` do."""

    @property
    def is_kept(self) -> bool:
        """Whether anything is kept."""


class Piece(NamedTuple):
    """A piece of a text, and a digest of all that it follows from."""

    key: bytes
    make: Callable[[], bytes]
    before: bytes
    """What stands before it and belongs to it, such as a comma."""

    def text(self) -> bytes:
        """Return the piece as it stands in the text."""
        return self.before + self.make()


Chunk = bytes | Piece
"""A part of a text: as it is, or to be made."""
Text = Callable[[], Iterable[Chunk]]


def piece(known: bytes, make: Callable[[], bytes], before: bytes = b"") -> Piece:
    """Return a piece that follows from known bytes, what stands before it, and the code, alone."""
    key = hashlib.blake2b(known, key=before, digest_size=KEY_BYTES).digest()
    return Piece(key, make, before)


def joined(chunks: Iterable[Chunk]) -> bytes:
    """Return a text whole."""
    return b"".join(one if isinstance(one, bytes) else one.text() for one in chunks)


def number_texts(values: list[Any]) -> list[str]:
    """Return the JSON text of each number, truth value or None of a list, which is made at once."""
    return numbers_text(values)[1:-1].decode().split(",") if values else []


_HEAD, _TAIL = '(globalThis.geneb??={{}})["{}"]=JSON.parse(', b");\n"


def ascii_text(value: object) -> bytes:
    """Return a value as compact JSON in ASCII, without NaN; halves of surrogate pairs are kept."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def script_of(name: str, text: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield a script that holds the value of a JSON text; pieces of it have digits and commas.

    It is ASCII, and a text for JSON.parse, so nothing in it runs. Parsing a text is also faster
    than reading a literal, and `__proto__` is a key like any other.
    """
    yield _HEAD.format(name).encode() + b'"'
    for chunk in text:
        if isinstance(chunk, Piece):
            yield chunk
        else:
            yield json.dumps(chunk.decode())[1:-1].encode()
    yield b'"' + _TAIL


DIGEST_DIGITS = 16
"""Of the digest in the name of a script: a reader's caches hold few boards."""
_SCRIPT = re.compile(rf"board-(?P<part>[a-z]+(?:-[0-9]+)?)\.[0-9a-f]{{{DIGEST_DIGITS}}}\.js")


def script_name(part: str, digest: str) -> str:
    """Name the script of a part of the page's data, on the board of a digest."""
    return f"board-{part}.{digest}.js"


def part_of(name: str) -> str | None:
    """Return the part of the page's data that a script has, of whichever board; None for others."""
    found = _SCRIPT.fullmatch(name)
    return found["part"] if found else None


class Texts(Mapping[str, bytes]):
    """Files by name, each made whole when it is asked for, or written piece by piece."""

    def __init__(self, makers: Mapping[str, Text]) -> None:
        self.makers = dict(makers)
        self._whole: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> bytes:
        if name not in self._whole:
            self._whole[name] = joined(self.makers[name]())
        return self._whole[name]

    def __contains__(self, name: object) -> bool:
        return name in self.makers

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)

    def also(self, others: Mapping[str, bytes]) -> "Texts":
        """Return these files and others, which are made already."""
        return Texts(self.makers | {name: [one].copy for name, one in others.items()})

    def __or__(self, others: Mapping[str, bytes]) -> dict[str, bytes]:
        return {**self, **others}

    def __ror__(self, others: Mapping[str, bytes]) -> dict[str, bytes]:
        return {**others, **self}


def write_texts(folder: Path, texts: Texts, parts: KeptPieces, jobs: int) -> None:
    """Write files by so many processes, each whole or not at all, and none before all are made.

    `parts` keeps what they consist of. A file that has the same bytes is left as it is. Pieces of
    a script are copied from that of the same part of another board.
    Raises UsageProblem where another folder helps, MachineFault where the disk is full or fails.
    """
    names, own = list(texts), secrets.token_hex(4)
    staged = [folder / f".{name}.{own}" for name in names]
    former_names: dict[str | None, str] = {}
    """Part of the page's data to its script in the folder."""

    def write(number: int) -> bytes:
        name = names[number]
        former = folder / former_names.get(part_of(name) or "", name)
        return _written(folder / name, former, staged[number], texts.makers[name], parts)

    try:
        folder.mkdir(parents=True, exist_ok=True)
        former_names |= {part_of(path.name): path.name for path in sorted(folder.iterdir())}
        former_names |= {part_of(name): name for name in names if (folder / name).exists()}
        for name, index in zip(names, in_processes(write, range(len(names)), jobs, 1), strict=True):
            parts.keep(_index_key(name, index[:DIGEST]), index)
        for name, temporary in zip(names, staged, strict=True):
            if temporary.exists():
                temporary.replace(folder / name)
    except OSError as error:
        raise unwritable(str(folder), error, "name a folder that you may write to") from error
    finally:
        for temporary in staged:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


DIGEST = hashlib.sha256().digest_size
_PIECE = struct.Struct(f"<{KEY_BYTES}sQQ")
"""Of the index of a file: the key of a piece, its place and its length in bytes."""


def _index_key(name: str, digest: bytes) -> str:
    known = (part_of(name) or name).encode()
    return hashlib.sha256(b"text\0" + known + b"\0" + digest).hexdigest()


class _Former:
    """A file that an earlier build wrote: where it has which piece, as far as that is known."""

    def __init__(self, path: Path, parts: KeptPieces) -> None:
        """Open a file and compare its digest; what is none of ours has no piece."""
        self.index, self.digest, self.size = b"", b"", 0
        self.places: dict[bytes, tuple[int, int]] = {}
        """Key of a piece to its start and end."""
        self._stream: io.FileIO | None = None
        try:
            stream = opened(path)
            self._stream, self.size = stream, os.fstat(stream.fileno()).st_size
            if not parts.is_kept:
                return
            self.digest = hashlib.file_digest(stream, "sha256").digest()
        except OSError:
            return
        index = parts.kept(_index_key(path.name, self.digest)) or b""
        if index[:DIGEST] != self.digest or (len(index) - DIGEST) % _PIECE.size:
            return
        listed = _PIECE.iter_unpack(index[DIGEST:])
        places = {key: (start, start + length) for key, start, length in listed}
        if all(end <= self.size for _, end in places.values()):
            self.index, self.places = index, places

    @property
    def is_there(self) -> bool:
        """Whether there is a file."""
        return self._stream is not None

    def read(self, start: int, length: int) -> bytes:
        """Return bytes of the file; fewer at its end."""
        return b"" if self._stream is None else os.pread(self._stream.fileno(), length, start)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()


class _Output:
    """Writes a text; neighbouring pieces of the former file are copied together."""

    def __init__(self, former: _Former, path: Path, *, is_same: bool) -> None:
        self._former, self._path, self._is_same = former, path, is_same
        self._stream: io.BufferedWriter | None = None
        self._start = self._end = self._written = 0
        """What is to be copied from the former file, and the bytes before it."""
        self._digest, self._index = hashlib.sha256(), bytearray()

    def take(self, chunk: Chunk) -> None:
        """Write the next part of the text, or note where it is to be copied from."""
        if isinstance(chunk, bytes):
            self._take_bytes(chunk)
            return
        at = self._written + self._end - self._start
        place = self._former.places.get(chunk.key)
        if place is None:
            made = chunk.text()
            self._take_bytes(made)
            length = len(made)
        else:
            length = place[1] - place[0]
            if place[0] != self._end:
                self._copy()
                self._start = place[0]
            self._end = place[1]
        self._index += _PIECE.pack(chunk.key, at, length)

    def _take_bytes(self, content: bytes) -> None:
        # A file of which nothing is known can still be the same.
        may_be_there = self._former.places or self._stream is None
        if may_be_there and self._former.read(self._end, len(content)) == content:
            self._end += len(content)
            return
        self._copy()
        self._write(content)

    def _write(self, content: bytes) -> None:
        if self._stream is None:
            self._path.unlink(missing_ok=True)  # of a process that was killed
            self._stream = self._path.open("xb")
        self._digest.update(content)
        self._stream.write(content)
        self._written += len(content)

    def _copy(self) -> None:
        while self._start < self._end:
            block = self._former.read(self._start, min(BLOCK_BYTES, self._end - self._start))
            if not block:
                raise OSError(errno.EIO, "the file was cut while it was copied")
            self._write(block)
            self._start += len(block)

    def end(self) -> bytes:
        """Return the index of the text: that of the former file where nothing was written."""
        is_whole = self._former.is_there and (self._start, self._end) == (0, self._former.size)
        if self._stream is None and is_whole and self._is_same:
            return self._former.index or self._former.digest + bytes(self._index)
        self._copy()
        self._write(b"")
        if self._stream is not None:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._path.chmod(MODE)
        return self._digest.digest() + bytes(self._index)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()


BLOCK_BYTES = 1 << 18
"""Copied at once: a megabyte leaves the processor's cache before it is hashed and written."""


def _written(path: Path, earlier: Path, temporary: Path, text: Text, parts: KeptPieces) -> bytes:
    """Write a text to a temporary file, or nothing where the file has it; return its index.

    Its pieces are copied from an earlier file, which may be the same.
    """
    with (
        contextlib.closing(_Former(earlier, parts)) as former,
        contextlib.closing(_Output(former, temporary, is_same=path == earlier)) as output,
    ):
        for chunk in text():
            output.take(chunk)
        return output.end()
