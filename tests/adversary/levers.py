"""The forger's one search: how to divide his risk over all that he can do.

A lever is a kind of forgery. Its options say what each size of it raises, and how probably an audit
misses it. Defences against different levers look at different numbers, and the draw is one: so the
raises add up, and the probabilities multiply. The same search computes the bound, from levers whose
options are bounds.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from geneb_ci.audit.rerun.few_shot import (
    MARGIN,
    OTHERS,
    TESTS,
    Gain,
    few_shot_result,
    gains_over_other_fits,
)
from geneb_ci.audit.rerun.honesty import VARIANT_ALARM_QUANTILE, task_decisions, variant_result
from reference_harness.formats.rescored import Decisions
from tests.adversary.forger import (
    AUDITS,
    CAP,
    STEPS,
    TASKS,
    UNDETECTED,
    Cell,
    Numbers,
    best_forgery,
    bound,
    chances_of,
)

TRIALS = 80
"""Audits that a probability is measured with."""
HOPELESS = 40
"""Audits after which it counts as 0 if all found the forgery: one that 5 % miss is then so counted
in 13 % of cases."""
NONCE = "0" * 64


class Option(NamedTuple):
    """One size of a forgery."""

    raised: float
    """Mean raise of MCC over the tasks that are not capped."""
    missed: float
    """Probability that an audit does not find it."""
    text: str
    capped: float = 0.0
    """Share of the tasks that are raised by `CAP`, whatever else raises them."""

    def beside(self, raised: float) -> float:
        """Return the mean raise if other levers raise each task by `raised`."""
        return self.capped * CAP + (1 - self.capped) * min(raised + self.raised, CAP)


class Division(NamedTuple):
    """An option of each lever that is used."""

    raised: float
    missed: float
    options: tuple[str, ...]


HONEST = Division(0.0, 1.0, ())


def best_division(levers: Iterable[Sequence[Option]], missed: float = UNDETECTED) -> Division:
    """Return the division with the largest raise that an audit misses at least so often.

    It is exact, if the lever with capped tasks is the last one: of the divisions so far, those are
    kept that none excels in both.
    """
    front = [HONEST]
    for options in levers:
        divisions = [
            Division(
                option.beside(division.raised),
                division.missed * option.missed,
                (*division.options, option.text),
            )
            for division, option in itertools.product(front, options)
            if division.missed * option.missed >= missed
        ]
        front = _undominated([*front, *divisions])
    return max(front)


def _undominated(divisions: Iterable[Division]) -> list[Division]:
    """Return the divisions than which no other raises as much and is missed as often."""
    front: list[Division] = []
    for division in sorted(divisions, key=lambda division: (-division.missed, -division.raised)):
        if not front or division.raised > front[-1].raised:
            front.append(division)
    return front


COUNTS = (1, 2, 3, 5, 8, 10, 13, 16, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100)
"""Moved tasks, of `TASKS`, that are tried."""
DRAWN_MOVED = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100)
"""Moved tasks among the drawn ones for which the probability is measured; linear between."""
RARE = UNDETECTED / 5
"""Probability below which more moved tasks are not tried."""


class Mover(NamedTuple):
    """An extractor that moves training sequences of tasks whose labels it knows, and honest ones.

    Each has the decisions of the same tasks, those that were measured.
    """

    name: str
    honest: Sequence[Decisions]
    moved: Sequence[Decisions]

    def gain(self, regime: str) -> float:
        """Return the mean by which a moved task scores more in a regime, at most `CAP` in each."""
        raised = [
            min(score_of(moved, regime) - score_of(honest, regime), CAP)
            for honest, moved in zip(self.honest, self.moved, strict=True)
        ]
        return float(np.mean(raised))

    def missed(self, drawn: int, count: int, varied: int, trials: int = 0) -> float:
        """Return the share of audits that miss `count` moved tasks among so many drawn ones.

        Of the drawn tasks, `varied` have variants.
        """
        rng = random.Random(f"{self.name} {drawn} {count}")
        passed, trials = 0, trials or TRIALS
        for trial in range(trials):
            if not passed and trial == HOPELESS:
                return 0.0
            varies = set(rng.sample(range(drawn), varied))
            tasks = [
                seen(rng.choice(self.moved if index < count else self.honest), index in varies)
                for index in range(drawn)
            ]
            passed += passes(tasks)
        return passed / trials

    def rates(self, drawn: int, varied: int) -> list[float]:
        """Return the probability that an audit misses 0 to `drawn` moved tasks among the drawn.

        It misses an honest extractor.
        """
        counts, measured = [0], [1.0]
        for count in (*(count for count in DRAWN_MOVED if count < drawn), drawn):
            counts.append(count)
            measured.append(self.missed(drawn, count, varied))
            if measured[-1] < RARE:
                break
        return [float(np.interp(count, counts, measured, right=0)) for count in range(drawn + 1)]


def seen(decisions: Decisions, is_varied: bool) -> Decisions:
    """Return the decisions that an audit sees of a task, whose training sequences it may vary."""
    return decisions if is_varied else decisions.model_copy(update={"varied": {}, "training": None})


def score_of(decisions: Decisions, regime: str) -> float:
    """Return the mean MCC of the published fits of a regime."""
    if regime in decisions.few_shot:
        return float(np.mean(decisions.few_shot[regime].published))
    return decisions.public.MCC


def few_shot_of(tasks: Sequence[Decisions]) -> list[Gain]:
    """Return the gains of few-shot probes over tasks, each of which has a name of its own."""
    named = {f"{number}": decisions for number, decisions in enumerate(tasks)}
    result = few_shot_result(
        {name: decisions.few_shot for name, decisions in named.items()},
        {name: decisions.varied for name, decisions in named.items()},
    )
    assert result is not None
    return list(gains_over_other_fits(result))


def passes(tasks: Sequence[Decisions]) -> bool:
    """Whether neither variants nor few-shot probes flag an audit of these tasks."""
    if any(gain.is_flagged for gain in few_shot_of(tasks)):
        return False
    decided = {f"{number}": task_decisions(decisions) for number, decisions in enumerate(tasks)}
    return not variant_result(decided, NONCE, len(tasks), reverse=False).memorised


def moved_options(name: str, gain: float, rates: Sequence[float]) -> list[Option]:
    """Return an option for each number of moved tasks, each of which scores `gain` more.

    `rates` has the probability that an audit misses each number of them among the drawn tasks.
    """
    drawn = len(rates) - 1
    return [
        Option(count * gain / TASKS, missed, f"{count} tasks {name}")
        for count in COUNTS
        if (missed := float(hit_probabilities(count, drawn) @ np.array(rates))) > 0
    ]


def hit_probabilities(count: int, drawn: int) -> Numbers:
    """Return the (drawn + 1,) probabilities that 0 to `drawn` of `count` tasks are drawn."""
    ways = [
        comb(count, hits) * comb(TASKS - count, drawn - hits) / comb(TASKS, drawn)
        for hits in range(drawn + 1)
    ]
    return np.array(ways)


MISSED = (0.1, 0.25, 0.5, 0.9)
"""Numbers for which the best forgery of record scores is looked for, beside the least."""
BOUNDED = tuple(np.geomspace(UNDETECTED, 1, 16).tolist())
"""Numbers for which a bound is computed, which holds up to the next one."""


def record_options(
    pool: Sequence[Cell], drawn: int, undetected: float = UNDETECTED
) -> list[Option]:
    """Return the best forgeries of record scores that are missed at least so often, in tasks that
    are not drawn and within the tolerances."""
    options = []
    for missed in (undetected, *MISSED):
        best = best_forgery(pool, drawn, missed)
        text = f"claims of {best.elsewhere} tasks by {CAP:g}, of others by {best.within:.4f}"
        options.append(Option(best.within, missed, text, best.elsewhere / TASKS))
    return options


def undetected_each(draws: int) -> float:
    """Return how often each of several draws has to miss a forgery, so that one does with
    `UNDETECTED`.

    Each needs a row of its own: other weights, and other claims.
    """
    return float(1 - (1 - UNDETECTED) ** (1 / draws))


def record_bounds(pool: Sequence[Cell], drawn: int) -> list[Option]:
    """Return the bounds of the same."""
    return [
        Option(bound(pool, drawn, missed), above, "record scores")
        for missed, above in itertools.pairwise(BOUNDED)
    ]


class Room(NamedTuple):
    """The mean raise that each of n audits lets pass, and the standard error of its mean gain."""

    raised: Numbers
    """(n,) mean raise over the drawn tasks, up to which an honest mean passes."""
    deviation: Numbers
    """(n,) standard error of the mean gain."""


def room_of(honest: Sequence[Decisions], drawn: int, regime: str, beside: str) -> Room:
    """Return what audits of so many of these tasks leave, as if moved tasks varied like honest
    ones."""
    rng = random.Random(f"{drawn} {regime} {beside}")

    def mean_gain(tasks: Sequence[Decisions]) -> Gain:
        return next(
            gain
            for gain in few_shot_of(tasks)
            if (gain.regime, gain.other_fits, gain.task) == (regime, beside, "")
        )

    expected = mean_gain(honest).gain
    limits = np.array(
        [mean_gain([rng.choice(honest) for _ in range(drawn)]).limit for _ in range(AUDITS)]
    )
    return Room(limits - expected, (limits - MARGIN) / VARIANT_ALARM_QUANTILE)


def moved_bounds(honest: Sequence[Decisions], drawn: int, regime: str) -> list[Option]:
    """Return the bounds of what moved training sequences raise the mean of a few-shot regime by.

    Whoever moves all training sequences has to pass the limit beside draws of test sequences;
    whoever moves those of the published probes alone, that beside other draws. The mean over the
    drawn tasks passes if it is below the limit, or by luck, which Cantelli's inequality bounds. No
    task is raised beyond `CAP`.
    """
    rooms = [room_of(honest, drawn, regime, beside) for beside in (OTHERS, TESTS)]
    bounds = []
    for missed, above in itertools.pairwise(BOUNDED):
        raised = max(
            count * _largest_gain(count, drawn, room, missed) / TASKS
            for room in rooms
            for count in COUNTS
        )
        bounds.append(Option(raised, above, "moved training sequences"))
    return bounds


def _largest_gain(count: int, drawn: int, room: Room, missed: float) -> float:
    """Return the largest gain of each of `count` moved tasks, at most `CAP`, that passes so
    often."""
    probabilities = hit_probabilities(count, drawn)

    def chance(gain: float) -> float:
        means = gain * np.arange(drawn + 1)[:, None] / drawn
        chances = chances_of(means - room.raised, room.deviation)
        return float(probabilities @ chances.mean(axis=1))

    if chance(CAP) >= missed:
        return CAP
    low, high = 0.0, CAP
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) >= missed else (low, middle)
    return high
