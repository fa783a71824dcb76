"""Two models on the same test sequences: differences with the errors of pairs.

Where the predictions of both are known, the covariance of their scores is computed instead of being
left out, which narrows the interval of a difference. The sequences of a class are taken as drawn
independently; class sizes are fixed. The delta method is exact to first order:

    psi(x)   = dMCC / d(count of the true and predicted class of sequence x), mean over the fits
    V_a      = sum over classes of n_c Var_c(psi_a)
    C_ab     = sum over classes of n_c Cov_c(psi_a, psi_b)

For two classes and one fit that is V = g1^2 a (1 - a) / n1 + g0^2 b (1 - b) / n0 of recalls a and
b, and C = sum of g_ac g_bc (p_ab,c - p_ac p_bc) / n_c. A class whose sequences all have
the same prediction has variance 0 there: its shares are then (k + 1/2) / (n + K/2), in V alone.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.statistics.metrics import scores_of_matrix

INTERVAL_QUANTILE = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 %."""

ClassCodes = npt.NDArray[np.integer]
"""Classes of sequences, as numbers from 0."""
Reals = npt.NDArray[np.float64]
"""An array of floating-point numbers."""


class DiscordantCounts(NamedTuple):
    """Numbers of test sequences that only one of two models predicts right, in one fit of each."""

    only_a: int
    """Sequences that only model a predicts right."""
    only_b: int
    """Sequences that only model b predicts right."""

    @property
    def p(self) -> float:
        """Two-sided p-value of equal accuracy: McNemar's test, exact."""
        return mcnemar(self.only_a, self.only_b)


class PairedCell(NamedTuple):
    """The comparison of two models on one task in one regime."""

    difference: float
    """MCC of model a minus that of model b, both means over the fits of the probe."""
    variance_a: float
    """Variance of the score of model a."""
    variance_b: float
    """Variance of the score of model b."""
    covariance: float
    """Covariance of both scores; 0 where a model has no predictions, so that nothing is paired."""
    discordant: tuple[DiscordantCounts, ...] = ()
    """The counts for McNemar's test, of each fit."""

    @property
    def se(self) -> float:
        """Standard error of the difference."""
        return math.sqrt(max(0.0, self.variance_a + self.variance_b - 2 * self.covariance))


class PairedDifference(NamedTuple):
    """The difference of two models in a score: a weighted sum of cells."""

    difference: float
    """Score of model a minus that of model b."""
    se: float
    """Standard error of the difference."""
    unpaired_se: float
    """Standard error without the covariances."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the 95 % interval, which is not corrected for other comparisons."""
    probability: float
    """Probability that model a truly has the higher score."""


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p-value of McNemar's test; 1 without a discordant sequence."""
    total = only_a + only_b
    if total == 0:
        return 1.0
    from scipy.stats import binom  # slow to import

    return min(1.0, 2.0 * float(binom.cdf(min(only_a, only_b), total, 0.5)))


def paired_cell(truth: ClassCodes, a: ClassCodes, b: ClassCodes, classes: int) -> PairedCell:
    """Return the comparison of two models on one task.

    `truth` are the classes of the test sequences, (n,); `a` and `b` are the predictions of the
    models, (fits, n). All are codes from 0 to `classes` - 1. Raises ValueError for other shapes.
    """
    if a.shape != b.shape or a.ndim != 2 or a.shape[1:] != truth.shape or not truth.size:  # noqa: PLR2004
        message = (
            f"predictions have the shapes {a.shape} and {b.shape}, and classes {truth.shape}; "
            "expected (fits, n) twice, and (n,) with n > 0"
        )
        raise ValueError(message)
    mcc_a, psi_a, added_variance_a = _mcc_and_influence(truth, a, classes)
    mcc_b, psi_b, added_variance_b = _mcc_and_influence(truth, b, classes)
    indices_by_class = [np.flatnonzero(truth == code) for code in range(classes)]
    right_a, right_b = a == truth, b == truth
    return PairedCell(
        difference=mcc_a - mcc_b,
        variance_a=_covariance(psi_a, psi_a, indices_by_class) + added_variance_a,
        variance_b=_covariance(psi_b, psi_b, indices_by_class) + added_variance_b,
        covariance=_covariance(psi_a, psi_b, indices_by_class),
        discordant=tuple(
            DiscordantCounts(int((fit_a & ~fit_b).sum()), int((fit_b & ~fit_a).sum()))
            for fit_a, fit_b in zip(right_a, right_b, strict=True)
        ),
    )


def paired_matrix(
    truth: ClassCodes, predictions_by_model: Sequence[ClassCodes], classes: int
) -> Reals:
    """Return the (m, m) covariances of the MCC of m models on one task, variances on the diagonal.

    `truth` has the shape (n,), the predictions of each model have (fits, n); they contain class
    codes from 0 to `classes` - 1. The covariance of two models does not depend on the others.
    """
    influences = [
        _mcc_and_influence(truth, predictions, classes) for predictions in predictions_by_model
    ]
    indices_by_class = [np.flatnonzero(truth == code) for code in range(classes)]
    matrix = np.zeros((len(influences), len(influences)))
    for i, (_, psi, added_variance) in enumerate(influences):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = _covariance(psi, influences[j][1], indices_by_class)
        matrix[i, i] = _covariance(psi, psi, indices_by_class) + added_variance
    return matrix


def paired_difference(
    cells: Mapping[str, PairedCell], weights: Mapping[str, float]
) -> PairedDifference:
    """Return the difference in the score that is the sum of `weights[task] * MCC of task`.

    For a mean over categories of means over tasks a weight is 1 / (categories x tasks of the
    category). Tasks are taken as independent; a cell with covariance 0 is unpaired. Raises KeyError
    for a weight without its cell.
    """
    weighted_cells = [(cells[task], weight) for task, weight in weights.items()]
    difference = math.fsum(weight * cell.difference for cell, weight in weighted_cells)
    se = math.sqrt(math.fsum((weight * cell.se) ** 2 for cell, weight in weighted_cells))
    unpaired_se = math.sqrt(
        math.fsum(
            weight**2 * (cell.variance_a + cell.variance_b) for cell, weight in weighted_cells
        )
    )
    return PairedDifference(
        difference,
        se,
        unpaired_se,
        difference - INTERVAL_QUANTILE * se,
        difference + INTERVAL_QUANTILE * se,
        _probability(difference, se),
    )


def macro_weights(categories: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
    """Return the weight of each task in the mean over categories that have tasks."""
    task_lists = [tasks for tasks in categories.values() if tasks]
    return {task: 1 / (len(task_lists) * len(tasks)) for tasks in task_lists for task in tasks}


def _probability(difference: float, se: float) -> float:
    """Return the probability that a true difference, estimated with error `se`, is above 0."""
    if se == 0:
        return 0.5 if difference == 0 else float(difference > 0)
    return 0.5 * math.erfc(-difference / (se * math.sqrt(2)))


def _mcc_and_influence(
    truth: ClassCodes, predictions_by_fit: ClassCodes, classes: int
) -> tuple[float, Reals, float]:
    """Return the mean MCC over the fits, the influence of each sequence on it, and a variance.

    The variance, which is to be added, is that of classes whose sequences all have the same
    prediction. The influences have the shape (n,).
    """
    sizes = np.bincount(truth, minlength=classes).astype(np.float64)
    mccs, psi = [], np.zeros(len(truth))
    spreads = np.zeros(classes)
    for predictions in predictions_by_fit:
        counts = np.bincount(truth.astype(np.int64) * classes + predictions, minlength=classes**2)
        counts = counts.reshape(classes, classes)
        mccs.append(scores_of_matrix(counts.tolist()).mcc)
        is_constant = (counts > 0).sum(axis=1) == 1  # all sequences of a class have one prediction
        smoothed_counts = (counts + 0.5) * (sizes / (sizes + classes / 2))[:, None]
        matrix = np.where(is_constant[:, None], smoothed_counts, counts)
        gradient = _mcc_gradient(matrix)
        psi += gradient[truth, predictions]
        shares = np.divide(
            matrix, sizes[:, None], out=np.zeros((classes, classes)), where=sizes[:, None] > 0
        )
        mean = (shares * gradient).sum(axis=1, keepdims=True)
        variance = sizes * (shares * (gradient - mean) ** 2).sum(axis=1)
        spreads += np.where(is_constant, np.sqrt(variance), 0.0)
    count = len(predictions_by_fit)
    # Fits of one model err on similar sequences; taken as the same ones, which is the widest case.
    return math.fsum(mccs) / count, psi / count, float(((spreads / count) ** 2).sum())


def _mcc_gradient(matrix: Reals) -> Reals:
    """Return the derivative of MCC by each count of a matrix, for fixed sizes of true classes."""
    total, true, predicted = matrix.sum(), matrix.sum(axis=1), matrix.sum(axis=0)
    spread_true = total**2 - true @ true
    spread_predicted = total**2 - predicted @ predicted
    if spread_true <= 0 or spread_predicted <= 0:
        return np.zeros_like(matrix)
    root = math.sqrt(spread_true * spread_predicted)
    covariance = float(np.trace(matrix)) * total - float(true @ predicted)
    gradient: Reals = (total * np.eye(len(matrix)) - true) / root
    gradient += covariance * predicted / (spread_predicted * root)
    return gradient


def _covariance(
    first: Reals, second: Reals, indices_by_class: list[npt.NDArray[np.int64]]
) -> float:
    """Return the covariance of two scores, from the influences of each sequence on them."""
    return math.fsum(
        float(((first[rows] - first[rows].mean()) * (second[rows] - second[rows].mean())).sum())
        for rows in indices_by_class
        if len(rows)
    )
