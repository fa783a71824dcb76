"""Tolerance: how far an honest claim may differ from the rerun, measured on jittered copies."""

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist
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
def two_sided_quantile(alarm_rate: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t: |T| exceeds it with probability `alarm_rate`.

    T has `freedom` degrees of freedom.
    """
    from geneb_ci.statistics.student import student_quantile  # NumPy is slow to import

    return float(student_quantile(-NormalDist().inv_cdf(alarm_rate / 2), freedom))


FALSE_ALARM = 1e-3
"""Probability that an honest audit differs anywhere; divided by the number of comparisons."""
UNITS = {"float64": 1.4, "float32": 1.4, "float16": 1.05, "bfloat16": 1.05}
"""By dtype of the model, the noise of plain copies, which is that of an honest run, in the unit
that `reference_harness/embedding/noise.py` defines."""
STRESS = 8.0
"""Factor by which stressed copies of the embeddings have more noise than plain copies."""
COPIES_MIN = 16
"""Smallest number of jittered copies from which a tolerance is measured, both of plain copies, with
the noise of an honest run, and of stressed copies, with `STRESS` times that noise."""
MANY_COPIES = 32
"""Number of stressed copies from which `MARGIN_MANY` replaces `MARGIN_FEW`."""
MARGIN_FEW, MARGIN_MANY = 2.0, 1.25
"""Factors of the largest deviation of stressed copies, for few and for many copies. With `UNSEEN`,
a single comparison gives a false alarm with probability 2e-7 and 4e-6 at most, over all rates of
single flips: docs/research/tolerance.md has the table."""
UNSEEN = 2
"""Number of changed predictions (flips) that are allowed beyond those that jittered copies show."""
SATURATED = 2.0
"""Smallest ratio of the predictions that stressed copies flip to those that plain copies flip, at
which flips grow with the noise. Below it, the fits are unstable."""
STOP_MARGIN = 2.0
"""Factor of the deviation at a stopping point of the solver: the loss is as flat beyond its optimum
as before, so that a fit may end twice as far away. Fits on word counts were measured to do so."""
STOP_SHARE = 0.05
"""Probability that an honest fit ends at a stopping point that no copy showed; with word counts,
about one fit in fifty did."""
GROWTH = math.sqrt(2)
"""Factor by which the variance of scores grows with sqrt(2) times the noise, if single predictions
flip."""


class CellWithCopies(NamedTuple):
    """The rescored cell of one task and regime, with its jittered copies."""

    scores_by_seed: PerSeed
    """Scores of the fits on the embeddings without jitter, one per seed."""
    matrices: Sequence[Matrix]
    """One confusion matrix per seed."""
    plain: Sequence[JitteredCopy]
    """Copies with the noise of an honest run."""
    stressed: Sequence[JitteredCopy]
    """Copies with `STRESS` times that noise."""
    stopping_scores: Sequence[Sequence[Scores]]
    """Scores where the solver may stop, for each fit."""
    is_one_fit: bool
    """Whether all seeds share a single fit on all training sequences."""


def tolerance_digest() -> str:
    """Return the digest of the constants of the tolerance, which earlier commitments contain."""
    names = (
        "FALSE_ALARM", "UNITS", "STRESS", "COPIES_MIN", "MARGIN_FEW", "MARGIN_MANY",
        "UNSEEN", "SATURATED", "STOP_SHARE", "GROWTH",
    )  # fmt: skip
    numbers = {name: repr(globals()[name]) for name in names}
    # These keys are part of the digest in every commitment that was published.
    other_modules = {
        "JOINT": repr((joint.ALARM, joint.FAR_DEVIATIONS, joint.FAR_SHARE, joint.UNSEEN_RATE)),
        "REPRODUCIBLE": repr((embedding_checks.FLOAT32_DIFFERENCE_MAX, embedding_checks.PAIRS_MIN)),
        "MEMORISED": repr(
            (
                embedding_checks.FRESH_ALARM_QUANTILE,
                embedding_checks.VARIANT_ALARM_QUANTILE,
                embedding_checks.VARIANT_MARGIN,
                embedding_checks.TRAINING_MARGIN,
                embedding_checks.FRESH_MARGIN,
                embedding_checks.VARIED_PER_AUDIT,
                embedding_checks.VARIED_PER_TASK_MIN,
            )
        ),
        "FORCE": repr(INFORMATIVE_TOLERANCE),
        "MANY": repr(MANY_COPIES),
        "HALT_MARGIN": repr(STOP_MARGIN),
    }
    return digest({"rule": "4"} | other_modules | numbers)


def alarm_rate_per_comparison(comparisons: int) -> float:
    """Return the false-alarm rate of each of several comparisons, by Bonferroni's correction."""
    return FALSE_ALARM / comparisons


def tolerance(cell: CellWithCopies, alarm_rate: float, half_widths: Triple) -> Tolerance:
    """Return the tolerance of a score of record.

    `alarm_rate` is the false-alarm rate of one metric, `half_widths` half the width of the interval
    of values that round to the claim. Raises NothingChecked when there are too few copies.
    """
    _check_copies(cell.plain, "plain")
    if cell.stressed or not (cell.is_one_fit and most_copies_change(cell.plain)):
        _check_copies(cell.stressed, "stressed")
    allowances = {
        metric: max(
            _flip_allowance(cell, metric, alarm_rate),
            _unstable_fit_allowance(cell, metric, alarm_rate),
        )
        + math.fsum(_stop_allowances(cell, metric))
        for metric in METRICS
    }
    return _tolerance(cell, allowances, half_widths)


def _check_copies(copies: Sequence[JitteredCopy], copies_name: str) -> None:
    """Raise NothingChecked for fewer than `COPIES_MIN` copies."""
    if len(copies) < COPIES_MIN:
        raise NothingChecked(
            f"the rescoring has scores of {len(copies)} {copies_name} copies of the embeddings, "
            f"expected at least {COPIES_MIN}",
            f"run `geneb-harness rescore` with --copies {COPIES_MIN} or more",
        )


def _flip_allowance(cell: CellWithCopies, metric: str, alarm_rate: float) -> float:
    """Return the allowance for predictions that the noise flips.

    Single flips add up to a normal deviation, which among stressed copies is sqrt(8) times as wide
    as among plain ones if the signs of flips are random, and wider if not. The narrower of the two
    measures, by all copies and by plain copies, is returned.
    """
    all_seeds = range(len(cell.matrices))
    largest_deviation = _largest_deviation(cell, metric, all_seeds)
    if cell.is_one_fit or not _flips_grow(cell):
        return largest_deviation
    spread = _root_mean_square(_deviations(cell, cell.plain, metric, all_seeds))
    return min(
        largest_deviation, math.sqrt(2) * two_sided_quantile(alarm_rate, len(cell.plain)) * spread
    )


def _flips_grow(cell: CellWithCopies) -> bool:
    """Whether most plain copies flip predictions, and stressed copies flip far more on average.

    Plain copies have the noise of an honest rerun, stressed ones `STRESS` times as much. Flips are
    summed over the seeds of a copy.
    """
    mean_plain_flips, mean_stressed_flips = (
        math.fsum(sum(copy.flips) for copy in copies) / len(copies)
        for copies in (cell.plain, cell.stressed)
    )
    return most_copies_change(cell.plain) and mean_stressed_flips >= SATURATED * mean_plain_flips


def _largest_deviation(cell: CellWithCopies, metric: str, seeds: Sequence[int]) -> float:
    """Return the largest deviation of a copy, times the margin for this number of copies."""
    margin = MARGIN_MANY if len(cell.stressed) >= MANY_COPIES else MARGIN_FEW
    copies = [*cell.plain, *cell.stressed]
    return margin * max(map(abs, _deviations(cell, copies, metric, seeds)))


def _stop_allowances(cell: CellWithCopies, metric: str) -> list[float]:
    """Return for each fit the allowance for its stopping points, divided by the number of fits.

    The allowance is max(0, STOP_MARGIN s - c): s is the largest change of the score at a stopping
    point of the fit, c its largest change by a copy. Only fits are included that a copy changed, or
    that end elsewhere in float64.
    """
    score_by_seed: list[float] = getattr(cell.scores_by_seed, metric)
    copies = [*cell.plain, *cell.stressed]
    allowances = []
    for seed, scores in enumerate(cell.stopping_scores):
        is_moved = any(copy.flips[seed] for copy in copies)
        if scores and (is_moved or getattr(scores[0], metric) != score_by_seed[seed]):
            largest_of_copies = max(
                abs(getattr(copy.per_seed, metric)[seed] - score_by_seed[seed]) for copy in copies
            )
            largest_of_stops = max(
                abs(getattr(score, metric) - score_by_seed[seed]) for score in scores
            )
            allowances.append(
                max(0.0, STOP_MARGIN * largest_of_stops - largest_of_copies)
                / len(cell.stopping_scores)
            )
    return allowances


def _unstable_fit_allowance(cell: CellWithCopies, metric: str, alarm_rate: float) -> float:
    """Return the allowance for unstable fits, whose solver ends at other weights each time.

    The one fit on all training sequences always gets this allowance, few-shot fits only if their
    seed is unstable. The claim differs from the rerun by two draws of noise, a copy by one: hence
    the factor sqrt(2), unless stressed copies are draws like the claim.
    """
    if cell.is_one_fit:
        all_seeds = range(len(cell.matrices))
        spread = _root_mean_square(_deviations(cell, cell.plain, metric, all_seeds))
        return math.sqrt(2) * two_sided_quantile(alarm_rate, len(cell.plain)) * spread
    seeds = range(len(cell.matrices))
    unstable_seeds = [seed for seed in seeds if _is_unstable(cell, seed)]
    if not unstable_seeds:
        return 0.0
    stable_seeds = [seed for seed in seeds if seed not in unstable_seeds]
    copies = [*cell.plain, *cell.stressed]
    spread = _root_mean_square(_deviations(cell, copies, metric, unstable_seeds))
    return two_sided_quantile(alarm_rate, len(copies)) * spread + _largest_deviation(
        cell, metric, stable_seeds
    )


def _is_unstable(cell: CellWithCopies, seed: int) -> bool:
    """Whether most plain copies of a fit differ, and stressed ones flip few more predictions."""
    plain_results = [
        (copy.flips[seed], copy.per_seed.MCC[seed], copy.per_seed.F1[seed]) for copy in cell.plain
    ]
    plain_flips = math.fsum(flips for flips, _, _ in plain_results) / len(plain_results)
    stressed_flips = math.fsum(copy.flips[seed] for copy in cell.stressed) / len(cell.stressed)
    most_differ = 2 * len(set(plain_results)) > len(plain_results)
    return most_differ and stressed_flips < SATURATED * plain_flips


def _deviations(
    cell: CellWithCopies, copies: Sequence[JitteredCopy], metric: str, seeds: Sequence[int]
) -> list[float]:
    """Return, for each copy, how much the fits of these seeds change the mean over all seeds."""
    score_by_seed: list[float] = getattr(cell.scores_by_seed, metric)
    return [
        math.fsum(getattr(copy.per_seed, metric)[seed] - score_by_seed[seed] for seed in seeds)
        / len(score_by_seed)
        for copy in copies
    ]


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values) / len(values))


def _honest_difference(
    cell: CellWithCopies, steps: Sequence[float], half_widths: Triple
) -> HonestDifference:
    """Return mean, standard deviation and largest step of an honest claim minus the rerun.

    The copies of a rerun lie about a centre that need not be the rerun: noise breaks ties, or a fit
    ends at another stop. Since both claim and rerun have noise, the claim is like a copy with
    sqrt(2) times the noise. Its variance is interpolated between plain and stressed copies as a
    power of the noise. The claim also has a rounding error, uniform from -half_width to half_width.
    """
    stop_allowances = {metric: _stop_allowances(cell, metric) for metric in METRICS}
    centres, deviations = [], []
    for metric, half_width in zip(METRICS, half_widths, strict=True):
        plain, stressed = (
            _deviations(cell, copies, metric, range(len(cell.matrices)))
            for copies in (cell.plain, cell.stressed)
        )
        centres.append(math.fsum(plain) / len(plain))
        squared_stops = math.fsum(value * value for value in stop_allowances[metric])
        rounding_variance = half_width * half_width / 3
        variance = claim_variance(plain, stressed) + rounding_variance + STOP_SHARE * squared_stops
        deviations.append(math.sqrt(variance))
    largest_steps = [
        max(step, *stop_allowances[metric], 0.0)
        for metric, step in zip(METRICS, steps, strict=True)
    ]
    return HonestDifference(
        deviation=_as_each_metric(deviations),
        step=_as_each_metric(largest_steps),
        centre=HonestCentre.model_validate(_value_by_metric(centres)),
    )


def claim_variance(plain: Sequence[float], stressed: Sequence[float]) -> float:
    """Return the variance of an honest claim around the mean of the plain copies.

    `plain` and `stressed` are the deviations of the scores of these copies from the rerun.
    """
    plain_variance, stressed_variance = _variance(plain), _variance(stressed) if stressed else None
    if stressed_variance is None:
        return GROWTH * plain_variance * (1 + 1 / len(plain))
    variance_ratio = (
        min(max(stressed_variance / plain_variance, 1.0), STRESS**2) if plain_variance else 1.0
    )
    growth = math.pow(variance_ratio, math.log(GROWTH) / math.log(STRESS))
    return max(growth * plain_variance, GROWTH * stressed_variance / STRESS) * (1 + 1 / len(plain))


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _tolerance(
    cell: CellWithCopies,
    allowances: dict[str, float],
    half_widths: Triple,
) -> Tolerance:
    """Return the tolerance that follows from the allowance for noise of each metric."""
    seeds = len(cell.matrices)
    matrices = cell.matrices[:1] if cell.is_one_fit else cell.matrices
    effects = zip(*(largest_effect(matrix) for matrix in matrices), strict=True)
    steps = [max(effect) / len(matrices) for effect in effects]
    unseen_flips = [UNSEEN * step for step in steps]
    mcc, acc, f1 = (
        allowance + flips + half_width
        for allowance, flips, half_width in zip(
            allowances.values(), unseen_flips, half_widths, strict=True
        )
    )
    deviations = _deviations(cell, cell.plain, "MCC", range(seeds))
    mean = math.fsum(deviations) / len(deviations)
    return Tolerance(
        MCC=mcc,
        Acc=acc,
        F1=f1,
        copies=len(cell.plain) + len(cell.stressed),
        flips=math.fsum(sum(copy.flips) for copy in cell.plain) / len(cell.plain),
        spread=_root_mean_square([deviation - mean for deviation in deviations]),
        honest=_honest_difference(cell, steps, half_widths),
    )


def _as_each_metric(values: Sequence[float]) -> EachMetric:
    """Return values in the order of `METRICS` as an `EachMetric`."""
    return EachMetric.model_validate(_value_by_metric(values))


def _value_by_metric(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(METRICS, values, strict=True))
