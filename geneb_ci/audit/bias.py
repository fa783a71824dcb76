"""Joint tests of the cells of a regime: raises that no cell shows alone.

Every cell has a null distribution, which the jittered copies of the rerun measure: claim and rerun
of an honest row differ by a deviation s, in steps of at most one changed prediction, e. For n cells
with differences x_i = claimed - rescored, all of one metric, record or canonical:

    sum       |sum x_i| <= e L / 3 + sqrt((e L / 3)^2 + 2 L sum s_i^2),   e = max e_i

which is Bernstein's bound, so it holds for one cell as for a hundred, and in both directions.
    tail      at most k cells with |x_i| > FAR s_i + e_i, where k is the (1 - level) quantile of a
              binomial number of n with probability `FAR_SHARE`

L = ln(2 / level), and `level` is `ALARM` divided by the number of tests. The tail finds cells that
are raised beside others that are lowered, which the sum does not.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

ALARM = 1e-3
"""Probability that an honest audit is flagged by any joint test: shared out over the tests."""
FAR = 3.0
"""Deviations from which a cell is far from its rerun."""
FAR_SHARE = 0.02
"""Probability that an honest cell is far, at most: 0.003 were the differences normal. They are not,
where few predictions are near the border."""
EARLIER_SHARE = 2.0
"""Limit of |mean of x_i / tolerance_i| sqrt(n) for records without deviations."""


class Difference(NamedTuple):
    """One metric of one cell."""

    value: float
    """Claimed - rescored."""
    deviation: float
    """Standard deviation of that for an honest claim."""
    step: float
    """Largest effect of one changed prediction."""


class MeanBias(NamedTuple):
    """Joint test of the cells of a regime, in one metric."""

    cells: int
    difference: float
    """Mean of claimed - rescored."""
    limit: float
    """Largest |mean| that chance explains."""
    far: int
    """Cells far from their rerun."""
    far_limit: int
    """Most that chance explains."""

    @property
    def is_biased(self) -> bool:
        """Whether the mean is farther from 0 than chance explains."""
        return abs(self.difference) > self.limit

    @property
    def is_significant(self) -> bool:
        """Whether mean or tail are more than chance explains."""
        return self.is_biased or self.far > self.far_limit

    @property
    def text(self) -> str:
        """What was found, beside what chance explains."""
        said = f"claims differ from the rerun by {self.difference:+.4f} in the mean of "
        said += f"{self.cells} cells, chance explains {self.limit:.4f}"
        if self.far > self.far_limit:
            said += f"; {self.far} cells are far from it, chance explains {self.far_limit}"
        return said


def joint_test(cells: Sequence[Difference], tests: int) -> MeanBias:
    """Test n cells, n at least 1, at the level that `tests` tests share."""
    level = ALARM / tests
    count = len(cells)
    return MeanBias(
        cells=count,
        difference=math.fsum(one.value for one in cells) / count,
        limit=sum_limit(cells, level) / count,
        far=sum(abs(one.value) > FAR * one.deviation + one.step for one in cells),
        far_limit=far_limit(count, level),
    )


def sum_limit(cells: Sequence[Difference], level: float) -> float:
    """Return the largest |sum| that chance explains, at a level."""
    log = math.log(2 / level)
    # A hypot, since squares of a forged record's numbers may overflow.
    spread = math.sqrt(2 * log) * math.hypot(*(one.deviation for one in cells))
    first = max(one.step for one in cells) * log / 3
    return first + math.hypot(first, spread)


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
