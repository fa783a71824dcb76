"""Reads tar archives of strangers as a stream: each step of bounded memory and size.

The standard library's reader takes the length of an extended header, and of what it skips, from the
archive. POSIX.1-2001 (pax) and GNU archives, plain or gzip.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

BLOCK = 512
HEADER_MAX = 1 << 16
"""Bytes of an extended header: a path has at most 4,096."""
CHUNK = 1 << 20
GZIP = b"\x1f\x8b"
_REGULAR = (b"0", b"\0", b"7")
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"
_EXTENDED = (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK)
_EXTENDED_MAX = 8
"""Extended headers of one member: writers make at most three."""


class BrokenArchiveError(Exception):
    """The bytes are no archive, or one that nobody needs."""


class ArchiveMember(NamedTuple):
    """One entry of an archive; its content has to be read before the next."""

    name: str
    size: int
    is_file: bool
    source: "_Counted"

    def chunks(self) -> Iterator[bytes]:
        """Yield the content. Raises BrokenArchiveError where the archive ends before it."""
        left = self.size
        while left:
            chunk = self.source.exactly(min(left, CHUNK))
            left -= len(chunk)
            yield chunk


class _Counted:
    """A stream with a limit, which ends only where it may."""

    def __init__(self, stream: io.BufferedIOBase, limit: int) -> None:
        self._stream = stream
        self._left = limit
        self.read = 0

    def some(self, count: int) -> bytes:
        """Return up to `count` bytes: fewer at the end alone."""
        if count > self._left:
            raise BrokenArchiveError("it is larger than any model")
        parts, left = [], count
        while left:
            try:
                part = self._stream.read(left)
            except (gzip.BadGzipFile, zlib.error) as error:
                raise BrokenArchiveError(f"damaged compression: {error}") from error
            if not part:
                break
            parts.append(part)
            left -= len(part)
        found = b"".join(parts)
        self._left -= len(found)
        self.read += len(found)
        return found

    def exactly(self, count: int) -> bytes:
        """Return `count` bytes. Raises BrokenArchiveError where there are fewer."""
        found = self.some(count)
        if len(found) < count:
            raise BrokenArchiveError("it ends in the middle of a file")
        return found

    def skip(self, count: int) -> None:
        """Read over `count` bytes."""
        while count:
            count -= len(self.exactly(min(count, CHUNK)))


def members(stream: io.BufferedIOBase, limit: int) -> Iterator[ArchiveMember]:
    """Yield the members of an archive of at most `limit` unpacked bytes.

    Raises BrokenArchiveError for what is no archive, and what reading the stream raises.
    """
    source = _Counted(_unpacked(stream), limit)
    told: dict[str, str] = {}
    extended = 0
    while True:
        block = source.some(BLOCK)
        if not block or not block.strip(b"\0"):
            return
        if len(block) < BLOCK or _checksum(block) != _number(block[148:156]):
            raise BrokenArchiveError("it is not a tar archive")
        size, kind = _number(block[124:136]), block[156:157]
        if kind in _EXTENDED:
            extended += 1
            if size > HEADER_MAX or extended > _EXTENDED_MAX:
                raise BrokenArchiveError("an extended header is larger than any path")
            content = source.exactly(size)
            source.skip(-size % BLOCK)
            if kind != _PAX_GLOBAL:
                told |= _extended(kind, content)
            continue
        if "size" in told:
            size = _decimal(told["size"])
        name = told.get("path") or _name(block)
        before = source.read
        yield ArchiveMember(name.removeprefix("./"), size, kind in _REGULAR, source)
        source.skip(before + size + (-size % BLOCK) - source.read)
        told, extended = {}, 0


def _unpacked(stream: io.BufferedIOBase) -> io.BufferedIOBase:
    """Return the stream, decompressed where it is gzip."""
    buffered = io.BufferedReader(stream)
    return gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == GZIP else buffered


def _extended(kind: bytes, content: bytes) -> dict[str, str]:
    """Return what an extended header says of path and size."""
    if kind == _LONG_LINK:
        return {}
    if kind == _LONG_NAME:
        return {"path": content.rstrip(b"\0").decode("utf-8", "replace")}
    found = {}
    while content:
        match = re.match(rb"(\d{1,8}) ([^=\n]{1,200})=", content)
        length = int(match[1]) if match else 0
        if match is None or not match.end() < length <= len(content):
            raise BrokenArchiveError("an extended header is damaged")
        key, value = match[2].decode("ascii", "replace"), content[match.end() : length - 1]
        if key in {"path", "size"}:
            found[key] = value.decode("utf-8", "replace")
        elif key.startswith("GNU.sparse"):
            raise BrokenArchiveError("it contains sparse files")
        content = content[length:]
    return found


def _checksum(block: bytes) -> int:
    """Return the sum of a header's bytes, those of the sum itself read as spaces."""
    return sum(block[:148]) + sum(b" " * 8) + sum(block[156:])


def _number(field: bytes) -> int:
    """Return a number of a header: octal text, or base 256 where the first bit is set."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    text = field.strip(b"\0 ") or b"0"
    if not re.fullmatch(rb"[0-7]+", text):
        raise BrokenArchiveError("a number of a header is damaged")
    return int(text, 8)


def _decimal(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise BrokenArchiveError("the size in an extended header is damaged")
    return int(text)


def _name(block: bytes) -> str:
    """Return the path in a header, which has it in two parts."""
    name, prefix = (part.partition(b"\0")[0] for part in (block[:100], block[345:500]))
    is_posix = block[257:263] == b"ustar\0"
    joined = prefix + b"/" + name if is_posix and prefix else name
    return joined.decode("utf-8", "replace")
