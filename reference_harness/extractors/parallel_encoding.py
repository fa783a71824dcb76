"""Turn sequences into tokens, in several processes if one thread is too slow.

A tokenizer is mostly Python, and so is the code that feeds a GPU: in one process they wait for each
other. After `SECONDS_BEFORE_PROCESSES` of encoding, processes are started, and each call is divided
among them as soon as they are ready. The tokens are those that one thread computes.
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

from .base import LetterCounts
from .encoder import Encoder
from .letter_counts import LetterCounter
from .preparation import Preparation

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

SECONDS_BEFORE_PROCESSES = 10.0
"""Processor time of encoding after which processes are started: about the time that starting eight
of them takes, so that short runs start none and long ones lose at most the same time again."""
PROCESSES_MAX = 8
"""Maximum number of processes: each needs about 400 MB for a tokenizer and its libraries."""
SEQUENCES_MIN = 128
"""Minimum number of sequences sent to a process: fewer take longer to send than to encode."""

Result = TypeVar("Result")
"""Type of the result of an encoding function."""
Pieces = tuple[list[list[int]], npt.NDArray[np.int64]]
"""The token ids of each piece (a window of a sequence, or all of it), and the index of the sequence
of each piece."""
PackedPieces = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Pieces as arrays, which are quick to send: all token ids, the end of each piece in them, and the
index of the sequence of each piece."""


@dataclass(frozen=True)
class Encoding:
    """Turns sequences into tokens: a change of letters, then a tokenizer with a length limit."""

    encoder: Encoder
    """Turns prepared letters into tokens, within the length limit."""
    prepare: Preparation
    """Changes letters before they are turned into tokens."""

    def encode(self, sequences: Sequence[str]) -> Pieces:
        """Return the token ids of each window or whole sequence, and the index of its sequence.

        Raise ExtractorError as `Encoder.encode` does.
        """
        return self.encoder.encode(self.prepare(sequences))

    @cached_property
    def _letter_counter(self) -> LetterCounter:
        """Counts the letters and tokens that are read."""
        return LetterCounter(self.encoder, self.prepare)

    def read(self, sequences: Sequence[str]) -> LetterCounts:
        """Return the numbers of letters and tokens read. Raise ExtractorError as `encode` does."""
        return self._letter_counter.read(sequences)


class ParallelEncoding:
    """Encodes sequences in this process; after `SECONDS_BEFORE_PROCESSES`, in several."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.processes_max = 0
        """Processes that may be started; set by a run whose model does not compute on the CPU."""
        self._encoding_seconds = 0.0
        self._processes: WorkerProcesses | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._start_future: Future[None] | None = None
        self._process_count = 0

    def encode(self, sequences: Sequence[str]) -> Pieces:
        """Return the pieces of the sequences, as `Encoding.encode` does."""
        encoded_parts = self._in_processes(_encode_in_worker, sequences)
        if encoded_parts is None:
            return self._in_this_process(self._encoding.encode, sequences)
        pieces: list[list[int]] = []
        for (tokens, ends, _), _ in encoded_parts:
            token_ids = tokens.tolist()
            pieces += [token_ids[start:end] for start, end in pairwise([0, *ends.tolist()])]
        return pieces, np.concatenate([start + rows for (_, _, rows), start in encoded_parts])

    def read(self, sequences: Sequence[str]) -> LetterCounts:
        """Return the numbers of letters and tokens read. Raise what `Encoding.read` raises."""
        readings = self._in_processes(_read_in_worker, sequences)
        if readings is None:
            return self._in_this_process(self._encoding.read, sequences)
        return LetterCounts(*map(sum, zip(*(reading for reading, _ in readings), strict=True)))

    def _in_this_process(
        self, encode: Callable[[Sequence[str]], Result], sequences: Sequence[str]
    ) -> Result:
        """Return the result of `encode`, and add its processor time to the sum."""
        start_time = time.thread_time()
        encoded = encode(sequences)
        self._encoding_seconds += time.thread_time() - start_time
        return encoded

    def _in_processes(
        self, encode: Callable[[Sequence[str]], Result], sequences: Sequence[str]
    ) -> list[tuple[Result, int]] | None:
        """Divide sequences among the processes; return (result, first index) of each process.

        Return None if this process has to encode all of them: there are too few, the processes are
        not ready, or one died or raised an error. In the last case, encoding in this process raises
        the error again, with the index among all sequences.
        """
        if len(sequences) < 2 * SEQUENCES_MIN or not self._is_ready() or self._pool is None:
            return None
        part_size = max(SEQUENCES_MIN, -(-len(sequences) // self._process_count))
        starts = range(0, len(sequences), part_size)
        try:
            encoded_parts = self._pool.map(
                encode, [sequences[start : start + part_size] for start in starts]
            )
            return list(zip(encoded_parts, starts, strict=True))
        except BrokenProcessPool:
            self.close()
            self.processes_max = 0
        except Exception:  # noqa: BLE001 - whatever a tokenizer raises, it raises again in this process
            return None
        return None

    def _is_ready(self) -> bool:
        """Whether the processes have started; start them once encoding has taken long enough."""
        if (
            self._start_future is None
            and self.processes_max
            and self._encoding_seconds >= SECONDS_BEFORE_PROCESSES
        ):
            self.start()
        return self._start_future is not None and self._start_future.done()

    def start(self) -> None:
        """Start the processes; do nothing if the tokenizer cannot be pickled."""
        self._process_count, self.processes_max = self.processes_max, 0
        try:
            pickled_encoding = pickle.dumps(self._encoding)
            self._processes = WorkerProcesses(
                self._process_count, "spawn", _set_encoding, pickled_encoding
            )
            self._pool = self._processes.__enter__()
            self._start_future = self._pool.submit(_wait_for_start)
            # Otherwise a process started by multiprocessing waits for its children when it ends.
            end_processes = self._processes.__exit__
            Finalize(self, end_processes, args=(BrokenProcessPool,), exitpriority=0)
        except Exception:  # noqa: BLE001 - pickle calls a tokenizer's code; no more processes allowed
            self.close()

    def wait(self) -> None:
        """Wait until the processes are ready. Raise BrokenProcessPool if one died."""
        if self._start_future is not None:
            self._start_future.result()

    def close(self) -> None:
        """End the processes."""
        processes = self._processes
        self._processes = self._pool = self._start_future = None
        if processes is not None:
            processes.__exit__(BrokenProcessPool)


def encoding_processes_max() -> int:
    """Return the number of processes that may encode in addition to this one."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    threads_max = int(threads) if threads.isdigit() else processors()
    return max(0, min(PROCESSES_MAX, threads_max - 1))


class _WorkerState:
    """The tokenizer that a worker process keeps between calls."""

    encoding: Encoding
    """The encoding that the process got when it started."""


def _set_encoding(pickled_encoding: bytes) -> None:
    """Store the encoding of a worker process, which calls this when it starts."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    _WorkerState.encoding = pickle.loads(pickled_encoding)  # noqa: S301 - from the process that started this one


def _wait_for_start() -> None:
    """Do nothing: the result of this call shows that a worker process has started."""


def _encode_in_worker(sequences: Sequence[str]) -> PackedPieces:
    """Return the packed pieces of sequences."""
    pieces, rows = _WorkerState.encoding.encode(sequences)
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    tokens = np.fromiter(chain.from_iterable(pieces), dtype=np.int32)
    return tokens, ends, rows


def _read_in_worker(sequences: Sequence[str]) -> LetterCounts:
    """Return the numbers of letters and tokens read."""
    return _WorkerState.encoding.read(sequences)
