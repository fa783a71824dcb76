"""How likely a sample is to hold a fabricated task, and how many tasks a draw takes."""

from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.sampling import allocation, parts_of
from geneb_ci.common.errors import UsageProblem

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
    """Return the probability that none of the fabricated tasks is found, in one part."""
    found = (
        comb(fabricated, j) * comb(tasks - fabricated, drawn - j) * (1 - power) ** j
        for j in range(min(fabricated, drawn) + 1)
        if drawn - j <= tasks - fabricated
    )
    return sum(found, Fraction(0)) / comb(tasks, drawn)


def detection(design: Design, fabricated: int, drawn: int, power: Fraction = CERTAIN) -> Fraction:
    """Return the probability that a fabricated task is found, wherever the fabricated ones are.

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
    """Return the smallest sample that finds one of the fabricated tasks so surely.

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
    """Return the table, with the sizes of sample that there can be, each once and ascending."""
    sizes = sorted({k for k in drawn if max(1, design.guaranteed) <= k <= design.tasks})
    return [PowerRow(k, tuple(detection(design, m, k, power) for m in fabricated)) for k in sizes]


def probability_text(probability: Fraction) -> str:
    """Write a probability to three digits, as the tables do; only a certain one is 1."""
    text = f"{float(probability):.3f}"
    return ">.999" if text == "1.000" and probability < 1 else text.removeprefix("0")


def design_of(tasks: Sequence[str], strata: Sequence[Sequence[str]]) -> Design:
    """Return what a sample of these tasks is drawn from; without strata, from all alike."""
    if not strata:
        return Design((len(tasks),))
    return Design(tuple(len(part) for part in parts_of(tasks, strata)), len(strata))


def size_of(commitment: Commitment, drawn: int | None, wanted: int, before: int) -> int:
    """Return k: what is committed, or more where that is asked for or was drawn before."""
    committed = commitment.policy.drawn
    if drawn is not None and drawn < max(committed, before):
        raise UsageProblem(
            f"--drawn {drawn} would lower the sample: {committed} tasks are committed"
            + (f", and {before} were drawn" if before > committed else ""),
            "a sample may be raised, and never lowered; leave out --drawn",
        )
    return max(committed, drawn or 0, wanted, before)


def probability(text: str, option: str) -> Fraction:
    """Read a probability exactly as it is written. Raises UsageProblem when it is none."""
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(-1)
    if not 0 < found <= 1:
        raise UsageProblem(
            f"{option} {text!r} is not a probability", "write a number above 0, at most 1: 0.95"
        )
    return found
