"""Compare two models: their scores, and paired differences with intervals.

A model is a submission or a run record. If the predictions of both are available, test sequences
are resampled, otherwise tasks.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, benchmark_of
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.receipt.predicted import SAME_DATA_FIX, PairedRegime, paired_regimes
from geneb_ci.receipt.predictions import OF_RECORD, PREDICTIONS_FILE, Predictions, read_predictions
from geneb_ci.receipt.verify import layout_finder
from geneb_ci.statistics.paired import macro_weights
from geneb_ci.statistics.resampled import (
    DRAW_SEED,
    Interval,
    interval_of,
    resampled_mean_differences,
    resampled_task_differences,
    weighted_differences,
)
from geneb_ci.submission.document import read_document
from geneb_ci.submission.reading import FileKind, file_of_row, other_kind
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.base import first_error
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import path_exists
from reference_harness.formats.run_record import RunRecord
from reference_harness.formats.submission import PredictionsFile, SubmissionV12

SEQUENCES, TASKS = "test sequences", "tasks"
"""Names of the units that a resample draws."""
MACRO = "macro"
"""Name of the mean over categories among the compared scores."""
RESAMPLES = 2_000
"""Number of resamples: the ends of an interval then have a tenth of the standard error."""
TASKS_MIN = 5
"""Smallest number of tasks with an interval: five tasks have 126 different resamples."""
_CHECK_FIX = "run `geneb-ci check {file}`, and fix what it finds"
MccByRegimeAndTask = Mapping[str, Mapping[str, float]]
"""MCC by regime and task."""


class ScoredModel(NamedTuple):
    """One model of a comparison."""

    model_id: str
    benchmark: Benchmark
    scores: MccByRegimeAndTask
    predictions_file: PredictionsFile | None
    """Size and digest of the model's file of predictions, as stated; None without one."""
    predictions: Predictions | None = None
    """The content of the file of predictions; None if the file is missing."""


def scored_model(argument: str, definition: Path | None = None) -> ScoredModel:
    """Return the model of an argument: `FILE`, or `FILE=DIR` with predictions in a folder.

    FILE is a submission or a run record, with or without `.json`, or else the id of a row of the
    repository. By default, DIR is FILE without `.json`. Raises NothingChecked for a file that
    cannot be read, UsageProblem for a folder without predictions.
    """
    file_name, _, named_folder = argument.partition("=")
    file = Path(file_name)
    if file.suffix != ".json":
        file = file.with_name(f"{file.name}.json")
    if not path_exists(file):
        file = file_of_row(file_name) or file
    folder = Path(named_folder) if named_folder else file.with_suffix("")
    document = _json_value(file)
    is_run_record = isinstance(document, dict) and "tasks" in document and "results" not in document
    model = (_scored_record if is_run_record else _scored_submission)(file, document, definition)
    if model.predictions_file is not None and (
        named_folder or (folder / PREDICTIONS_FILE).is_file()
    ):
        predictions = read_predictions(
            folder / PREDICTIONS_FILE, model.benchmark, model.predictions_file
        )
        return model._replace(predictions=predictions)
    if named_folder:
        raise UsageProblem(
            f"{file} does not refer to a {PREDICTIONS_FILE}, so {folder} cannot be used",
            f"pass {file} alone, or write {file} again with `geneb-harness run --receipt {folder}`",
        )
    return model


def _json_value(file: Path) -> Any:
    """Return the JSON value of a file.

    Raises NothingChecked if it is no JSON, and neither a submission nor a run record.
    """
    document = read_document(file, spans=False)
    if document.faults:
        fault = document.faults[0]
        raise NothingChecked(f"{file}: {fault.message}", fault.fix or _CHECK_FIX.format(file=file))
    refusal = other_kind(document.value, FileKind.SUBMISSION)
    if refusal is not None and other_kind(document.value, FileKind.RUN_RECORD) is not None:
        raise NothingChecked(f"{file}: {refusal.message}", refusal.fix)
    return document.value


def _scored_record(file: Path, document: Any, definition: Path | None) -> ScoredModel:
    try:
        run_record = RunRecord.model_validate(document)
    except ValidationError as error:
        raise NothingChecked(
            f"{file} cannot be read as a run record: {first_error(error)}",
            "name a file that `geneb-harness run --output` wrote, or a submission",
        ) from error
    scores = {
        regime: {
            name: task.regimes[regime].scores.MCC
            for name, task in run_record.tasks.items()
            if regime in task.regimes
        }
        for regime in run_record.regimes
    }
    benchmark = _benchmark_of(file, run_record.benchmark.sha256, definition)
    return ScoredModel(run_record.model_id, benchmark, scores, run_record.predictions)


def _scored_submission(file: Path, document: Any, definition: Path | None) -> ScoredModel:
    submission, _ = check_structure(document)
    if submission is None:
        raise NothingChecked(
            f"{file} cannot be read as a submission or a run record",
            _CHECK_FIX.format(file=file),
        )
    scores = {
        regime: {task: cell.MCC for task, cell in cells.items()}
        for regime, cells in submission.results.items()
    }
    receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
    predictions_file = receipt.predictions if receipt is not None else None
    run = getattr(submission, "run", None)
    benchmark = _benchmark_of(file, run.benchmark.sha256 if run is not None else "", definition)
    return ScoredModel(submission.model_id, benchmark, scores, predictions_file)


def _benchmark_of(file: Path, sha256: str, definition: Path | None) -> Benchmark:
    """Return the benchmark with this digest; for "", the benchmark of the file's folder.

    Raises NothingChecked if no definition has this digest.
    """
    folder_benchmark = benchmark_of(layout_finder(definition)(file.absolute().parent))
    for benchmark in (folder_benchmark, shipped_benchmark(), shipped_benchmark(PRACTICE_BENCHMARK)):
        if sha256 in ("", benchmark.sha256):
            return benchmark
    raise NothingChecked(
        f"{file} has scores for the benchmark definition {sha256}, which was not found",
        "pass that definition: --benchmark FILE",
    )


class ComparedScore(NamedTuple):
    """The comparison of two models in one score."""

    name: str
    """`macro`, a category or a task."""
    tasks: int
    """Number of tasks in the mean."""
    a: float
    """MCC of the first model."""
    b: float
    """MCC of the second model."""
    interval: Interval | None
    """Interval of a - b; None if tasks are resampled and there are fewer than `TASKS_MIN`."""

    @property
    def difference(self) -> float:
        """MCC of a minus MCC of b."""
        return self.a - self.b


class ComparedRegime(NamedTuple):
    """The comparison of two models in one regime."""

    over: str
    """The unit that resamples for the intervals draw: test sequences or tasks."""
    scores: tuple[ComparedScore, ...]
    """The mean over categories, then each category."""
    by_task: tuple[ComparedScore, ...]
    """The score of each task."""
    paired: PairedRegime | None
    """Standard errors by the delta method, and McNemar's tests; None if tasks were resampled."""


def compared_regimes(
    a: ScoredModel, b: ScoredModel, resamples: int = RESAMPLES
) -> dict[str, ComparedRegime]:
    """Return the comparison by regime, over the tasks for which both have scores of record.

    Raises UsageProblem for models of two benchmarks, NothingChecked if they share no task and
    regime, or the true classes of a task differ.
    """
    if a.benchmark.sha256 != b.benchmark.sha256:
        raise UsageProblem(
            f"the models have different benchmark definitions: {a.benchmark.name} "
            f"{a.benchmark.sha256} and {b.benchmark.name} {b.benchmark.sha256}",
            "if both were run with one definition, pass it: --benchmark FILE",
        )
    paired: Mapping[str, PairedRegime] = {}
    if a.predictions is not None and b.predictions is not None:
        paired = paired_regimes(a.predictions, b.predictions, a.benchmark, OF_RECORD)
    comparisons = {}
    for regime in a.benchmark.regimes:
        common = a.scores.get(regime, {}).keys() & b.scores.get(regime, {}).keys()
        categories = {
            name: shared_tasks
            for name, tasks in a.benchmark.categories.items()
            if (shared_tasks := tuple(task for task in tasks if task in common))
        }
        if categories:
            paired_regime = paired.get(regime)
            tasks = {task for members in categories.values() for task in members}
            if paired_regime is None or not tasks <= paired_regime.cells.keys():
                comparisons[regime] = _compared_over_tasks(
                    a.scores[regime], b.scores[regime], categories, resamples
                )
            else:
                comparisons[regime] = _compared_over_sequences(
                    a, b, regime, categories, paired_regime, resamples
                )
    if not comparisons:
        raise NothingChecked("the two models share no task and regime with scores", SAME_DATA_FIX)
    return comparisons


_Categories = Mapping[str, tuple[str, ...]]
"""The compared tasks of each category."""


def _compared_over_sequences(
    a: ScoredModel,
    b: ScoredModel,
    regime: str,
    categories: _Categories,
    paired: PairedRegime,
    resamples: int,
) -> ComparedRegime:
    """Return the comparison of a regime, with intervals from test sequences drawn again."""
    generator, differences = np.random.default_rng(DRAW_SEED), {}
    for task in paired.cells:
        first, second = (model.predictions.tasks[task] for model in (a, b) if model.predictions)
        differences[task] = resampled_task_differences(
            first.truth, first.fits[OF_RECORD][regime], second.fits[OF_RECORD][regime],
            len(first.labels), resamples, generator,
        )  # fmt: skip

    def interval(score_tasks: _Categories) -> Interval:
        return interval_of(weighted_differences(differences, macro_weights(score_tasks)))

    return _compared_regime(
        SEQUENCES, a.scores[regime], b.scores[regime], categories, interval, paired
    )


def _compared_over_tasks(
    a: Mapping[str, float], b: Mapping[str, float], categories: _Categories, resamples: int
) -> ComparedRegime:
    """Return the comparison of a regime, with intervals from tasks drawn again."""
    generator = np.random.default_rng(DRAW_SEED)
    differences = {task: a[task] - b[task] for tasks in categories.values() for task in tasks}

    def interval(score_tasks: _Categories) -> Interval | None:
        if sum(map(len, score_tasks.values())) < TASKS_MIN:
            return None
        members = list(score_tasks.values())
        return interval_of(resampled_mean_differences(differences, members, resamples, generator))

    return _compared_regime(TASKS, a, b, categories, interval)


def _compared_regime(
    resampled_unit: str,
    a: Mapping[str, float],
    b: Mapping[str, float],
    categories: _Categories,
    interval: Callable[[_Categories], Interval | None],
    paired: PairedRegime | None = None,
) -> ComparedRegime:
    """Return the comparison of a regime, with `interval` of the macro, each category and task."""

    def score(name: str, score_tasks: _Categories) -> ComparedScore:
        weights = macro_weights(score_tasks)
        first, second = (
            math.fsum(mcc[task] * weight for task, weight in weights.items()) for mcc in (a, b)
        )
        return ComparedScore(name, len(weights), first, second, interval(score_tasks))

    macro_score = score(MACRO, categories)
    by_category = [
        score(name, {name: category_tasks}) for name, category_tasks in categories.items()
    ]
    tasks = [
        score(task, {task: (task,)})
        for category_tasks in categories.values()
        for task in category_tasks
    ]
    return ComparedRegime(resampled_unit, (macro_score, *by_category), tuple(tasks), paired)


def scores_with_regime(
    comparisons: Mapping[str, ComparedRegime],
) -> Iterator[tuple[str, str, ComparedScore]]:
    """Yield regime, resampled unit and score of each comparison; in a regime, tasks come last."""
    for regime, regime_comparison in comparisons.items():
        for score in (*regime_comparison.scores, *regime_comparison.by_task):
            yield regime, regime_comparison.over, score
