"""The optimum of the probe: one, whoever finds it, and nothing in the last digits moves it."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reference_harness import mini
from reference_harness.data import benchmark, task_folder
from reference_harness.data.task_data import TaskData
from reference_harness.errors import ProbeError
from reference_harness.loading.loader import load
from reference_harness.probe import logistic, newton, optimum
from tests.gate import gated

PERTURBATION = 1e-7
"""Relative change of a feature: what another batch, kernel or thread count does in float32."""
FLIPS_MAX = 0


def features(task: TaskData) -> tuple[np.ndarray, np.ndarray]:
    embed = load("kmer").extractor.extract_embeddings
    return embed(task.train.sequences), embed(task.test.sequences)


def language_like(classes: int, rows: int = 600, dim: int = 96) -> tuple[np.ndarray, ...]:
    """Return train, labels and test with a power-law spectrum and an offset, as models give."""
    rng = np.random.RandomState(classes)
    scale = 1 / np.arange(1, dim + 1) ** 0.8
    x = rng.standard_normal((rows + 300, dim)) * scale
    scores = x @ rng.standard_normal((dim, classes)) * 2 + rng.gumbel(size=(rows + 300, classes))
    labels = scores.argmax(axis=1)
    x = (x + rng.standard_normal(dim)).astype(np.float32)
    return x[:rows], labels[:rows], x[rows:]


@pytest.mark.parametrize("classes", gated([2, 3, 5, 10], 2, 3))
def test_both_solvers_and_a_perturbation_agree(classes: int) -> None:
    train, labels, test = language_like(classes)
    first, second = (optimum.solve(train, labels, name) for name in ("newton-cg", "lbfgs"))
    assert (first.solver, second.solver) == ("newton-cg", "lbfgs")
    assert (first.predict(test) != second.predict(test)).sum() <= FLIPS_MAX
    rng = np.random.RandomState(1)
    moved = [
        (x * (1 + PERTURBATION * rng.standard_normal(x.shape))).astype(np.float32)
        for x in (train, test)
    ]
    again = optimum.solve(moved[0], labels)
    assert (again.predict(moved[1]) != first.predict(test)).sum() <= FLIPS_MAX


@pytest.mark.parametrize("k", [None, 10, 1], ids=["full", "10shot", "1shot"])
@pytest.mark.parametrize("task_id", ["mini_phage", "mini_splice", "mini_species", "mini_tf"])
def test_word_counts_do_not_move(task_id: str, k: int | None) -> None:
    """Ties included: of word counts in one-shot probes there are many, and they are exact."""
    task = mini.load(task_id)
    train, test = features(task)
    rng = np.random.RandomState(2)
    moved = [
        (x * (1 + PERTURBATION * rng.standard_normal(x.shape))).astype(np.float32)
        for x in (train, test)
    ]
    seeds = [0] if k is None else [13, 17, 42, 123, 997]
    for seed in seeds:
        rows = slice(None) if k is None else logistic.few_shot_indices(task.train.labels, k, seed)
        labels = task.train.labels[rows]
        first = optimum.solve(train[rows], labels).predict(test)
        second = optimum.solve(moved[0][rows], labels).predict(moved[1])
        assert (first != second).sum() <= FLIPS_MAX


def test_both_solvers_agree_on_real_tasks(real_tasks: Path) -> None:
    bench = benchmark.geneb()
    source = task_folder.Folder(real_tasks, bench)
    for task_id in ("leannmlindsey_GUE_mouse_3", "leannmlindsey_GUE_prom_core_tata"):
        task = source.load(bench.by_id[task_id])
        train, test = features(task)
        predictions = [
            optimum.solve(train, task.train.labels, solver).predict(test)
            for solver in ("newton-cg", "lbfgs")
        ]
        assert (predictions[0] != predictions[1]).sum() <= FLIPS_MAX


def test_solving_in_the_span_of_the_rows_is_exact() -> None:
    train, labels, test = language_like(3, rows=30, dim=96)
    wide = optimum.solve(train, labels)
    padded = np.vstack([train, np.repeat(train[:1], 100, axis=0)])  # tall: solved as it stands
    assert wide.weights.shape == (96, 3)
    direct = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(
        train.astype(np.float64), labels
    )
    values = test.astype(np.float64) @ (wide.weights - direct.coef_.T)
    values += wide.intercepts - direct.intercept_
    assert np.ptp(values, axis=1).max() < 1e-8
    assert optimum.solve(padded, np.r_[labels, [labels[0]] * 100]).weights.shape == (96, 3)


def test_ties_take_the_lower_label() -> None:
    solved = optimum.SolvedProbe(
        np.array([[0.0, 1.0, 1.0]]), np.zeros(3), np.array([3, 5, 9]), "by hand", 0
    )
    assert solved.predict(np.array([[1.0], [-1.0], [0.0], [1e-9]])).tolist() == [5, 3, 3, 3]


def test_lbfgs_that_does_not_arrive_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum, "LBFGS_MAX_ITER", 3)
    train, labels, _ = language_like(2)
    with pytest.raises(ProbeError, match="did not reach"):
        optimum.solve(train, labels, "lbfgs")


def test_lbfgs_takes_over_where_newton_does_not_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    train, labels, test = language_like(3)
    expected = optimum.solve(train, labels).predict(test)
    monkeypatch.setattr(newton, "STEPS_MAX", 1)
    solved = optimum.solve(train, labels)
    assert solved.solver == "lbfgs"
    assert (solved.predict(test) != expected).sum() <= FLIPS_MAX
    with pytest.raises(ProbeError, match="the last of 1 Newton steps"):
        optimum.solve(train, labels, "newton-cg")
