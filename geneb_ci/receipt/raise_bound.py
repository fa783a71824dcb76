"""The raise of a regime's mean MCC that altered test embeddings can hide from a finished draw.

An altered embedding is predicted right by a probe of record as committed, but wrong by the rerun,
whatever its deviation is. For a probe, let R_c be the number of right embeddings of class c, R
their sum over the K classes, and a of R and a_c of R_c be altered. Then u draws among all R and v
draws that choose one of the classes first are expected to hit

    u a / R + v / K sum of a_c / R_c

altered ones. Draws are independent, so few hits are at most as probable as for a Poisson variable
of the same mean. After h hits the mean is therefore, with 95 % confidence, below the limit l(h) at
which h or fewer hits have a probability of 5 %; l(0) = ln 20. The largest raise within this limit
is at most

    min over k >= 0 of  k l + sum over cells of max over a of (weight x gain(a) - k hits(a))

by Lagrangian duality, over those a whose hits do not exceed l. Small a are tried one by one, larger
ones in intervals with the gain of the upper end and the hits of the lower end. With more than two
classes, gain and hits are bounded for any division of a among classes.

The bound assumes an unaltered probe, that is, unaltered training embeddings.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.alteration_power import (
    BINARY_CLASSES,
    Alterations,
    concave_maximum,
    mcc,
    possible_alterations,
)
from geneb_ci.receipt.embeddings import MISSED
from geneb_ci.receipt.rounding import Float64Array

EXACT = 16
"""Number of altered embeddings of a class up to which every number is tried by itself; above, only
intervals of numbers are."""
RATIO = 1.15
"""Ratio of the upper ends of two successive intervals above `EXACT`."""
HITS_MAX = 1e6
"""Upper end of the search for the limit of the expected number of hits."""
HALVINGS = 60
"""Number of halvings of the range in the search for the limit of the expected number of hits."""


class CellDraw(NamedTuple):
    """One probe of record of a task, and the draws of test embeddings for it."""

    matrix: npt.NDArray[np.int64]
    """(k, k) confusion matrix, true classes by row."""
    correct: npt.NDArray[np.int64]
    """(k,) number of rightly predicted embeddings of each class, which are drawn from."""
    uniform_draws: float
    """Number of draws among all right embeddings."""
    class_first_draws: float
    """Number of draws that drew the class first."""
    weight: float
    """Weight of the cell in the mean of the regime."""


class HiddenAlterations(NamedTuple):
    """Bounds for n possible alterations of one cell: (n,) arrays."""

    hits: Float64Array
    """Smallest expected number of draws that hit an altered embedding."""
    mean_raise: Float64Array
    """Largest raise of the mean MCC of the regime."""

    def with_hits_up_to(self, limit: float) -> "HiddenAlterations":
        """Return the alterations whose expected number of hits is at most `limit`."""
        is_within = self.hits <= limit
        return HiddenAlterations(self.hits[is_within], self.mean_raise[is_within])


def hits_limit(hits: int) -> float:
    """Return the mean of a Poisson variable that is `hits` or fewer with probability `MISSED`."""
    low, high = float(hits), HITS_MAX
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        log_probabilities = (
            i * math.log(middle) - math.lgamma(i + 1) - middle for i in range(hits + 1)
        )
        if math.fsum(map(math.exp, log_probabilities)) > MISSED:
            low = middle
        else:
            high = middle
    return high


def covering_intervals(maximum: int) -> tuple[Float64Array, Float64Array]:
    """Return the lower and the upper ends of intervals of numbers that cover 0 to `maximum`."""
    ends = [*range(min(EXACT, maximum) + 1)]
    while ends[-1] < maximum:
        ends.append(min(maximum, math.ceil(RATIO * ends[-1])))
    upper = np.array(ends, dtype=np.float64)
    return np.r_[0.0, upper[:-1] + 1], upper


def hidden_alterations(cell: CellDraw) -> HiddenAlterations:
    """Return the possible alterations of a cell, with bounds of their hits and raises."""
    alterations = (
        _two_class_bounds(cell) if len(cell.matrix) == BINARY_CLASSES else _many_class_bounds(cell)
    )
    return alterations._replace(mean_raise=cell.weight * alterations.mean_raise)


def alterations_of_regime(
    matrices: Mapping[str, Sequence[Sequence[Sequence[int]]]],
    categories: Mapping[str, Sequence[str]],
) -> list[Alterations]:
    """Return the alterations of each cell of a regime, with the hits of one draw.

    `matrices` has, by task, one confusion matrix per probe.
    """
    weights = {
        task: 1 / len(categories) / len(tasks) for tasks in categories.values() for task in tasks
    }
    return [
        _alterations_by_one_draw(matrix, weights[task] / len(of_task))
        for task, of_task in matrices.items()
        for matrix in of_task
    ]


def _alterations_by_one_draw(matrix: Sequence[Sequence[int]], weight: float) -> Alterations:
    """Return the alterations of a cell, each with the probability that one draw hits it."""
    if len(matrix) == BINARY_CLASSES:
        return possible_alterations(matrix, weight)
    matrix_array = np.array(matrix, dtype=np.int64)
    alterations = _many_class_bounds(
        CellDraw(matrix_array, np.diag(matrix_array), 0.5, 0.5, weight)
    )
    return Alterations(alterations.hits, alterations.mean_raise, weight)


def largest_raise(cells: Sequence[CellDraw], hits: int = 0) -> float:
    """Return the largest possible raise of the mean, if `hits` drawn embeddings were altered."""
    limit = hits_limit(hits)
    alterations_by_cell = [hidden_alterations(cell).with_hits_up_to(limit) for cell in cells]
    if not alterations_by_cell:
        return 0.0
    all_hits = np.concatenate([cell_alterations.hits for cell_alterations in alterations_by_cell])
    gains = np.concatenate(
        [cell_alterations.mean_raise for cell_alterations in alterations_by_cell]
    )
    cell_starts = np.cumsum(
        [0, *(len(cell_alterations.hits) for cell_alterations in alterations_by_cell[:-1])]
    )

    def negative_bound(multiplier: float) -> float:
        """Return the negative bound for a Lagrange multiplier."""
        best = np.maximum.reduceat(gains - multiplier * all_hits, cell_starts)
        return -(multiplier * limit + math.fsum(best.tolist()))

    return max(0.0, -concave_maximum(negative_bound))


def _two_class_bounds(cell: CellDraw) -> HiddenAlterations:
    """Return bounds for a cell of two classes, for each pair of intervals of a and b."""
    (tn, fp), (fn, tp) = cell.matrix.astype(np.float64)
    lower, upper = zip(covering_intervals(int(tn)), covering_intervals(int(tp)), strict=True)
    altered_min = [ends.reshape(-1) for ends in np.meshgrid(*lower, indexing="ij")]
    a, b = (ends.reshape(-1) for ends in np.meshgrid(*upper, indexing="ij"))
    gain = mcc(tn, fp, fn, tp) - mcc(tn - a, fp + a, fn + b, tp - b)
    altered_shares = [
        _altered_share(altered, right)
        for altered, right in zip(altered_min, cell.correct, strict=True)
    ]
    return HiddenAlterations(
        _expected_hits(
            cell, altered_min[0] + altered_min[1], altered_shares[0] + altered_shares[1]
        ),
        gain,
    )


def _many_class_bounds(cell: CellDraw) -> HiddenAlterations:
    """Return bounds for a cell of many classes, however altered embeddings are divided among them.

    Hits are fewest if the altered embeddings are of the classes with most embeddings to draw from.
    In the honest matrix, an altered embedding is in another column.
    """
    matrix = cell.matrix.astype(np.float64)
    size, right = matrix.sum(), np.diag(matrix)
    true, predicted = matrix.sum(axis=1), matrix.sum(axis=0)
    lower, a = covering_intervals(int(right.sum()))
    order = np.argsort(-cell.correct, kind="stable")
    ends = np.r_[0.0, np.cumsum(right[order])]
    share_sums = np.r_[0.0, np.cumsum(_altered_share(right, cell.correct)[order])]
    share_sum = np.interp(lower, ends, share_sums)
    true_variance = size**2 - (true**2).sum()
    claimed_covariance = right.sum() * size - (predicted * true).sum()
    honest_covariance = claimed_covariance - a * (size + np.ptp(true))
    squares, spread = (predicted**2).sum(), np.ptp(predicted)
    squares_min = np.maximum(squares - 2 * a * spread, size**2 / len(matrix))
    squares_max = np.minimum(squares + 2 * a * spread + 2 * a * a, size**2)
    predicted_variance = np.where(
        honest_covariance >= 0, size**2 - squares_min, size**2 - squares_max
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mcc_min = np.where(
            predicted_variance * true_variance > 0,
            honest_covariance / np.sqrt(predicted_variance * true_variance),
            -1.0,
        )
        claimed_mcc = claimed_covariance / np.sqrt((size**2 - squares) * true_variance)
    gain = np.where(a > 0, np.nan_to_num(claimed_mcc) - np.maximum(mcc_min, -1.0), 0.0)
    return HiddenAlterations(
        _expected_hits(cell, lower, share_sum), np.maximum.accumulate(np.maximum(gain, 0.0))
    )


def _altered_share(altered: Float64Array, right: npt.NDArray[np.int64] | np.int64) -> Float64Array:
    """Return the share of altered embeddings among the rightly predicted ones of a class."""
    shares: Float64Array = altered / np.maximum(1, right)
    return shares


def _expected_hits(cell: CellDraw, altered: Float64Array, share_sum: Float64Array) -> Float64Array:
    """Return the expected number of hits; `share_sum` is the sum of a_c / R_c over the classes."""
    classes = max(1, int((cell.correct > 0).sum()))
    total = max(1, int(cell.correct.sum()))
    return cell.uniform_draws * altered / total + cell.class_first_draws / classes * share_sum
