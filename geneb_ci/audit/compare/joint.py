"""Joint tests of the cells of a regime: raises that no cell shows alone.

Jittered copies of the rerun measure for each cell how an honest claim differs from it: not at all
where nothing rounds otherwise, else about a centre c, with a deviation s, in steps of at most e. A
step is a changed prediction, or a fit that stops elsewhere. For n cells x_i = claimed - rescored,
of one metric, record or canonical, let X be the distance of the sum of x_i from the sum of c_i, 0
and all that is between.

    sum   X <= min over u > 0 of (L + sum (s_i u)^2 g(e_i u)) / u,  g(y) = (exp(y) - 1 - y) / y^2
    tail  at most k cells lie farther than FAR s_i + e_i from c_i, 0 and what is between, where k is
          the (1 - level) quantile of a binomial number of n with probability `FAR_SHARE`

The first is Bennett's bound, so it holds for one cell as for a hundred, and in both directions. In
it, a flip that no copy showed counts once for all cells. The second finds cells that are raised
beside others that are lowered. L = ln(2 / level), where level is `ALARM` / number of tests.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

ALARM = 1e-3
"""Probability that an honest audit is flagged by any joint test: shared out over the tests."""
FAR_DEVIATIONS = 3.0
"""Deviations from which a cell is far from its rerun."""
FAR_SHARE = 0.02
"""Probability that an honest cell is far, at most: 0.003 were the differences normal. They are not,
where few predictions are near the border."""
UNSEEN_RATE = math.sqrt(2) / 144
"""Of the largest step among the cells, in an honest claim: one flip, were there one in all copies.
Those are at least 16 plain ones and as many stressed ones with eight times the noise; a claim
differs by sqrt(2) times the noise of a copy."""
U_RATIO = 2**-0.25
"""Ratio of the values of u that are tried for the bound on a sum."""
LARGEST_EXPONENT = 500.0
"""Exponent that is far from overflow, and above that of any bound's minimum."""
SERIES = 1e-4
"""Below this, two terms of a series are more exact than the difference."""
EARLIER_SHARE = 2.0
"""Limit of |mean of x_i / tolerance_i| sqrt(n) for records without deviations."""


class Difference(NamedTuple):
    """One metric of one cell."""

    value: float
    """Claimed - rescored."""
    deviation: float
    """Standard deviation of that for an honest claim."""
    step: float
    """Largest effect of one changed prediction, or of another stop of one fit."""
    centre: float | None = 0.0
    """Mean of that for an honest claim that rounds otherwise; None in earlier records."""


LUCKY_DEVIATIONS = 1.645
"""Standard deviations of honest noise that help one claim in twenty to pass: normal quantile."""
ROOM, ROOM_TASKS = 0.005, 100
"""Largest mean raise of MCC that an audit may miss in a regime that it helps to reproduce, on a
benchmark of 100 tasks; on a smaller one larger, as the error of a mean is."""


def largest_room(tasks: int) -> float:
    """Return the largest raise that may be hidden, for a benchmark of so many tasks."""
    return ROOM * math.sqrt(max(1.0, ROOM_TASKS / tasks))


class MeanBias(NamedTuple):
    """Joint test of the cells of a regime, in one metric."""

    cells: int
    difference: float
    """Mean of claimed - rescored, beyond that of the centres."""
    limit: float
    """Largest |mean| that chance explains."""
    far_cells: int
    """Cells far from their rerun."""
    far_limit: int
    """Most that chance explains."""
    hidden_raise: float = 0.0
    """Mean raise over an honest claim that one forgery in twenty may hide: the limit, how far an
    honest claim may lie on the other side of the rerun, and the luck of its noise."""

    @property
    def is_biased(self) -> bool:
        """Whether the mean is farther from 0 than chance explains."""
        return abs(self.difference) > self.limit

    @property
    def is_significant(self) -> bool:
        """Whether mean or tail are more than chance explains."""
        return self.is_biased or self.far_cells > self.far_limit

    @property
    def text(self) -> str:
        """The mean bias, beside what chance explains."""
        sentence = f"claims differ from rerun and copies by {self.difference:+.4f} in the mean of "
        sentence += f"{self.cells} cells, chance explains {self.limit:.4f}"
        if self.far_cells > self.far_limit:
            sentence += (
                f"; {self.far_cells} cells are far from it, chance explains {self.far_limit}"
            )
        return sentence


def joint_test(cells: Sequence[Difference], tests: int) -> MeanBias:
    """Test n cells, n at least 1, at the level that `tests` tests share."""
    level = ALARM / tests
    count = len(cells)
    total = math.fsum(cell.value for cell in cells)
    centre = math.fsum(cell.centre or 0.0 for cell in cells)
    limit = sum_limit(cells, level) / count
    spread = math.hypot(*(cell.deviation for cell in cells)) / count
    return MeanBias(
        cells=count,
        difference=distance_outside(total, centre) / count,
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
    """Return the distance of a value from the interval between 0 and a centre."""
    return value - min(max(value, min(centre, 0.0)), max(centre, 0.0))


def sum_limit(cells: Sequence[Difference], level: float) -> float:
    """Return the largest |sum| that chance explains, at a level."""
    log = math.log(2 / level)
    step = max(cell.step for cell in cells)
    parts = [(cell.deviation, cell.step) for cell in cells]
    if any(cell.centre is None for cell in cells):
        # Bernstein's bound, as earlier records have it.
        first = step * log / 3
        return first + math.hypot(first, math.sqrt(2 * log) * math.hypot(*(s for s, _ in parts)))
    parts.append((step * math.sqrt(UNSEEN_RATE), step))
    # A hypot, since squares of a forged record's numbers may overflow.
    spread = math.hypot(*(s for s, _ in parts))
    u = min(math.sqrt(2 * log) / spread if spread else math.inf, LARGEST_EXPONENT / (step or 1.0))
    if not spread or not u:
        return spread
    # Downwards from the best u of a normal sum, which is too large for any other. Each u gives a
    # bound; the least of them is 2 % above the minimum at most.
    least = math.inf
    while (bound := _bound(parts, u, log)) < least:
        least, u = bound, u * U_RATIO
    return least


def _bound(parts: Sequence[tuple[float, float]], u: float, log: float) -> float:
    return (
        log + math.fsum((s * u) * (s * u) * _exponential_remainder(e * u) for s, e in parts)
    ) / u


def _exponential_remainder(y: float) -> float:
    """Return (exp(y) - 1 - y) / y^2, which is 1/2 at 0."""
    return (math.expm1(y) - y) / (y * y) if y > SERIES else 0.5 + y / 6


@functools.cache
def far_limit(count: int, level: float) -> int:
    """Return the smallest k with P(more than k of n cells are far) <= level."""
    beyond = 1.0
    for k in range(count + 1):
        beyond -= math.comb(count, k) * FAR_SHARE**k * (1 - FAR_SHARE) ** (count - k)
        if beyond <= level:
            return k
    return count


def earlier_deviation(tolerance: float, tests: int) -> float:
    """Return the deviation of a cell that has none: equal cells then have the earlier limit."""
    return tolerance * EARLIER_SHARE / math.sqrt(2 * math.log(2 * tests / ALARM))
