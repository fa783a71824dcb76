"""From sequences to tokens, in processes of their own where one thread has become too slow.

A tokenizer is Python for the most part, and so is what feeds a GPU: in one process they take turns.
Once encoding has taken `PAID_SECONDS` of a thread, processes are started, and each call is shared
out among them as soon as they are ready. What they return is what one thread returns.
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
"""Processor time of encoding after which processes are started: about what starting eight of them
takes, so that a short run does not pay for them and a long one pays twice at most."""
PROCESSES_MAX = 8
"""Processes: each holds a tokenizer and the libraries of the model, about 400 MB."""
CHUNK = 128
"""Fewest sequences that a process is given: fewer take longer to send than to encode."""

Part = TypeVar("Part")
Encoded = tuple[list[list[int]], npt.NDArray[np.int64]]
"""The pieces to embed and, for each, the number of its sequence."""
Sent = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""All tokens in one array, which is fast to send; the end of each piece in it; and its sequence."""


@dataclass(frozen=True)
class Encoding:
    """A tokenizer with its limit, and what is done to letters before."""

    encoder: Encoder
    prepare: Preparation

    def encode(self, sequences: Sequence[str]) -> Encoded:
        """Return the pieces of sequences. Raises ExtractorError as the encoder does."""
        return self.encoder.encode(self.prepare(sequences))

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.encoder, self.prepare)

    def read(self, sequences: Sequence[str]) -> Reading:
        """Return what is read of sequences. Raises ExtractorError as `encode` does."""
        return self._reader.read(sequences)


class Encoders:
    """Encodes calls of sequences: here, or in processes once these pay."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.processes_max = 0
        """Processes that may be started; a run sets it where the model has a device of its own."""
        self._spent = 0.0
        self._processes: WorkerProcesses | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._ready: Future[None] | None = None
        self._count = 0

    def encode(self, sequences: Sequence[str]) -> Encoded:
        """Return what `Encoding.encode` does."""
        parts = self._elsewhere(_encoded, sequences)
        if parts is None:
            return self._here(self._encoding.encode, sequences)
        pieces: list[list[int]] = []
        for (tokens, ends, _), _ in parts:
            listed = tokens.tolist()
            pieces += [listed[start:end] for start, end in pairwise([0, *ends.tolist()])]
        return pieces, np.concatenate([start + rows for (_, _, rows), start in parts])

    def read(self, sequences: Sequence[str]) -> Reading:
        """Return what `Encoding.read` does."""
        parts = self._elsewhere(_read, sequences)
        if parts is None:
            return self._here(self._encoding.read, sequences)
        return Reading(*map(sum, zip(*(reading for reading, _ in parts), strict=True)))

    def _here(self, work: Callable[[Sequence[str]], Part], sequences: Sequence[str]) -> Part:
        began = time.thread_time()
        part = work(sequences)
        self._spent += time.thread_time() - began
        return part

    def _elsewhere(
        self, work: Callable[[Sequence[str]], Part], sequences: Sequence[str]
    ) -> list[tuple[Part, int]] | None:
        """Return the parts of a call with the number of their first sequence, in order.

        None where it is to be encoded here: a short one, before processes are ready, and where one
        of them died or raised, so that the error is raised here and numbers the sequences of the
        whole call.
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
        except Exception:  # noqa: BLE001 - a tokenizer raises what it likes, and does so again here
            return None
        return None

    def _is_ready(self) -> bool:
        if self._ready is None and self.processes_max and self._spent >= PAID_SECONDS:
            self.start()
        return self._ready is not None and self._ready.done()

    def start(self) -> None:
        """Start the processes; where a tokenizer cannot be sent there, nothing is started."""
        self._count, self.processes_max = self.processes_max, 0
        try:
            encoding = pickle.dumps(self._encoding)
            self._processes = WorkerProcesses(self._count, "spawn", _begin, encoding)
            self._pool = self._processes.__enter__()
            self._ready = self._pool.submit(_nothing)
            # A process that multiprocessing started would wait for its own ones when it ends.
            end = self._processes.__exit__
            Finalize(self, end, args=(BrokenProcessPool,), exitpriority=0)
        except Exception:  # noqa: BLE001 - pickle calls a tokenizer's code; no more processes allowed
            self.close()

    def wait(self) -> None:
        """Wait until the processes are ready. Raises BrokenProcessPool where one ended."""
        if self._ready is not None:
            self._ready.result()

    def close(self) -> None:
        """End the processes."""
        processes, self._processes, self._pool, self._ready = self._processes, None, None, None
        if processes is not None:
            processes.__exit__(BrokenProcessPool)


def processes_beside() -> int:
    """Return how many processes may encode beside this one, which has its share of the threads."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    allowed = int(threads) if threads.isdigit() else processors()
    return max(0, min(PROCESSES_MAX, allowed - 1))


class _Process:
    """What a process keeps from one part to the next."""

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
