"""One relation between models, and the loss of choosing one: what every view decides by.

    scores = ScoreColumn(values, variance, freedom)   # (M,) each: one score of M models
    better(scores, c)[i, j]                         # whether i scores significantly higher than j
    losses(scores, among, c).bound[i]               # at most, with 95 % confidence

"Not significantly different" does not mean equal: a smaller model is recommended for a bounded
loss. The formulas, their sources and what they assume: docs/research/uncertainty.md.
"""

import functools
import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.board.agreement import REACH, normal_below

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]

CONFIDENCE = 0.95
NORMAL = 1.96
"""Standard errors from a score to the ends of its 95 % interval."""
STEPS = (1, 2, 5)
"""Numbers of models are rounded up to 10, 20, 50, 100, ...: one more row then changes no pair."""
FEWEST = 10
DIGITS = 9
"""Decimals of what comes from quantiles of the normal: libraries differ in the sixteenth."""
GRID = 2001
"""Points of the integral of a range: ten times as many change it by less than 1e-9."""
DRAWS_MAX = 1e5
"""Degrees of freedom from which a t distribution is the normal one."""
PAIRS_AT_ONCE = 1_000_000
"""Pairs in memory together, 8 MB an array, where all are compared; of groups, a few times that."""
GROUPED_MIN, GROUP, GROUPS, FEW = 200, 128, 20, 8
"""Models from which pairs are counted by groups of nearly one variance, fewest models in a group,
most groups, and the models that are first compared with all others."""
FREEDOM_MIN = 4.0
"""Degrees of freedom from which a stretched constant falls when they grow."""
SLACK = 1e-12
"""More than rounding moves a limit: a pair that is nearer to it is computed."""


class ScoreColumn(NamedTuple):
    """One score of the models of a regime; arrays of one value a model."""

    values: Floats
    variance: Floats
    freedom: Floats
    """Degrees of freedom of the variance; infinite where no seed has a part in it."""
    shared: Floats | None = None
    """(M, M) covariances of two models' errors, where the predictions of both are published; 0
    elsewhere and on the diagonal. None: nowhere."""


def rounded_up(models: int) -> int:
    """Return the number of models rounded up to 10, 20, 50, 100, 200, 500, ..."""
    unit = 1
    while True:
        for step in STEPS:
            if step * unit >= max(models, FEWEST):
                return step * unit
        unit *= 10


@functools.cache
def critical_value(models: int) -> float:
    """Return how many standard errors of a difference make it significant, for M* models.

    Tukey and Kramer's constant: with 95 % probability no statement on any pair is wrong (Hayter
    1984). It is the 95 % quantile of the range of M* standard normals, divided by sqrt(2).
    """
    low, high = 1.0, 12.0
    while high - low > 10.0 ** -(DIGITS + 2):
        middle = (low + high) / 2
        low, high = (low, middle) if _range(middle, models) > CONFIDENCE else (middle, high)
    return round((low + high) / 2 / math.sqrt(2), DIGITS)


def _range(width: float, models: int) -> float:
    """Return the probability that standard normals lie within a width of each other."""
    at = np.linspace(-REACH, REACH, GRID)
    density = np.exp(-at * at / 2) / math.sqrt(2 * math.pi)
    below = normal_below(at) - normal_below(at - width)
    return float(models * np.sum(density * below ** (models - 1)) * (at[1] - at[0]))


def student_quantile(constant: float, freedom: Floats | np.float64) -> Floats:
    """Return the quantile of Student's t at the probability at which the normal has `constant`.

    Gaver and Kafadar's approximation (Am. Stat. 38:308, 1984), since the page has to compute the
    same: up to 5 % too wide with 4 degrees of freedom, at most 1.5 % off from 8 on.
    """
    if (freedom >= DRAWS_MAX).all():
        return np.broadcast_to(constant, np.shape(freedom))
    finite = np.minimum(freedom, DRAWS_MAX)
    growth = (finite - 1.5) / ((finite - 1) * (finite - 1))
    wide = np.sqrt(finite * np.expm1(constant * constant * growth))
    return np.where(freedom < DRAWS_MAX, wide, constant)


def _as_normal(statistic: Floats, freedom: Floats) -> Floats:
    """Return the normal quantile at the probability of a quantile of Student's t."""
    finite = np.minimum(freedom, DRAWS_MAX)
    growth = (finite - 1.5) / ((finite - 1) * (finite - 1))
    size = np.sqrt(np.log1p(statistic * statistic / finite) / growth)
    return np.where(freedom < DRAWS_MAX, np.copysign(size, statistic), statistic)


def difference_errors(
    scores: ScoreColumn, first: Positions, second: Positions
) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom of differences: (first, second) each.

    Errors count as independent where no predictions show how alike they are. On one test set they
    are alike, so differences are more certain than these errors say.
    """
    return _pair_errors(scores, first[:, None], second[None, :])


def _pair_errors(scores: ScoreColumn, first: Positions, second: Positions) -> tuple[Floats, Floats]:
    """Return the same for places of any shapes that go together, as numpy has it."""
    left, right = scores.variance[first], scores.variance[second]
    total = left + right
    if scores.shared is not None:
        total = np.maximum(total - 2 * scores.shared[first, second], 0.0)
    if np.isinf(scores.freedom).all():
        return np.sqrt(total), np.broadcast_to(np.inf, total.shape)
    uncertain = left * left / scores.freedom[first] + right * right / scores.freedom[second]
    is_estimated = uncertain > 0
    freedom = np.where(is_estimated, total * total / np.where(is_estimated, uncertain, 1.0), np.inf)
    return np.sqrt(total), freedom


def better(scores: ScoreColumn, c: float) -> Bools:
    """Return whether each model scores significantly higher than each other: (M, M)."""
    models = np.arange(len(scores.values))
    return _better(scores, models[:, None], models[None, :], c)


def _better(scores: ScoreColumn, first: Positions, second: Positions, c: float) -> Bools:
    """Return whether the first scores significantly higher, for places of any such shapes."""
    errors, freedom = _pair_errors(scores, first, second)
    return np.asarray(
        scores.values[first] - scores.values[second] > student_quantile(c, freedom) * errors
    )


class RankRanges(NamedTuple):
    """Ranks of all models by one score, with their ranges; arrays of one value a model."""

    rank: Positions
    """1 is best; equal scores share the better rank."""
    low: Positions
    """One more than the models that score significantly higher; 1 for each that could be best."""
    high: Positions
    """The number of models less those that score significantly lower."""


def ranks(scores: ScoreColumn, c: float) -> RankRanges:
    """Return ranks with their ranges, which hold jointly with 95 % confidence."""
    count = len(scores.values)
    ordered = np.sort(scores.values)
    rank = 1 + count - np.searchsorted(ordered, scores.values, side="right")
    above, below = win_and_loss_counts(scores, c)
    return RankRanges(rank, 1 + above, count - below)


def win_and_loss_counts(scores: ScoreColumn, c: float) -> tuple[Positions, Positions]:
    """Return by how many models each is beaten significantly, and how many it beats: (M,) each.

    The sums of `better`. Models of a group have nearly one variance, so nearly one difference
    decides whether a model beats them: only those near that difference are compared.
    """
    count = len(scores.values)
    if count < GROUPED_MIN or scores.shared is not None or scores.freedom.min() < FREEDOM_MIN:
        models, sums = np.arange(count), np.zeros((2, count), dtype=np.intp)
        step = max(1, PAIRS_AT_ONCE // max(1, count))
        for first in np.split(models, range(step, count, step)):
            won = _better(scores, first[:, None], models, c)
            sums[0] += won.sum(axis=0)
            sums[1, first] = won.sum(axis=1)
        return sums[0], sums[1]
    # Limits that nearly ascend are found several times as fast as others.
    by_value = np.argsort(scores.values, kind="stable")
    scores = ScoreColumn(*(part[by_value] for part in scores[:3]))
    above, below = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=np.intp)
    by_variance = np.argsort(scores.variance, kind="stable")
    size = max(GROUP, -(-count // GROUPS))
    for group in np.split(by_variance, range(size, count, size)):
        group.sort()
        variance, scores_of_group = scores.variance[group], scores.values[group]
        freedom = np.minimum(scores.freedom, scores.freedom[group].min())
        far = student_quantile(c, freedom) * np.sqrt(scores.variance + variance.max()) + SLACK
        near = c * np.sqrt(scores.variance + variance.min()) - SLACK
        # Each model beats those of the group before `sure`, and none from `unsure` on.
        sure = np.searchsorted(scores_of_group, scores.values - far, side="left")
        below += sure
        above[group] += count - np.cumsum(np.bincount(sure, minlength=len(group) + 1))[:-1]
        unsure = np.flatnonzero(np.append(scores_of_group, np.inf)[sure] <= scores.values - near)
        sure = sure[unsure]
        open_ = (
            np.searchsorted(scores_of_group, (scores.values - near)[unsure], side="right") - sure
        )
        first = np.repeat(unsure, open_)
        within = np.arange(len(first)) - np.repeat(np.cumsum(open_) - open_, open_)
        second = group[np.repeat(sure, open_) + within]
        won = _better(scores, first, second, c)
        below += np.bincount(first[won], minlength=count)
        above += np.bincount(second[won], minlength=count)
    counts = np.empty((2, count), dtype=np.intp)
    counts[:, by_value] = above, below
    return counts[0], counts[1]


def could_be_best(scores: ScoreColumn, among: Positions, c: float) -> Positions:
    """Return the models of a subset than which none of it scores significantly higher."""
    if not len(among):
        return among
    # Only a model near the top can be without one above: all others need not be compared.
    errors, highest = np.sqrt(scores.variance[among]), among[np.argsort(-scores.values[among])]
    first = highest[0]
    reach = student_quantile(c, np.minimum(scores.freedom[among], scores.freedom[first]))
    near = scores.values[among] + reach * (errors + math.sqrt(scores.variance[first]))
    contenders = among[near >= scores.values[first]]
    # Most are beaten by a model that has a smaller variance than each that scores higher: of
    # constant freedom, nobody is beaten by others alone, since all that is computed is monotone.
    least_variance = np.minimum.accumulate(scores.variance[highest])
    front = highest[np.diff(least_variance, prepend=np.inf) < 0]
    for ahead in (front[:FEW], front[:GROUP]):
        contenders = contenders[~_better(scores, ahead[:, None], contenders, c).any(axis=0)]
    # The others are beaten by no model that is too near the lowest left.
    ahead = among
    if scores.shared is None and np.isinf(scores.freedom).all():
        ahead = front
    elif scores.shared is None:
        least = scores.values[contenders].min(initial=1.0) + c * errors
        ahead = among[scores.values[among] > least - SLACK]
    return np.asarray(contenders[~_better(scores, ahead[:, None], contenders, c).any(axis=0)])


class ComparedPair(NamedTuple):
    """Comparison of two models by one score."""

    difference: float
    """Score of the first less that of the second."""
    low: float
    high: float
    """Simultaneous 95 % interval, corrected for all pairs."""
    probability: float
    """That the first is better; at least, since errors count as independent."""
    is_significant: bool
    """Whether the first or the second scores significantly higher."""


def compare_pair(scores: ScoreColumn, first: int, second: int, c: float) -> ComparedPair:
    """Compare two models."""
    errors, freedom = difference_errors(scores, np.array([first]), np.array([second]))
    error = float(errors[0, 0])
    reach = float(student_quantile(c, freedom)[0, 0]) * error
    size = float(scores.values[first] - scores.values[second])
    probability = (
        0.5 if error == 0 else float(normal_below(_as_normal(size / errors, freedom))[0, 0])
    )
    return ComparedPair(
        size, size - reach, size + reach, round(probability, DIGITS), abs(size) > reach
    )


class Losses(NamedTuple):
    """The loss of choosing each model of a subset instead of its best, in its order."""

    best: Positions
    """The models that could be best."""
    bound: Floats
    """At most, with 95 % confidence, for whichever rule selects by it; 0 for the only candidate,
    infinite where it was not asked for."""


def losses(scores: ScoreColumn, among: Positions, c: float, accepted: float = math.inf) -> Losses:
    """Return the loss in one score from choosing each model of a subset that is not empty.

    Bounds are for models that score at most `accepted` below the highest: no other has a bound as
    low as that.
    """
    best = could_be_best(scores, among, c)
    accepted_models = scores.values[among].max() - scores.values[among] <= accepted
    bound = np.full(len(among), np.inf)
    bound[accepted_models] = _furthest(scores, among[accepted_models], best, len(among))
    alone = (among == best[0]) & (len(best) == 1)
    # Only where nothing can be lost is a bound 0.
    displayed = np.maximum(np.round(bound, DIGITS), 10.0**-DIGITS)
    return Losses(best, np.asarray(np.where(alone, 0.0, displayed), dtype=float))


def _furthest(scores: ScoreColumn, among: Positions, best: Positions, count: int) -> Floats:
    """Return how far each may be below another of `count` that could be best (Hsu 1984)."""
    if count == 1:
        return np.zeros(1)
    single = NormalDist().inv_cdf(CONFIDENCE ** (1 / (count - 1)))
    errors, freedom = difference_errors(scores, among, best)
    below = scores.values[best][None, :] - scores.values[among][:, None]
    reach = below + student_quantile(single, freedom) * errors
    reach[among[:, None] == best[None, :]] = -np.inf
    return np.asarray(np.maximum(reach.max(axis=1), 0.0))


def intervals_of(scores: ScoreColumn) -> tuple[Floats, Floats]:
    """Return the ends of the 95 % interval of each score, cut at -1 and 1."""
    reach = student_quantile(NORMAL, scores.freedom) * np.sqrt(scores.variance)
    low, high = scores.values - reach, scores.values + reach
    return np.maximum(low, -1.0) + 0.0, np.minimum(high, 1.0) + 0.0
