"""A content-addressed cache of embeddings on disk, so that a killed run loses little work.

There is one folder per key, the digest of everything that determines an embedding except the
sequence. It contains shards (`shard.py`), which are written under a temporary name and renamed when
complete.

A shard that is found damaged is renamed, so that its embeddings count as missing and are computed
again. If several runs that share a cache find it at the same time, only one renames it.
"""

import hashlib
import json
import os
import socket
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import DIGEST_BYTES
from reference_harness.errors import LostEmbeddingsError, OptionError, StateError
from reference_harness.formats.files import write_bytes, write_json

from .mirror import SCHEME, Mirror
from .shard import (
    DAMAGED_SUFFIX,
    SHARD_FORMAT,
    SHARD_SUFFIX,
    DamagedShardError,
    Embeddings,
    ForeignShardError,
    blocks_in,
    checksum,
    digests_in,
    header_of,
)

SHARD_BYTES = 1 << 26
"""Bytes of embeddings after which the buffer is written."""
FLUSH_SECONDS = 30.0
"""Seconds after which even a small buffer is written: a killed run loses no more work than this."""

_DIGEST_TYPE = np.dtype(f"S{DIGEST_BYTES}")


def default_cache() -> Path:
    """Return the folder of embeddings: $GENEB_HARNESS_CACHE, else one in the user's cache folder.

    Raise OptionError for a user without a home folder, for example in a container.
    """
    if folder := os.environ.get("GENEB_HARNESS_CACHE"):
        return Path(folder)
    return user_cache("geneb-harness")


def user_cache(folder_name: str) -> Path:
    """Return a folder in the user's cache folder. Raise OptionError for a user without a home."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) if base else Path.home() / ".cache"
    except RuntimeError as error:
        msg = "this user has no home folder to keep embeddings in: pass a folder with --cache DIR"
        raise OptionError(msg) from error
    return folder / folder_name


class EmbeddingPositions(NamedTuple):
    """Positions of n embeddings in the shards of a cache."""

    shards: list[Path]
    """Files of the shards, newest first."""
    shard_indices: npt.NDArray[np.int64]
    """(n,) index of the shard that has each embedding; -1 if none has it."""
    row_indices: npt.NDArray[np.int64]
    """(n,) index of each embedding in its shard; 0 if no shard has it."""


def cache_key(key_parts: Mapping[str, Any]) -> str:
    """Return the digest, 64 hex digits, of all that an embedding depends on except its sequence."""
    parts_json = json.dumps(key_parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(parts_json.encode()).hexdigest()


class Cache:
    """The embeddings of one extractor with one configuration."""

    def __init__(self, root: Path | str, key_parts: Mapping[str, Any]) -> None:
        """Open the cache in a folder, or at an address of fsspec with a local copy.

        Raise OptionError for an unusable address.
        """
        is_shared = SCHEME in str(root)
        self.folder = (default_cache() if is_shared else Path(root)) / cache_key(key_parts)
        if not (self.folder / "key.json").exists():
            write_json(self.folder / "key.json", dict(key_parts))
        self._mirror = Mirror(f"{root}/{cache_key(key_parts)}", self.folder) if is_shared else None
        self.damage_notes: list[str] = []
        """One sentence per damaged shard that this object renamed."""
        self.token_budgets: set[int] = set()
        """Token budgets under which the embeddings read by this object were computed."""

    def find(self, digests: Iterable[bytes]) -> set[bytes]:
        """Return the digests whose embeddings are in the cache.

        Only headers and digests are read. A shard in which these are damaged is renamed, so that
        its embeddings are computed again.
        """
        digests = list(digests)
        shard_indices = self._locate(digests).shard_indices.tolist()
        return {
            digest
            for digest, shard_index in zip(digests, shard_indices, strict=True)
            if shard_index >= 0
        }

    def _locate(self, digests: Sequence[bytes]) -> EmbeddingPositions:
        """Return the positions of n digests; missing shards are fetched from other machines."""
        positions = self._search(digests)
        if self._mirror is not None and (positions.shard_indices < 0).any() and self._mirror.pull():
            return self._search(digests)
        return positions

    def _search(self, digests: Sequence[bytes]) -> EmbeddingPositions:
        """Return the positions of the embeddings of n digests on this machine.

        The search is vectorised, since a cache of the benchmark has millions of digests. It begins
        with the newest shard and ends when all are found, so that a task just embedded is found
        fast. If two digests share their first eight bytes (probability 3e-10 for 100,000 digests),
        one counts as missing, which leads to an error, never to a wrong embedding.
        """
        if not digests:
            return EmbeddingPositions([], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        all_digests = np.frombuffer(b"".join(digests), dtype=_DIGEST_TYPE)
        distinct_digests, inverse = np.unique(all_digests, return_inverse=True)
        heads = _digest_heads(distinct_digests)  # sorted like the digests
        positions = EmbeddingPositions(
            sorted(self.folder.glob(f"*{SHARD_SUFFIX}"), reverse=True),
            np.full(len(distinct_digests), -1, dtype=np.int64),
            np.zeros(len(distinct_digests), dtype=np.int64),
        )
        for number, shard in enumerate(positions.shards):
            if not (positions.shard_indices < 0).any():
                break
            shard_digests = self._digests(shard)
            if len(shard_digests):
                digest_indices = np.minimum(
                    np.searchsorted(heads, _digest_heads(shard_digests)),
                    len(distinct_digests) - 1,
                )
                rows = np.flatnonzero(distinct_digests[digest_indices] == shard_digests)
                positions.shard_indices[digest_indices[rows]] = number
                positions.row_indices[digest_indices[rows]] = rows
        return EmbeddingPositions(
            positions.shards, positions.shard_indices[inverse], positions.row_indices[inverse]
        )

    def _digests(self, shard: Path) -> npt.NDArray[np.bytes_]:
        """Return the digests in a shard; none if it is damaged, unreadable or of another format."""
        try:
            return np.frombuffer(digests_in(shard), dtype=_DIGEST_TYPE)
        except DamagedShardError as damage:
            self._rename_damaged(shard, str(damage))
        except (
            ForeignShardError,
            OSError,
        ):  # another run has renamed it, or this user may not read it
            pass
        return np.zeros(0, dtype=_DIGEST_TYPE)

    def _rename_damaged(self, shard: Path, reason: str) -> None:
        """Rename a damaged shard, and record it unless another run has renamed it.

        Raise StateError if it cannot be renamed, as it would be found again and again.
        """
        renamed_path = shard.with_name(shard.name + DAMAGED_SUFFIX)
        try:
            shard.rename(renamed_path)
        except FileNotFoundError:
            return
        except OSError as error:
            msg = (
                f"{shard}: {reason}, and renaming the file failed ({error.strerror}): delete "
                "the file"
            )
            raise StateError(msg) from error
        self.damage_notes.append(
            f"{shard}: {reason}: the file was renamed to {renamed_path.name}, and its embeddings "
            "are computed again"
        )

    def add(self, digests: Sequence[bytes], embeddings: Embeddings, token_budget: int = 0) -> None:
        """Write a shard of n embeddings, as an (n, d) array, with the digests of their sequences.

        `token_budget` is the limit of padded tokens of their batches; 0 for no limit.
        """
        if len(digests) != len(embeddings) or not digests:
            msg = (
                f"{len(embeddings)} embeddings for {len(digests)} sequences, expected one for each"
            )
            raise ValueError(msg)
        embedding_bytes = np.ascontiguousarray(embeddings).data
        joined_digests = b"".join(digests)
        header = json.dumps({
            "format": SHARD_FORMAT,
            "count": len(digests),
            "dim": embeddings.shape[1],
            "dtype": embeddings.dtype.str,
            "token_budget": token_budget,
            "names_crc": zlib.crc32(joined_digests),
            "crc": zlib.crc32(embedding_bytes),
        }).encode()  # fmt: skip
        # Machines that share the folder may have equal times and process ids.
        machine = zlib.crc32(socket.gethostname().encode())
        shard_name = f"{time.time_ns():020d}-{machine:08x}-{os.getpid()}{SHARD_SUFFIX}"
        write_bytes(
            self.folder / shard_name,
            checksum(header),
            b" ",
            header,
            b"\n",
            joined_digests,
            embedding_bytes,
        )
        if self._mirror is not None:
            self._mirror.push(shard_name)

    def read(self, digests: Sequence[bytes]) -> Embeddings:
        """Return the (n, d) embeddings of n sequences as one array.

        Raise LostEmbeddingsError if an embedding has to be computed again: because it is missing,
        or because its shard is damaged and is renamed. Raise StateError if widths or types of
        embeddings differ.
        """
        shards, shard_of, row_of = self._locate(digests)
        missing_count = int((shard_of < 0).sum())
        embeddings: Embeddings | int = len(digests)
        for number in np.unique(shard_of[shard_of >= 0]).tolist():
            positions = np.flatnonzero(shard_of == number)
            updated = self._copy_rows(shards[number], row_of[positions], embeddings, positions)
            if updated is None:
                missing_count += len(positions)
            else:
                embeddings = updated
        if missing_count:
            msg = (
                f"{self.folder}: {missing_count} embeddings are missing or damaged: run the "
                "command again"
            )
            raise LostEmbeddingsError(msg)
        if isinstance(embeddings, int):
            msg = "the task has no sequence to embed, expected at least one"
            raise StateError(msg)
        return embeddings

    def _copy_rows(
        self,
        shard: Path,
        shard_rows: npt.NDArray[np.int64],
        out: Embeddings | int,
        out_rows: npt.NDArray[np.int64],
    ) -> Embeddings | None:
        """Copy row `shard_rows[i]` of a shard to row `out_rows[i]` of `out`, and return `out`.

        If `out` is a number, an array of so many embeddings is created. Return None if the shard is
        damaged or missing. Raise StateError if its embeddings have another width or type.
        """
        order = np.argsort(shard_rows)
        shard_rows, out_rows = shard_rows[order], out_rows[order]
        try:
            header = header_of(shard)
            if isinstance(out, int):
                out = np.empty((out, header.dim), dtype=header.dtype)
            if (header.dim, np.dtype(header.dtype)) != (out.shape[1], out.dtype):
                msg = (
                    f"{shard}: each embedding has {header.dim} numbers of type "
                    f"{np.dtype(header.dtype)}, expected {out.shape[1]} numbers of type "
                    f"{out.dtype} as in the other files of this folder: delete the folder "
                    f"{self.folder} and run the command again"
                )
                raise StateError(msg)
            for start, block in blocks_in(shard, header):
                begin, end = np.searchsorted(shard_rows, (start, start + len(block)))
                out[out_rows[begin:end]] = block[shard_rows[begin:end] - start]
        except FileNotFoundError:  # another run has renamed it
            return None
        except DamagedShardError as damage:
            self._rename_damaged(shard, str(damage))
            return None
        except OSError as error:  # for example an unreadable sector
            self._rename_damaged(shard, f"cannot be read: {error.strerror}")
            return None
        self.token_budgets.add(header.token_budget)
        return out


class ShardWriter:
    """A buffer of embeddings, written as a shard if it is large or old, and when it is closed.

    A thread writes the shards, so that a device need not wait; one at a time, which limits memory.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        self._digests: list[bytes] = []
        self._embeddings: list[Embeddings] = []
        self._bytes = 0
        self._budget = 0
        self._last_flush_time = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Write the buffered embeddings, also after an error or Ctrl-C, and wait for it."""
        with self._pool:
            self.flush()
            self._wait()

    def add(self, digests: Sequence[bytes], embeddings: Embeddings, token_budget: int = 0) -> None:
        """Add (n, d) embeddings of n digests, and the token budget of the batches they were in."""
        if token_budget != self._budget:
            self.flush()  # a shard has one budget
            self._budget = token_budget
        self._digests.extend(digests)
        self._embeddings.append(embeddings)
        self._bytes += embeddings.nbytes
        if self._bytes >= SHARD_BYTES or time.monotonic() - self._last_flush_time >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Start to write the buffered embeddings, if any, after waiting for the previous shard.

        Raise the error of writing the previous shard.
        """
        self._wait()
        if self._digests:
            self._writing = self._pool.submit(
                self._write, self._digests, self._embeddings, self._budget
            )
        self._digests, self._embeddings, self._bytes = [], [], 0
        self._last_flush_time = time.monotonic()

    def _write(self, digests: list[bytes], arrays: list[Embeddings], budget: int) -> None:
        self._cache.add(digests, np.concatenate(arrays), budget)

    def _wait(self) -> None:
        """Wait for the shard that is being written. Raise the error of writing it."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()


def _digest_heads(digests: npt.NDArray[np.bytes_]) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of each digest as a number; they sort like the digests."""
    halves = np.ascontiguousarray(digests).view(">u8").reshape(len(digests), -1)
    return halves[:, 0].astype(np.uint64)
