"""The canonical score: one optimum, whoever finds it, and nothing in the last digits moves it."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from reference_harness import benchmark, canonical, data, mini, newton, probe
from reference_harness.arithmetic import HOST
from reference_harness.errors import ProbeError
from reference_harness.loading import load
from reference_harness.tasks import TaskData
from tests.gate import gated
from tests.harness.support import torch_on_cpu

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


@pytest.mark.parametrize("classes", gated([2, 3, 5, 10], 2, 5))
def test_both_solvers_and_a_perturbation_agree(classes: int) -> None:
    train, labels, test = language_like(classes)
    newton = canonical.solve(train, labels, "newton-cholesky")
    others = [canonical.solve(train, labels, name) for name in ("newton-cg", "lbfgs")]
    assert [one.solver for one in (newton, *others)] == ["newton-cholesky", "newton-cg", "lbfgs"]
    for one in others:
        assert (newton.predict(test) != one.predict(test)).sum() <= FLIPS_MAX
    rng = np.random.RandomState(1)
    moved = [
        (x * (1 + PERTURBATION * rng.standard_normal(x.shape))).astype(np.float32)
        for x in (train, test)
    ]
    again = canonical.solve(moved[0], labels)
    assert (again.predict(moved[1]) != newton.predict(test)).sum() <= FLIPS_MAX


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
        rows = slice(None) if k is None else probe.few_shot_rows(task.train.labels, k, seed)
        labels = task.train.labels[rows]
        first = canonical.solve(train[rows], labels).predict(test)
        second = canonical.solve(moved[0][rows], labels).predict(moved[1])
        assert (first != second).sum() <= FLIPS_MAX


def test_both_solvers_agree_on_real_tasks(real_tasks: Path) -> None:
    bench = benchmark.geneb()
    source = data.Folder(real_tasks, bench)
    for task_id in ("leannmlindsey_GUE_mouse_3", "leannmlindsey_GUE_prom_core_tata"):
        task = source.load(bench.by_id[task_id])
        train, test = features(task)
        found = [
            canonical.solve(train, task.train.labels, solver).predict(test)
            for solver in ("newton-cholesky", "newton-cg", "lbfgs")
        ]
        assert (found[0] != found[1]).sum() == 0
        assert (found[0] != found[2]).sum() <= FLIPS_MAX


def assert_a_torch_device_gives_each_label(task: TaskData) -> None:
    """In each regime, ties of k-mer counts included."""
    train, test = features(task)
    for k in (None, 10, 1):
        labels = task.train.labels
        rows = slice(None) if k is None else probe.few_shot_rows(labels, k, 13)
        here, there = (
            canonical.solve(train[rows], labels[rows], on=on).predict(test)
            for on in (HOST, torch_on_cpu())
        )
        assert (here != there).sum() == 0, (task.id, k)


@pytest.mark.parametrize("task_id", ["mini_splice", "mini_species"])
def test_a_torch_device_gives_each_label(task_id: str) -> None:
    assert_a_torch_device_gives_each_label(mini.load(task_id))


def test_a_torch_device_gives_each_label_of_real_tasks(real_tasks: Path) -> None:
    bench = benchmark.geneb()
    source = data.Folder(real_tasks, bench)
    for task_id in ("leannmlindsey_GUE_mouse_3", "leannmlindsey_GUE_prom_300_tata"):
        assert_a_torch_device_gives_each_label(source.load(bench.by_id[task_id]))


def test_solving_in_the_span_of_the_rows_is_exact() -> None:
    train, labels, test = language_like(3, rows=30, dim=96)
    wide = canonical.solve(train, labels)
    padded = np.vstack([train, np.repeat(train[:1], 100, axis=0)])  # tall: solved as it stands
    assert wide.weights.shape == (96, 3)
    direct = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(
        train.astype(np.float64), labels
    )
    values = test.astype(np.float64) @ (wide.weights - direct.coef_.T)
    values += wide.intercepts - direct.intercept_
    assert np.ptp(values, axis=1).max() < 1e-8
    assert canonical.solve(padded, np.r_[labels, [labels[0]] * 100]).weights.shape == (96, 3)


def test_ties_take_the_lower_label() -> None:
    solved = canonical.Solved(
        np.array([[0.0, 1.0, 1.0]]), np.zeros(3), np.array([3, 5, 9]), "by hand", 0
    )
    assert solved.predict(np.array([[1.0], [-1.0], [0.0], [1e-9]])).tolist() == [5, 3, 3, 3]


def test_a_fallback_is_no_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn warns and runs loose lbfgs: that must not pass for the optimum."""
    monkeypatch.setattr(canonical, "NEWTON_TOL", 1e-300)
    train, labels, _ = language_like(2)
    assert canonical._newton(train.astype(np.float64), labels) is None
    assert canonical.solve(train, labels).solver == "newton-cg"
    with pytest.raises(ProbeError, match="singular"):
        canonical.solve(train, labels, "newton-cholesky")


def test_lbfgs_that_does_not_arrive_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "LBFGS_MAX_ITER", 3)
    train, labels, _ = language_like(2)
    with pytest.raises(ProbeError, match="did not reach"):
        canonical.solve(train, labels, "lbfgs")


def test_large_tasks_have_none_unless_every_cell_needs_one() -> None:
    assert canonical.affordable(100_000, 768)
    assert not canonical.affordable(100_000, 4096)


@pytest.mark.parametrize(
    ("rows", "dim", "classes", "width", "solver"),
    [
        (40, 4, 2, 5, "newton-cg"),  # one column: the preconditioner is the Hessian
        (40, 4, 3, 15, "newton-cholesky"),  # four weights and an intercept for each class
        (40, 4, 3, 14, "newton-cg"),
        (8, 20, 3, 27, "newton-cholesky"),  # in the span of eight rows
        (8, 20, 3, 26, "newton-cg"),
    ],
)
def test_the_whole_hessian_takes_over_where_it_is_small_and_faster(
    monkeypatch: pytest.MonkeyPatch, rows: int, dim: int, classes: int, width: int, solver: str
) -> None:
    train, labels, _ = language_like(classes, rows, dim)
    labels[:classes] = range(classes)
    assert canonical.solve(train, labels).solver == "newton-cg"
    monkeypatch.setattr(canonical, "NEWTON_WIDTH", width)
    monkeypatch.setattr(canonical, "_inner_steps", lambda *_: 1)
    assert canonical.solve(train, labels).solver == solver
    for forced in ("newton-cholesky", "newton-cg", "lbfgs"):
        assert canonical.solve(train, labels, forced).solver == forced


def test_conjugate_gradients_give_up_after_what_newton_would_cost() -> None:
    train, labels, _ = language_like(3, 400, 32)
    targets = labels.astype(np.int64)
    whole = newton.minimise(train, targets, 3)
    again = newton.minimise(train, targets, 3, 10_000)
    assert np.array_equal(whole.weights, again.weights)
    with pytest.raises(newton.NotSolvedError, match="20 steps of conjugate gradients did not"):
        newton.minimise(train, targets, 3, 20)
    # 8 steps of 4,000 u^2 + u^3 / 3, over 12 times 2 x 4,000 u, u = 3 x 129
    assert canonical._inner_steps(4000, 387) == 133
    assert canonical._inner_steps(3, 9) == 64


@pytest.mark.parametrize("category", [LinAlgWarning, ConvergenceWarning])
def test_newton_that_warns_is_none_whatever_the_process_does_with_warnings(
    monkeypatch: pytest.MonkeyPatch, category: type[Warning]
) -> None:
    class Warns(LogisticRegression):  # type: ignore[misc]
        def fit(self, *_: object) -> "Warns":
            warnings.warn("falling back", category, stacklevel=2)
            return self

    monkeypatch.setattr(sklearn.linear_model, "LogisticRegression", Warns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert canonical._newton(np.eye(2), np.arange(2)) is None
        if category is ConvergenceWarning:
            with pytest.raises(ProbeError, match="lbfgs did not reach"):
                canonical._lbfgs(np.eye(2), np.arange(2))
