"""A content-addressed cache of embeddings on disk, so that a killed run loses little work.

There is one folder per key, the digest of everything that determines an embedding except the
sequence. It contains shards, which are written under a temporary name and renamed when complete. A
shard is one line of JSON, then n digests of 16 bytes, then the (n, d) matrix in the same order.
"""

import contextlib
import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from .errors import StateError
from .files import write_bytes, write_json
from .tasks import DIGEST_BYTES

SHARD_BYTES = 1 << 26
"""Bytes of embeddings that are buffered before they are written."""
FLUSH_SECONDS = 30.0
"""Seconds after which a buffer is written in any case: the work that a kill can cost."""
FORMAT = 1
_HEADER_MAX = 4096  # a header has about 120 bytes

_KEY = np.dtype(f"S{DIGEST_BYTES}")
Rows = npt.NDArray[np.floating[Any]]


def default_cache() -> Path:
    """Return the folder of embeddings: $GENEB_HARNESS_CACHE, else the user's cache folder."""
    if named := os.environ.get("GENEB_HARNESS_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "geneb-harness"


class Places(NamedTuple):
    """Location of n embeddings: (n,) index of the shard, -1 for none, and (n,) row in it."""

    shards: list[Path]
    shard: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]


class Shape(NamedTuple):
    """Header of a shard."""

    rows: int
    dim: int
    dtype: str
    crc: int
    """CRC-32 of the matrix, against disk errors."""
    start: int
    """Bytes before the digests."""


def key(parts: Mapping[str, Any]) -> str:
    """Return the key: 64 hex digits of everything an embedding depends on."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """The embeddings of one extractor with one configuration."""

    def __init__(self, root: Path, parts: Mapping[str, Any]) -> None:
        self.folder = root / key(parts)
        if not (self.folder / "key.json").exists():
            write_json(self.folder / "key.json", dict(parts))

    def find(self, wanted: Iterable[bytes]) -> set[bytes]:
        """Return those of the wanted sequences that are in the cache.

        Reads only headers and digests. Damaged shards are ignored, so they are computed again.
        """
        names = list(wanted)
        shard = self._locate(names).shard
        return {name for name, at in zip(names, shard.tolist(), strict=True) if at >= 0}

    def _locate(self, names: Sequence[bytes]) -> Places:
        """Return for each name the shard that contains it, -1 for none, and the row in it.

        Vectorised, since a cache of the benchmark has millions of digests. The newest shard comes
        first and the search ends when all are found, so a task that was just embedded is found
        fast. Two names of one task that share eight bytes (probability 3e-10 at 100,000 names)
        count as missing, which is an error, never a wrong row.
        """
        if not names:
            return Places([], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        keys = np.frombuffer(b"".join(names), dtype=_KEY)
        unique, inverse = np.unique(keys, return_inverse=True)
        heads = _heads(unique)  # sorted like the keys
        found = Places(
            sorted(self.folder.glob("*.shard"), reverse=True),
            np.full(len(unique), -1, dtype=np.int64),
            np.zeros(len(unique), dtype=np.int64),
        )
        for number, shard in enumerate(found.shards):
            if not (found.shard < 0).any():
                break
            with contextlib.suppress(OSError, StateError):
                digests = np.frombuffer(_digests(shard), dtype=_KEY)
                at = np.minimum(np.searchsorted(heads, _heads(digests)), len(unique) - 1)
                rows = np.flatnonzero(unique[at] == digests)
                found.shard[at[rows]] = number
                found.row[at[rows]] = rows
        return Places(found.shards, found.shard[inverse], found.row[inverse])

    def add(self, digests: Sequence[bytes], rows: Rows) -> None:
        """Write one shard: (n, d) rows for n digests."""
        if len(digests) != len(rows) or not digests:
            msg = f"{len(rows)} embeddings for {len(digests)} sequences"
            raise ValueError(msg)
        matrix = np.ascontiguousarray(rows).data
        header = {
            "format": FORMAT,
            "count": len(digests),
            "dim": rows.shape[1],
            "dtype": rows.dtype.str,
            "crc": zlib.crc32(matrix),
        }
        names = b"".join(digests)
        name = f"{time.time_ns():020d}-{os.getpid()}.shard"
        write_bytes(self.folder / name, json.dumps(header).encode(), b"\n", names, matrix)

    def read(self, digests: Sequence[bytes]) -> Rows:
        """Return the (n, d) embeddings of n sequences as one array.

        At most one shard is in memory besides the result. Raises StateError if an embedding is
        missing or damaged.
        """
        shards, shard_of, row_of = self._locate(digests)
        if lacking := int((shard_of < 0).sum()):
            msg = f"{self.folder}: {lacking} embeddings are missing or damaged: run again"
            raise StateError(msg)
        out: Rows | None = None
        for number in np.unique(shard_of).tolist():
            shard, shape = shards[number], _shape(shards[number])
            if out is None:
                out = np.empty((len(digests), shape.dim), dtype=shape.dtype)
            if (shape.dim, shape.dtype) != (out.shape[1], out.dtype.str):
                msg = f"{shard}: rows of {shape.dim} {shape.dtype}, others have {out.shape[1]}"
                raise StateError(msg)
            rows = np.flatnonzero(shard_of == number)
            out[rows] = _matrix(shard, shape)[row_of[rows]]
        if out is None:
            msg = "there is no sequence to embed"
            raise StateError(msg)
        return out


class Writer:
    """Buffers rows and writes them as shards, by size and time; a context manager that flushes."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._digests: list[bytes] = []
        self._rows: list[Rows] = []
        self._bytes = 0
        self._since = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Write the rest, also after an error or Ctrl-C."""
        self.flush()

    def add(self, digests: Sequence[bytes], rows: Rows) -> None:
        """Add (n, d) rows for n digests."""
        self._digests.extend(digests)
        self._rows.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= SHARD_BYTES or time.monotonic() - self._since >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows, if any."""
        if self._digests:
            self._cache.add(self._digests, np.concatenate(self._rows))
        self._digests, self._rows, self._bytes = [], [], 0
        self._since = time.monotonic()


def _shape(shard: Path) -> Shape:
    with shard.open("rb") as stream:
        line = stream.readline(_HEADER_MAX)
    try:
        header = json.loads(line)
        shape = Shape(header["count"], header["dim"], header["dtype"], header["crc"], len(line))
        known = header["format"] == FORMAT
        size = shape.rows * (DIGEST_BYTES + shape.dim * np.dtype(shape.dtype).itemsize)
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{shard}: not a shard of embeddings: delete it"
        raise StateError(msg) from error
    if not known or shard.stat().st_size != shape.start + size:
        msg = f"{shard}: damaged, or of another version: delete it"
        raise StateError(msg)
    return shape


def _digests(shard: Path) -> bytes:
    shape = _shape(shard)
    with shard.open("rb") as stream:
        stream.seek(shape.start)
        return stream.read(shape.rows * DIGEST_BYTES)


def _heads(keys: npt.NDArray[np.bytes_]) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of each key as numbers that sort as the bytes do."""
    halves = np.ascontiguousarray(keys).view(">u8").reshape(len(keys), -1)
    return halves[:, 0].astype(np.uint64)


def _matrix(shard: Path, shape: Shape) -> Rows:
    values = np.fromfile(
        shard, dtype=shape.dtype, offset=shape.start + shape.rows * DIGEST_BYTES
    ).reshape(shape.rows, shape.dim)
    if zlib.crc32(values.data) != shape.crc:
        msg = f"{shard}: damaged: delete it and run again"
        raise StateError(msg)
    rows: Rows = values
    return rows
