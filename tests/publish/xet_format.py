"""What a client of Xet storage sends: xorbs, which are chunks, and shards, which list files.

Written from the format's public description. A digest is four little-endian words of 8 bytes, each
printed as hex: `digest`. Records of a shard have 48 bytes; 32 bytes of ones end each list.
"""

import functools
import struct
from collections.abc import Iterator
from typing import NamedTuple

_SHARD_HEADER = 48  # 32 bytes of tag, version, size of the footer
_RECORD = 48
_END = b"\xff" * 32
_VERIFIED, _DESCRIBED = 1 << 31, 1 << 30
"""Flags of a file: as many more records, with a digest of each term; one more, with the sha256."""
_STORED, _LZ4, _LZ4_GROUPED = 0, 1, 2
"""How a chunk is packed: not at all; as an LZ4 frame; so after its bytes were grouped by four."""
_CHUNK_HEADER = 8


class Term(NamedTuple):
    """Part of a file: the chunks of a xorb from `start` up to `end`."""

    xorb: str
    size: int
    start: int
    end: int


class File(NamedTuple):
    """One file of a shard."""

    name: str
    sha256: str
    terms: tuple[Term, ...]


class Chunk(NamedTuple):
    """One chunk of a xorb: where its packed bytes lie, and what they hold."""

    start: int
    end: int
    content: bytes


def digest(raw: bytes) -> str:
    return "".join(f"{word:016x}" for word in struct.unpack("<4Q", raw))


def files_of(shard: bytes) -> Iterator[File]:
    """Read the list of files, which comes first in a shard."""
    at = _SHARD_HEADER
    while shard[at : at + 32] != _END:
        name, flags, count = digest(shard[at : at + 32]), *struct.unpack_from("<II", shard, at + 32)
        at += _RECORD
        terms = []
        for _ in range(count):
            _, size, start, end = struct.unpack_from("<4I", shard, at + 32)
            terms.append(Term(digest(shard[at : at + 32]), size, start, end))
            at += _RECORD
        at += _RECORD * count * bool(flags & _VERIFIED)
        if not flags & _DESCRIBED:
            raise ValueError("a file of the shard has no sha256")
        yield File(name, digest(shard[at : at + 32]), tuple(terms))
        at += _RECORD


@functools.lru_cache(maxsize=4)
def chunks_of(xorb: bytes) -> tuple[Chunk, ...]:
    """Unpack every chunk of a xorb, once: each file in it is asked for by itself."""
    chunks, at = [], 0
    while at < len(xorb):
        packed = int.from_bytes(xorb[at + 1 : at + 4], "little")
        scheme, size = xorb[at + 4], int.from_bytes(xorb[at + 5 : at + 8], "little")
        end = at + _CHUNK_HEADER + packed
        if xorb[at] or end > len(xorb):
            raise ValueError(f"no chunk at byte {at} of the xorb")
        content = _unpacked(scheme, xorb[at + _CHUNK_HEADER : end])
        if len(content) != size:
            raise ValueError(f"the chunk at byte {at} has {len(content)} bytes, not {size}")
        chunks.append(Chunk(at, end, content))
        at = end
    return tuple(chunks)


def stored(content: bytes) -> bytes:
    """Make a chunk that is not packed."""
    size = len(content).to_bytes(3, "little")
    return b"\0" + size + bytes([_STORED]) + size + content


def _unpacked(scheme: int, raw: bytes) -> bytes:
    if scheme == _STORED:
        return raw
    if scheme not in {_LZ4, _LZ4_GROUPED}:
        raise ValueError(f"chunks are not packed by scheme {scheme}")
    content = _lz4_frame(raw)
    if scheme == _LZ4:
        return content
    spread, at = bytearray(len(content)), 0
    for lane in range(4):
        count = len(spread[lane::4])
        spread[lane::4] = content[at : at + count]
        at += count
    return bytes(spread)


def _lz4_frame(raw: bytes) -> bytes:
    flags = raw[4]
    checked, sized, summed, named = flags & 16, flags & 8, flags & 4, flags & 1
    at = 4 + 2 + (8 if sized else 0) + (4 if named else 0) + 1
    content = bytearray()
    while size := int.from_bytes(raw[at : at + 4], "little"):
        at += 4
        length = size & 0x7FFFFFFF
        block = raw[at : at + length]
        if size >> 31:
            content += block
        else:
            _lz4_block(block, content)
        at += length + (4 if checked else 0)
    if at + 4 + (4 if summed else 0) != len(raw):
        raise ValueError("bytes after the end of an LZ4 frame")
    return bytes(content)


def _lz4_block(block: bytes, content: bytearray) -> None:
    at = 0

    def length(four: int) -> int:
        nonlocal at
        total, more = four, 255 if four == 15 else 0
        while more == 255:  # a full byte says that another follows
            more = block[at]
            total, at = total + more, at + 1
        return total

    while at < len(block):
        token = block[at]
        at += 1
        literals = length(token >> 4)
        content += block[at : at + literals]
        at += literals
        if at == len(block):
            return  # the last sequence has literals alone
        back = int.from_bytes(block[at : at + 2], "little")
        at += 2
        copied = length(token & 15) + 4
        start = len(content) - back
        piece = bytes(content[start : start + copied])
        content += (piece * (copied // len(piece) + 1))[:copied]
