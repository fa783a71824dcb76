"""One file of the cache of embeddings, and how damage to it is found.

A shard is one line with the CRC-32 of a JSON object and that object, then n digests of 16 bytes,
then the (n, d) matrix in the same order. Checksums cover every byte.
"""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import DIGEST_BYTES

SHARD_FORMAT = 2
"""Version of the format of shards."""
SHARD_SUFFIX = ".shard"
"""Ending of the name of a shard."""
DAMAGED_SUFFIX = ".damaged"
"""Appended to the name of a damaged shard, which is kept to help find the cause."""
READ_BYTES = 1 << 18
"""Number of bytes read at once, at least one embedding: as many as fit into a processor's cache."""
_HEADER_MAX = 4096  # a header has about 150 bytes
Embeddings = npt.NDArray[np.floating[Any]]


class ShardHeader(NamedTuple):
    """The header of a shard, one line of JSON."""

    rows: int
    """Number of embeddings."""
    dim: int
    """Width of the embeddings."""
    dtype: str
    digests_crc: int
    """CRC-32 of the digests."""
    crc: int
    """CRC-32 of the matrix."""
    token_budget: int
    """Maximum number of padded tokens of a batch when the embeddings were computed; 0 for no
    limit."""
    start: int
    """Number of bytes before the digests."""


class ForeignShardError(Exception):
    """A shard has another version of this format."""


class DamagedShardError(Exception):
    """The bytes of a shard have changed; the message says which."""


def checksum(header: bytes) -> bytes:
    """Return the checksum of a shard's header as eight hex digits; the shard begins with them."""
    return b"%08x" % zlib.crc32(header)


def header_of(shard: Path) -> ShardHeader:
    """Return the header of a shard. Raise DamagedShardError if it or the file's size is wrong."""
    with shard.open("rb") as stream:
        line = stream.readline(_HEADER_MAX)
    stated_checksum, _, header_json = line.removesuffix(b"\n").partition(b" ")
    if stated_checksum != checksum(header_json) or not line.endswith(b"\n"):
        raise DamagedShardError("the header is damaged")
    try:
        members = json.loads(header_json)
        if members["format"] != SHARD_FORMAT:
            raise ForeignShardError
        header = ShardHeader(
            rows=members["count"],
            dim=members["dim"],
            dtype=members["dtype"],
            digests_crc=members["names_crc"],
            crc=members["crc"],
            token_budget=members["token_budget"],
            start=len(line),
        )
        item_bytes = np.dtype(header.dtype).itemsize
        size = header.start + header.rows * (DIGEST_BYTES + header.dim * item_bytes)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise DamagedShardError("the header has other members than its format") from error
    if (actual_size := shard.stat().st_size) != size:
        raise DamagedShardError(f"{actual_size} bytes, expected {size}")
    return header


def digests_in(shard: Path) -> bytes:
    """Return the digests of a shard, joined. Raise DamagedShardError."""
    header = header_of(shard)
    with shard.open("rb") as stream:
        stream.seek(header.start)
        digests = stream.read(header.rows * DIGEST_BYTES)
    if zlib.crc32(digests) != header.digests_crc:
        raise DamagedShardError("the digests are damaged")
    return digests


def blocks_in(shard: Path, header: ShardHeader) -> Iterator[tuple[int, Embeddings]]:
    """Yield the (n, d) matrix of a shard in blocks, each with the index of its first row.

    A block is overwritten by the next. Raise DamagedShardError after the last block if the matrix
    is damaged, and OSError.
    """
    row_bytes = header.dim * np.dtype(header.dtype).itemsize
    size, crc = max(1, READ_BYTES // row_bytes), 0
    buffer = memoryview(bytearray(min(size, header.rows) * row_bytes))
    with shard.open("rb") as stream:
        stream.seek(header.start + header.rows * DIGEST_BYTES)
        for start in range(0, header.rows, size):
            block = buffer[: (min(header.rows, start + size) - start) * row_bytes]
            if stream.readinto(block) != len(block):
                break
            crc = zlib.crc32(block, crc)
            yield start, np.frombuffer(block, dtype=header.dtype).reshape(-1, header.dim)
    if crc != header.crc:
        raise DamagedShardError("the embeddings are damaged")
