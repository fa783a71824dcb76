"""Bounds that hold for any classes hold for random matrices of 3 to 40."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef

from geneb_ci.statistics.metrics import (
    MetricBounds,
    mean_bounds,
    one_matrix_bounds,
    scores_of_matrix,
)
from tests.examples import examples
from tests.statistics.arithmetic.draw import matrices

SLACK = 1e-12


def measured(matrix: list[list[int]]) -> tuple[int, int, float, float]:
    """Return n, right predictions, MCC and macro-F1, as scikit-learn does."""
    counts = np.array(matrix)
    truth, predicted = np.nonzero(counts)
    weights = counts[truth, predicted]
    mcc = matthews_corrcoef(truth, predicted, sample_weight=weights)
    f1 = f1_score(truth, predicted, average="macro", sample_weight=weights, zero_division=0.0)
    return int(counts.sum()), int(np.trace(counts)), float(mcc), float(f1)


def held(bounds: MetricBounds, mcc: float, f1: float) -> bool:
    return (
        bounds.mcc_low - SLACK <= mcc <= bounds.mcc_high + SLACK
        and bounds.f1_low - SLACK <= f1 <= bounds.f1_high + SLACK
    )


@given(matrices())
@example([[5, 0, 0], [3, 0, 0], [2, 0, 0]])  # one class is predicted for all: MCC is 0
@settings(max_examples=examples(100))
def test_scores_of_a_matrix_are_those_of_scikit_learn(matrix):
    n, right, mcc, f1 = measured(matrix)
    assert scores_of_matrix(matrix) == pytest.approx((mcc, right / n, f1), abs=1e-12)


@given(matrices())
@settings(max_examples=examples(200))
def test_one_matrix_keeps_the_bounds(matrix):
    n, right, mcc, f1 = measured(matrix)
    assert held(one_matrix_bounds(n, right), mcc, f1)


@given(st.lists(matrices(), min_size=5, max_size=5))
@settings(max_examples=examples(50))
def test_a_mean_keeps_the_bounds(several):
    """Matrices of one task have one size: each is filled up with right predictions of a class."""
    n = max(sum(map(sum, matrix)) for matrix in several)
    for matrix in several:
        matrix[0][0] += n - sum(map(sum, matrix))
    rows = [measured(matrix) for matrix in several]
    bounds = mean_bounds(n, sum(row[1] for row in rows), len(rows))
    mcc, f1 = (sum(row[k] for row in rows) / len(rows) for k in (2, 3))
    assert held(bounds, mcc, f1)


@pytest.mark.parametrize("n", [2, 400, 57_713])
def test_only_perfect_predictions_have_a_perfect_score(n):
    assert one_matrix_bounds(n, n) == mean_bounds(n, 5 * n, 5) == MetricBounds(1.0, 1.0, 1.0, 1.0)
    assert one_matrix_bounds(n, n - 1).mcc_high < 1 - SLACK
    assert one_matrix_bounds(n, n - 1).f1_high < 1
    assert mean_bounds(n, 5 * n - 1, 5).f1_high < 1


@pytest.mark.parametrize("n", [2, 400])
def test_nothing_right_has_no_score(n):
    assert one_matrix_bounds(n, 0) == mean_bounds(n, 0, 5) == MetricBounds(-1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("n", [3, 400, 57_713])
def test_bounds_rise_with_accuracy(n):
    """The rule takes them at both ends of what a rounded accuracy may be."""
    rights = range(0, 5 * n + 1, max(1, n // 50))
    for first, two in itertools.pairwise(rights):
        assert all(
            b >= a - SLACK
            for a, b in zip(mean_bounds(n, first, 5), mean_bounds(n, two, 5), strict=True)
        )
    for first, two in itertools.pairwise(range(n)):
        assert all(
            b >= a
            for a, b in zip(one_matrix_bounds(n, first), one_matrix_bounds(n, two), strict=True)
        )
