"""How likely a sample is to hold a fabricated task: exact, as a table, and solved for its size.

With N tasks of which m are fabricated, k drawn without replacement hold j of them with probability
C(m, j) C(N - m, k - j) / C(N, k) (hypergeometric). A rerun finds a drawn one with probability q.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

from geneb_ci.audit.strata import allocation
from geneb_ci.errors import UsageProblem

CERTAIN = Fraction(1)
# What the tables of the docs and of `audit plan` show, as far as there are so many tasks.
SHOWN_FABRICATED = (1, 2, 3, 5, 10, 20, 30, 50)
SHOWN_DRAWN = (3, 5, 8, 10, 13, 25)


class Design(NamedTuple):
    """What is drawn from: all tasks alike, or larger categories with a place of their own."""

    sizes: tuple[int, ...]
    """Tasks of each part; the last part holds the smaller categories."""
    guaranteed: int = 0
    """How many parts, from the first on, have at least one task in the sample."""

    @property
    def tasks(self) -> int:
        """N: how many tasks there are."""
        return sum(self.sizes)


def missed(tasks: int, fabricated: int, drawn: int, power: Fraction = CERTAIN) -> Fraction:
    """Give the probability that none of the fabricated tasks is found, in one part."""
    found = (
        comb(fabricated, j) * comb(tasks - fabricated, drawn - j) * (1 - power) ** j
        for j in range(min(fabricated, drawn) + 1)
        if drawn - j <= tasks - fabricated
    )
    return sum(found, Fraction(0)) / comb(tasks, drawn)


def detection(design: Design, fabricated: int, drawn: int, power: Fraction = CERTAIN) -> Fraction:
    """Give the probability that a fabricated task is found, wherever the fabricated ones are.

    In strata the worst placing counts, since how many are drawn of each is public: the largest
    product of the parts' chances to be missed, over all ways to split the fabricated tasks.
    """
    places = allocation(design.sizes, design.guaranteed, drawn)
    worst = [CERTAIN]  # by number of fabricated tasks so far
    for size, seats in zip(design.sizes, places, strict=True):
        own = [missed(size, m, seats, power) for m in range(min(size, fabricated) + 1)]
        top = min(fabricated, len(worst) + len(own) - 2)
        worst = [
            max(
                worst[total - m] * own[m]
                for m in range(max(0, total - len(worst) + 1), min(total, len(own) - 1) + 1)
            )
            for total in range(top + 1)
        ]
    return 1 - worst[fabricated]


def needed(design: Design, fabricated: int, confidence: Fraction, power: Fraction = CERTAIN) -> int:
    """Give the smallest sample that finds one of the fabricated tasks so surely.

    Raises UsageProblem when there are not so many tasks, or when even all of them do not suffice.
    """
    if not 1 <= fabricated <= design.tasks:
        raise UsageProblem(
            f"{fabricated} fabricated tasks of {design.tasks} make no sense",
            f"name a number from 1 to {design.tasks}",
        )
    low, high = max(1, design.guaranteed), design.tasks
    if detection(design, fabricated, high, power) < confidence:
        raise UsageProblem(
            f"no sample finds one of {fabricated} fabricated tasks with probability "
            f"{float(confidence):g}, when a rerun finds a drawn one with {float(power):g}",
            "ask for less confidence, or for more fabricated tasks",
        )
    # More places never lower the detection, so the smallest sample is found by halving.
    while low < high:
        middle = (low + high) // 2
        if detection(design, fabricated, middle, power) >= confidence:
            high = middle
        else:
            low = middle + 1
    return low


class PowerRow(NamedTuple):
    """One line of the table."""

    drawn: int
    detection: tuple[Fraction, ...]
    """One value for each number of fabricated tasks."""


def table(
    design: Design,
    drawn: Sequence[int] = SHOWN_DRAWN,
    fabricated: Sequence[int] = SHOWN_FABRICATED,
    power: Fraction = CERTAIN,
) -> list[PowerRow]:
    """Give the table, with the sizes of sample that there can be, each once and ascending."""
    sizes = sorted({k for k in drawn if max(1, design.guaranteed) <= k <= design.tasks})
    return [PowerRow(k, tuple(detection(design, m, k, power) for m in fabricated)) for k in sizes]


def shown(probability: Fraction) -> str:
    """Write a probability to three digits, as the tables do; only a certain one is 1."""
    text = f"{float(probability):.3f}"
    return ">.999" if text == "1.000" and probability < 1 else text.removeprefix("0")
