"""What a run sees of its extractor: drift over its tasks, layer and pooling."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reference_harness.embedding.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.embedding.extractor_calls import DEFAULT_BATCHING
from reference_harness.formats.measurements import Drift
from reference_harness.loading.loader import load
from reference_harness.loading.properties import DRIFT_MAX, properties_of, properties_of_tasks

FAULTY = Path(__file__).parent / "faulty"
CLASSES = """
import numpy as np
from .base import BaseEmbeddingExtractor

class Steady(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}
    seen = 0

    def extract_embeddings(self, sequences, batch_size=8):
        rows = np.array([[s.count(c) / len(s) for c in "ACGT"] for s in sequences], "float32")
        self.seen += len(sequences)
        return self.row(rows)

    def row(self, rows):
        return rows

class Counter(Steady):
    def row(self, rows):
        return rows + np.float32(self.seen / 1000)

class RunningMean(Steady):
    total = 0
    def row(self, rows):
        self.total = self.total + rows.sum(axis=0)
        return rows - self.total / self.seen

class FillsUp(Steady):
    def row(self, rows):
        return rows * (1 if self.seen <= 300 else 2)
"""
SEQUENCES = ["".join("ACGT"[(number // 4**k) % 4] for k in range(12)) for number in range(400)]


def drift(class_name: str, folder: Path) -> Drift:
    (folder / "drifts.py").write_text(CLASSES, encoding="utf-8")
    spec = EmbedderSpec(
        extractor=f"{folder / 'drifts.py'}:{class_name}",
        name_model="",
        device="cpu",
        keywords={},
        batching=DEFAULT_BATCHING,
        measures_budget=False,
    )
    job = EmbedJob("a", SEQUENCES, folder / "cache", {"of": class_name}, SEQUENCES)
    *_, result = spec.load().embed(job)
    assert isinstance(result, EmbedResult)
    assert result.drift is not None
    return result.drift


@pytest.mark.parametrize("class_name", ["Counter", "RunningMean", "FillsUp"])
def test_a_state_that_grows_over_a_task_is_measured(class_name: str, tmp_path: Path) -> None:
    assert drift(class_name, tmp_path).difference > DRIFT_MAX


def test_a_steady_extractor_does_not_drift(tmp_path: Path) -> None:
    assert drift("Steady", tmp_path) == Drift(sequences=4, difference=0.0)


def task(read: int = 100, difference: float | None = 0.0) -> Any:
    letters = SimpleNamespace(read=read, given=100) if read else None
    own = None if difference is None else Drift(sequences=4, difference=difference)
    return SimpleNamespace(measured=SimpleNamespace(letters=letters, drift=own))


@pytest.mark.parametrize(
    ("tasks", "letters", "no_drift"),
    [
        ({"a": task(), "b": task()}, "verified", "verified"),
        ({"a": task(), "b": task(read=99)}, "contradicted", "verified"),
        ({"a": task(), "b": task(difference=0.1)}, "verified", "contradicted"),
        ({"a": task(), "b": task(read=0, difference=None)}, "not verified", "not verified"),
    ],
)
def test_tasks_verify_or_contradict(tasks: Any, letters: str, no_drift: str) -> None:
    seen = properties_of_tasks(tasks)
    assert {name: own.outcome for name, own in seen.items()} == {
        "letters-read": letters,
        "no-drift": no_drift,
    }
    assert all("b" in own.sentence for own in seen.values() if own.outcome != "verified")


@pytest.mark.nightly  # torch
@pytest.mark.parametrize(
    ("class_name", "outcome", "sentence"),
    [
        ("legitimate.py:Normalised", "verified", "as declared, up to a factor."),
        ("misdeclared.py:EndsAsMean", "contradicted", "0.50 x cls"),
        ("unverifiable.py:OtherWord", "not verified", "'attention' cannot be compared"),
    ],
)
def test_a_run_compares_layer_and_pooling(class_name: str, outcome: str, sentence: str) -> None:
    seen = properties_of(load(str(FAULTY / class_name), "", "cpu"), "cpu")
    assert seen["layer-and-pooling"].outcome == outcome
    assert sentence in seen["layer-and-pooling"].sentence
    assert {seen[name].outcome for name in ("computed-dtype", "strands")} == {"verified"}
