"""Which models score significantly higher than others, and the possible loss of choosing one.

    scores = ScoreColumn(values, variance, freedom)   # one score of several models
    better(scores, critical)[i, j]                    # whether i scores significantly higher than j
    losses(scores, subset, critical).bound[i]         # upper bound with 95 % confidence

Models that do not differ significantly are not therefore equal, so a smaller model is recommended
only with a bound on its loss. docs/research/uncertainty.md has the formulas, their sources and
assumptions.
"""

import functools
import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.board.agreement import NORMAL_REACH, normal_below
from geneb_ci.statistics.student import Floats, Positions, normal_quantile_of, student_quantile

Bools = npt.NDArray[np.bool_]
"""An array of truth values."""

CONFIDENCE = 0.95
"""Probability with which intervals, rank ranges and bounds hold."""
NORMAL_QUANTILE = 1.96
"""Standard errors from a score to the ends of its 95 % interval."""
ROUNDED_FACTORS = (1, 2, 5)
"""Numbers of models are rounded up to these times a power of 10, so that another row rarely changes
the critical value."""
ROUNDED_MODELS_MIN = 10
"""Smallest number that `rounded_model_count` returns."""
QUANTILE_DECIMALS = 9
"""Decimals of numbers computed from normal quantiles: libraries differ in the sixteenth decimal."""
INTEGRAL_POINTS = 2001
"""Number of points at which `_range_probability` evaluates its integral: ten times as many change
the result by less than 1e-9."""
PAIRS_AT_ONCE = 1_000_000
"""Pairs of models that are compared at once: each array of them takes 8 MB."""
GROUPED_MODELS_MIN, GROUP_SIZE_MIN, GROUPS_MAX, FIRST_RIVALS = 200, 128, 20, 8
"""Number of models from which pairs are counted by groups of similar variance, minimum size of a
group, maximum number of groups, and number of models that are compared with all others first."""
GROUPED_FREEDOM_MIN = 4.0
"""Minimum degrees of freedom for counting by groups: from 4 on, `student_quantile` decreases as
they grow."""
LIMIT_ROUNDING_MAX = 1e-12
"""More than the rounding error of a limit; pairs closer to a limit are compared exactly."""


class ScoreColumn(NamedTuple):
    """One score of all models of a regime; each array has one value per model."""

    values: Floats
    """The score of each model."""
    variance: Floats
    """Square of the standard error of each score."""
    freedom: Floats
    """Degrees of freedom of each variance; infinite if it does not depend on scores by seed."""
    shared: Floats | None = None
    """Covariances of the errors of two models, an array (M, M) for M models. They are 0 on the
    diagonal and where not both models have published predictions. None if all are 0."""


def rounded_model_count(models: int) -> int:
    """Return the number of models rounded up to 10, 20, 50, 100, 200, 500, ..."""
    unit = 1
    while True:
        for step in ROUNDED_FACTORS:
            if step * unit >= max(models, ROUNDED_MODELS_MIN):
                return step * unit
        unit *= 10


@functools.cache
def critical_value(models: int) -> float:
    """Return how many standard errors a difference between two models must have to be significant.

    This is Tukey and Kramer's constant: with 95 % probability no statement about any pair is wrong
    (Hayter 1984). It is the 95 % quantile of the range of `models` standard normals, divided by
    sqrt(2); `models` is a number of models that `rounded_model_count` returned.
    """
    low, high = 1.0, 12.0
    while high - low > 10.0 ** -(QUANTILE_DECIMALS + 2):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _range_probability(middle, models) > CONFIDENCE else (middle, high)
        )
    return round((low + high) / 2 / math.sqrt(2), QUANTILE_DECIMALS)


def _range_probability(width: float, models: int) -> float:
    """Return the probability that `models` standard normals all lie in an interval of `width`."""
    points = np.linspace(-NORMAL_REACH, NORMAL_REACH, INTEGRAL_POINTS)
    density = np.exp(-points * points / 2) / math.sqrt(2 * math.pi)
    probability = normal_below(points) - normal_below(points - width)
    return float(models * np.sum(density * probability ** (models - 1)) * (points[1] - points[0]))


def difference_errors(
    scores: ScoreColumn, first: Positions, second: Positions
) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom of differences, as arrays (first, second).

    Errors of two models count as independent unless their covariance is known. On the same test
    set they correlate positively, so true errors of differences are smaller than these.
    """
    return _pair_errors(scores, first[:, None], second[None, :])


def _pair_errors(scores: ScoreColumn, first: Positions, second: Positions) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom for arrays of indices, which are broadcast."""
    left, right = scores.variance[first], scores.variance[second]
    total = left + right
    if scores.shared is not None:
        total = np.maximum(total - 2 * scores.shared[first, second], 0.0)
    if np.isinf(scores.freedom).all():
        return np.sqrt(total), np.broadcast_to(np.inf, total.shape)
    spread = left * left / scores.freedom[first] + right * right / scores.freedom[second]
    return np.sqrt(total), freedom_of(total, spread)


def freedom_of(variance: Floats, spread: Floats) -> Floats:
    """Return the degrees of freedom of variances, by Satterthwaite's approximation.

    `spread` is the square of each variance divided by its degrees of freedom; 0 if these are
    infinite.
    """
    is_estimated = spread > 0
    return np.where(is_estimated, variance * variance / np.where(is_estimated, spread, 1.0), np.inf)


def significantly_better(
    scores: ScoreColumn,
    critical: float,
    first: Positions | None = None,
    second: Positions | None = None,
) -> Bools:
    """Return whether each model of `first` scores significantly higher than that of `second`.

    Both are arrays of the models' indices, which are broadcast. Without them, each model (row) is
    compared with each other (column).
    """
    if first is None or second is None:
        models = np.arange(len(scores.values))
        first, second = models[:, None], models[None, :]
    errors_of_pairs, freedom = _pair_errors(scores, first, second)
    margins = student_quantile(critical, freedom) * errors_of_pairs
    return np.asarray(scores.values[first] - scores.values[second] > margins)


class RankRanges(NamedTuple):
    """The rank of each model by one score, with its range."""

    rank: Positions
    """Number of models that score higher, plus one."""
    low: Positions
    """One more than the number of models that score significantly higher; 1: could be best."""
    high: Positions
    """The number of models minus those that score significantly lower."""


def rank_ranges(scores: ScoreColumn, critical: float) -> RankRanges:
    """Return ranks with their ranges; all ranges together hold with 95 % confidence."""
    count = len(scores.values)
    ordered = np.sort(scores.values)
    rank = 1 + count - np.searchsorted(ordered, scores.values, side="right")
    higher_counts, lower_counts = win_and_loss_counts(scores, critical)
    return RankRanges(rank, 1 + higher_counts, count - lower_counts)


def win_and_loss_counts(scores: ScoreColumn, critical: float) -> tuple[Positions, Positions]:
    """Return how many models score significantly higher than each model, and how many lower.

    These are the sums of `significantly_better` by column and row. Models are grouped by similar
    variance; in a group almost the same difference is significant, so only pairs close to it are
    compared.
    """
    count = len(scores.values)
    if (
        count < GROUPED_MODELS_MIN
        or scores.shared is not None
        or scores.freedom.min() < GROUPED_FREEDOM_MIN
    ):
        models, sums = np.arange(count), np.zeros((2, count), dtype=np.intp)
        step = max(1, PAIRS_AT_ONCE // max(1, count))
        for first in np.split(models, range(step, count, step)):
            won = significantly_better(scores, critical, first[:, None], models)
            sums[0] += won.sum(axis=0)
            sums[1, first] = won.sum(axis=1)
        return sums[0], sums[1]
    # numpy searches values that are almost sorted several times as fast.
    by_value = np.argsort(scores.values, kind="stable")
    scores = ScoreColumn(*(part[by_value] for part in scores[:3]))
    higher_counts, lower_counts = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=np.intp)
    by_variance = np.argsort(scores.variance, kind="stable")
    group_size = max(GROUP_SIZE_MIN, -(-count // GROUPS_MAX))
    for group in np.split(by_variance, range(group_size, count, group_size)):
        group.sort()
        variance, scores_of_group = scores.variance[group], scores.values[group]
        freedom = np.minimum(scores.freedom, scores.freedom[group].min())
        certain_limit = (
            student_quantile(critical, freedom) * np.sqrt(scores.variance + variance.max())
            + LIMIT_ROUNDING_MAX
        )
        possible_limit = critical * np.sqrt(scores.variance + variance.min()) - LIMIT_ROUNDING_MAX
        # Each model beats the group's first `certain_wins` models; it is compared with later ones.
        certain_wins = np.searchsorted(scores_of_group, scores.values - certain_limit, side="left")
        lower_counts += certain_wins
        higher_counts[group] += (
            count - np.cumsum(np.bincount(certain_wins, minlength=len(group) + 1))[:-1]
        )
        undecided = np.flatnonzero(
            np.append(scores_of_group, np.inf)[certain_wins] <= scores.values - possible_limit
        )
        certain_wins = certain_wins[undecided]
        open_counts = (
            np.searchsorted(
                scores_of_group, (scores.values - possible_limit)[undecided], side="right"
            )
            - certain_wins
        )
        first = np.repeat(undecided, open_counts)
        offset = np.arange(len(first)) - np.repeat(
            np.cumsum(open_counts) - open_counts, open_counts
        )
        second = group[np.repeat(certain_wins, open_counts) + offset]
        won = significantly_better(scores, critical, first, second)
        lower_counts += np.bincount(first[won], minlength=count)
        higher_counts += np.bincount(second[won], minlength=count)
    counts = np.empty((2, count), dtype=np.intp)
    counts[:, by_value] = higher_counts, lower_counts
    return counts[0], counts[1]


def could_be_best(scores: ScoreColumn, subset: Positions, critical: float) -> Positions:
    """Return the models of a subset than which no other one scores significantly higher."""
    if not len(subset):
        return subset
    # Models that score significantly lower than the highest one are no contenders.
    errors, descending = (
        np.sqrt(scores.variance[subset]),
        subset[np.argsort(-scores.values[subset])],
    )
    highest = descending[0]
    reach = student_quantile(critical, np.minimum(scores.freedom[subset], scores.freedom[highest]))
    highest_possible = scores.values[subset] + reach * (
        errors + math.sqrt(scores.variance[highest])
    )
    contenders = subset[highest_possible >= scores.values[highest]]
    # Most are beaten by a model of the front: one with a smaller variance than every higher model.
    # If all degrees of freedom are infinite, comparing with the front is enough.
    least_variance = np.minimum.accumulate(scores.variance[descending])
    lowest_variances = descending[np.diff(least_variance, prepend=np.inf) < 0]
    for rivals in (lowest_variances[:FIRST_RIVALS], lowest_variances[:GROUP_SIZE_MIN]):
        contenders = contenders[
            ~significantly_better(scores, critical, rivals[:, None], contenders).any(axis=0)
        ]
    # Otherwise the remaining contenders are compared with all models that may be far enough above.
    rivals = subset
    if scores.shared is None and np.isinf(scores.freedom).all():
        rivals = lowest_variances
    elif scores.shared is None:
        least = scores.values[contenders].min(initial=1.0) + critical * errors
        rivals = subset[scores.values[subset] > least - LIMIT_ROUNDING_MAX]
    return np.asarray(
        contenders[~significantly_better(scores, critical, rivals[:, None], contenders).any(axis=0)]
    )


class ComparedPair(NamedTuple):
    """The difference of one score of two models, and whether it is significant."""

    difference: float
    """Score of the first model minus that of the second."""
    low: float
    """Lower end of the interval of the difference."""
    high: float
    """End of the 95 % interval of the difference, which is corrected for all pairs of the board."""
    probability: float
    """Lower bound of the probability that the model with the higher score is truly better."""
    is_significant: bool
    """Whether the first or the second scores significantly higher."""


def compare_pair(scores: ScoreColumn, first: int, second: int, critical: float) -> ComparedPair:
    """Return the difference of two models, given by their indices, and its significance."""
    errors, freedom = difference_errors(scores, np.array([first]), np.array([second]))
    error = float(errors[0, 0])
    reach = float(student_quantile(critical, freedom)[0, 0]) * error
    difference = float(scores.values[first] - scores.values[second])
    probability = (
        0.5
        if error == 0
        else float(normal_below(normal_quantile_of(difference / errors, freedom))[0, 0])
    )
    return ComparedPair(
        difference,
        difference - reach,
        difference + reach,
        round(probability, QUANTILE_DECIMALS),
        abs(difference) > reach,
    )


class Losses(NamedTuple):
    """The possible loss of choosing each model of a subset instead of the subset's best."""

    best: Positions
    """The models that could be best."""
    bound: Floats
    """Upper bound of the loss of each model, in the subset's order, with 95 % confidence for all
    at once; 0 for the only model that could be best, infinite if it was not computed."""


def possible_losses(
    scores: ScoreColumn, subset: Positions, critical: float, accepted_loss: float = math.inf
) -> Losses:
    """Return the possible loss in one score of choosing each model of a non-empty subset.

    Bounds are computed for models that score at most `accepted_loss` below the highest; those
    of all others would exceed it.
    """
    best = could_be_best(scores, subset, critical)
    is_within = scores.values[subset].max() - scores.values[subset] <= accepted_loss
    bound = np.full(len(subset), np.inf)
    bound[is_within] = _shortfall_bounds(scores, subset[is_within], best, len(subset))
    is_only_candidate = (subset == best[0]) & (len(best) == 1)
    # A bound is 0 only if nothing can be lost.
    displayed = np.maximum(np.round(bound, QUANTILE_DECIMALS), 10.0**-QUANTILE_DECIMALS)
    return Losses(best, np.asarray(np.where(is_only_candidate, 0.0, displayed), dtype=float))


def _shortfall_bounds(
    scores: ScoreColumn, subset: Positions, best: Positions, count: int
) -> Floats:
    """Return how far each model may be below the best of `count` models (Hsu 1984)."""
    if count == 1:
        return np.zeros(1)
    one_sided_quantile = NormalDist().inv_cdf(CONFIDENCE ** (1 / (count - 1)))
    errors, freedom = difference_errors(scores, subset, best)
    shortfalls = scores.values[best][None, :] - scores.values[subset][:, None]
    reach = shortfalls + student_quantile(one_sided_quantile, freedom) * errors
    reach[subset[:, None] == best[None, :]] = -np.inf
    return np.asarray(np.maximum(reach.max(axis=1), 0.0))


def intervals_of(scores: ScoreColumn) -> tuple[Floats, Floats]:
    """Return the ends of the 95 % interval of each score, cut at -1 and 1."""
    reach = student_quantile(NORMAL_QUANTILE, scores.freedom) * np.sqrt(scores.variance)
    low, high = scores.values - reach, scores.values + reach
    return np.maximum(low, -1.0) + 0.0, np.minimum(high, 1.0) + 0.0
