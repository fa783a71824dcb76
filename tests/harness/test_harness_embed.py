"""Embedding: each distinct sequence once, order restored, whatever the batches are."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reference_harness.data.task_data import Split, TaskData, sequence_digests
from reference_harness.embedding.extractor_calls import Batching, planned_calls, to_numpy
from reference_harness.errors import EmbeddingError
from tests.harness.support import TaskEmbedder


@pytest.fixture(autouse=True, scope="module")
def _no_drift() -> Iterator[None]:
    """Count the calls of a task's own embeddings, without those that look for a drift."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reference_harness.embedding.embedder.DRIFT_SEQUENCES", 0)
        yield


class Counts:
    """Letters of a sequence; remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int]] = []

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int) -> Any:
        self.calls.append((list(sequences), batch_size))
        return np.array([[s.count(c) for c in "ACGT"] for s in sequences], dtype=np.float32)


def embedder(extractor: object, folder: Path, **batching: Any) -> TaskEmbedder:
    loaded: Any = SimpleNamespace(
        extractor=extractor, path="mine.py", class_name="Mine", is_unit=False
    )
    return TaskEmbedder(loaded, folder, Batching(**batching))


def task(train: list[str], test: list[str], name: str = "t") -> TaskData:
    def split(sequences: list[str]) -> Split:
        return Split(sequences, np.arange(len(sequences)) % 2)

    return TaskData(name, split(train), split(test))


def test_identical_sequences_are_embedded_once_across_splits_and_tasks(tmp_path: Path) -> None:
    counts = Counts()
    test_embedder = embedder(counts, tmp_path)
    first = test_embedder.embed(task(["AC", "AC", "GG"], ["AC", "TT"]))
    second = test_embedder.embed(task(["TT", "GG"], ["CC", "GG"]))
    requests = [s for call, _ in counts.calls for s in call]
    assert sorted(requests) == ["AC", "CC", "GG", "TT"]
    assert (first, second) == ((3, 3), (3, 1))


def test_case_is_not_folded(tmp_path: Path) -> None:
    counts = Counts()
    embedder(counts, tmp_path).embed(task(["AC", "ac"], ["AC"]))
    assert sum(len(call) for call, _ in counts.calls) == 2


@pytest.mark.parametrize("mode", ["budget", "exact", "file"])
def test_order_is_restored(tmp_path: Path, mode: str) -> None:
    rng = np.random.RandomState(0)
    train = ["".join(rng.choice(list("ACGT"), n)) for n in rng.randint(1, 90, 60)]
    test_embedder = embedder(Counts(), tmp_path, mode=mode, token_budget=200)
    test_embedder.embed(task(train, ["ACGT"]))
    cache = test_embedder.cache.read(sequence_digests(train))
    assert (cache == Counts().extract_embeddings(train, 1)).all()


lengths = st.lists(st.integers(1, 50), min_size=1, max_size=40)


@given(lengths, st.sampled_from(["budget", "exact", "file"]))
def test_every_row_is_planned_once(sizes: list[int], mode: Any) -> None:
    loaded: Any = SimpleNamespace(
        extractor=Counts(), path="mine.py", class_name="Mine", is_unit=False
    )
    planned = planned_calls(loaded, Batching(mode, 64), ["A" * n for n in sizes])
    assert sorted(i for batch in planned for i in batch) == list(range(len(sizes)))
    if mode == "budget":
        for batch in planned:
            assert len(batch) == 1 or len(batch) * max(sizes[i] for i in batch) <= 64


class Planned(Counts):
    """A built-in that plans its own batches: six letters are a token, of at most 100."""

    max_length: int | None = 100
    truncation = "right"

    def count_tokens(self, sequences: Sequence[str]) -> list[int]:
        return [len(sequence) // 6 for sequence in sequences]


@pytest.mark.parametrize(
    ("letters", "budget", "calls"),
    [
        (60, 2048, [2048, 2048, 904]),  # 25 batches a call, on a CPU
        (60, 5120, [4096, 904]),  # of 512 sequences
        (60, 1 << 18, [5000]),
        (1200, 1 << 16, [5000]),  # cut to 100 tokens
        (1200, 1 << 15, [2621, 2379]),
    ],
)
def test_a_call_of_a_builtin_has_room_for_eight_batches(
    letters: int, budget: int, calls: list[int]
) -> None:
    loaded: Any = SimpleNamespace(
        extractor=Planned(), path="builtin:planned", class_name="Planned", is_unit=False
    )
    planned = planned_calls(loaded, Batching("budget", budget), ["A" * letters] * 5000)
    assert [len(batch) for batch in planned] == calls
    assert sorted(i for batch in planned for i in batch) == list(range(5000))
    exact = planned_calls(loaded, Batching("exact", budget), ["A" * letters] * 5000)
    assert [len(batch) for batch in exact] == [2048, 2048, 904]


def test_upstreams_order_is_batches_of_eight(tmp_path: Path) -> None:
    counts = Counts()
    train = ["A" * (20 - i) for i in range(20)]
    embedder(counts, tmp_path, mode="file").embed(task(train, train))
    assert [len(call) for call, _ in counts.calls] == [8, 8, 4]
    assert {size for _, size in counts.calls} == {8}
    assert [s for call, _ in counts.calls for s in call] == train


def test_exact_without_token_counts_is_one_row_a_call(tmp_path: Path) -> None:
    counts = Counts()
    embedder(counts, tmp_path, mode="exact").embed(task(["AC", "GT"], ["AA"]))
    assert [len(call) for call, _ in counts.calls] == [1, 1, 1]


def test_exact_batches_by_the_extractors_tokens(tmp_path: Path) -> None:
    class Pairs(Counts):
        def count_tokens(self, sequences: Sequence[str]) -> list[int]:
            return [len(s) * 16 // 2 for s in sequences]  # short ones would go alone

    pairs = Pairs()
    embedder(pairs, tmp_path, mode="exact").embed(task(["ACGT", "GCGT", "ACGTA"], ["GGGG"]))
    assert sorted(len(call) for call, _ in pairs.calls) == [1, 3]


class Gives:
    """Returns what it is told to."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int) -> Any:
        del sequences, batch_size
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.ones((1, 3), np.float32), "an array of shape (1, 3), expected (2, d)"),
        (np.ones(2, np.float32), "an array of shape (2,), expected (2, d)"),
        (np.ones((2, 0), np.float32), "an array of shape (2, 0), expected (2, d)"),
        (np.array([[1.0], [np.nan]]), "t: the embedding of 'GG' has NaN or infinity"),
        (
            np.ones((2, 3), int),
            "the extractor Mine returned int64, expected a NumPy or torch array of float",
        ),
        (
            [[1.0], [2.0]],
            "the extractor Mine returned list, expected a NumPy or torch array of float",
        ),
        (
            RuntimeError("CUDA out of memory"),
            "t: the sequence 'AC' of 2 letters: one sequence alone does not fit into memory",
        ),
    ],
    ids=["a row short", "one dimension", "no column", "nan", "integers", "list", "memory"],
)
def test_faulty_output_is_named(tmp_path: Path, value: Any, says: str) -> None:
    with pytest.raises(EmbeddingError) as caught:
        embedder(Gives(value), tmp_path).embed(task(["AC", "GG"], ["AC"]))
    assert says in str(caught.value)


def test_rows_before_a_failure_are_kept(tmp_path: Path) -> None:
    class Fails(Counts):
        def extract_embeddings(self, sequences: Sequence[str], batch_size: int) -> Any:
            if len(self.calls) == 2:
                raise KeyboardInterrupt
            return super().extract_embeddings(sequences, batch_size)

    test_embedder = embedder(Fails(), tmp_path, token_budget=4)
    data = task(["AAAA", "CCCC", "GGGG"], ["TTTT"])
    with pytest.raises(KeyboardInterrupt):
        test_embedder.embed(data)
    assert len(test_embedder.missing(data)) == 2


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_torch_tensors_are_taken(kind: str) -> None:
    tensor = torch.tensor([[1.5, -2.0]], dtype=getattr(torch, kind), requires_grad=True)
    array = to_numpy(tensor)
    assert array.tolist() == [[1.5, -2.0]]
    assert array.dtype == ("float32" if kind == "bfloat16" else kind)
