"""The blocked Newton solver: the optimum of scikit-learn's problem, whatever holds the features."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from reference_harness.errors import ProbeError
from reference_harness.probe import newton, optimum
from reference_harness.receipt.rounding import WidenedEmbeddings
from tests.harness.support import REPOSITORY

AGREEMENT = 1e-6
"""Of the largest decision value: scikit-learn's own last step is no smaller at tol 1e-10."""


def problem(
    rows: int, dim: int, classes: int, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    rng = np.random.RandomState(seed)
    x = rng.standard_normal((rows, dim)) / np.arange(1, dim + 1) ** 0.8 + 0.3
    y = (x @ rng.standard_normal((dim, classes)) + rng.gumbel(size=(rows, classes))).argmax(axis=1)
    y[:classes] = range(classes)
    return x.astype(np.float32), y.astype(np.int64)


def centred(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return values - values.mean(axis=1, keepdims=True) if values.shape[1] > 1 else values


def distance(x: npt.NDArray[np.float32], y: npt.NDArray[np.int64]) -> float:
    """Return the largest difference of decision values from scikit-learn's, relative."""
    minimum = newton.minimise(x, y, len(np.unique(y)))
    wide = x.astype(np.float64)
    with warnings.catch_warnings():
        # Where its line search ends, scikit-learn goes on by lbfgs, at the same tolerance.
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(wide, y)
    mine = centred(wide @ minimum.weights + minimum.intercepts)
    theirs = centred(wide @ other.coef_.T + other.intercept_)
    return float(np.abs(mine - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_it_is_the_optimum_of_scikit_learn(classes: int) -> None:
    assert distance(*problem(600, 24, classes)) < AGREEMENT


@given(
    rows=st.integers(8, 60),
    dim=st.integers(1, 8),
    classes=st.integers(2, 4),
    seed=st.integers(0, 1000),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
)
@example(rows=22, dim=1, classes=2, seed=0, scale=1e-3)
@settings(max_examples=40, deadline=None)
def test_it_is_the_optimum_for_any_small_problem(
    rows: int, dim: int, classes: int, seed: int, scale: float
) -> None:
    x, y = problem(rows, dim, classes, seed)
    assert distance(x * np.float32(scale), y) < AGREEMENT


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize(("rows", "dim"), [(90, 200), (400, 60)], ids=["wide", "tall"])
@pytest.mark.parametrize("offset", [0.0, 3e4], ids=["plain", "offset"])
def test_what_is_accepted_lies_within_what_is_promised(
    rows: int, dim: int, classes: int, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By columns and by embeddings, in float32 and, for a column far from 0, in float64."""
    x, y = problem(rows, dim, classes)
    x[:, 3] += np.float32(offset)
    minimum = newton.minimise(x, y, classes)
    promised = newton.CHANGE_ACCEPTED
    monkeypatch.setattr(newton, "CHANGE_ACCEPTED", 1e-13)
    monkeypatch.setattr(newton, "PRODUCT_NOISE_MAX", 0.0)
    exact = newton.minimise(x, y, classes)
    wide = x.astype(np.float64)
    first, second = (centred(wide @ each.weights + each.intercepts) for each in (minimum, exact))
    rounding = 1e-14 * offset  # of a sum with a term of that size
    assert np.abs(first - second).max() <= (promised + rounding) * np.abs(second).max()


def test_blocks_of_any_size_give_the_same_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = problem(500, 20, 3)
    whole = newton.minimise(x, y, 3)
    monkeypatch.setattr(newton, "CACHED_BYTES", 0)
    for name in ("BLOCK_BYTES", "PASS_BYTES"):
        monkeypatch.setattr(newton, name, 20 * 8 * 7)  # seven rows
    monkeypatch.setattr(newton, "SAMPLE_EMBEDDINGS", 50)
    parts = newton.minimise(x, y, 3)
    assert np.allclose(whole.weights, parts.weights, rtol=0, atol=1e-9)
    assert np.allclose(whole.intercepts, parts.intercepts, rtol=0, atol=1e-8)


def test_features_of_any_kind_are_the_same_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves that are widened when they are read, held or not, float32 and float64."""
    monkeypatch.setattr(newton, "PASS_BYTES", 16 * 8 * 7)  # seven rows
    x, y = problem(400, 16, 2)
    half = (x * 8).astype(np.float16)
    wide = half.astype(np.float32) / 8
    plain = newton.minimise(wide, y, 2).weights
    for same in (WidenedEmbeddings(half, -3), wide.astype(np.float64)):
        assert np.array_equal(newton.minimise(same, y, 2).weights, plain)
    monkeypatch.setattr(newton, "CACHED_BYTES", 0)
    assert np.array_equal(newton.minimise(WidenedEmbeddings(half, -3), y, 2).weights, plain)


def test_what_is_not_solved_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "STEPS_MAX", 2)
    x, y = problem(300, 10, 2)
    with pytest.raises(newton.NotSolvedError, match=r"the last of 2 Newton steps changed"):
        newton.minimise(x, y, 2)
    monkeypatch.setattr(optimum, "FLOAT64_BYTES_MAX", 0)
    with pytest.raises(
        ProbeError, match=r"the optimum of the probe was not reached: the last of 2"
    ):
        optimum.solve(x, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(value: float) -> None:
    x, y = problem(50, 4, 2)
    x[3, 1] = value
    with pytest.raises(newton.NotSolvedError):
        newton.minimise(x, y, 2)


MEASURED = """
import json, sys
from tests.harness.support import peak_rss
from reference_harness.engine import blas
blas.limit_to_scorer()
import numpy as np, scipy.linalg, scipy.special
from reference_harness.probe import newton
from reference_harness.receipt.rounding import WidenedEmbeddings
rows, dim = 12_000, 512
rng = np.random.RandomState(0)
half = np.memmap(sys.argv[1], dtype="<f2", mode="w+", shape=(rows, dim))
for at in range(0, rows, 1000):
    half[at:at + 1000] = rng.standard_normal((1000, dim))
y = (np.asarray(half[:, 0], dtype=float) > 0).astype(np.int64)
newton.minimise(WidenedEmbeddings(half[:50], 0), y[:50], 2)
before = peak_rss()
newton.CACHED_BYTES, newton.BLOCK_BYTES = 0, 1 << 21
newton.minimise(WidenedEmbeddings(half, 0), y, 2)
print(json.dumps([peak_rss() - before, rows * dim * 8]))
"""


@pytest.mark.nightly
def test_memory_is_that_of_a_block_and_a_hessian(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "half.bin")],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    growth, in_float64 = json.loads(done.stdout)
    mapped = in_float64 // 4  # pages of the file count as resident
    assert growth - mapped < in_float64 / 2
