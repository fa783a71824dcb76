"""Tolerance: how far an honest claim may differ from the rerun, measured on jittered copies."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from geneb_ci.audit.canonical import digest
from geneb_ci.audit.compare import joint
from geneb_ci.audit.compare.outcome import (
    INFORMATIVE_TOLERANCE,
    METRICS,
    EachMetric,
    HonestCentre,
    HonestDifference,
    Tolerance,
)
from geneb_ci.audit.rerun import honesty as embedding_checks
from geneb_ci.common.errors import NothingChecked
from geneb_ci.statistics.metrics import Matrix, Triple, largest_effect
from reference_harness.formats.base import Scores
from reference_harness.formats.rescored import JitteredCopy, most_copies_change
from reference_harness.formats.run_record import PerSeed


@functools.cache
def quantile(alarm_of_one: float, freedom: int) -> float:
    """Return t with P(|T| > t) = level, for Student's t.

    Raises ValueError for a level outside 0 to 1, or no degree of freedom.
    """
    # 0.4 s to import: only the comparison of an audit, which reruns tasks for minutes, pays it.
    from scipy.special import stdtrit

    if not 0 < alarm_of_one < 1 or freedom < 1:
        msg = f"no t for level {alarm_of_one} and {freedom} degrees of freedom"
        raise ValueError(msg)
    return float(-stdtrit(freedom, alarm_of_one / 2))


FALSE_ALARM = 1e-3
"""Probability that an honest audit differs anywhere: shared out over all its comparisons."""
UNITS = {"float64": 1.4, "float32": 1.4, "float16": 1.05, "bfloat16": 1.05}
"""Noise of a plain copy, as `reference_harness/noise.py` defines and explains it."""
STRESS = 8.0
"""Multiple of the noise in stressed copies."""
COPIES_MIN = 16
"""Plain copies, and at least as many stressed ones."""
MANY_COPIES = 32
"""Stressed copies from which the narrow margin holds."""
MARGIN_FEW, MARGIN_MANY = 2.0, 1.25
"""The factor of the largest deviation of stressed copies. With `UNSEEN`, a single
comparison then alarms with probability 2e-7 and 4e-6 at worst, over all rates of single flips:
docs/research/tolerance.md has the table."""
UNSEEN = 2
"""Flips allowed though no copy showed them."""
SATURATED = 2.0
"""Stressed copies that flip fewer than this many times as many predictions as plain ones do, at
eight times the noise, do not flip in proportion: these are fits of the second or third kind."""
STOP_MARGIN = 2.0
"""Factor on the deviation at a stopping point: the loss is as flat beyond its optimum as before it,
so an equal loss may be up to twice as far off. Fits on word counts were measured to end there."""


STOP_SHARE = 0.05
"""Probability that an honest fit ends at a stopping point that no copy showed: about one embedding
in fifty of word counts did."""
GROWTH = math.sqrt(2)
"""By how much the variance of single flips grows with sqrt(2) times the noise."""


class MeasuredScore(NamedTuple):
    """One score of one task and regime, with its copies."""

    base: PerSeed
    matrices: Sequence[Matrix]
    """One confusion matrix a seed."""
    plain: Sequence[JitteredCopy]
    stressed: Sequence[JitteredCopy]
    stops: Sequence[Sequence[Scores]]
    """Scores at the stopping points of each fit."""
    one_fit: bool
    """Whether a single fit on all rows is that of every seed."""


def tolerance_digest() -> str:
    """Return the digest of all constants, for the policy in a commitment."""
    names = (
        "FALSE_ALARM", "UNITS", "STRESS", "COPIES_MIN", "MARGIN_FEW", "MARGIN_MANY",
        "UNSEEN", "SATURATED", "STOP_SHARE", "GROWTH",
    )  # fmt: skip
    numbers = {name: repr(globals()[name]) for name in names}
    # These keys are part of the digest in every commitment that was published.
    other_files = {
        "JOINT": repr((joint.ALARM, joint.FAR_DEVIATIONS, joint.FAR_SHARE, joint.UNSEEN_RATE)),
        "REPRODUCIBLE": repr((embedding_checks.REPRODUCIBLE, embedding_checks.PAIRS_MIN)),
        "MEMORISED": repr(
            (
                embedding_checks.ALARM,
                embedding_checks.VARIANT_ALARM,
                embedding_checks.VARIANT_MARGIN,
                embedding_checks.TRAINING_MARGIN,
                embedding_checks.FRESH_MARGIN,
                embedding_checks.VARIED_IN_ALL,
                embedding_checks.VARIED_MIN,
            )
        ),
        "FORCE": repr(INFORMATIVE_TOLERANCE),
        "MANY": repr(MANY_COPIES),
        "HALT_MARGIN": repr(STOP_MARGIN),
    }
    return digest({"rule": "4"} | other_files | numbers)


def alarm_of_one(comparisons: int) -> float:
    """Return the false-alarm rate of one of so many compared metrics, after Bonferroni."""
    return FALSE_ALARM / comparisons


def tolerance(measured: MeasuredScore, alarm: float, width: Triple) -> Tolerance:
    """Return the tolerance of a score of record.

    `alarm` is the false alarm of one metric; `width` the half-width of the interval that the
    claimed value, as printed, represents. Raises NothingChecked when there are too few copies.
    """
    _check_copies(measured.plain, "plain")
    if measured.stressed or not (measured.one_fit and most_copies_change(measured.plain)):
        _check_copies(measured.stressed, "stressed")
    parts = {
        metric: max(_flips(measured, metric, alarm), _draws(measured, metric, alarm))
        + _unseen_stops(measured, metric)
        for metric in METRICS
    }
    return _tolerance(measured, parts, width)


def _check_copies(copies: Sequence[JitteredCopy], kind: str) -> None:
    if len(copies) < COPIES_MIN:
        raise NothingChecked(
            f"the rescoring has {len(copies)} {kind} copies, expected at least {COPIES_MIN}",
            f"run `geneb-harness rescore` with --copies {COPIES_MIN} or more",
        )


def _flips(measured: MeasuredScore, metric: str, alarm: float) -> float:
    """Return the allowance for flips in proportion and for rare outcomes, of a score of record.

    Single flips add up to a normal deviation. Its spread among stressed copies is that of plain
    ones times the root of eight where signs are random, more where they are not: then the spread of
    the plain copies themselves is the narrower measure.
    """
    farthest = _outcomes(measured, metric)
    if measured.one_fit or not _flips_grow(measured):
        return farthest
    all_matrices = range(len(measured.matrices))
    spread = _rms(_deviations(measured, measured.plain, metric, all_matrices))
    return min(farthest, math.sqrt(2) * quantile(alarm, len(measured.plain)) * spread)


def _flips_grow(measured: MeasuredScore) -> bool:
    """Whether flips grow with the noise: most plain copies flip, stressed ones far more."""
    plain, stressed = (
        math.fsum(sum(copy.flips) for copy in copies) / len(copies)
        for copies in (measured.plain, measured.stressed)
    )
    return most_copies_change(measured.plain) and stressed >= SATURATED * plain


def _outcomes(measured: MeasuredScore, metric: str) -> float:
    """Return the largest deviation of any copy, with its margin."""
    seeds = range(len(measured.matrices))
    return _farthest(measured, metric, seeds)


def _farthest(measured: MeasuredScore, metric: str, seeds: Sequence[int]) -> float:
    margin = MARGIN_MANY if len(measured.stressed) >= MANY_COPIES else MARGIN_FEW
    copies = [*measured.plain, *measured.stressed]
    return margin * max(map(abs, _deviations(measured, copies, metric, seeds)))


def _unseen_stops(measured: MeasuredScore, metric: str) -> float:
    """Return the mean over the fits of max(0, STOP_MARGIN |possible stop| - |copies seen|)."""
    return math.fsum(_excess(measured, metric))


def _excess(measured: MeasuredScore, metric: str) -> list[float]:
    """Return the contribution of each fit to the excess: a share of a mean over all fits.

    Only fits count that a copy moved, or that end elsewhere in float64.
    """
    base: list[float] = getattr(measured.base, metric)
    copies = [*measured.plain, *measured.stressed]
    excess = []
    for seed, stops in enumerate(measured.stops):
        moved = any(copy.flips[seed] for copy in copies)
        if stops and (moved or getattr(stops[0], metric) != base[seed]):
            largest = max(abs(getattr(copy.per_seed, metric)[seed] - base[seed]) for copy in copies)
            possible = max(abs(getattr(stop, metric) - base[seed]) for stop in stops)
            excess.append(max(0.0, STOP_MARGIN * possible - largest) / len(measured.stops))
    return excess


def _draws(measured: MeasuredScore, metric: str, alarm: float) -> float:
    """Return the allowance for unstable fits, which end elsewhere each time.

    One fit on all rows always gets it; of few-shot fits those of unstable seeds. Copies of such a
    fit are draws like the claim. Where stressed copies do not show that, the claim may differ by
    two draws of noise and the copies by one: hence the root of two.
    """
    if measured.one_fit:
        all_matrices = range(len(measured.matrices))
        spread = _rms(_deviations(measured, measured.plain, metric, all_matrices))
        return math.sqrt(2) * quantile(alarm, len(measured.plain)) * spread
    seeds = range(len(measured.matrices))
    unstable = [seed for seed in seeds if _is_unstable(measured, seed)]
    if not unstable:
        return 0.0
    stable = [seed for seed in seeds if seed not in unstable]
    copies = [*measured.plain, *measured.stressed]
    spread = _rms(_deviations(measured, copies, metric, unstable))
    return quantile(alarm, len(copies)) * spread + _farthest(measured, metric, stable)


def _is_unstable(measured: MeasuredScore, seed: int) -> bool:
    """Whether most plain copies of a seed's fit end differently, and more noise hardly more so."""
    plain = [
        (copy.flips[seed], copy.per_seed.MCC[seed], copy.per_seed.F1[seed])
        for copy in measured.plain
    ]
    flips = math.fsum(outcome[0] for outcome in plain) / len(plain)
    stressed = math.fsum(copy.flips[seed] for copy in measured.stressed) / len(measured.stressed)
    return 2 * len(set(plain)) > len(plain) and stressed < SATURATED * flips


def _deviations(
    measured: MeasuredScore, copies: Sequence[JitteredCopy], metric: str, seeds: Sequence[int]
) -> list[float]:
    """Return the change of each copy's mean over all seeds that the given seeds cause."""
    base: list[float] = getattr(measured.base, metric)
    return [
        math.fsum(getattr(copy.per_seed, metric)[seed] - base[seed] for seed in seeds) / len(base)
        for copy in copies
    ]


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values))


def _honest(measured: MeasuredScore, steps: Sequence[float], width: Triple) -> HonestDifference:
    """Return how an honest claim differs from the rerun.

    The rerun is given, and its copies lie about a centre of their own: many begin with ties that
    noise breaks, or end at another stop. Claim and rerun both have noise, so the claim is one more
    copy at sqrt(2) times the noise. By how much that spreads wider is between what plain and
    stressed copies show: variance is as a power of the noise. Single flips of stressed copies alone
    are so many times more, as there is noise. A claim as printed is rounded to a width.
    """
    excess = {metric: _excess(measured, metric) for metric in METRICS}
    centres, deviations = [], []
    for metric, half in zip(METRICS, width, strict=True):
        plain, stressed = (
            _deviations(measured, copies, metric, range(len(measured.matrices)))
            for copies in (measured.plain, measured.stressed)
        )
        centres.append(math.fsum(plain) / len(plain))
        stops = math.fsum(value * value for value in excess[metric])
        square = claim_variance(plain, stressed) + half * half / 3 + STOP_SHARE * stops
        deviations.append(math.sqrt(square))
    most = [max(step, *excess[metric], 0.0) for metric, step in zip(METRICS, steps, strict=True)]
    return HonestDifference(
        deviation=_each_metric(deviations),
        step=_each_metric(most),
        centre=HonestCentre.model_validate(_by_metric(centres)),
    )


def claim_variance(plain: Sequence[float], stressed: Sequence[float]) -> float:
    """Return the variance of a claim about the centre of plain copies, without rare outcomes."""
    plain_variance, stressed_variance = _variance(plain), _variance(stressed) if stressed else None
    if stressed_variance is None:
        return GROWTH * plain_variance * (1 + 1 / len(plain))
    times = min(max(stressed_variance / plain_variance, 1.0), STRESS**2) if plain_variance else 1.0
    wider = math.pow(times, math.log(GROWTH) / math.log(STRESS))
    return max(wider * plain_variance, GROWTH * stressed_variance / STRESS) * (1 + 1 / len(plain))


def _variance(values: Sequence[float]) -> float:
    middle = math.fsum(values) / len(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


def _tolerance(
    measured: MeasuredScore,
    parts: dict[str, float],
    width: Triple,
) -> Tolerance:
    seeds = len(measured.matrices)
    fits = measured.matrices[:1] if measured.one_fit else measured.matrices
    effects = zip(*(largest_effect(matrix) for matrix in fits), strict=True)
    steps = [max(effect) / len(fits) for effect in effects]
    unseen = [UNSEEN * step for step in steps]
    mcc, acc, f1 = (
        part + flips + half for part, flips, half in zip(parts.values(), unseen, width, strict=True)
    )
    shifts = _deviations(measured, measured.plain, "MCC", range(seeds))
    middle = math.fsum(shifts) / len(shifts)
    return Tolerance(
        MCC=mcc,
        Acc=acc,
        F1=f1,
        copies=len(measured.plain) + len(measured.stressed),
        flips=math.fsum(sum(copy.flips) for copy in measured.plain) / len(measured.plain),
        spread=_rms([value - middle for value in shifts]),
        honest=_honest(measured, steps, width),
    )


def _each_metric(values: Sequence[float]) -> EachMetric:
    return EachMetric.model_validate(_by_metric(values))


def _by_metric(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(METRICS, values, strict=True))
