"""Two models on the same test sequences: differences with the errors of pairs.

Where the predictions of both are known, the covariance of their scores is computed in place of
being left out, which narrows a difference. Within each class the rows are taken as drawn
independently; class sizes are fixed. The delta method is exact to first order:

    psi(row) = dMCC / d(count of the row's true class and predicted class), mean over the fits
    V_a      = sum over classes of n_c Var_c(psi_a)
    C_ab     = sum over classes of n_c Cov_c(psi_a, psi_b)

For two classes and one fit that is V = g1^2 a (1 - a) / n1 + g0^2 b (1 - b) / n0 of recalls a and
b, and C = sum of g_ac g_bc (p_ab,c - p_ac p_bc) / n_c. A class whose rows all have the same
prediction has variance 0 there: its shares are then (k + 1/2) / (n + K/2), in V alone.

Beside these: how far two rankings agree (`taus`), and the normal distribution for arrays.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.statistics.metrics import scores_of_matrix

NORMAL = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 %."""

Codes = npt.NDArray[np.integer]
Reals = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


class Discordant(NamedTuple):
    """Test rows that one of two models alone has right, in one fit of each."""

    only_a: int
    only_b: int

    @property
    def p(self) -> float:
        """Two-sided p-value of equal accuracy: McNemar's test, exact."""
        return mcnemar(self.only_a, self.only_b)


class PairedCell(NamedTuple):
    """Two models on one task in one regime."""

    difference: float
    """MCC of a less that of b, means over the fits."""
    variance_a: float
    variance_b: float
    covariance: float
    """0 where a model has no predictions, which leaves the difference unpaired."""
    discordant: tuple[Discordant, ...] = ()
    """One a fit."""

    @property
    def se(self) -> float:
        """Standard error of the difference."""
        return math.sqrt(max(0.0, self.variance_a + self.variance_b - 2 * self.covariance))


class PairedDifference(NamedTuple):
    """The difference of two models in a score: a weighted sum of cells."""

    difference: float
    se: float
    unpaired_se: float
    """The same without the covariances."""
    low: float
    high: float
    """Interval of 95 %, for this one comparison: not corrected for others."""
    probability: float
    """Probability that a is better."""


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p-value of McNemar's test; 1 where no row is discordant."""
    total = only_a + only_b
    if total == 0:
        return 1.0
    from scipy.stats import binom  # slow to import

    return min(1.0, 2.0 * float(binom.cdf(min(only_a, only_b), total, 0.5)))


def paired_cell(truth: Codes, a: Codes, b: Codes, classes: int) -> PairedCell:
    """Return the comparison of two models on one task.

    `truth` is (n,), `a` and `b` are (fits, n), all of them codes from 0 to `classes` - 1. Raises
    ValueError for other shapes.
    """
    if a.shape != b.shape or a.ndim != 2 or a.shape[1:] != truth.shape or not truth.size:  # noqa: PLR2004
        message = f"predictions of shape {a.shape} and {b.shape} for {truth.shape} rows"
        raise ValueError(message)
    mcc_a, psi_a, floor_a = _influence(truth, a, classes)
    mcc_b, psi_b, floor_b = _influence(truth, b, classes)
    within = [np.flatnonzero(truth == one) for one in range(classes)]
    right_a, right_b = a == truth, b == truth
    return PairedCell(
        difference=mcc_a - mcc_b,
        variance_a=_covariance(psi_a, psi_a, within) + floor_a,
        variance_b=_covariance(psi_b, psi_b, within) + floor_b,
        covariance=_covariance(psi_a, psi_b, within),
        discordant=tuple(
            Discordant(int((one & ~other).sum()), int((other & ~one).sum()))
            for one, other in zip(right_a, right_b, strict=True)
        ),
    )


def paired_matrix(truth: Codes, fits: Sequence[Codes], classes: int) -> Reals:
    """Return the (m, m) covariances of the MCC of m models on one task, variances on the diagonal.

    `truth` is (n,), each of `fits` (k, n), codes from 0 to `classes` - 1. What two of
    them share does not depend on the others.
    """
    found = [_influence(truth, one, classes) for one in fits]
    within = [np.flatnonzero(truth == one) for one in range(classes)]
    matrix = np.zeros((len(found), len(found)))
    for i, (_, psi, floor) in enumerate(found):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = _covariance(psi, found[j][1], within)
        matrix[i, i] = _covariance(psi, psi, within) + floor
    return matrix


def paired_difference(
    cells: Mapping[str, PairedCell], weights: Mapping[str, float]
) -> PairedDifference:
    """Return the difference in the score that is the sum of `weights[task] * MCC of task`.

    For a mean over categories of means over tasks a weight is 1 / (categories x tasks of the
    category). Tasks are taken as independent; a cell with covariance 0 is unpaired. Raises KeyError
    for a weight without its cell.
    """
    chosen = [(cells[task], weight) for task, weight in weights.items()]
    value = math.fsum(weight * one.difference for one, weight in chosen)
    se = math.sqrt(math.fsum((weight * one.se) ** 2 for one, weight in chosen))
    unpaired = math.sqrt(
        math.fsum(weight**2 * (one.variance_a + one.variance_b) for one, weight in chosen)
    )
    return PairedDifference(
        value, se, unpaired, value - NORMAL * se, value + NORMAL * se, _probability(value, se)
    )


def macro_weights(categories: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
    """Return the weight of each task in the mean over categories; empty ones do not count."""
    filled = [tasks for tasks in categories.values() if tasks]
    return {task: 1 / (len(filled) * len(tasks)) for tasks in filled for task in tasks}


def _probability(value: float, se: float) -> float:
    if se == 0:
        return 0.5 if value == 0 else float(value > 0)
    return 0.5 * math.erfc(-value / (se * math.sqrt(2)))


def _influence(truth: Codes, fits: Codes, classes: int) -> tuple[float, Reals, float]:
    """Return the mean MCC, (n,) influences of the rows, and the variance of degenerate classes."""
    sizes = np.bincount(truth, minlength=classes).astype(np.float64)
    values, psi = [], np.zeros(len(truth))
    spreads = np.zeros(classes)
    for one in fits:
        counts = np.bincount(truth.astype(np.int64) * classes + one, minlength=classes**2)
        counts = counts.reshape(classes, classes)
        values.append(scores_of_matrix(counts.tolist()).mcc)
        alone = (counts > 0).sum(axis=1) == 1
        smooth = (counts + 0.5) * (sizes / (sizes + classes / 2))[:, None]
        matrix = np.where(alone[:, None], smooth, counts)
        gradient = _gradient(matrix)
        psi += gradient[truth, one]
        shares = np.divide(
            matrix, sizes[:, None], out=np.zeros((classes, classes)), where=sizes[:, None] > 0
        )
        mean = (shares * gradient).sum(axis=1, keepdims=True)
        variance = sizes * (shares * (gradient - mean) ** 2).sum(axis=1)
        spreads += np.where(alone, np.sqrt(variance), 0.0)
    count = len(fits)
    # Fits of one model fail on the same rows: as if they did so always, the widest case.
    return math.fsum(values) / count, psi / count, float(((spreads / count) ** 2).sum())


def _gradient(matrix: Reals) -> Reals:
    """Return dMCC / d(count), (K, K), with the sizes of the true classes fixed."""
    total, true, said = matrix.sum(), matrix.sum(axis=1), matrix.sum(axis=0)
    spread_true = total**2 - true @ true
    spread_said = total**2 - said @ said
    if spread_true <= 0 or spread_said <= 0:
        return np.zeros_like(matrix)
    root = math.sqrt(spread_true * spread_said)
    covariance = float(np.trace(matrix)) * total - float(true @ said)
    found: Reals = (total * np.eye(len(matrix)) - true) / root
    found += covariance * said / (spread_said * root)
    return found


def _covariance(one: Reals, other: Reals, within: list[npt.NDArray[np.int64]]) -> float:
    return math.fsum(
        float(((one[rows] - one[rows].mean()) * (other[rows] - other[rows].mean())).sum())
        for rows in within
        if len(rows)
    )


def taus(columns: Sequence[Reals]) -> Reals:
    """Return Kendall's tau-b of each of K columns of M scores with each other: (K, K).

    NaN where it is not defined: fewer than two models, or all of a column equal. The counts of
    pairs are whole numbers, so the result does not depend on their order or on the machine.
    """
    models = len(columns[0])
    ranks = np.array([np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns])
    tied = np.array([_tied_pairs(np.sort(one)) for one in ranks])
    agree = np.diag(models * (models - 1) // 2 - tied).astype(float)
    for k, base in enumerate(ranks[:-1]):
        # After Knight (1966): of the pairs that differ in both columns, those that one orders
        # against the other are its inversions where the rows stand in the order of the other.
        others = slice(k + 1, None)
        ordered = np.sort(base * np.intp(models) + ranks[others], axis=1)
        both = np.array([_tied_pairs(one) for one in ordered])
        differing = models * (models - 1) // 2 - tied[k] - tied[others] + both
        agree[k, others] = agree[others, k] = differing - 2 * _inversions(ordered % max(models, 1))
    untied = np.sqrt(np.diag(agree))
    defined_ = (untied[:, None] > 0) & (untied[None, :] > 0)
    one, other = (np.where(defined_, side, 1.0) for side in (untied[:, None], untied[None, :]))
    return np.where(defined_, np.clip(agree / one / other, -1.0, 1.0), np.nan)


def _tied_pairs(ordered: Places) -> int:
    """Return how many pairs of sorted values are equal."""
    last = np.flatnonzero(np.diff(ordered, append=-1))
    counts = np.diff(last, prepend=-1)
    return int((counts * (counts - 1) // 2).sum())


COMPARED = 64
"""Neighbours of which each pair is compared; at most 256, since they are counted in a byte."""


def _inversions(columns: Places) -> Places:
    """Return how many pairs of each of K columns (K, M) fall, of values from 0 to M.

    Pairs of which neither places nor values are near are counted by blocks of both.
    """
    count, length = columns.shape
    small = np.min_scalar_type(length)  # two bytes are sorted in a tenth of the time of eight
    by_value = np.argsort(columns.astype(small), axis=1, kind="stable")
    # Equal values ascend, so that none of their pairs falls.
    value, places = np.empty((count, length), dtype=small), np.arange(length)
    np.put_along_axis(value, by_value, places.astype(small)[None, :], axis=1)
    found = _near_inversions(value) + _near_inversions((by_value // COMPARED).astype(small))
    blocks = -(-length // COMPARED)
    at = places // COMPARED * blocks
    for k, own in enumerate(value // COMPARED):
        inside = np.bincount(at + own, minlength=blocks * blocks).reshape(blocks, blocks)
        # Of the blocks of places before, how many have a value of a block after.
        above = np.cumsum(np.cumsum(inside[:-1], axis=0)[:, :0:-1], axis=1)[:, ::-1]
        found[k] += (inside[1:, :-1] * above).sum()
    return found


def _near_inversions(columns: npt.NDArray[np.unsignedinteger[Any]]) -> Places:
    """Return how many pairs of each column fall of those in the same block of `COMPARED` places."""
    count, length = columns.shape
    padded = np.full((count, -(-length // COMPARED) * COMPARED), length, dtype=columns.dtype)
    padded[:, :length] = columns
    near = np.ascontiguousarray(np.moveaxis(padded.reshape(count, -1, COMPARED), 2, 0))
    falling = np.zeros(near.shape, dtype=np.uint8)
    for apart in range(1, COMPARED):
        falling[:-apart] += near[:-apart] > near[apart:]
    return np.asarray(falling.sum(axis=(0, 2), dtype=np.intp))


REACH = 9.0
"""Standard errors beyond which a normal has no weight: 1e-19."""
CERTAIN = 8.3
"""Standard errors from which the distribution of the normal is 1 in floating point: 1 - 6e-17."""


def normal_below(values: Reals) -> Reals:
    """Return the probability that a standard normal is below each value: erfc(-x / sqrt 2) / 2."""
    return np.asarray(_erfc(-values / math.sqrt(2)), dtype=float) / 2


_erfc = np.frompyfunc(math.erfc, 1, 1)


STEPS_A_UNIT = 1024
"""Of the table of the normal distribution: cubic interpolation between them errs by less than 1e-15
(h^4 / 384 times the fourth derivative, which is below 1.4)."""


@functools.cache
def _normal_table() -> tuple[Reals, ...]:
    """Return the coefficients of Hermite's cubics for Phi from -REACH to REACH, lowest first."""
    at = np.arange(-REACH * STEPS_A_UNIT, REACH * STEPS_A_UNIT + 2) / STEPS_A_UNIT
    slope = np.exp(-at * at / 2) / math.sqrt(2 * math.pi) / STEPS_A_UNIT
    below = normal_below(at)
    left, rise, start, end = below[:-1], np.diff(below), slope[:-1], slope[1:]
    return left, start, 3 * rise - 2 * start - end, start + end - 2 * rise


def normal_near(values: Reals) -> Reals:
    """Return `normal_below` to 1e-15, a tenth of the time: by Hermite's cubic between its steps."""
    t = np.clip(values, -REACH, REACH)
    t += REACH
    t *= STEPS_A_UNIT
    step = t.astype(np.intp)
    t -= step
    *lower, found = (one.take(step, mode="clip") for one in _normal_table())
    for one in reversed(lower):
        found *= t
        found += one
    return found
