"""Out of memory costs a batch, not the run: batches are halved, nothing is computed twice."""

import contextlib
import gc
import re
import resource
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_harness.data.task_data import Split, TaskData, sequence_digests
from reference_harness.embedding.extractor_calls import Batching, embed_sequences
from reference_harness.embedding.memory import (
    DoesNotFitError,
    MemoryLimit,
    is_out_of_memory,
    memory_of,
)
from reference_harness.errors import EmbeddingError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from tests.harness.extractors import models
from tests.harness.support import TaskEmbedder

SAID = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB"
ROWS = 90


@pytest.fixture(scope="module", autouse=True)
def _small_heap() -> Iterator[None]:
    """Spare the garbage collector what tests and libraries hold: each back-off calls it.

    One thread: for batches this small, several wait for each other on a machine that is busy.
    """
    gc.collect()
    gc.freeze()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    gc.unfreeze()


def sequences(count: int = ROWS) -> list[str]:
    rng = np.random.RandomState(3)
    return ["".join(rng.choice(list("ACGT"), n)) for n in rng.randint(16, 60, count)]


def chained(cause: Exception) -> Exception:
    error = ValueError("the forward pass failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError(SAID), True),
        (MemoryError(), True),
        (np._core._exceptions._ArrayMemoryError((9, 9), np.dtype("f4")), True),  # type: ignore[attr-defined]
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"), True),
        (chained(torch.OutOfMemoryError(SAID)), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
        (DoesNotFitError(3, SAID), False),
    ],
    ids=repr,
)
def test_lack_of_memory_is_recognised(error: Exception, *, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


def test_the_allocator_of_this_machine_is_recognised() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 56)
    assert is_out_of_memory(caught.value)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=40),
    st.integers(40, 200),
    st.integers(1, 12),
)
@settings(max_examples=40, deadline=None)
def test_every_row_is_computed_once_in_order_within_memory(
    lengths: list[int], memory: int, size: int
) -> None:
    """For any lengths, memory that holds the longest row and batches as planned."""
    done: list[int] = []

    def compute(rows: np.ndarray) -> None:
        if max(lengths[i] for i in rows) * len(rows) > memory:
            raise torch.OutOfMemoryError(SAID)
        done.extend(rows.tolist())

    plan = [np.arange(i, min(i + size, len(lengths))) for i in range(0, len(lengths), size)]
    limit = MemoryLimit()
    rows_embedded = [row for rows, _ in limit.fitting(plan, lengths, compute) for row in rows]
    assert done == rows_embedded == list(range(len(lengths)))
    assert limit.tokens is None or limit.tokens >= memory // 2


class Small:
    """Counts letters; memory holds `tokens` letters, padding included."""

    def __init__(self, tokens: int, raised: Callable[[], Exception]) -> None:
        self.tokens = tokens
        self.raised = raised
        self.done: Counter[str] = Counter()
        self.failed: list[int] = []

    def extract_embeddings(self, batch: Sequence[str], batch_size: int) -> Any:
        del batch_size
        if max(map(len, batch)) * len(batch) > self.tokens:
            self.failed.append(len(batch))
            raise self.raised()
        self.done.update(batch)
        return np.array([[s.count(c) for c in "ACGT"] for s in batch], dtype=np.float32)


@pytest.fixture(autouse=True, scope="module")
def _no_drift() -> Iterator[None]:
    """Count the calls of a task's own embeddings, without those that look for a drift."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reference_harness.embedding.embedder.DRIFT_SEQUENCES", 0)
        yield


def embedder(extractor: object, folder: Path, **batching: Any) -> TaskEmbedder:
    path = "builtin:huggingface" if isinstance(extractor, HuggingFaceExtractor) else "mine.py"
    loaded: Any = SimpleNamespace(extractor=extractor, path=path, class_name="Mine", is_unit=False)
    return TaskEmbedder(loaded, folder, Batching(**batching))


def task(rows: list[str], name: str = "t") -> TaskData:
    half = len(rows) // 2
    splits = (rows[:half], rows[half:])
    return TaskData(name, *(Split(split, np.arange(len(split)) % 2) for split in splits))


@pytest.mark.parametrize("raised", [lambda: torch.OutOfMemoryError(SAID), MemoryError])
@pytest.mark.parametrize("mode", ["budget", "file"])
def test_what_fits_is_kept_for_the_tasks_that_follow(
    tmp_path: Path, mode: str, raised: Callable[[], Exception]
) -> None:
    small = Small(150, raised)
    test_embedder = embedder(small, tmp_path, mode=mode, token_budget=1000)
    rows = sequences()
    test_embedder.embed(task(rows[:60]))
    failures = len(small.failed)
    assert failures > 0
    assert test_embedder.limit.tokens is not None
    assert test_embedder.limit.tokens <= 150
    test_embedder.embed(task(rows[60:]))
    assert len(small.failed) == failures
    assert small.done == Counter(rows)
    cache = test_embedder.cache.read(sequence_digests(rows))
    assert (cache == Small(10**9, raised).extract_embeddings(rows, 1)).all()
    assert test_embedder.cache.token_budgets == {test_embedder.limit.tokens}


def test_the_sandbox_backs_off_too(tmp_path: Path) -> None:
    small = Small(150, MemoryError)
    rows = sequences()
    embeddings = embed_sequences(
        embedder(small, tmp_path).loaded, Batching(token_budget=1000), rows
    )
    assert (embeddings == Small(10**9, MemoryError).extract_embeddings(rows, 1)).all()
    assert small.failed


def test_a_measured_budget_is_the_largest_that_did_not_fail(tmp_path: Path) -> None:
    small = Small(150, MemoryError)
    test_embedder = embedder(small, tmp_path)
    test_embedder.limit = MemoryLimit(memory_of("cpu"))
    rows = sequences()
    longest = max(map(len, rows))  # 59: two rows fit
    test_embedder.embed(task(rows))
    assert small.failed == [256 // longest], "no batch of the run failed"
    assert (test_embedder.limit.budget, test_embedder.limit.tokens, test_embedder.token_budget) == (
        128,
        None,
        128,
    )
    test_embedder.cache.read(sequence_digests(rows))
    assert test_embedder.cache.token_budgets == {128}
    # As if it had been given: the same rows share batches.
    arguments, same = Small(150, MemoryError), tmp_path / "given"
    embedder(arguments, same, token_budget=128).embed(task(rows))
    planned = {row for row, count in small.done.items() if count == arguments.done[row]}
    assert set(rows) - planned == {max(rows, key=len)}
    # A longer row, in a later task, is measured again; the budget never grows.
    test_embedder.embed(task(["ACGT" * 5, "ACGT" * 35], "long"))
    assert small.failed[1:] == [512 // 140]
    assert test_embedder.limit.budget == 128


def test_what_cannot_be_tried_leaves_the_default(tmp_path: Path) -> None:
    """A row that no memory holds, and an extractor that fails: the run's own messages name them."""

    class Fails(Small):
        def extract_embeddings(self, batch: Sequence[str], batch_size: int) -> Any:
            if len(set(batch)) < len(batch):
                raise ValueError("each sequence once")
            return super().extract_embeddings(batch, batch_size)

    fails = embedder(Fails(10**6, MemoryError), tmp_path / "a")
    fails.limit = MemoryLimit(memory_of("cpu"))
    fails.embed(task(sequences()))
    assert (fails.limit.budget, fails.token_budget) == (None, 2048)
    full = embedder(Small(30, MemoryError), tmp_path / "b")
    full.limit = MemoryLimit(memory_of("cpu"))
    with pytest.raises(EmbeddingError, match="one sequence alone does not fit into memory"):
        full.embed(task(sequences()))


def test_one_row_that_does_not_fit_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    # In file order, so that rows come before the one that is too long.
    small = Small(100, MemoryError)
    test_embedder = embedder(small, tmp_path, mode="file")
    data = task(["ACGT" * 3, "AC" * 4, "CCGG" * 40, "GG"])
    says = f"t: the sequence {('CCGG' * 40)[:60]!r} of 160 letters: one sequence alone does not fit"
    with pytest.raises(EmbeddingError, match=re.escape(says)):
        test_embedder.embed(data)
    assert list(test_embedder.missing(data).values()) == ["CCGG" * 40, "GG"]


def test_a_token_counter_that_fails_is_a_sentence(tmp_path: Path) -> None:
    class Wrong(Small):
        def count_tokens(self, batch: Sequence[str]) -> list[int]:
            return [len(s) for s in batch[1:]]

    test_embedder = embedder(Wrong(99, MemoryError), tmp_path)
    with pytest.raises(
        EmbeddingError, match="returned 3 numbers for 4 sequences, expected one for"
    ):
        test_embedder.embed(task(["A", "C", "G", "T"]))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny model with random weights."""
    return models.save("bert", tmp_path_factory.mktemp("bert"))


def limited(extractor: HuggingFaceExtractor, tokens: int, first: int = 0) -> Counter[str]:
    """Let the model run out of memory beyond `tokens`, from batch `first` on; count the rows."""
    seen: Counter[str] = Counter()
    real = extractor.model.forward

    def forward(input_ids: torch.Tensor, **others: Any) -> Any:
        seen["batches"] += 1
        if input_ids.numel() > tokens and seen["batches"] > first:
            seen["failed"] += 1
            raise torch.OutOfMemoryError(SAID)
        seen["rows"] += len(input_ids)
        return real(input_ids=input_ids, **others)

    extractor.model.forward = forward
    return seen


@pytest.mark.parametrize("batching", ["exact", "budget", "file"])
def test_a_built_in_backs_off_within_a_call(bert: Path, tmp_path: Path, batching: str) -> None:
    """Memory runs out at batch 3; under "exact" the rows have the bits of an undisturbed run."""
    rows = sequences(40) + ["ACGT" * 8 + a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"]
    made = [HuggingFaceExtractor(str(bert), batching=batching) for _ in range(2)]
    expected = made[0].extract_embeddings(rows, batch_size=16)
    seen = limited(made[1], tokens=300, first=2)
    test_embedder = embedder(made[1], tmp_path, mode=batching, rows=16)
    test_embedder.embed(task(rows))
    cache = test_embedder.cache.read(sequence_digests(rows))
    assert seen["failed"] > 0
    assert seen["rows"] == len(rows), "a row was computed again"
    assert test_embedder.token_budget == made[1].memory.tokens
    if batching == "exact":
        assert (cache == expected).all()
    assert np.abs(cache - expected).max() < 1e-5


def test_a_window_that_does_not_fit_names_its_sequence(bert: Path, tmp_path: Path) -> None:
    made = HuggingFaceExtractor(str(bert), truncation="windows", max_length=40)
    limited(made, tokens=30)
    says = "t: the sequence 'ACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGT' of 80"
    with pytest.raises(EmbeddingError, match=says):
        embedder(made, tmp_path).embed(task(["AC", "ACGT" * 20, "GT", "A"]))


@contextlib.contextmanager
def address_space(more: int) -> Iterator[None]:
    """Let this process have so many bytes more than it has now."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    size = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmSize"))
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.nightly  # in the gate, an extractor that counts
def test_a_transformer_gets_the_budget_that_a_limit_leaves_room_for(tmp_path: Path) -> None:
    """Its widest layer takes 128 KiB a token: 2,048 tokens would need 256 MiB, of 160 there are."""
    folder = models.save("bert", tmp_path / "wide", width=1 << 14)
    rows = sequences(12)
    made = [HuggingFaceExtractor(str(folder), batching="exact") for _ in range(2)]
    free = embedder(made[0], tmp_path / "free", mode="exact")
    free.embed(task(rows))
    test_embedder = embedder(made[1], tmp_path / "tight", mode="exact")
    test_embedder.limit = MemoryLimit(memory_of("cpu"))
    with address_space(160 << 20):
        test_embedder.embed(task(rows))
    assert test_embedder.limit.budget in (256, 512, 1024)
    assert (test_embedder.limit.tokens, made[1].memory.tokens) == (None, None), (
        "memory never ran out"
    )
    digests = sequence_digests(rows)
    assert (test_embedder.cache.read(digests) == free.cache.read(digests)).all()
    assert test_embedder.cache.token_budgets == {test_embedder.limit.budget}
