"""Turn sequences into tokens, in several processes if one thread is too slow.

A tokenizer is mostly Python, and so is the code that feeds a GPU: in one process they wait for each
other. After `PAID_SECONDS` of encoding, processes are started, and each call is divided among them
as soon as they are ready. The result is that of one thread.
"""

import os
import pickle
import time
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from reference_harness.formats.processes import WorkerProcesses, processors

from .base import Reading
from .preparation import Preparation
from .reading import Reader
from .tokens import Encoder

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

PAID_SECONDS = 10.0
"""Processor time of encoding after which processes are started: about the time that starting eight
of them takes, so that short runs start none and long ones lose at most the same time again."""
PROCESSES_MAX = 8
"""Most processes: each needs about 400 MB for a tokenizer and the model's libraries."""
CHUNK = 128
"""Fewest sequences sent to a process: fewer take longer to send than to encode."""

Part = TypeVar("Part")
Encoded = tuple[list[list[int]], npt.NDArray[np.int64]]
"""The token ids of each piece (window), and the index of each piece's sequence."""
Sent = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The token ids of all pieces in one array, each piece's end, and the index of its sequence."""


@dataclass(frozen=True)
class Encoding:
    """A tokenizer with its length limit, and the preparation of letters."""

    encoder: Encoder
    prepare: Preparation

    def encode(self, sequences: Sequence[str]) -> Encoded:
        """Return the pieces of sequences. Raise ExtractorError as the encoder does."""
        return self.encoder.encode(self.prepare(sequences))

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.encoder, self.prepare)

    def read(self, sequences: Sequence[str]) -> Reading:
        """Return how much of the sequences is read. Raise ExtractorError as `encode` does."""
        return self._reader.read(sequences)


class Encoders:
    """Encodes calls of sequences in this process, or in several once that is worthwhile."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.processes_max = 0
        """Processes that may be started; set by a run whose model does not compute on the CPU."""
        self._spent_seconds = 0.0
        self._processes: WorkerProcesses | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._ready: Future[None] | None = None
        self._count = 0

    def encode(self, sequences: Sequence[str]) -> Encoded:
        """Return the tokens and rows of the sequences, as `Encoding.encode` does."""
        parts = self._in_processes(_encoded, sequences)
        if parts is None:
            return self._in_this_process(self._encoding.encode, sequences)
        pieces: list[list[int]] = []
        for (tokens, ends, _), _ in parts:
            token_ids = tokens.tolist()
            pieces += [token_ids[start:end] for start, end in pairwise([0, *ends.tolist()])]
        return pieces, np.concatenate([start + rows for (_, _, rows), start in parts])

    def read(self, sequences: Sequence[str]) -> Reading:
        """Return how much of the sequences is read. Raise ExtractorError as `Encoding.read`."""
        parts = self._in_processes(_read, sequences)
        if parts is None:
            return self._in_this_process(self._encoding.read, sequences)
        return Reading(*map(sum, zip(*(reading for reading, _ in parts), strict=True)))

    def _in_this_process(
        self, work: Callable[[Sequence[str]], Part], sequences: Sequence[str]
    ) -> Part:
        start_time = time.thread_time()
        part = work(sequences)
        self._spent_seconds += time.thread_time() - start_time
        return part

    def _in_processes(
        self, work: Callable[[Sequence[str]], Part], sequences: Sequence[str]
    ) -> list[tuple[Part, int]] | None:
        """Return the parts of a call, in order, with the index of their first sequence.

        Return None if the call is to be encoded in this process: because it is short, or because
        the processes are not ready, or one died or raised. An error is then raised in this process,
        with the index of the sequence in the whole call.
        """
        if len(sequences) < 2 * CHUNK or not self._is_ready() or self._pool is None:
            return None
        size = max(CHUNK, -(-len(sequences) // self._count))
        starts = range(0, len(sequences), size)
        try:
            parts = self._pool.map(work, [sequences[start : start + size] for start in starts])
            return list(zip(parts, starts, strict=True))
        except BrokenProcessPool:
            self.close()
            self.processes_max = 0
        except Exception:  # noqa: BLE001 - whatever a tokenizer raises, it raises again in this process
            return None
        return None

    def _is_ready(self) -> bool:
        if self._ready is None and self.processes_max and self._spent_seconds >= PAID_SECONDS:
            self.start()
        return self._ready is not None and self._ready.done()

    def start(self) -> None:
        """Start the processes; do nothing if the tokenizer cannot be pickled."""
        self._count, self.processes_max = self.processes_max, 0
        try:
            encoding = pickle.dumps(self._encoding)
            self._processes = WorkerProcesses(self._count, "spawn", _begin, encoding)
            self._pool = self._processes.__enter__()
            self._ready = self._pool.submit(_nothing)
            # Otherwise a process started by multiprocessing waits for its children when it ends.
            end = self._processes.__exit__
            Finalize(self, end, args=(BrokenProcessPool,), exitpriority=0)
        except Exception:  # noqa: BLE001 - pickle calls a tokenizer's code; no more processes allowed
            self.close()

    def wait(self) -> None:
        """Wait until the processes are ready. Raise BrokenProcessPool if one died."""
        if self._ready is not None:
            self._ready.result()

    def close(self) -> None:
        """End the processes."""
        processes, self._processes, self._pool, self._ready = self._processes, None, None, None
        if processes is not None:
            processes.__exit__(BrokenProcessPool)


def processes_beside() -> int:
    """Return the number of processes that may encode beside this one, on its processors."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    threads_max = int(threads) if threads.isdigit() else processors()
    return max(0, min(PROCESSES_MAX, threads_max - 1))


class _Process:
    """The state of this process between parts."""

    encoding: Encoding


def _begin(encoding: bytes) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    _Process.encoding = pickle.loads(encoding)  # noqa: S301 - from the process that started this one


def _nothing() -> None:
    """Return once a process has begun."""


def _encoded(sequences: Sequence[str]) -> Sent:
    pieces, rows = _Process.encoding.encode(sequences)
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    tokens = np.fromiter(chain.from_iterable(pieces), dtype=np.int32)
    return tokens, ends, rows


def _read(sequences: Sequence[str]) -> Reading:
    return _Process.encoding.read(sequences)
