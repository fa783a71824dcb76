"""Tolerance: how far an honest claim may differ from the rerun, measured on jittered copies."""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from geneb_ci.audit import embedding_checks, outcome
from geneb_ci.audit.canonical import digest
from geneb_ci.audit.outcome import (
    INFORMATIVE_TOLERANCE,
    METRICS,
    EachMetric,
    Honest,
    Tolerance,
)
from geneb_ci.audit.rescored import RescoredCopy, RescoredSeeds
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.types import Scores
from geneb_ci.statistics.metrics import Triple

Matrix = Sequence[Sequence[int]]


class _Sums(NamedTuple):
    """The sums that MCC and accuracy are made of."""

    total: int
    right: int
    chance: int
    """Sum over the classes of its true count times its predicted count."""
    true_squares: int
    predicted_squares: int


def largest_effect(matrix: Matrix) -> Triple:
    """Return how far one changed prediction can move each metric of a (c, c) matrix.

    Row the true class, column the predicted one; definitions as in scikit-learn 1.9: MCC after
    Gorodkin, 0 where a margin is one class only; macro-F1 over the classes that occur.
    """
    true = [sum(row) for row in matrix]
    predicted = [sum(column) for column in zip(*matrix, strict=True)]
    sums = _Sums(
        total=sum(true),
        right=sum(matrix[k][k] for k in range(len(matrix))),
        chance=sum(t * p for t, p in zip(true, predicted, strict=True)),
        true_squares=sum(t * t for t in true),
        predicted_squares=sum(p * p for p in predicted),
    )
    terms = [_f1(matrix[k][k], true[k] + predicted[k]) for k in range(len(matrix))]
    mcc, f1 = _mcc(sums), _mean(terms)
    most_mcc = most_f1 = 0.0
    for row, old, new in _moves(matrix):
        moved = _moved(sums, true, predicted, row, old, new)
        most_mcc = max(most_mcc, abs(_mcc(moved) - mcc))
        after = list(terms)
        right_old = matrix[old][old] - (row == old)
        right_new = matrix[new][new] + (row == new)
        after[old] = _f1(right_old, true[old] + predicted[old] - 1)
        after[new] = _f1(right_new, true[new] + predicted[new] + 1)
        most_f1 = max(most_f1, abs(_mean(after) - f1))
    return Triple(most_mcc, 1 / sums.total, most_f1)


def _moves(matrix: Matrix) -> Iterator[tuple[int, int, int]]:
    """Yield (true class, predicted class, other predicted class) of every possible change."""
    classes = range(len(matrix))
    for row in classes:
        for old in classes:
            if matrix[row][old]:
                yield from ((row, old, new) for new in classes if new != old)


def _moved(  # one argument a part of the change
    sums: _Sums, true: Sequence[int], predicted: Sequence[int], row: int, old: int, new: int
) -> _Sums:
    return sums._replace(
        right=sums.right - (row == old) + (row == new),
        chance=sums.chance - true[old] + true[new],
        predicted_squares=sums.predicted_squares + 2 * (predicted[new] - predicted[old]) + 2,
    )


def _mcc(sums: _Sums) -> float:
    square = sums.total * sums.total
    spread = (square - sums.predicted_squares) * (square - sums.true_squares)
    return (sums.right * sums.total - sums.chance) / math.sqrt(spread) if spread else 0.0


def _f1(right: int, both: int) -> float | None:
    """Return F1 of a class from its right predictions and the sum of its two margins."""
    return 2 * right / both if both else None


def _mean(terms: Sequence[float | None]) -> float:
    present = [term for term in terms if term is not None]
    return math.fsum(present) / len(present)


@functools.cache
def quantile(level: float, freedom: int) -> float:
    """Return t with P(|T| > t) = level, for Student's t.

    Raises ValueError for a level outside 0 to 1, or no degree of freedom.
    """
    # 0.4 s to import: only the comparison of an audit, which reruns tasks for minutes, pays it.
    from scipy.special import stdtrit  # noqa: PLC0415

    if not 0 < level < 1 or freedom < 1:
        msg = f"no t for level {level} and {freedom} degrees of freedom"
        raise ValueError(msg)
    return float(-stdtrit(freedom, level / 2))


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
STOP_MARGIN = 2.0
"""Factor on the deviation at a stopping point: the loss is as flat beyond its optimum as before it,
so an equal loss may be up to twice as far off. Fits on word counts were measured to end there."""


STOP_SHARE = 0.05
"""Probability that an honest fit ends at a stopping point that no copy showed: about one embedding
in fifty of word counts did. It is part of the deviation of a cell, not of its steps."""


class Measured(NamedTuple):
    """One score of one task and regime, with its copies."""

    base: RescoredSeeds
    matrices: Sequence[Matrix]
    """One confusion matrix a seed."""
    plain: Sequence[RescoredCopy]
    stressed: Sequence[RescoredCopy]
    stops: Sequence[Sequence[Scores]]
    """Scores at the stopping points of each fit."""
    one_fit: bool
    """Whether a single fit on all rows is that of every seed."""


def tolerance_digest() -> str:
    """Return the digest of all constants, for the policy in a commitment."""
    names = (
        "FALSE_ALARM", "UNITS", "STRESS", "COPIES_MIN", "MANY", "MARGIN_FEW", "MARGIN_MANY",
        "UNSEEN", "SATURATED", "STOP_SHARE"     )  # fmt: skip
    numbers = {name: repr(globals()[name]) for name in names}
    # These keys are part of the digest in every commitment that was published.
    others = {
        "JOINT": repr((outcome.ALARM, outcome.FAR, outcome.FAR_SHARE)),
        "REPRODUCIBLE": repr((embedding_checks.REPRODUCIBLE, embedding_checks.PAIRS_MIN)),
        "MEMORISED": repr(
            (
                embedding_checks.ALARM,
                embedding_checks.VARIANT_ALARM,
                embedding_checks.VARIANT_MARGIN,
                embedding_checks.TRAINING_MARGIN,
                embedding_checks.FRESH_MARGIN,
                embedding_checks.ROWS_WANTED,
                embedding_checks.ROWS_MIN,
            )
        ),
        "FORCE": repr(INFORMATIVE_TOLERANCE),
        "HALT_MARGIN": repr(STOP_MARGIN),
    }
    return digest({"rule": "3"} | others | numbers)


def level(comparisons: int) -> float:
    """Return the false alarm of one metric, of so many compared, after Bonferroni."""
    return FALSE_ALARM / comparisons


def tolerance(measured: Measured, alarm: float, width: Triple) -> Tolerance:
    """Return the tolerance of a score of record.

    `alarm` is the false alarm of one metric; `width` the half-width of the interval that the
    claimed value, as printed, represents. Raises NothingChecked when there are too few copies.
    """
    _check_copies(measured.plain, "plain")
    if measured.stressed or not (measured.one_fit and _most_copies_change(measured.plain)):
        _check_copies(measured.stressed, "stressed")
    parts = {
        metric: max(_flips(measured, metric, alarm), _draws(measured, metric, alarm))
        + _unseen_stops(measured, metric)
        for metric in METRICS
    }
    stops = {metric: _unseen_stops(measured, metric) for metric in METRICS}
    return _tolerance(measured, parts, width, measured.plain, stops)


def canonical_tolerance(measured: Measured, width: Triple) -> Tolerance:
    """Return the tolerance of a canonical score: an optimum has no draws of the third kind.

    Its copies are all stressed, and so are `flips` and `spread` of the result.
    """
    _check_copies(measured.stressed, "stressed")
    parts = {metric: _outcomes(measured, metric) for metric in METRICS}
    return _tolerance(measured, parts, width, measured.stressed, dict.fromkeys(METRICS, 0.0))


def _check_copies(copies: Sequence[RescoredCopy], kind: str) -> None:
    if len(copies) < COPIES_MIN:
        raise NothingChecked(
            f"the rescoring has {len(copies)} {kind} copies, expected at least {COPIES_MIN}",
            f"run `geneb-harness rescore` with --copies {COPIES_MIN} or more",
        )


def _most_copies_change(copies: Sequence[RescoredCopy]) -> bool:
    """Whether more than half of the copies changed a prediction."""
    return 2 * sum(any(copy.flips) for copy in copies) > len(copies)


def _flips(measured: Measured, metric: str, alarm: float) -> float:
    """Return the allowance for flips in proportion and for rare outcomes, of a score of record.

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
    """Whether flips grow with the noise: most plain copies flip, stressed ones far more."""
    plain, stressed = (
        math.fsum(sum(copy.flips) for copy in copies) / len(copies)
        for copies in (measured.plain, measured.stressed)
    )
    return _most_copies_change(measured.plain) and stressed >= SATURATED * plain


def _outcomes(measured: Measured, metric: str) -> float:
    """Return the largest deviation of any copy, with its margin."""
    seeds = range(len(measured.matrices))
    return _farthest(measured, metric, seeds)


def _farthest(measured: Measured, metric: str, seeds: Sequence[int]) -> float:
    margin = MARGIN_MANY if len(measured.stressed) >= MANY else MARGIN_FEW
    copies = [*measured.plain, *measured.stressed]
    return margin * max(map(abs, _deviations(measured, copies, metric, seeds)), default=0.0)


def _unseen_stops(measured: Measured, metric: str) -> float:
    """Return the mean over the fits of max(0, STOP_MARGIN |possible stop| - |copies seen|).

    Only fits count that a copy moved, or that end elsewhere in float64.
    """
    base: list[float] = getattr(measured.base, metric)
    copies = [*measured.plain, *measured.stressed]
    excess = []
    for seed, stops in enumerate(measured.stops):
        moved = any(copy.flips[seed] for copy in copies)
        if stops and (moved or getattr(stops[0], metric) != base[seed]):
            seen = max(abs(getattr(copy.per_seed, metric)[seed] - base[seed]) for copy in copies)
            possible = max(abs(getattr(stop, metric) - base[seed]) for stop in stops)
            excess.append(max(0.0, STOP_MARGIN * possible - seen))
    return math.fsum(excess) / len(measured.stops) if excess else 0.0


def _draws(measured: Measured, metric: str, alarm: float) -> float:
    """Return the allowance for unstable fits, which end elsewhere each time.

    One fit on all rows always gets it; of few-shot fits those of unstable seeds. Copies of such a
    fit are draws like the claim. Where stressed copies do not show that, the claim may differ by
    two draws of noise and the copies by one: hence the root of two.
    """
    if measured.one_fit:
        every = range(len(measured.matrices))
        spread = _rms(_deviations(measured, measured.plain, metric, every))
        return math.sqrt(2) * quantile(alarm, len(measured.plain)) * spread
    seeds = range(len(measured.matrices))
    unstable = [seed for seed in seeds if _is_unstable(measured, seed)]
    if not unstable:
        return 0.0
    stable = [seed for seed in seeds if seed not in unstable]
    copies = [*measured.plain, *measured.stressed]
    spread = _rms(_deviations(measured, copies, metric, unstable))
    return quantile(alarm, len(copies)) * spread + _farthest(measured, metric, stable)


def _is_unstable(measured: Measured, seed: int) -> bool:
    """Whether most plain copies of a seed's fit end differently, and more noise hardly more so."""
    plain = [
        (copy.flips[seed], copy.per_seed.MCC[seed], copy.per_seed.F1[seed])
        for copy in measured.plain
    ]
    flips = math.fsum(one[0] for one in plain) / len(plain)
    stressed = math.fsum(copy.flips[seed] for copy in measured.stressed) / len(measured.stressed)
    return 2 * len(set(plain)) > len(plain) and stressed < SATURATED * flips


def _deviations(
    measured: Measured, copies: Sequence[RescoredCopy], metric: str, seeds: Sequence[int]
) -> list[float]:
    """Return the change of each copy's mean over all seeds that the given seeds cause."""
    base: list[float] = getattr(measured.base, metric)
    return [
        math.fsum(getattr(copy.per_seed, metric)[seed] - base[seed] for seed in seeds) / len(base)
        for copy in copies
    ]


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values))


def _deviation(measured: Measured, metric: str, step: float, width: float, stop: float) -> float:
    """Return the standard deviation of claimed - rescored of an honest claim.

    Both are a draw of noise, hence twice the mean square of the copies. Single flips in stressed
    copies are as many times more as there is noise, and so is their variance; where no copy flips,
    one flip in all of them is assumed. A claim as printed is rounded to a width.
    """
    every = range(len(measured.matrices))
    plain, stressed = (
        _rms(_deviations(measured, copies, metric, every)) ** 2 if copies else 0.0
        for copies in (measured.plain, measured.stressed)
    )
    looked = len(measured.plain) + STRESS * len(measured.stressed)
    noise = max(plain, stressed / STRESS, step * step / looked)
    return math.sqrt(2 * noise + width * width / 3 + STOP_SHARE * stop * stop)


def _tolerance(
    measured: Measured,
    parts: dict[str, float],
    width: Triple,
    shown: Sequence[RescoredCopy],
    stops: dict[str, float],
) -> Tolerance:
    seeds = len(measured.matrices)
    fits = measured.matrices[:1] if measured.one_fit else measured.matrices
    effects = zip(*(largest_effect(matrix) for matrix in fits), strict=True)
    steps = [max(effect) / len(fits) for effect in effects]
    unseen = [UNSEEN * step for step in steps]
    deviations = [
        _deviation(measured, metric, step, half, stops[metric])
        for metric, step, half in zip(METRICS, steps, width, strict=True)
    ]
    mcc, acc, f1 = (
        part + flips + half for part, flips, half in zip(parts.values(), unseen, width, strict=True)
    )
    shifts = _deviations(measured, shown, "MCC", range(seeds))
    middle = math.fsum(shifts) / len(shifts)
    return Tolerance(
        MCC=mcc,
        Acc=acc,
        F1=f1,
        copies=len(measured.plain) + len(measured.stressed),
        flips=math.fsum(sum(copy.flips) for copy in shown) / len(shown),
        spread=_rms([value - middle for value in shifts]),
        honest=Honest(deviation=_each(deviations), step=_each(steps)),
    )


def _each(values: Sequence[float]) -> EachMetric:
    return EachMetric.model_validate(dict(zip(METRICS, values, strict=True)))
