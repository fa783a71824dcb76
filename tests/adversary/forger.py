"""A forger who knows every rule: the largest mean raise of MCC that an audit does not find.

The cells are measured: tolerance, centre, deviation and step of real embeddings, and where honest
claims lie, each of which is another draw of the noise. On top of such an honest claim the forger
raises every cell, in proportion to one of several weights and never beyond the part of the
tolerance that the noise leaves. On tasks that are not drawn he raises as he likes, at most `CAP`.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.audit.compare.joint import ALARM, ClaimDifference, joint_test, sum_limit
from geneb_ci.audit.sampling.design import miss_probability

Numbers = npt.NDArray[np.float64]
TASKS = 100
CAP = 0.1
"""Raise of a task, in every regime: docs/research/plausibility.md has what larger ones draw."""
UNDETECTED = 0.05
"""A raise counts as undetected when an audit misses it with this probability: what is larger is
found with at least 95 %."""
TESTS = 9
"""Joint tests of an audit: three regimes, three metrics."""
TRIALS = 300
STEPS = 12
"""Halvings of the search for the largest raise."""
CONFIRMED = 5
"""Times as many trials confirm what a search found."""
CLOSER = 0.97
RESOLUTION = 0.2
"""Largest raise in the mean that is looked for."""


class Cell(NamedTuple):
    """One cell as an audit measured it, in MCC."""

    tolerance: float
    deviation: float
    step: float
    centre: float
    shifts: tuple[float, ...]
    """Differences of honest claims from the rerun, each as probable as another."""

    def honest(self, rng: random.Random) -> float:
        """Draw claimed - rescored of an honest claim."""
        return rng.choice(self.shifts)


WEIGHTS: dict[str, Callable[[Cell], float]] = {
    "alike": lambda _: 1.0,
    "by tolerance": lambda cell: cell.tolerance,
    "by deviation": lambda cell: cell.deviation + 1e-9,
    "widest first": lambda cell: cell.tolerance**6 + 1e-30,
}


def raises(cells: Sequence[Cell], mean: float, weight: Callable[[Cell], float]) -> list[float]:
    """Divide a mean raise over the cells by weight, none beyond its tolerance less three deviations
    of its noise; less than the mean where the cells do not hold it."""
    room = [max(0.0, cell.tolerance - 3 * cell.deviation) for cell in cells]
    arguments = [0.0] * len(cells)
    left, total = set(range(len(cells))), mean * len(cells)
    while left and total > 1e-12:
        share = math.fsum(weight(cells[i]) for i in left)
        expected = {i: total * weight(cells[i]) / share for i in left}
        full = {i for i in left if arguments[i] + expected[i] >= room[i]}
        for i in full or left:
            more = min(expected[i], room[i] - arguments[i])
            arguments[i] += more
            total -= more
        left -= full
        if not full:
            break
    return arguments


def passes(cells: Sequence[Cell], raised: Sequence[float], rng: random.Random) -> bool:
    """Whether an audit of these cells finds nothing, with fresh noise."""
    claims_tried = [cell.honest(rng) + more for cell, more in zip(cells, raised, strict=True)]
    if any(abs(x) > cell.tolerance for x, cell in zip(claims_tried, cells, strict=True)):
        return False
    differences = [
        ClaimDifference(x, cell.deviation, cell.step, cell.centre)
        for x, cell in zip(claims_tried, cells, strict=True)
    ]
    return not joint_test(differences, TESTS).is_significant


def pass_rate(
    pool: Sequence[Cell],
    drawn: int,
    mean: float,
    weight: Callable[[Cell], float],
    seed: int,
    trials: int = 0,
) -> tuple[float, float]:
    """Return the share of audits that pass, and the mean raise that they hold."""
    rng = random.Random(seed)
    passed, held = 0, 0.0
    trials = trials or TRIALS
    for _ in range(trials):
        cells = rng.choices(pool, k=drawn)
        raised = raises(cells, mean, weight)
        held += math.fsum(raised) / drawn
        passed += passes(cells, raised, rng)
    return passed / trials, held / trials


def largest_within(pool: Sequence[Cell], drawn: int, passing: float) -> tuple[float, str]:
    """Return the largest mean raise within the tolerances that passes at least so often, and how
    it is divided over the cells."""
    best = (0.0, "alike")
    for name, weight in WEIGHTS.items():
        low, high = best[0], RESOLUTION
        if low and pass_rate(pool, drawn, low, weight, STEPS)[0] < passing:
            continue  # no better than another division
        for step in range(STEPS):
            middle = (low + high) / 2
            rate, _ = pass_rate(pool, drawn, middle, weight, step)
            low, high = (middle, high) if rate >= passing else (low, middle)
        best = max(best, (confirmed(pool, drawn, passing, low, weight), name))
    return best


def confirmed(
    pool: Sequence[Cell],
    drawn: int,
    passing: float,
    mean: float,
    weight: Callable[[Cell], float],
) -> float:
    """Return a raise that passes so often in trials that were not searched, `mean` at most.

    The best of many searches by few trials is lucky.
    """
    while mean > RESOLUTION / 2**STEPS:
        rate, held = pass_rate(pool, drawn, mean, weight, STEPS + 1, CONFIRMED * TRIALS)
        if rate >= passing:
            return held
        mean *= CLOSER
    return 0.0


AUDITS = 200
"""Draws of cells that a bound is computed over."""


class Limit(NamedTuple):
    """What the joint test of one audit allows, in the mean of its cells."""

    largest: float
    """Raise of an honest claim on its centre that the test allows."""
    deviation: float
    """Of the mean of honest claims."""


def limits_of(pool: Sequence[Cell], drawn: int) -> list[Limit]:
    """Return the limits of audits of so many cells of a pool."""
    rng = random.Random(drawn)
    limits = []
    for _ in range(AUDITS):
        cells = rng.choices(pool, k=drawn)
        differences = [
            ClaimDifference(0.0, cell.deviation, cell.step, cell.centre) for cell in cells
        ]
        centre = abs(math.fsum(cell.centre for cell in cells))
        limits.append(
            Limit(
                (sum_limit(differences, ALARM / TESTS) + centre) / drawn,
                math.hypot(*(cell.deviation for cell in cells)) / drawn,
            )
        )
    return limits


def bound_within(limits: Sequence[Limit], passing: float) -> float:
    """Return the largest mean raise that the sum of differences lets pass at least so often."""
    largest, deviation = np.array(limits).T
    low, high = 0.0, RESOLUTION
    for _ in range(30):
        middle = (low + high) / 2
        share = chances_of(middle - largest, deviation).mean()
        low, high = (middle, high) if share >= passing else (low, middle)
    return high


def chances_of(luck: Numbers, deviation: Numbers) -> Numbers:
    """Return the largest probabilities of so much luck, by Cantelli's inequality.

    It holds for any distribution: honest differences are rare flips, and far from normal.
    """
    with np.errstate(invalid="ignore"):
        return np.where(luck <= 0, 1.0, deviation**2 / (deviation**2 + luck**2))


def bound(pool: Sequence[Cell], drawn: int, undetected: float = UNDETECTED) -> float:
    """Return the largest mean raise over all tasks that draw and tolerances leave, if an audit
    misses it at least so often.

    It holds for any division over cells whose honest differences have the deviation that the audit
    measured: no cell is looked at alone. Tasks that are not drawn are raised by `CAP` at most.
    """
    limits = limits_of(pool, drawn)
    return max(
        (number * CAP + (TASKS - number) * bound_within(limits, undetected / missing)) / TASKS
        for number in range(TASKS - drawn + 1)
        if (missing := float(miss_probability(TASKS, number, drawn))) >= undetected
    )


class Best(NamedTuple):
    """The best forgery that is found."""

    raised: float
    """Mean raise over all tasks."""
    within: float
    """Mean raise of the cells within their tolerances."""
    division: str
    elsewhere: int
    """Tasks raised by `CAP`, in the hope that none is drawn."""


def best_forgery(pool: Sequence[Cell], drawn: int, undetected: float = UNDETECTED) -> Best:
    """Return the forgery of record scores with the largest mean raise that passes so often."""
    best = Best(0.0, 0.0, "alike", 0)
    for number in range(0, TASKS - drawn + 1, 1 if drawn < TASKS else TASKS):
        missing = float(miss_probability(TASKS, number, drawn))
        if missing < undetected:
            break
        is_last = float(miss_probability(TASKS, number + 1, drawn)) < undetected
        if number % 5 and not is_last:
            continue
        within, division = largest_within(pool, drawn, undetected / missing)
        raised = (number * CAP + (TASKS - number) * within) / TASKS
        best = max(best, Best(raised, within, division, number))
    return best
