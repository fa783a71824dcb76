"""Joint tests of all cells of a regime, which detect raises that no single cell shows.

Jittered copies of the rerun measure for each cell how an honest claim differs from the rerun: not
at all if no number is rounded differently, otherwise by a random number with centre c and standard
deviation s, in steps of at most e. A step is a changed prediction, or a fit that stops elsewhere.
For n cells x_i = claimed - rescored, of one metric, record or canonical, let X be the distance of
the sum of x_i from the interval between 0 and the sum of c_i.

    sum   X <= min over u > 0 of (L + sum (s_i u)^2 g(e_i u)) / u,  g(y) = (exp(y) - 1 - y) / y^2
    tail  at most k cells lie farther than `FAR_DEVIATIONS` s_i + e_i from the interval between 0
          and c_i, where k is the (1 - level) quantile of a binomial number of n with probability
          `FAR_SHARE`

The sum test is Bennett's bound, which holds for any number of cells and in both directions; it adds
one flip that no copy showed. The tail test detects raised cells beside lowered ones.
L = ln(2 / level), where level is `ALARM` / number of tests.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

ALARM = 1e-3
"""Probability that an honest audit is flagged by any joint test; divided by the number of tests."""
FAR_DEVIATIONS = 3.0
"""Number of standard deviations beyond which the claim of a cell counts as far from the rerun."""
FAR_SHARE = 0.02
"""Largest probability that an honest claim is far from the rerun. For normal differences it is
0.003, but differences are not normal if only few predictions are near the decision boundary."""
UNSEEN_RATE = math.sqrt(2) / 144
"""Expected number of steps of the largest size that an honest claim has although no copy had one.

A claim has sqrt(2) times the noise of a plain copy; the copies together have at least
16 * 1 + 16 * 8 = 144 times that noise (16 plain ones, 16 stressed ones).
"""
U_RATIO = 2**-0.25
"""Ratio of successive values of u, the free number of Bennett's bound, in the search for the lowest
bound."""
LARGEST_EXPONENT = 500.0
"""Largest exponent e u that the search for the lowest bound tries: exp does not overflow, and no
lowest bound has a larger exponent."""
SERIES_ARGUMENT_MAX = 1e-4
"""Argument of `_exponential_remainder` below which two terms of a series are more exact than
exp."""
EARLIER_RECORD_LIMIT = 2.0
"""Limit of |mean of difference / tolerance| sqrt(number of cells), by which earlier records,
without standard deviations, were judged."""


class ClaimDifference(NamedTuple):
    """The difference between claim and rerun of one cell in one metric, and its honest size."""

    value: float
    """Claimed score minus rescored score."""
    deviation: float
    """Standard deviation of `value` for an honest claim."""
    step: float
    """Largest effect on the score of one changed prediction, or of one fit that stops elsewhere."""
    centre: float | None = 0.0
    """Mean of `value` for an honest claim that is rounded differently; None in earlier records."""


LUCKY_DEVIATIONS = 1.645
"""Number of standard deviations by which noise helps one forged claim in twenty: the 95 % quantile
of the normal distribution."""
HIDDEN_RAISE_MAX, HIDDEN_RAISE_TASKS = 0.005, 100
"""Largest mean raise of MCC that an audit may miss in a regime to count as reproducing it, on a
benchmark of 100 tasks. On a smaller benchmark the limit grows as the error of a mean."""


def largest_hidden_raise(tasks: int) -> float:
    """Return the largest mean raise of MCC that an audit of `tasks` tasks may leave undetected."""
    return HIDDEN_RAISE_MAX * math.sqrt(max(1.0, HIDDEN_RAISE_TASKS / tasks))


class MeanBias(NamedTuple):
    """Result of the joint test of a regime in one metric."""

    cells: int
    """Number of cells."""
    difference: float
    """Mean distance of claimed - rescored from the interval between 0 and the centre."""
    limit: float
    """Largest absolute mean that chance explains."""
    far_cells: int
    """Number of cells that are far from their rerun."""
    far_limit: int
    """Largest number of far cells that chance explains."""
    hidden_raise: float = 0.0
    """Largest mean raise with which one forgery in twenty passes: the limit, plus the distance of
    the centre from the rerun, plus `LUCKY_DEVIATIONS` of noise."""

    @property
    def is_biased(self) -> bool:
        """Whether the mean is farther from 0 than chance explains."""
        return abs(self.difference) > self.limit

    @property
    def is_significant(self) -> bool:
        """Whether the mean or the number of far cells exceeds what chance explains."""
        return self.is_biased or self.far_cells > self.far_limit

    @property
    def text(self) -> str:
        """The mean bias, and what chance explains, as a sentence."""
        sentence = f"claims differ from rerun and copies by {self.difference:+.4f} in the mean of "
        sentence += f"{self.cells} cells, chance explains {self.limit:.4f}"
        if self.far_cells > self.far_limit:
            sentence += f"; {self.far_cells} cells are far from their reruns, chance explains "
            sentence += f"{self.far_limit}"
        return sentence


def joint_test(cells: Sequence[ClaimDifference], tests: int) -> MeanBias:
    """Return the joint test of cells, with the false-alarm rate `ALARM` divided by `tests`."""
    level = ALARM / tests
    count = len(cells)
    difference_sum = math.fsum(cell.value for cell in cells)
    centre = math.fsum(cell.centre or 0.0 for cell in cells)
    limit = sum_limit(cells, level) / count
    spread = math.hypot(*(cell.deviation for cell in cells)) / count
    return MeanBias(
        cells=count,
        difference=distance_outside(difference_sum, centre) / count,
        limit=limit,
        hidden_raise=limit + abs(centre) / count + LUCKY_DEVIATIONS * spread,
        far_cells=sum(
            abs(distance_outside(cell.value, cell.centre or 0.0))
            > FAR_DEVIATIONS * cell.deviation + cell.step
            for cell in cells
        ),
        far_limit=far_limit(count, level),
    )


def distance_outside(value: float, centre: float) -> float:
    """Return how far a value lies outside the interval from 0 to `centre`; negative if below."""
    return value - min(max(value, min(centre, 0.0)), max(centre, 0.0))


def sum_limit(cells: Sequence[ClaimDifference], level: float) -> float:
    """Return the largest absolute sum of differences that chance explains at a false-alarm rate."""
    log_term = math.log(2 / level)
    step = max(cell.step for cell in cells)
    deviations_and_steps = [(cell.deviation, cell.step) for cell in cells]
    if any(cell.centre is None for cell in cells):
        # Bernstein's bound, by which earlier records were judged.
        linear_term = step * log_term / 3
        return linear_term + math.hypot(
            linear_term, math.sqrt(2 * log_term) * math.hypot(*(s for s, _ in deviations_and_steps))
        )
    deviations_and_steps.append((step * math.sqrt(UNSEEN_RATE), step))
    # By hypot, since squares of the numbers of a forged record may overflow.
    spread = math.hypot(*(s for s, _ in deviations_and_steps))
    u = min(
        math.sqrt(2 * log_term) / spread if spread else math.inf, LARGEST_EXPONENT / (step or 1.0)
    )
    if not spread or not u:
        return spread
    # Downwards from the best u of a normal sum, which is the largest u of any minimum. The smallest
    # of these bounds is at most 2 % above the minimum.
    smallest_limit = math.inf
    while (bound := _bennett_bound(deviations_and_steps, u, log_term)) < smallest_limit:
        smallest_limit, u = bound, u * U_RATIO
    return smallest_limit


def _bennett_bound(
    deviations_and_steps: Sequence[tuple[float, float]], u: float, log_term: float
) -> float:
    """Return Bennett's bound of the sum for one value of `u`, as in the formula above."""
    return (
        log_term
        + math.fsum(
            (s * u) * (s * u) * _exponential_remainder(e * u) for s, e in deviations_and_steps
        )
    ) / u


def _exponential_remainder(y: float) -> float:
    """Return (exp(y) - 1 - y) / y^2, which is 1/2 at 0."""
    return (math.expm1(y) - y) / (y * y) if y > SERIES_ARGUMENT_MAX else 0.5 + y / 6


@functools.cache
def far_limit(count: int, level: float) -> int:
    """Return the largest number of far cells that chance explains at a false-alarm rate.

    It is the smallest k with P(more than k of `count` cells are far) <= level.
    """
    tail_probability = 1.0
    for k in range(count + 1):
        tail_probability -= math.comb(count, k) * FAR_SHARE**k * (1 - FAR_SHARE) ** (count - k)
        if tail_probability <= level:
            return k
    return count


def earlier_deviation(tolerance: float, tests: int) -> float:
    """Return the standard deviation with which a cell of an earlier record keeps its limit."""
    return tolerance * EARLIER_RECORD_LIMIT / math.sqrt(2 * math.log(2 * tests / ALARM))
