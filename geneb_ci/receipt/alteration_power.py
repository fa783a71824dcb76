"""The power of a draw of embeddings, bounded from the confusion matrices of a submission.

An altered test embedding is predicted right, but would be predicted wrong without the alteration.
If a of the TN and b of the TP of a task are altered, one draw in this task hits an altered one with
probability

    r = 1/2 (a + b) / (TN + TP) + 1/4 a / TN + 1/4 b / TP

and N draws miss all of them with probability at most exp(-N mean r). The mean is weighted by v, the
weights of the cells in the macro MCC, by which the draws are divided among cells. An alteration
that raises the macro MCC by more than R has a mean r of at least

    max over m >= 0 of  m R + sum over cells of v min over a, b of (r - m gain)

by Lagrangian duality. The minimum is taken on a grid of a and b. With more than two classes, r and
gain are bounded as in `raise_bound`.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from geneb_ci.receipt.rounding import Float64Array

POWER_TABLE_RAISES = (0.005, 0.01, 0.02)
"""Raises of the macro MCC in the table of the power of a draw."""
POWER_TABLE_SHARES = (0.001, 0.003, 0.01)
"""Shares of altered training embeddings in the table of the power of a draw."""
MEASURED_GAINS = {0.001: (0.010, 0.050), 0.003: (0.021, 0.058), 0.01: (0.056, 0.183)}
"""By share of altered training embeddings, the mean and the largest gain of MCC over 13 cells, by
the greedy attack in docs/research/receipt-audits.md."""
GRID_SIZE = 16
"""Number of positive values that are tried for the numbers a and b of altered embeddings of each
class; they are denser near 0."""
SEARCH_STEPS = 32
"""Number of steps of the search for the multiplier m, each of which reduces the range of m by a
third, to 2e-6 in all."""
BINARY_CLASSES = 2
"""Number of classes of a task with a 2 x 2 confusion matrix."""


class Alterations(NamedTuple):
    """Possible alterations of one cell: (k,) arrays, one entry for each tried pair of a and b."""

    hit_probability: Float64Array
    """Probability r that one draw hits an altered embedding."""
    mcc_gain: Float64Array
    """MCC of the claimed confusion matrix, minus that of the matrix without the alteration."""
    weight: float
    """Weight of the cell in the macro MCC, and its share of the draws."""


def mcc(tn: Float64Array, fp: Float64Array, fn: Float64Array, tp: Float64Array) -> Float64Array:
    """Return the MCC of 2 x 2 confusion matrices; 0 if a class has no sequences or predictions."""
    margin_product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores: Float64Array = np.where(
            margin_product > 0, (tp * tn - fp * fn) / np.sqrt(margin_product), 0.0
        )
    return scores


def tried_altered_counts(maximum: int) -> Float64Array:
    """Return the numbers of altered embeddings, from 0 to `maximum`, that are tried."""
    if maximum <= GRID_SIZE:
        return np.arange(maximum + 1, dtype=np.float64)
    return np.unique(np.r_[0, np.round(np.geomspace(1, maximum, GRID_SIZE))])


def hit_probability_of(a: Float64Array, b: Float64Array, tn: float, tp: float) -> Float64Array:
    """Return the probability that one draw in a task hits an altered embedding.

    `a` true negatives and `b` true positives are altered: arrays that broadcast.
    """
    if not tn + tp:
        return 0 * a
    # Without right predictions of one class, the second half of the draws falls on the other.
    share_of_class = 0.25 if tn and tp else 0.5
    probability: Float64Array = 0.5 * (a + b) / (tn + tp) + share_of_class * (
        a / max(1.0, tn) + b / max(1.0, tp)
    )
    return probability


def possible_alterations(matrix: Sequence[Sequence[int]], weight: float) -> Alterations:
    """Return the possible alterations of a cell with a claimed 2 x 2 confusion matrix.

    `weight` is the weight of the cell in the macro MCC, and its share of the draws.
    """
    (tn, fp), (fn, tp) = (tuple(map(float, row)) for row in matrix)
    a, b = (
        values.reshape(-1)
        for values in np.meshgrid(
            tried_altered_counts(int(tn)), tried_altered_counts(int(tp)), indexing="ij"
        )
    )
    ones = np.ones_like(a)
    gain = mcc(tn * ones, fp * ones, fn * ones, tp * ones) - mcc(tn - a, fp + a, fn + b, tp - b)
    return Alterations(hit_probability_of(a, b, tn, tp), gain, weight)


def hit_lower_bound(cells: Sequence[Alterations], mean_raise: float) -> float:
    """Return a lower bound of the mean probability that one draw hits an altered embedding.

    The alterations raise the macro MCC by `mean_raise`; infinity if none can.
    """
    if math.fsum(cell.weight * float(cell.mcc_gain.max()) for cell in cells) < mean_raise:
        return math.inf

    probabilities = np.concatenate([cell.weight * cell.hit_probability for cell in cells])
    gains = np.concatenate([cell.weight * cell.mcc_gain for cell in cells])
    cell_starts = np.cumsum([0, *(len(cell.hit_probability) for cell in cells[:-1])])

    def dual(multiplier: float) -> float:
        cell_minima = np.minimum.reduceat(probabilities - multiplier * gains, cell_starts)
        return multiplier * mean_raise + float(cell_minima.sum())

    return max(0.0, concave_maximum(dual))


def concave_maximum(concave: Callable[[float], float]) -> float:
    """Return the largest value of a concave function on x >= 0, by ternary search."""
    high = 1.0
    while concave(2 * high) > concave(high):
        high *= 2
    low, high = 0.0, 2 * high
    for _ in range(SEARCH_STEPS):
        third = (high - low) / 3
        if concave(low + third) < concave(high - third):
            low += third
        else:
            high -= third
    return concave((low + high) / 2)


def hit_probability_in_test(cells: Sequence[Alterations], mean_raise: float, draws: int) -> float:
    """Return the smallest probability that a draw of test embeddings hits an altered one.

    The alterations raise the macro MCC by `mean_raise`; `draws` embeddings are drawn.
    """
    needed = hit_lower_bound(cells, mean_raise)
    return 1.0 if math.isinf(needed) else -math.expm1(-draws * needed)


def hit_probability_in_training(share: float, draws: int) -> float:
    """Return the probability that a draw of `draws` training embeddings hits an altered one.

    `share` is the share of altered embeddings, averaged over the tasks.
    """
    return -math.expm1(draws * math.log1p(-share))
