"""Encoding in processes: what one thread gives, in any number of them, and errors the same."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference_harness.extractors import parallel_encoding
from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.encoder import Encoder
from reference_harness.extractors.parallel_encoding import (
    Encoding,
    ParallelEncoding,
    encoding_processes_max,
)
from reference_harness.extractors.preparation import Preparation
from reference_harness.extractors.tokenizer import Tokenizer
from reference_harness.extractors.word_tokenizer import WordTokenizer
from reference_harness.formats.processes import WorkerProcesses
from tests.harness.extractors.models import tokenizer

SEQUENCES = ["ACGT"[n % 4] * (n % 40) + "ACGT" * (1 + n % 7) for n in range(701)]


def encoding_of(**more: Any) -> Encoding:
    """Return an encoding by our own letters, or by `inner`."""
    letters = WordTokenizer(
        vocabulary={x: n for n, x in enumerate("ACGT")},
    )
    arguments: dict[str, Any] = {"inner": letters, "max_length": 20, "truncation": "windows"} | more
    tokens = Tokenizer(inner=arguments.pop("inner"))
    made = Encoder(
        tokens=tokens,
        stride=2,
        pad_id=4,
        padding="right",
        embedding_rows=None,
        added_tokens=tokens.added_tokens(),
        **arguments,
    )
    return Encoding(made, Preparation())


def shared(plain_encoding: Encoding, pool: Any, count: int) -> Any:
    """Return encoders whose processes are those of `pool`, and ready."""
    made: Any = ParallelEncoding(plain_encoding)
    made._pool, made._process_count, made._start_future = pool, count, Future()
    made._start_future.set_result(None)
    return made


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    """Stand in for processes: what is split and joined is the same."""
    monkeypatch.setattr(parallel_encoding._WorkerState, "encoding", encoding_of(), raising=False)
    with ThreadPoolExecutor(3) as pool:
        yield pool


def equal(parallel: Any, other: Any) -> bool:
    return parallel[0] == other[0] and np.array_equal(parallel[1], other[1])


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_shared_out_calls_give_what_one_thread_gives(threads, count):
    alone, several = ParallelEncoding(encoding_of()), shared(encoding_of(), threads, count)
    assert len(alone.encode(SEQUENCES)[0]) > len(SEQUENCES)  # windows
    for sequences in (SEQUENCES, SEQUENCES[:256], SEQUENCES[:9], []):
        assert equal(several.encode(sequences), alone.encode(sequences))
        assert not sequences or several.read(sequences) == alone.read(sequences)


def test_an_error_numbers_the_sequences_of_the_whole_call(threads):
    messages = []
    for parallel in (ParallelEncoding(encoding_of()), shared(encoding_of(), threads, 3)):
        with pytest.raises(ExtractorError) as caught:
            parallel.encode([*SEQUENCES, "", *SEQUENCES])
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith("sequence 701 ('') has no token")


def test_processes_that_die_leave_the_work_to_this_one(threads, monkeypatch):
    def died(*_: object) -> None:
        raise BrokenProcessPool

    monkeypatch.setattr(threads, "map", died)
    parallel: Any = shared(encoding_of(), threads, 2)
    parallel.processes_max = 2
    assert equal(parallel.encode(SEQUENCES), ParallelEncoding(encoding_of()).encode(SEQUENCES))
    assert (parallel._pool, parallel.processes_max) == (None, 0)


def test_processes_are_started_once_a_thread_has_taken_as_long_as_they_take(monkeypatch):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    begun: list[int] = []
    monkeypatch.setattr(
        ParallelEncoding, "start", lambda sequence: begun.append(sequence.processes_max)
    )
    never, later = ParallelEncoding(encoding_of()), ParallelEncoding(encoding_of())
    later.processes_max = 3
    for _ in range(3):
        assert not begun
        never.encode(SEQUENCES)
        later.encode(SEQUENCES)
    later.encode(SEQUENCES)
    assert begun == [3]


@pytest.mark.parametrize(
    ("variable", "processors", "count"), [("", 16, 8), ("", 4, 3), ("1", 16, 0), ("5", 16, 4)]
)
def test_processes_are_as_many_as_the_threads_allow(monkeypatch, variable, processors, count):
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr(parallel_encoding, "processors", lambda: processors)
    assert encoding_processes_max() == count


def test_a_tokenizer_that_cannot_be_sent_is_used_here():
    parallel_encoding: Any = ParallelEncoding(Encoding(lambda: None, Preparation()))  # type: ignore[arg-type]
    parallel_encoding.processes_max = 2
    parallel_encoding.start()
    assert (
        parallel_encoding._processes,
        parallel_encoding._pool,
        parallel_encoding._start_future,
    ) == (None, None, None)


def _started() -> Any:
    parallel_encoding: Any = ParallelEncoding(encoding_of())
    parallel_encoding.processes_max = 1
    parallel_encoding.start()
    parallel_encoding.wait()
    return parallel_encoding


_KEPT: list[ParallelEncoding] = []


def nested(folder: Path) -> None:
    """Start processes in a process of multiprocessing, and leave them."""
    _KEPT.append(_started())
    assert equal(_KEPT[0].encode(SEQUENCES), ParallelEncoding(encoding_of()).encode(SEQUENCES))
    parallel: Any = _KEPT[0]
    for process in parallel._processes._started:
        (folder / str(process.pid)).touch()


@pytest.mark.nightly  # processes that load torch
@pytest.mark.parametrize("kind", ["own", "transformers"])
def test_two_processes_give_what_one_thread_gives(kind):
    inner = {} if kind == "own" else {"inner": tokenizer(limit=64)}
    plain_encoding = encoding_of(**inner)
    several: Any = ParallelEncoding(plain_encoding)
    several.processes_max = 2
    several.start()
    several.wait()
    assert equal(several.encode(SEQUENCES), ParallelEncoding(plain_encoding).encode(SEQUENCES))
    assert several.read(SEQUENCES) == ParallelEncoding(plain_encoding).read(SEQUENCES)
    assert several._encoding_seconds == 0
    several.close()


@pytest.mark.nightly  # processes that load torch
def test_a_process_that_ends_ends_those_that_encode_for_it(tmp_path):
    with WorkerProcesses(1, "spawn", os.getpid) as pool:
        pool.submit(nested, tmp_path).result()
    (pid,) = (path.name for path in tmp_path.iterdir())
    assert not Path(f"/proc/{pid}").exists()
