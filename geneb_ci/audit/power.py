"""The probability that a sample detects fabricated tasks, and the sample size it takes."""

from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.sampling import allocation, parts_of
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import plural

CERTAIN = Fraction(1)
# What the tables of the docs and of `audit plan` show, as far as there are so many tasks.
SHOWN_FABRICATED = (1, 2, 3, 5, 10, 20, 30, 50)
SHOWN_DRAWN = (3, 5, 8, 10, 13, 25)


class Design(NamedTuple):
    """What is drawn from: all tasks alike, or strata, each with a guaranteed place."""

    sizes: tuple[int, ...]
    """Tasks of each part; the last part holds the smaller categories."""
    guaranteed: int = 0
    """Number of parts, the first ones, with at least one task in the sample."""

    @property
    def tasks(self) -> int:
        """N: how many tasks there are."""
        return sum(self.sizes)


def missed(tasks: int, fabricated: int, drawn: int, power: Fraction = CERTAIN) -> Fraction:
    """Return the probability that k drawn tasks of N detect none of m fabricated ones.

    sum_j C(m, j) C(N - m, k - j) (1 - q)^j / C(N, k), with q the `power` of one rerun.
    """
    found = (
        comb(fabricated, j) * comb(tasks - fabricated, drawn - j) * (1 - power) ** j
        for j in range(min(fabricated, drawn) + 1)
        if drawn - j <= tasks - fabricated
    )
    return sum(found, Fraction(0)) / comb(tasks, drawn)


def detection(design: Design, fabricated: int, drawn: int, power: Fraction = CERTAIN) -> Fraction:
    """Return the probability to detect at least one of m fabricated tasks, at the worst placing.

    1 - max over all splits m = m_1 + ... + m_p of the product of missed(N_i, m_i, k_i). The places
    k_i of each stratum are public, so a forger can choose where to fabricate.
    Raises UsageProblem, as `allocation` does.
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
    """Return the smallest sample that detects a fabricated task with probability `confidence`.

    Raises UsageProblem when there are fewer tasks than fabricated ones, or when even a sample of
    all tasks does not reach the confidence.
    """
    if not 1 <= fabricated <= design.tasks:
        raise UsageProblem(
            f"--detect {fabricated}: the commitment has {plural(design.tasks, 'task')}, so at most "
            f"{design.tasks} can be fabricated",
            "pass --detect 1" + (f" to {design.tasks}" if design.tasks > 1 else ""),
        )
    low, high = max(1, design.guaranteed), design.tasks
    if detection(design, fabricated, high, power) < confidence:
        raise UsageProblem(
            f"no sample detects one of {fabricated} fabricated tasks with probability "
            f"{float(confidence):g}, when a rerun detects a drawn one with {float(power):g}",
            "lower --confidence, or raise --detect",
        )
    # Detection never falls as the sample grows, so bisection finds the smallest sample.
    while low < high:
        middle = (low + high) // 2
        if detection(design, fabricated, middle, power) >= confidence:
            high = middle
        else:
            low = middle + 1
    return low


class PowerRow(NamedTuple):
    """One row of the table of detection."""

    drawn: int
    detection: tuple[Fraction, ...]
    """One value for each number of fabricated tasks."""


def table(
    design: Design,
    drawn: Sequence[int] = SHOWN_DRAWN,
    fabricated: Sequence[int] = SHOWN_FABRICATED,
    power: Fraction = CERTAIN,
) -> list[PowerRow]:
    """Return the table of detection: one row a possible sample size, ascending."""
    sizes = sorted({k for k in drawn if max(1, design.guaranteed) <= k <= design.tasks})
    return [PowerRow(k, tuple(detection(design, m, k, power) for m in fabricated)) for k in sizes]


def probability_text(probability: Fraction) -> str:
    """Return a probability with three digits, as the tables show it; only a certain one is 1."""
    text = f"{float(probability):.3f}"
    return ">.999" if text == "1.000" and probability < 1 else text.removeprefix("0")


def design_of(tasks: Sequence[str], strata: Sequence[Sequence[str]]) -> Design:
    """Return the design of a draw from these tasks."""
    if not strata:
        return Design((len(tasks),))
    return Design(tuple(len(part) for part in parts_of(tasks, strata)), len(strata))


def size_of(commitment: Commitment, drawn: int | None, wanted: int, before: int) -> int:
    """Return k: the largest of what is committed, wanted, and drawn before.

    Raises UsageProblem when `drawn`, the value of --drawn, is less.
    """
    committed = commitment.policy.drawn
    if drawn is not None and drawn < max(committed, before):
        raise UsageProblem(
            f"--drawn {drawn} would lower the sample: {committed} tasks are committed"
            + (f", and {before} were drawn before" if before > committed else ""),
            "a sample can only be raised: pass a larger number, or leave out --drawn",
        )
    return max(committed, drawn or 0, wanted, before)


def probability(text: str, option: str) -> Fraction:
    """Return a probability exactly as it is written, such as 0.95 or 19/20.

    Raises UsageProblem, which names `option`, unless it is above 0 and at most 1.
    """
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(-1)
    if not 0 < found <= 1:
        raise UsageProblem(
            f"{option} {text!r} is not a probability", "pass a number above 0 and at most 1: 0.95"
        )
    return found
