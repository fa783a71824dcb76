"""How far an honest claim may lie from the rerun, measured on jittered copies of its embeddings.

Claim and rerun are each one draw of the numeric noise. Noise reaches a score in three ways, and
each asks for its own allowance; docs/tolerance.md has the measurements and the false alarms.

1. Single predictions near the border flip, about in proportion to the noise. Copies at a multiple
   of the noise flip more of them than claim and rerun differ by: the largest deviation seen in
   such stressed copies, times a margin, is allowed. Where most plain copies flip some, their spread
   is a measurement too, and the narrower of the two is allowed.
2. The solver stops a step earlier or later, or breaks exact ties otherwise: a few outcomes, each
   with many flips at once, some of them rare. Stressed copies reach the rare ones far more often,
   and the largest deviation is that of the farthest outcome.
3. A long fit ends elsewhere after any change, however small. Its score is then a fresh draw each
   time, and the spread over the copies gives the allowance: Student's t, with deviations taken from
   the rerun itself, so that a rerun which is an outlier widens it.

Of the second kind, what rounding of the loss decides is as rare with more noise as with less. The
harness names those outcomes itself: `halts` are the scores of every place where rounding may stop
a fit. A fit that any copy moved, or that float64 moves, gets what twice their deviation exceeds
that of its copies by.

A spread of zero proves nothing: what `UNSEEN` flips do to the score is added to all.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from geneb_ci.arithmetic.triple import Triple
from geneb_ci.audit.canonical import digest
from geneb_ci.audit.flip import Matrix, largest_effect
from geneb_ci.audit.outcome import Tolerance
from geneb_ci.audit.rescored import Copy, PerSeed, Scores
from geneb_ci.audit.student import quantile
from geneb_ci.audit.verdict import FORCE, METRICS, SLANT
from geneb_ci.errors import NothingChecked

FALSE_ALARM = 1e-3
"""Probability that an honest audit differs anywhere: shared out over all its comparisons."""
UNITS = {"float64": 1.4, "float32": 1.4, "float16": 1.05, "bfloat16": 1.05}
"""Noise of a plain copy, as `reference_harness/noise.py` defines and explains it."""
STRESS = 8.0
"""Multiple of the noise in stressed copies."""
COPIES_MIN = 16
"""Plain copies, and at least as many stressed ones."""
MANY = 32
"""Stressed copies from which the narrow margin holds."""
MARGIN_FEW, MARGIN_MANY = 2.0, 1.25
"""What the largest deviation of stressed copies is multiplied by. With `UNSEEN`, a single
comparison then alarms with probability 2e-7 and 4e-6 at worst, over all rates of single flips:
docs/tolerance.md has the table."""
UNSEEN = 2
"""Flips allowed though no copy showed them."""
SATURATED = 2.0
"""Stressed copies that flip fewer than this many times as many predictions as plain ones do, at
eight times the noise, do not flip in proportion: these are fits of the second or third kind."""
HALT_MARGIN = 2.0
"""What the deviation of a halt is multiplied by: the loss is as flat beyond its optimum as before
it, so a loss that cannot be told from the stop's lies up to twice as far off. Fits on word counts
were seen to end there."""


class Measured(NamedTuple):
    """One score of one task and regime, with its copies."""

    base: PerSeed
    matrices: Sequence[Matrix]
    """One confusion matrix a seed."""
    plain: Sequence[Copy]
    stressed: Sequence[Copy]
    halts: Sequence[Sequence[Scores]]
    """A list a fit."""
    one_fit: bool
    """Whether a single fit on all rows stands for every seed."""


def tolerance_digest() -> str:
    """Give the digest of all constants, for the policy in a commitment."""
    names = (
        "FALSE_ALARM", "UNITS", "STRESS", "COPIES_MIN", "MANY", "MARGIN_FEW", "MARGIN_MANY",
        "UNSEEN", "SATURATED", "HALT_MARGIN",
    )  # fmt: skip
    numbers = {name: repr(globals()[name]) for name in names}
    return digest({"rule": "2", "SLANT": repr(SLANT), "FORCE": repr(FORCE)} | numbers)


def level(comparisons: int) -> float:
    """Give the false alarm of one metric, of so many compared, after Bonferroni."""
    return FALSE_ALARM / comparisons


def tolerance(measured: Measured, alarm: float, width: Triple) -> Tolerance:
    """Give the tolerance of a score of record.

    `alarm` is the false alarm of one metric; `width` the half-width of the interval that the
    claimed value, as printed, stands for. Raises NothingChecked when there are too few copies.
    """
    _enough(measured.plain, "plain")
    if measured.stressed or not (measured.one_fit and _restless(measured.plain)):
        _enough(measured.stressed, "stressed")
    parts = {
        metric: max(_flips(measured, metric, alarm), _draws(measured, metric, alarm))
        + _unseen_halts(measured, metric)
        for metric in METRICS
    }
    return _tolerance(measured, parts, width, measured.plain)


def canonical_tolerance(measured: Measured, width: Triple) -> Tolerance:
    """Give the tolerance of a canonical score: an optimum has no draws of the third kind.

    Its copies are all stressed, and so are `flips` and `spread` of the result.
    """
    _enough(measured.stressed, "stressed")
    parts = {metric: _outcomes(measured, metric) for metric in METRICS}
    return _tolerance(measured, parts, width, measured.stressed)


def _enough(copies: Sequence[Copy], kind: str) -> None:
    if len(copies) < COPIES_MIN:
        raise NothingChecked(
            f"the rescoring has {len(copies)} {kind} copies, expected at least {COPIES_MIN}",
            f"run `geneb-harness rescore` with --copies {COPIES_MIN} or more",
        )


def _restless(copies: Sequence[Copy]) -> bool:
    """Whether more than half of the copies moved a prediction."""
    return 2 * sum(any(copy.flips) for copy in copies) > len(copies)


def _flips(measured: Measured, metric: str, alarm: float) -> float:
    """Give the allowance for flips in proportion and for rare outcomes, of a score of record.

    Single flips add up to a normal deviation. Its spread among stressed copies is that of plain
    ones times the root of eight where signs are random, more where they are not: then the spread of
    the plain copies themselves is the narrower measure.
    """
    farthest = _outcomes(measured, metric)
    if measured.one_fit or not _proportional(measured):
        return farthest
    every = range(len(measured.matrices))
    spread = _rms(_deviations(measured, measured.plain, metric, every))
    return min(farthest, math.sqrt(2) * quantile(alarm, len(measured.plain)) * spread)


def _proportional(measured: Measured) -> bool:
    """Whether most plain copies flip predictions, and stressed ones many times as many."""
    plain, stressed = (
        math.fsum(sum(copy.flips) for copy in copies) / len(copies)
        for copies in (measured.plain, measured.stressed)
    )
    return _restless(measured.plain) and stressed >= SATURATED * plain


def _outcomes(measured: Measured, metric: str) -> float:
    """Give the largest deviation of any copy, with its margin."""
    seeds = range(len(measured.matrices))
    return _farthest(measured, metric, seeds)


def _farthest(measured: Measured, metric: str, seeds: Sequence[int]) -> float:
    margin = MARGIN_MANY if len(measured.stressed) >= MANY else MARGIN_FEW
    copies = [*measured.plain, *measured.stressed]
    return margin * max(map(abs, _deviations(measured, copies, metric, seeds)), default=0.0)


def _unseen_halts(measured: Measured, metric: str) -> float:
    """Give how much farther off than in any copy the fits may stop, all of them at once."""
    base: list[float] = getattr(measured.base, metric)
    copies = [*measured.plain, *measured.stressed]
    excess = []
    for seed, stops in enumerate(measured.halts):
        moved = any(copy.flips[seed] for copy in copies)
        if stops and (moved or getattr(stops[0], metric) != base[seed]):
            seen = max(abs(getattr(copy.per_seed, metric)[seed] - base[seed]) for copy in copies)
            possible = max(abs(getattr(stop, metric) - base[seed]) for stop in stops)
            excess.append(max(0.0, HALT_MARGIN * possible - seen))
    return math.fsum(excess) / len(measured.halts) if excess else 0.0


def _draws(measured: Measured, metric: str, alarm: float) -> float:
    """Give the allowance for fits that end elsewhere each time.

    One fit on all rows always gets it; of few-shot fits those of seeds that behave so. Copies of
    such a fit are draws like the claim. Where stressed copies do not show that, the claim may
    differ by two draws of noise and the copies by one: hence the root of two.
    """
    if measured.one_fit:
        every = range(len(measured.matrices))
        spread = _rms(_deviations(measured, measured.plain, metric, every))
        return math.sqrt(2) * quantile(alarm, len(measured.plain)) * spread
    wild = [seed for seed in range(len(measured.matrices)) if _wild(measured, seed)]
    if not wild:
        return 0.0
    calm = [seed for seed in range(len(measured.matrices)) if seed not in wild]
    copies = [*measured.plain, *measured.stressed]
    spread = _rms(_deviations(measured, copies, metric, wild))
    return quantile(alarm, len(copies)) * spread + _farthest(measured, metric, calm)


def _wild(measured: Measured, seed: int) -> bool:
    """Whether most plain copies of a seed's fit end differently, and more noise changes little."""
    plain = [
        (copy.flips[seed], copy.per_seed.MCC[seed], copy.per_seed.F1[seed])
        for copy in measured.plain
    ]
    flips = math.fsum(one[0] for one in plain) / len(plain)
    stressed = math.fsum(copy.flips[seed] for copy in measured.stressed) / len(measured.stressed)
    return 2 * len(set(plain)) > len(plain) and stressed < SATURATED * flips


def _deviations(
    measured: Measured, copies: Sequence[Copy], metric: str, seeds: Sequence[int]
) -> list[float]:
    """Give how far each copy's mean over all seeds moves by what the given seeds do."""
    base: list[float] = getattr(measured.base, metric)
    return [
        math.fsum(getattr(copy.per_seed, metric)[seed] - base[seed] for seed in seeds) / len(base)
        for copy in copies
    ]


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values))


def _tolerance(
    measured: Measured, parts: dict[str, float], width: Triple, shown: Sequence[Copy]
) -> Tolerance:
    seeds = len(measured.matrices)
    fits = measured.matrices[:1] if measured.one_fit else measured.matrices
    effects = zip(*(largest_effect(matrix) for matrix in fits), strict=True)
    unseen = [UNSEEN * max(effect) / len(fits) for effect in effects]
    mcc, acc, f1 = (
        part + flips + half for part, flips, half in zip(parts.values(), unseen, width, strict=True)
    )
    deviations = _deviations(measured, shown, "MCC", range(seeds))
    middle = math.fsum(deviations) / len(deviations)
    return Tolerance(
        MCC=mcc,
        Acc=acc,
        F1=f1,
        copies=len(measured.plain) + len(measured.stressed),
        flips=math.fsum(sum(copy.flips) for copy in shown) / len(shown),
        spread=_rms([value - middle for value in deviations]),
    )
