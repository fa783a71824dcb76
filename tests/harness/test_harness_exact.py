"""Exact batching: how many rows share a batch is measured, and moves no bit of a run."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference_harness.embedding import exact_batches
from reference_harness.embedding.batching import DEFAULT_EXACT_LIMITS, RowLimit
from reference_harness.embedding.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.embedding.extractor_calls import Batching, embed_sequences
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from tests.harness.extractors.models import save
from tests.harness.support import Harness

ABOVE = """
import numpy as np
import torch
from .base import BaseEmbeddingExtractor

class Above(BaseEmbeddingExtractor):
    '''A module whose rows move in a last bit in batches of more than five.'''
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def __init__(self, name_model="", device="cpu"):
        self.model = torch.nn.Linear(4, 4)
        torch.nn.init.eye_(self.model.weight)
        torch.nn.init.zeros_(self.model.bias)
        self.seen = 0

    def count_tokens(self, sequences):
        return [len(s) for s in sequences]

    def extract_embeddings(self, sequences, batch_size=8):
        counts = torch.tensor([[s.count(c) / len(s) for c in "ACGT"] for s in sequences])
        with torch.inference_mode():
            rows = self.model(counts).numpy()
        return np.nextafter(rows, np.float32(9)) if len(sequences) > 5 else rows
"""
SEQUENCES = ["".join("ACGT"[(i * j) % 4] for j in range(40)) for i in range(3, 99)]


def rows_of(tokens: int, rows: Sequence[int]) -> np.ndarray:
    return np.array([[tokens, row] for row in rows], dtype=np.float32)


def changed(breaks: int) -> Any:
    def embed(tokens: int, rows: Sequence[int]) -> np.ndarray:
        return rows_of(tokens, rows) + (len(rows) >= breaks and tokens > 16)

    return embed


@pytest.mark.parametrize(("breaks", "rows"), [(99, 64), (64, 32), (63, 32), (5, 4), (2, 1)])
def test_the_limit_is_the_largest_halving_that_changes_no_bit(breaks, rows):
    limits = exact_batches.measured_limits(changed(breaks), [16, 32], rows_max=64, tokens_max=2048)
    assert limits == (RowLimit(16, 64), RowLimit(32, rows))


def test_memory_and_an_error_limit_what_is_measured(monkeypatch):
    monkeypatch.setattr(
        exact_batches, "MEASURING_SECONDS", 600.0
    )  # on a busy machine, time would limit it too

    def embed(tokens: int, rows: Sequence[int]) -> np.ndarray:
        if len(rows) > 20:
            raise MemoryError
        if tokens > 32:
            raise ValueError("too long")
        return rows_of(tokens, rows)

    limits = exact_batches.measured_limits(embed, [16, 32, 64], rows_max=64, tokens_max=10**6)
    assert limits == (RowLimit(16, 16), RowLimit(32, 16))


def test_a_slow_model_is_not_measured_for_long(monkeypatch):
    clock = iter(range(99))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    limits = exact_batches.measured_limits(
        changed(2), [16, 32, 64, 128], rows_max=64, tokens_max=2048
    )
    assert limits == (RowLimit(16, 64), RowLimit(32, 1))


@pytest.mark.parametrize(
    ("most", "tried"),
    [(None, [16, 32, 64, 128, 256, 512, 1024]), (48, [16, 32, 48]), (64, [16, 32, 64]), (9, [])],
)
def test_lengths_are_tried_up_to_the_longest(most, tried):
    assert exact_batches.tried_lengths(most) == tried


def above(folder: Path) -> EmbedderSpec:
    (folder / "above.py").write_text(ABOVE)
    return EmbedderSpec(
        extractor=f"{folder}/above.py:Above",
        name_model="",
        device="cpu",
        keywords={},
        batching=Batching("exact"),
        measures_budget=False,
    )


def test_results_that_depend_on_the_batch_give_a_limit_and_the_bits_of_batches_of_one(tmp_path):
    load = above(tmp_path).load()
    assert {limit.rows for limit in load.facts.exact_limits} == {4, 2}  # 1,024 tokens: two of them
    alone = embed_sequences(load.extractor, Batching("file", rows=1), SEQUENCES)
    measured = embed_sequences(load.extractor, load.batching, SEQUENCES)
    assert measured.tobytes() == alone.tobytes()
    as_before = embed_sequences(load.extractor, Batching("exact"), SEQUENCES)
    assert as_before.tobytes() != alone.tobytes()


@pytest.mark.nightly  # two runs of the command, each of which loads torch
def test_a_run_whose_limit_is_measured_has_the_scores_of_batches_of_one(harness: Harness):
    (harness.folder / "above.py").write_text(ABOVE)
    run = ("run", "--extractor", "above.py:Above", "--tasks", "mini_tf", "--regimes", "1shot")
    for name, batches in (("a", ("exact",)), ("b", ("file", "--batch-size", "1"))):
        done = harness(*run, "--output", f"{name}.json", "--batching", *batches)
        assert done.returncode == 0, done.stderr
    measured, alone = (json.loads((harness.folder / f"{n}.json").read_text()) for n in "ab")
    assert measured["batching"]["exact_rows"][0] == {"tokens": 16, "rows": 4}
    assert "exact_rows" not in alone["batching"]
    for regime, member in measured["tasks"]["mini_tf"]["regimes"].items():
        other = alone["tasks"]["mini_tf"]["regimes"][regime]
        assert member["predictions_sha256"] == other["predictions_sha256"]
        assert member["scores"] == other["scores"]


def test_a_model_of_transformers_keeps_its_limits(tmp_path):
    folder = save("bert", tmp_path)
    spec = EmbedderSpec(
        extractor="huggingface",
        name_model=str(folder),
        device="cpu",
        keywords={"batching": "exact"},
        batching=Batching("exact"),
        measures_budget=False,
    )
    load = spec.load()
    extractor = load.extractor.extractor
    assert isinstance(extractor, HuggingFaceExtractor)
    assert extractor.exact_limits == load.facts.exact_limits != DEFAULT_EXACT_LIMITS
    assert [limit.tokens for limit in load.facts.exact_limits] == [16, 32, 64]
    extractor.exact_limits = (RowLimit(16, 1),)
    alone = extractor.extract_embeddings(SEQUENCES)
    extractor.exact_limits = load.facts.exact_limits
    assert extractor.extract_embeddings(SEQUENCES).tobytes() == alone.tobytes()


def test_a_run_says_where_embedded_alone_a_sequence_has_other_bits(tmp_path):
    load = above(tmp_path).load()
    state: Any = load.extractor.extractor
    embed = state.extract_embeddings

    def drifting(sequences: list[str], batch_size: int = 8) -> np.ndarray:
        state.seen += 1
        rows: np.ndarray = embed(sequences, batch_size)
        return rows + np.float32(state.seen)

    job = EmbedJob("t", SEQUENCES, tmp_path / "cache", {})
    *_, calm = load.embed(job)
    state.extract_embeddings = drifting
    *_, moved = load.embed(EmbedJob("t", SEQUENCES, tmp_path / "other", {}))
    assert isinstance(calm, EmbedResult)
    assert isinstance(moved, EmbedResult)
    assert not calm.notes
    assert (
        "embedding 4 sequences again alone changed bits of 4 embeddings, although" in moved.notes[0]
    )
