"""Tests whether few-shot probes gain by the very sequences that they are fitted on.

The seeds of a benchmark are public, so an extractor may recognise the few sequences that few-shot
probes are fitted on, or all training sequences, and move their embeddings to where they separate
the test set. Three comparisons show it. In each, a gain is the MCC of fits less that of other fits,
in the mean over the fits of a task.

Other draws. The other fits are on training sequences of the same task that other seeds draw, which
follow from the seed of the audit. Honest scores of all draws have one distribution. Nothing is
embedded for it, so every task has it, and no look-up helps: whoever moves these sequences, too,
moves all training sequences. With o other draws, of variance v, and p published ones, the variance
of a gain is v (1/p + 1/o).

Variants. The other fits are on variants of the same sequences. They show a look-up that a small
change breaks, even of all training sequences, which no other draw shows. Gains are paired, and
vary by their own variance over the fits, divided by their number.

Test sequences. Fits on other draws of training sequences are compared with fits on draws of test
sequences, scored on the rest of the test set. An extractor that moves all training sequences has to
move the test sequences likewise, and thus to know their labels. Where a test set is of another kind
than its training set, fits on test sequences score more, which is not flagged. Draws from one test
set are no independent draws, so that their number counts as that of the published fits.

A regime is flagged if the mean of its gains, over all T tasks, exceeds `MARGIN` by so many standard
errors that chance does in one of 31,574 audits, by Student's t; and if the gain of a task exceeds a
margin larger by `TASK_MARGIN` likewise, with that chance divided by T. The variance of a task is
its own, or the mean over the tasks where that is larger, for a task has few fits. Two regimes,
three comparisons and two limits each make a false alarm in one of 2,600 audits, of extractors whose
gain is the margin. That holds for independent draws; those of small sets share sequences. On
GENEB-mini the mean of draws of test sequences has up to 0.19 of the variance of one draw, that of
training sequences up to 0.30, where 0.25 is assumed: 4 standard errors are then 3.65, which chance
exceeds in one of 7,600 audits.
"""

import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from geneb_ci.audit.rerun.honesty import TASK_MARGIN, VARIANT_ALARM_QUANTILE, task_alarm_quantile
from reference_harness.formats.base import Name, StrictModel
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.rescored import OTHER_DRAWS, TEST_TIMES, FewShotScores
from reference_harness.formats.text import plural

MARGIN = 0.02
"""Largest mean gain of MCC of an honest extractor, which may be the best of several by the
published scores, or may depend on letters that a variant changes. `honesty.TASK_MARGIN` is added
for the gain of a single task."""
FITS_MIN = 2
"""Smallest number of fits from whose scores a variance is computed."""
OTHERS, VARIANTS, TESTS = "others", "variants", "test sequences"
"""Kinds of other fits. Fits on other draws and on variants are compared with the published fits,
fits on test sequences with those on other draws."""
_SCORE_PATTERN = r"-?[01]\.[0-9]{4}"
"""A score with four digits, as text."""
_SCORES_PATTERN = rf"^{_SCORE_PATTERN}( {_SCORE_PATTERN})*$"


def _four_digit_scores(value: object) -> object:
    """Return scores rounded to four digits, from a text or a list, or any other value unchanged."""
    if isinstance(value, str):
        if not re.fullmatch(_SCORES_PATTERN, value):
            raise ValueError("expected scores of four digits with a space between them")
        return [float(number) for number in value.split()]
    if isinstance(value, list) and all(isinstance(score, int | float) for score in value):
        return [round(score, 4) + 0.0 for score in value]  # -0.0 + 0.0 is 0.0
    return value


def _scores_text(scores: list[float]) -> str:
    """Return scores as text, with four digits and a space between them."""
    return " ".join(f"{score:.4f}" for score in scores)


MccOfFits = Annotated[
    list[Annotated[float, Field(ge=-1, le=1)]],
    Field(min_length=1),
    BeforeValidator(_four_digit_scores),
    PlainSerializer(_scores_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _SCORES_PATTERN}),
]
"""MCC of several fits with four digits, written as one text, since a record has thousands."""


class FewShotTask(StrictModel):
    """MCC on the test sequences of one task, for several fits of a few-shot regime."""

    published: MccOfFits
    """MCC of the fits on the published training sequences, whose mean is claimed."""
    others: MccOfFits
    """MCC of fits on other draws of training sequences."""
    varied: MccOfFits | None = Field(default=None, exclude_if=operator.not_)
    """MCC of fits on variants of the published sequences; left out if none were embedded."""
    tests: MccOfFits | None = Field(default=None, exclude_if=operator.not_)
    """MCC of fits on draws of test sequences, scored on the other test sequences; left out if a
    class has too few sequences, and in earlier records."""


class FewShotResult(StrictModel):
    """The scores of few-shot probes, fitted on the published sequences and on others."""

    regimes: Annotated[
        dict[Name, Annotated[dict[Name, FewShotTask], Field(min_length=1)]], Field(min_length=1)
    ]
    """By regime and task, the scores of the fits."""


class Gain(NamedTuple):
    """By how much few-shot fits on training sequences have a higher MCC than other fits."""

    regime: str
    other_fits: str
    """Kind of the other fits: `OTHERS`, `VARIANTS` or `TESTS`."""
    task: str
    """Name of a task, or "" for the mean over all `tasks`."""
    tasks: int
    """Number of tasks in the comparison."""
    gain: float
    """Mean MCC of the fits on training sequences, less that of the other fits."""
    limit: float
    """Largest gain that is not flagged."""

    @property
    def is_flagged(self) -> bool:
        """Whether chance does not explain the gain."""
        return self.gain > self.limit

    @property
    def text(self) -> str:
        """The gain and its limit, as text."""
        subject = self.task or f"the mean of {plural(self.tasks, 'task')}"
        return f"{self.regime} in {subject} MCC {self.gain:+.3f} of at most {self.limit:.3f}"


def few_shot_result(
    scores: Mapping[str, Mapping[str, FewShotScores]],
    varied: Mapping[str, Mapping[str, Sequence[float]]],
) -> FewShotResult | None:
    """Return the scores of few-shot probes for a record; None without few-shot regimes.

    `scores` maps task to regime to the scores of the fits; `varied` maps the tasks with variants to
    regime to the MCC of fits on variants.
    """
    regimes: dict[str, dict[str, FewShotTask]] = {}
    for task, by_regime in scores.items():
        for regime, task_scores in by_regime.items():
            regimes.setdefault(regime, {})[task] = FewShotTask(
                published=task_scores.published,
                others=task_scores.others,
                varied=list(varied.get(task, {}).get(regime, ())) or None,
                tests=task_scores.tests or None,
            )
    return FewShotResult(regimes=regimes) if regimes else None


class _TaskGain(NamedTuple):
    """The gain of one task over one kind of other fits, and its variance."""

    task: str
    gain: float
    """Mean MCC of the fits on training sequences, less that of the other fits."""
    variance: float
    """Variance of `gain`, from the scatter of the fits."""
    freedom: int
    """Degrees of freedom of `variance`."""


def gains_over_other_fits(few_shot: FewShotResult) -> Iterator[Gain]:
    """Yield the gain of each regime over each kind of other fits, as a mean and for each task.

    Regimes and tasks are in alphabetical order, since a record does not keep any other.
    """
    for regime, by_task in sorted(few_shot.regimes.items()):
        tasks = sorted(by_task.items())
        for other_fits, task_gains in (
            (OTHERS, [_gain_over_other_draws(task, task_scores) for task, task_scores in tasks]),
            (VARIANTS, [_gain_over_variants(task, task_scores) for task, task_scores in tasks]),
            (TESTS, [_gain_over_test_draws(task, task_scores) for task, task_scores in tasks]),
        ):
            known_gains = [gain for gain in task_gains if gain is not None]
            if known_gains:
                yield from _gains_with_limits(regime, other_fits, known_gains)


def _gain_over_other_draws(task: str, task_scores: FewShotTask) -> _TaskGain | None:
    """Return the gain of the published fits over fits on other draws of training sequences."""
    if len(task_scores.others) < FITS_MIN:
        return None
    variance_factor = 1 / len(task_scores.published) + 1 / len(task_scores.others)
    gain = fmean(task_scores.published) - fmean(task_scores.others)
    return _TaskGain(
        task, gain, _variance(task_scores.others) * variance_factor, len(task_scores.others) - 1
    )


def _gain_over_variants(task: str, task_scores: FewShotTask) -> _TaskGain | None:
    """Return the gain of the published fits over fits on variants of the same sequences."""
    if task_scores.varied is None or len(task_scores.published) < FITS_MIN:
        return None
    pairs = zip(task_scores.published, task_scores.varied, strict=True)
    differences = [published - varied for published, varied in pairs]
    count = len(differences)
    return _TaskGain(task, fmean(differences), _variance(differences) / count, count - 1)


def _gain_over_test_draws(task: str, task_scores: FewShotTask) -> _TaskGain | None:
    """Return the gain of fits on other draws of training sequences over fits on test sequences."""
    if task_scores.tests is None or min(len(task_scores.tests), len(task_scores.others)) < FITS_MIN:
        return None
    variance_factor = 1 / len(task_scores.published) + 1 / len(task_scores.others)
    variance = (_variance(task_scores.others) + _variance(task_scores.tests)) / 2
    freedom = len(task_scores.others) + len(task_scores.tests) - 2
    return _TaskGain(
        task,
        fmean(task_scores.others) - fmean(task_scores.tests),
        variance * variance_factor,
        freedom,
    )


def _variance(scores: Sequence[float]) -> float:
    mean = fmean(scores)
    return math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)


def _gains_with_limits(
    regime: str, other_fits: str, task_gains: Sequence[_TaskGain]
) -> Iterator[Gain]:
    """Yield the mean gain of the tasks with its limit, then, for several tasks, each task's gain.

    `other_fits` is the kind of the other fits.
    """
    from geneb_ci.statistics.student import student_quantile  # NumPy is slow to import

    count, mean_gain = len(task_gains), fmean(task_gain.gain for task_gain in task_gains)
    freedom = sum(task_gain.freedom for task_gain in task_gains)
    mean_variance = fmean(task_gain.variance for task_gain in task_gains)
    mean_quantile = float(student_quantile(VARIANT_ALARM_QUANTILE, freedom))
    limit = MARGIN + mean_quantile * math.sqrt(mean_variance / count)
    yield Gain(regime, other_fits, "", count, mean_gain, limit)
    if count == 1:
        return
    task_quantile = float(student_quantile(task_alarm_quantile(count), freedom))
    for task_gain in task_gains:
        spread = math.sqrt(max(task_gain.variance, mean_variance))
        limit = MARGIN + TASK_MARGIN + task_quantile * spread
        yield Gain(regime, other_fits, task_gain.task, count, task_gain.gain, limit)


def flagged_gains(result: FewShotResult, other_fits: str) -> list[Gain]:
    """Return the gains over one kind of other fits that chance does not explain, means first."""
    flagged = [
        gain
        for gain in gains_over_other_fits(result)
        if gain.other_fits == other_fits and gain.is_flagged
    ]
    return sorted(flagged, key=lambda gain: bool(gain.task))


def few_shot_contradiction(
    few_shot: FewShotResult,
    benchmark: Benchmark,
    tasks: Iterable[str],
    varied: Iterable[str],
    *,
    requires_tests: bool,
) -> str:
    """Return a contradiction between a result and the draw of these tasks; "" if there is none.

    `varied` are the tasks whose published fits were repeated on variants. `requires_tests` says
    that fits on test sequences may not be left out of a task whose classes are large enough.
    """
    regimes, fit_count = benchmark.protocol.few_shot_k, len(benchmark.protocol.seeds)
    if set(few_shot.regimes) != set(regimes):
        return f"probes of {', '.join(few_shot.regimes)} were fitted, expected {', '.join(regimes)}"
    task_ids, varied_ids = set(tasks), set(varied)
    for regime, by_task in few_shot.regimes.items():
        if by_task.keys() != task_ids:
            return f"{regime}: its tasks are not those of the audit"
        for task, scores in by_task.items():
            scores_and_counts = [(scores.published, fit_count), (scores.others, OTHER_DRAWS)]
            if scores.varied is not None:
                scores_and_counts.append((scores.varied, fit_count))
            if scores.tests is not None:
                scores_and_counts.append((scores.tests, OTHER_DRAWS))
            if any(len(fits) != expected for fits, expected in scores_and_counts):
                return (
                    f"{regime}: {task} has other numbers of fits than {fit_count} and {OTHER_DRAWS}"
                )
            if (scores.varied is not None) != (task in varied_ids):
                verb = "lacks" if scores.varied is None else "has"
                return f"{regime}: {task} {verb} fits on variants, unlike the draw"
            counts = benchmark.by_id[task].test_class_counts if requires_tests else None
            class_size_min = TEST_TIMES * regimes[regime]
            if counts and (scores.tests is None) == (min(counts) >= class_size_min):
                verb = "lacks" if scores.tests is None else "has"
                return (
                    f"{regime}: {task} {verb} fits on test sequences; its smallest class has "
                    f"{min(counts)} of them, {class_size_min} are needed"
                )
    return ""


def without_test_fits(few_shot: FewShotResult | None) -> FewShotResult | None:
    """Return a result without the fits on test sequences, which earlier records lack."""
    if few_shot is None:
        return None
    regimes = {
        regime: {
            task: task_scores.model_copy(update={"tests": None})
            for task, task_scores in by_task.items()
        }
        for regime, by_task in few_shot.regimes.items()
    }
    return FewShotResult(regimes=regimes)


def few_shot_text(few_shot: FewShotResult) -> str:
    """Return the mean gains and the flagged gains of few-shot probes as one line."""
    texts = [
        f"{gain.text} beside {gain.other_fits}"
        for gain in gains_over_other_fits(few_shot)
        if not gain.task or gain.is_flagged
    ]
    return f"few-shot probes: {'; '.join(texts)}"
