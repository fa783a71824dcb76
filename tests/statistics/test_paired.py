"""Paired comparisons: McNemar's test, the delta method against closed forms and simulations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.statistics.metrics import scores_of_matrix
from geneb_ci.statistics.paired import (
    PairedCell,
    macro_weights,
    mcnemar,
    paired_cell,
    paired_difference,
)

DRAWS = 3000


def mcc(truth: np.ndarray, fits: np.ndarray, classes: int) -> float:
    matrices = [
        np.bincount(truth * classes + fit, minlength=classes**2).reshape(classes, classes).tolist()
        for fit in fits
    ]
    return math.fsum(scores_of_matrix(matrix).mcc for matrix in matrices) / len(matrices)


def drawn(
    rng: np.random.Generator, truth: np.ndarray, classes: int, fits: int, right: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of two models that share the difficulty of each row."""
    hard = rng.normal(size=len(truth))
    results = []
    for model in range(2):
        of_model = 0.6 * hard + 0.4 * rng.normal(size=len(truth))
        noise = of_model + 0.5 * rng.normal(size=(fits, len(truth)))
        wrong = (truth + 1 + rng.integers(0, classes - 1, noise.shape)) % classes
        results.append(np.where(noise < right - 0.2 * model, truth, wrong))
    return results[0], results[1]


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(b: int, c: int) -> None:
    tail = sum(math.comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c)
    assert mcnemar(b, c) == pytest.approx(min(1.0, 2 * tail), rel=1e-9)
    assert mcnemar(b, c) == mcnemar(c, b)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 5), st.integers(1, 60))
def test_exchanging_the_models_changes_the_sign_alone(
    seed: int, classes: int, fits: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    a, b = (rng.integers(0, classes, (fits, rows)) for _ in range(2))
    first, other = paired_cell(truth, a, b, classes), paired_cell(truth, b, a, classes)
    assert first.difference == -other.difference
    assert first.se == other.se
    assert first.covariance == other.covariance
    assert [d.p for d in first.discordant] == [d.p for d in other.discordant]
    # A covariance is never more than the two variances allow.
    assert abs(first.covariance) <= math.sqrt(first.variance_a * first.variance_b) + 1e-12
    itself = paired_cell(truth, a, a, classes)
    assert itself.difference == 0
    assert sum(d.only_a + d.only_b for d in itself.discordant) == 0


def test_two_classes_and_one_fit_are_the_closed_form() -> None:
    rng = np.random.default_rng(3)
    truth = np.repeat([1, 0], [300, 500])
    a, b = drawn(rng, truth, 2, 1, 0.8)
    paired = paired_cell(truth, a, b, 2)
    variances, slopes = [], []
    n1, n0 = 300, 500
    for first in (a[0], b[0]):
        recall, specificity = (first[:n1] == 1).mean(), (first[n1:] == 0).mean()
        p1, p0 = n1 / 800, n0 / 800
        q = p1 * recall + p0 * (1 - specificity)
        d, kappa = math.sqrt(q * (1 - q)), math.sqrt(p1 * p0)
        j = (recall + specificity - 1) * kappa * (1 - 2 * q) / (2 * d**3)
        g1, g0 = kappa / d - j * p1, kappa / d + j * p0
        variances.append(
            g1**2 * recall * (1 - recall) / n1 + g0**2 * specificity * (1 - specificity) / n0
        )
        slopes.append((g1, g0))
    right_a, right_b = a[0] == truth, b[0] == truth
    covariance = 0.0
    for index, rows in enumerate((slice(None, n1), slice(n1, None))):
        first, other, both = right_a[rows], right_b[rows], (right_a & right_b)[rows]
        shared = both.mean() - first.mean() * other.mean()
        covariance += slopes[0][index] * slopes[1][index] * shared / len(first)
    assert (paired.variance_a, paired.variance_b, paired.covariance) == pytest.approx(
        (*variances, covariance), rel=1e-9
    )


@pytest.mark.nightly  # a simulation; in the gate: the bootstrap below
@pytest.mark.parametrize(
    ("classes", "fits"),
    [
        (4, 5),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in ((2, 1), (2, 5), (4, 1))),
    ],
)
def test_the_error_is_that_of_a_simulation(classes: int, fits: int) -> None:
    """Rows and predictions are drawn again and again from one law."""
    rng = np.random.default_rng(classes * 10 + fits)
    truth = np.repeat(np.arange(classes), [240, 160, 120, 80][:classes])
    differences, errors, unpaired = [], [], []
    for draw in range(DRAWS):
        a, b = drawn(rng, truth, classes, fits, 0.7)
        differences.append(mcc(truth, a, classes) - mcc(truth, b, classes))
        if draw < 50:
            cell = paired_cell(truth, a, b, classes)
            assert cell.difference == pytest.approx(differences[-1], abs=1e-12)
            errors.append(cell.se)
            unpaired.append(math.sqrt(cell.variance_a + cell.variance_b))
    assert np.mean(errors) == pytest.approx(np.std(differences), rel=0.06)
    assert np.mean(unpaired) > 1.1 * np.mean(errors)


def test_the_error_is_that_of_a_bootstrap_within_classes() -> None:
    rng = np.random.default_rng(8)
    truth = np.repeat([0, 1, 2], [50, 40, 30])
    a, b = drawn(rng, truth, 3, 5, 0.5)
    replicates = []
    for _ in range(DRAWS):
        rows = np.concatenate(
            [
                rng.choice(np.flatnonzero(truth == index), (truth == index).sum())
                for index in range(3)
            ]
        )
        replicates.append(mcc(truth[rows], a[:, rows], 3) - mcc(truth[rows], b[:, rows], 3))
    assert paired_cell(truth, a, b, 3).se == pytest.approx(np.std(replicates), rel=0.06)


def test_a_class_that_is_always_right_is_not_certain() -> None:
    truth = np.repeat([0, 1], [20, 20])
    perfect = truth[None, :]
    constant = np.zeros((1, 40), dtype=np.int64)
    paired = paired_cell(truth, perfect, constant, 2)
    assert (paired.difference, paired.covariance) == (1.0, 0.0)
    assert paired.variance_a > 0
    assert paired.variance_b > 0


def test_a_score_is_a_weighted_sum_of_its_cells() -> None:
    weights = macro_weights({"one": ("a", "b"), "two": ("c",), "empty": ()})
    assert weights == {"a": 0.25, "b": 0.25, "c": 0.5}
    cells = {
        "a": PairedCell(0.1, 4e-4, 5e-4, 3e-4),
        "b": PairedCell(-0.1, 4e-4, 4e-4, 0.0),
        "c": PairedCell(0.2, 1e-4, 1e-4, 1e-4),
    }
    difference = paired_difference(cells, weights)
    assert difference.difference == pytest.approx(0.1)
    assert difference.se == pytest.approx(math.sqrt((3e-4 + 8e-4) / 16))
    assert difference.unpaired_se == pytest.approx(math.sqrt((9e-4 + 8e-4) / 16 + 2e-4 / 4))
    assert difference.high - difference.difference == pytest.approx(1.96 * difference.se, rel=1e-4)
    assert difference.probability > 0.99
    same = paired_difference({"a": PairedCell(0.0, 1e-4, 1e-4, 1e-4)}, {"a": 1.0})
    assert (same.se, same.probability) == (0.0, 0.5)


def test_predictions_of_other_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        paired_cell(np.zeros(3, int), np.zeros((1, 4), int), np.zeros((1, 4), int), 2)
