"""One relation between models, and the loss of choosing one: what every view decides by.

    scores = ScoreColumn(values, variance, freedom)   # (M,) each: one score of M models
    better(scores, c)[i, j]                         # whether i scores significantly higher than j
    losses(scores, among, c).bound[i]               # at most, with 95 % confidence

"Not significantly different" does not mean equal: a smaller model is recommended for a bounded
loss. The formulas, their sources and what they assume: docs/uncertainty.md.
"""

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

CONFIDENCE = 0.95
NORMAL = 1.96
"""Standard errors from a score to the ends of its 95 % interval."""
STEPS = (1, 2, 5)
"""Numbers of models are rounded up to 10, 20, 50, 100, ...: one more row then changes no pair."""
FEWEST = 10
DIGITS = 9
"""Decimals of what comes from quantiles of the normal: libraries differ in the sixteenth."""
GRID = 2001
"""Points of the integral of the greatest score: ten times as many change it by less than 1e-9."""
REACH = 9.0
"""Standard errors beyond which a normal has no weight: 1e-19."""
DRAWS_MAX = 1e5
"""Degrees of freedom from which a t distribution is the normal one."""


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
def critical(models: int) -> float:
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


def normal_below(values: Floats) -> Floats:
    """Return the probability that a standard normal is below each value: erfc(-x / sqrt 2) / 2.

    `math` has it for one number; scipy's function for arrays takes longer to import than these
    numbers to be computed.
    """
    return np.asarray(_erfc(-values / math.sqrt(2)), dtype=float) / 2


_erfc = np.frompyfunc(math.erfc, 1, 1)


def stretched(constant: float, freedom: Floats | np.float64) -> Floats:
    """Return the quantile of Student's t at the probability at which the normal has `constant`.

    Gaver and Kafadar's approximation (Am. Stat. 38:308, 1984), since the page has to compute the
    same: up to 5 % too wide with 4 degrees of freedom, at most 1.5 % off from 8 on.
    """
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


def pair_errors(scores: ScoreColumn, first: Places, second: Places) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom of differences: (first, second) each.

    Errors count as independent where no predictions show how alike they are. On one test set they
    are alike, so differences are more certain than these errors say.
    """
    one, other = scores.variance[first][:, None], scores.variance[second][None, :]
    total = one + other
    if scores.shared is not None:
        total = np.maximum(total - 2 * scores.shared[np.ix_(first, second)], 0.0)
    uncertain = one * one / scores.freedom[first][:, None]
    uncertain = uncertain + other * other / scores.freedom[second][None, :]
    known = uncertain > 0
    freedom = np.where(known, total * total / np.where(known, uncertain, 1.0), np.inf)
    return np.sqrt(total), freedom


def better(scores: ScoreColumn, c: float) -> Bools:
    """Return whether each model scores significantly higher than each other: (M, M)."""
    every = np.arange(len(scores.values))
    return _better(scores, every, every, c)


def _better(scores: ScoreColumn, first: Places, second: Places, c: float) -> Bools:
    errors, freedom = pair_errors(scores, first, second)
    differences = scores.values[first][:, None] - scores.values[second][None, :]
    return np.asarray(differences > stretched(c, freedom) * errors)


class RankRanges(NamedTuple):
    """RankRanges of all models by one score; arrays of one value a model."""

    rank: Places
    """1 is best; equal scores share the better rank."""
    low: Places
    """One more than the models that score significantly higher; 1 for each that could be best."""
    high: Places
    """The number of models less those that score significantly lower."""


def ranks(scores: ScoreColumn, c: float) -> RankRanges:
    """Return ranks with their ranges, which hold jointly with 95 % confidence."""
    above = better(scores, c)
    count = len(scores.values)
    ordered = np.sort(scores.values)
    rank = 1 + count - np.searchsorted(ordered, scores.values, side="right")
    return RankRanges(rank, 1 + above.sum(axis=0), count - above.sum(axis=1))


def could_be_best(scores: ScoreColumn, among: Places, c: float) -> Places:
    """Return the models of a subset than which none of it scores significantly higher."""
    if not len(among):
        return among
    # Only a model near the top can be without one above: all others need not be compared.
    errors = np.sqrt(scores.variance[among])
    first = among[np.argmax(scores.values[among])]
    reach = stretched(c, np.minimum(scores.freedom[among], scores.freedom[first]))
    near = scores.values[among] + reach * (errors + math.sqrt(scores.variance[first]))
    contenders = among[near >= scores.values[first]]
    beaten = _better(scores, among, contenders, c).any(axis=0)
    return np.asarray(contenders[~beaten])


class ComparedPair(NamedTuple):
    """How two models compare by one score."""

    difference: float
    """Of the first less the second."""
    low: float
    high: float
    """Simultaneous 95 % interval, corrected for all pairs."""
    probability: float
    """That the first is better; at least, since errors count as independent."""
    is_significant: bool
    """Whether the first or the second scores significantly higher."""


def compared(scores: ScoreColumn, first: int, second: int, c: float) -> ComparedPair:
    """Compare two models."""
    errors, freedom = pair_errors(scores, np.array([first]), np.array([second]))
    error = float(errors[0, 0])
    reach = float(stretched(c, freedom)[0, 0]) * error
    size = float(scores.values[first] - scores.values[second])
    probability = (
        0.5 if error == 0 else float(normal_below(_as_normal(size / errors, freedom))[0, 0])
    )
    return ComparedPair(
        size, size - reach, size + reach, round(probability, DIGITS), abs(size) > reach
    )


class Losses(NamedTuple):
    """What is lost by choosing each model of a subset instead of its best, in its order."""

    best: Places
    """The models that could be best."""
    expected: Floats
    bound: Floats
    """At most, with 95 % confidence, for whichever rule selects by it; 0 for the only candidate."""


def losses(scores: ScoreColumn, among: Places, c: float) -> Losses:
    """Return the loss of each model of a subset that is not empty, for one need."""
    best = could_be_best(scores, among, c)
    expected = np.maximum(expected_maximum(scores, among) - scores.values[among], 0.0)
    bound = np.maximum(_furthest(scores, among, best), expected)
    alone = (among == best[0]) & (len(best) == 1)
    # Only where nothing can be lost is a bound 0.
    least = 10.0**-DIGITS
    return Losses(
        best,
        np.asarray(np.where(alone, 0.0, np.round(expected, DIGITS)), dtype=float),
        np.asarray(np.where(alone, 0.0, np.maximum(np.round(bound, DIGITS), least)), dtype=float),
    )


def _furthest(scores: ScoreColumn, among: Places, best: Places) -> Floats:
    """Return how far each model may be below another one that could be best (Hsu 1984)."""
    if len(among) == 1:
        return np.zeros(1)
    single = NormalDist().inv_cdf(CONFIDENCE ** (1 / (len(among) - 1)))
    errors, freedom = pair_errors(scores, among, best)
    below = scores.values[best][None, :] - scores.values[among][:, None]
    reach = below + stretched(single, freedom) * errors
    reach[among[:, None] == best[None, :]] = -np.inf
    return np.asarray(np.maximum(reach.max(axis=1), 0.0))


def expected_maximum(scores: ScoreColumn, among: Places) -> float:
    """Return the expected best true score of a subset, with a flat prior.

    E[max] = x1 - integral from x0 to x1 of the product of Phi((x - s_j) / se_j).
    """
    values, errors = scores.values[among], np.sqrt(scores.variance[among])
    certain = float(np.max(np.where(errors == 0, values, -np.inf)))
    uncertain = errors > 0
    if not uncertain.any():
        return certain
    low = max(float(np.max(values - REACH * errors)), certain)
    own, spread = values[uncertain], errors[uncertain]
    kept = own + REACH * spread > low
    if not kept.any():
        return low
    own, spread = own[kept], spread[kept]
    high = float(np.max(own + REACH * spread))
    at = np.linspace(low, high, GRID)
    product = np.prod(normal_below((at[:, None] - own) / spread), axis=1)
    area = (np.sum(product) - (product[0] + product[-1]) / 2) * (at[1] - at[0])
    return float(high - area)


def intervals_of(scores: ScoreColumn) -> tuple[Floats, Floats]:
    """Return the ends of the 95 % interval of each score, cut at -1 and 1."""
    reach = stretched(NORMAL, scores.freedom) * np.sqrt(scores.variance)
    low, high = scores.values - reach, scores.values + reach
    return np.maximum(low, -1.0) + 0.0, np.minimum(high, 1.0) + 0.0


PAIRS_AT_ONCE = 2_000_000
"""Signs of differences that are in memory together: 8 MB."""


def taus(columns: Sequence[Floats]) -> Floats:
    """Return Kendall's tau-b of each of K columns of M scores with each other: (K, K).

    NaN where it is not defined: fewer than two models, or all of a column equal. The counts of
    pairs are whole numbers, so the result does not depend on their order or on the machine.
    """
    count, models = len(columns), len(columns[0])
    # Ranks: their differences have the signs of those of the scores, exactly, in half the bytes.
    ranks = np.empty((models, count), dtype=np.float32)
    for k, column in enumerate(columns):
        ranks[:, k] = np.unique(column, return_inverse=True)[1].reshape(-1)
    agree = np.zeros((count, count))
    step = max(1, PAIRS_AT_ONCE // max(1, models * count))
    for start in range(0, models, step):
        below = ranks[start:]
        signs = np.sign(below[:step, None, :] - below[None, :, :]).reshape(-1, count)
        found = (signs.T @ signs).astype(float)
        # The pairs within a step were counted from both sides.
        within = np.sign(below[:step, None, :] - below[None, :step, :]).reshape(-1, count)
        agree += found - (within.T @ within).astype(float) / 2
    untied = np.sqrt(np.diag(agree))
    defined_ = (untied[:, None] > 0) & (untied[None, :] > 0)
    one, other = (np.where(defined_, side, 1.0) for side in (untied[:, None], untied[None, :]))
    return np.where(defined_, np.clip(agree / one / other, -1.0, 1.0), np.nan)
