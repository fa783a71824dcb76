"""Honest embeddings agree; altered embeddings, another model's, and noise that knows the labels
differ."""

import functools
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from geneb_ci.audit.compare.embedding_outcome import EmbeddingRepeat
from geneb_ci.audit.compare.embeddings import RepeatedEmbedding, own_noise_clause
from geneb_ci.receipt.column_rule import compare_with_rerun
from geneb_ci.receipt.draw import EmbeddingCounts
from reference_harness import mini
from reference_harness.data import benchmark
from reference_harness.data.task_data import TaskData
from reference_harness.extractors.kmer import KmerExtractor
from tests.adversary.models import NetworkExtractor, random_convolution
from tests.gate import gated
from tests.receipt import attacks
from tests.receipt.audited import Found, audit, scored

TASKS = ("mini_tf", "mini_splice")
SAMPLE = EmbeddingCounts(test=240, training=30, support=120, whole=False)
ALL = EmbeddingCounts(test=2000, training=3000, support=2000, whole=False)
"""So many draws that every right test embedding is among them."""


@functools.cache
def data_of(task: str) -> TaskData:
    return mini.load(task)


@functools.cache
def honest(task: str, seed: int = 3) -> np.ndarray:
    """Return the embeddings of a random convolution, which has the roundings of a neural
    network."""
    data = data_of(task)
    model = NetworkExtractor(random_convolution(seed))
    return model.extract_embeddings([*data.train.sequences, *data.test.sequences])


def labels_of(task: str) -> np.ndarray:
    data = data_of(task)
    return np.concatenate([data.train.labels, data.test.labels])


def audited(
    folder: Path,
    change: Callable[[str, np.ndarray, np.ndarray, int], np.ndarray],
    sample: EmbeddingCounts = SAMPLE,
    tasks: tuple[str, ...] = TASKS,
) -> Found:
    """Audit receipts whose embeddings were changed, by reruns of the honest ones."""
    scored_by_task = {}
    for task in tasks:
        train = len(data_of(task).train.labels)
        changed = change(task, honest(task), labels_of(task), train)
        scored_by_task[task] = scored(folder, task, changed, sample)
    return audit(scored_by_task, {task: honest(task) for task in tasks})


def test_honest_rows_agree(tmp_path: Path) -> None:
    outcome = audited(tmp_path, lambda _task, rows, _labels, _train: rows)
    assert outcome.reasons == []
    assert sum(len(task.deviation) for task in outcome.tasks) > 500


def test_float32_noise_of_other_hardware_agrees(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)

    def change(_task: str, rows: np.ndarray, _labels: object, _train: int) -> np.ndarray:
        return (rows * (1 + 3e-7 * draw.standard_normal(rows.shape))).astype(np.float32)

    assert audited(tmp_path, change).reasons == []


@pytest.mark.parametrize(
    ("attack", "eps"),
    gated(
        itertools.product((attacks.column, attacks.push), (1e-3, 1e-4, 1e-5)),
        *((attacks.column, 1e-4), (attacks.push, 1e-5)),
    ),
)
def test_noise_that_knows_the_labels_differs(
    attack: Callable[..., np.ndarray], eps: float, tmp_path: Path
) -> None:
    outcome = audited(tmp_path, lambda _t, rows, labels, train: attack(rows, labels, train, eps))
    assert outcome.reasons
    if eps >= 1e-4:
        assert any("not what the extractor gives" in reason for reason in outcome.reasons)


def test_the_direction_alone_finds_what_no_row_shows(tmp_path: Path) -> None:
    """Coordinates within the tolerance move towards the label, in a few coordinates an
    embedding."""
    outcome = audited(tmp_path, lambda _t, rows, labels, train: attacks.border(rows, labels, train))
    assert outcome.direction.p < 1e-3
    assert any("points towards the labels" in reason for reason in outcome.reasons)


def test_an_altered_test_row_differs_and_is_named(tmp_path: Path) -> None:
    def change(_task: str, rows: np.ndarray, labels: np.ndarray, train: int) -> np.ndarray:
        return attacks.altered(rows, labels, [train + 5], train)

    outcome = audited(tmp_path, change, ALL, ("mini_tf",))
    (reason,) = outcome.reasons
    assert reason.startswith("1 embedding of ")
    assert "is not what the extractor gives: test embedding 5 of mini_tf deviates by" in reason


def test_an_altered_support_row_differs_and_is_named(tmp_path: Path) -> None:
    """Every support embedding of one shot is embedded again, whatever is drawn."""
    labels = data_of("mini_tf").train.labels
    bench = benchmark.mini()
    from reference_harness.probe.logistic import few_shot_indices

    index = int(few_shot_indices(labels, 1, bench.protocol.seeds[2])[1])

    def change(_task: str, rows: np.ndarray, truth: np.ndarray, train: int) -> np.ndarray:
        return attacks.altered(rows, truth, [index], train)

    outcome = audited(tmp_path, change, tasks=("mini_tf",))
    (reason,) = outcome.reasons
    assert f"training embedding {index} of mini_tf deviates by" in reason


def test_rows_of_another_model_differ(tmp_path: Path) -> None:
    outcome = audited(
        tmp_path, lambda task, _rows, _labels, _train: honest(task, seed=4), tasks=("mini_tf",)
    )
    assert "embeddings of" in outcome.reasons[0]
    total = sum(len(task.deviation) for task in outcome.tasks)
    assert sum(len(task.failed) for task in outcome.tasks) == total


def test_rows_of_other_options_differ(tmp_path: Path) -> None:
    """Words of three letters, where the submission says those of four."""
    data = data_of("mini_tf")
    sequences = [*data.train.sequences, *data.test.sequences]
    four = KmerExtractor(k=4).extract_embeddings(sequences)
    three = np.repeat(KmerExtractor(k=3).extract_embeddings(sequences) / 4, 4, axis=1)
    outcome = audit({"mini_tf": scored(tmp_path, "mini_tf", three, SAMPLE)}, {"mini_tf": four})
    assert len(outcome.tasks[0].failed) == len(outcome.tasks[0].deviation)


@pytest.mark.parametrize("size", gated([3e-3, 1e-4], 1e-4))
def test_a_stochastic_extractor_differs_and_its_noise_widens_no_tolerance(
    size: float, tmp_path: Path
) -> None:
    """Its receipt leans towards the labels by as much as its embeddings vary from run to run."""
    draw = np.random.default_rng(0)

    def change(_task: str, rows: np.ndarray, labels: np.ndarray, train: int) -> np.ndarray:
        return attacks.column(rows, labels, train, size)

    def noisy(task: str) -> np.ndarray:
        rows = honest(task)
        noise = size * rows.std(axis=0) * draw.standard_normal(rows.shape)
        again: np.ndarray = rows + noise.astype(np.float32)
        return again

    train = {task: len(data_of(task).train.labels) for task in TASKS}
    written = {
        task: scored(
            tmp_path, task, change(task, noisy(task), labels_of(task), train[task]), SAMPLE
        )
        for task in TASKS
    }
    outcome = audit(written, {task: noisy(task) for task in TASKS})
    assert "not what the extractor gives" in outcome.reasons[0]


def test_a_receipt_of_an_extractor_that_does_not_repeat_itself_is_weak(tmp_path: Path) -> None:
    """One that does repeat itself differs, whatever its receipt holds."""
    task, draw = "mini_tf", np.random.default_rng(0)

    def noisy() -> np.ndarray:
        rows = honest(task)
        noise: np.ndarray = 1e-3 * rows.std(axis=0) * draw.standard_normal(rows.shape)
        again: np.ndarray = (rows + noise).astype("f4")
        return again

    drawn = scored(tmp_path, task, noisy(), SAMPLE).drawn
    rerun, scale = noisy()[drawn.rows], drawn.receipt_task.scale_log2
    judged = compare_with_rerun(drawn.committed, rerun, drawn.tolerances(rerun), scale)
    worst = int(judged.deviation.argmax())
    result = EmbeddingRepeat(dtype="float64", deviation=judged.deviation[worst], mismatch=0)
    again = {task: {drawn.rows[worst]: RepeatedEmbedding(result, rerun[worst])}}

    def noise_text(repeat: np.ndarray) -> str:
        return own_noise_clause(
            [drawn], [rerun], [judged], again, zip(drawn.sequences, repeat, strict=True)
        )

    assert noise_text(noisy()[drawn.rows]).startswith(
        "in another batch the extractor gives the same "
    )
    assert noise_text(rerun) == ""
    assert own_noise_clause([drawn], [rerun], [judged], {}, ()) == ""


def test_rows_computed_in_bfloat16_differ_whatever_is_declared(tmp_path: Path) -> None:
    import torch

    def change(task: str, _rows: np.ndarray, _labels: np.ndarray, _train: int) -> np.ndarray:
        data = data_of(task)
        model = NetworkExtractor(random_convolution(3), torch.bfloat16)
        return model.extract_embeddings([*data.train.sequences, *data.test.sequences])

    outcome = audited(tmp_path, change, tasks=("mini_tf",))
    failed = sum(len(task.failed) for task in outcome.tasks)
    assert failed > 0.99 * sum(len(task.deviation) for task in outcome.tasks)
    assert "not what the extractor gives" in outcome.reasons[0]
