"""Read scores from result files of other programs, which have one file per task and regime.

Upstream's log `results_<model>_<task_id>_<extractor>.json` holds `mcc`, `accuracy` and `f1_score`,
each with a `mean`; the names of few-shot logs end in `_k-1` or `_k-10` before `.json`. A result of
MTEB has a `task_name` with the same endings, its `dataset_revision` and the `scores` of each split.
Before version 1.11 the name was `mteb_dataset_name`, and each split was a member beside it, with
its scores or those of its subsets.

NaN, infinities and repeated keys are errors only in a number that is used. Scores of another
protocol are refused, with its name.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.common.errors import NothingChecked
from reference_harness.formats.benchmark import FULL, Benchmark
from reference_harness.formats.files import NotReadable, member_at, read_regular
from reference_harness.formats.recognition import (
    LOG_METRICS,
    Recognition,
    disguise_of,
    foreign_format_of,
    is_log,
    is_mteb_result,
)
from reference_harness.formats.text import plural, quoted

MTEB_METRICS = {"mcc": "MCC", "accuracy": "Acc", "f1": "F1"}
"""Our metrics by the keys of MTEB's scores; its f1 is macro-F1, too."""
TEST_SPLIT, DEFAULT_SUBSET = "test", "default"
BYTES_MAX = 20_000_000
"""Maximum size of a result file: a file of MTEB with ten experiments and 300 subsets has 3 MB."""
MTEB_EXPERIMENTS = 10
"""Number of experiments of MTEB's default protocol: fits on random samples."""
MTEB_PROTOCOL = f"MTEB's default protocol: 8 samples a label, {MTEB_EXPERIMENTS} experiments"
_RUN_FIX = "run the benchmark with geneb-harness"

ScoresByCell = dict[str, dict[str, dict[str, float]]]
"""Scores by regime and task, as in a submission."""


class _RepeatedKey:
    """Value of a key that occurs twice in an object, with two values."""

    def __repr__(self) -> str:
        return "written twice, with two values"


REPEATED_KEY = _RepeatedKey()
"""Stands for the value of a key that occurs twice in an object, with two values."""


class UnusableResultError(Exception):
    """A result file cannot be used; the text is a clause about it, such as "it is not JSON"."""


@dataclass
class PackedResults:
    """The results in the files of a folder, and the files that could not be used."""

    results: ScoresByCell
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Tasks without a file, by regime."""
    duplicates: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Names of the files of each task that has several files, by regime and task."""
    unrecognised: list[str] = field(default_factory=list)
    """Names of files that contain no task id."""
    broken: dict[str, str] = field(default_factory=dict)
    """Name of each file that cannot be used -> the reason, a clause such as "it is not JSON"."""

    @property
    def is_complete(self) -> bool:
        """Whether every cell has exactly one readable file."""
        return not (self.missing or self.duplicates or self.broken)


def pack_results(
    paths: Iterable[Path], benchmark: Benchmark, settings: Mapping[str, Any]
) -> PackedResults:
    """Return the results in files, and which files cannot be used.

    `settings` are those of the experiment, from a file beside the results; {} without it.
    Raises NothingChecked if a file cannot be opened.
    """
    packed = PackedResults({regime: {} for regime in benchmark.regimes})
    files_by_cell: dict[tuple[str, str], list[str]] = {}
    for path in sorted(paths):
        file = _read_result(path)
        task, regime = task_and_regime(file.name, benchmark)
        if file.is_refused or (file.reason and task is not None):
            packed.broken[path.name] = file.reason
            continue
        if task is None:
            packed.unrecognised.append(path.name)
            continue
        try:
            scores = scores_of(file.value, regime, benchmark, settings)
        except UnusableResultError as error:
            packed.broken[path.name] = str(error)
            continue
        files_by_cell.setdefault((regime, task), []).append(path.name)
        packed.results[regime][task] = scores
    _set_aside_duplicates(packed, files_by_cell, benchmark)
    return packed


def _set_aside_duplicates(
    packed: PackedResults, files_by_cell: Mapping[tuple[str, str], list[str]], benchmark: Benchmark
) -> None:
    """Move results of tasks with several files to `duplicates`; list tasks without a file.

    The remaining results of each regime are sorted by the order of the benchmark's tasks.
    """
    for (regime, task), files in files_by_cell.items():
        if len(files) > 1:
            packed.duplicates.setdefault(regime, {})[task] = files
            del packed.results[regime][task]
    for regime in benchmark.regimes:
        tasks_in_order = [task for task in benchmark.task_ids if task in packed.results[regime]]
        packed.results[regime] = {task: packed.results[regime][task] for task in tasks_in_order}
        missing_tasks = [task for task in benchmark.task_ids if (regime, task) not in files_by_cell]
        if missing_tasks:
            packed.missing[regime] = missing_tasks


class _ResultFile(NamedTuple):
    """The content of a result file, or why it cannot be used."""

    name: str
    """Name that contains the id of the task: of the file, or of MTEB's task."""
    value: Any
    """The parsed content."""
    reason: str = ""
    """Reason why the file cannot be used, as a clause after "cannot be used: "; else ""."""
    is_refused: bool = False
    """Whether the file is unreadable or of another kind, and refused whatever its name is."""


def _read_result(path: Path) -> _ResultFile:
    """Return a result file. Raises NothingChecked if it does not exist."""
    try:
        raw = read_regular(path, BYTES_MAX, links=False)
    except NotReadable as error:
        if error.missing:
            raise NothingChecked(
                f"{path}: {error.reason}", "name a file of results that can be read"
            ) from error
        return _ResultFile(path.stem, None, f"it {error.reason}", is_refused=True)
    disguise = disguise_of(raw)
    if disguise is not None:
        return _of_other_kind(path, disguise)
    try:
        result = lenient_value(raw)
    except (ValueError, RecursionError) as error:
        return _ResultFile(path.stem, None, f"it is not JSON: {error}")
    result = _in_new_mteb_form(result)
    foreign = None if is_log(result) or is_mteb_result(result) else foreign_format_of(result)
    if foreign is not None:
        return _of_other_kind(path, foreign)
    return _ResultFile(str(result["task_name"]) if is_mteb_result(result) else path.stem, result)


def _of_other_kind(path: Path, recognition: Recognition) -> _ResultFile:
    """Return a file of another kind as a result file that is refused."""
    return _ResultFile(
        path.stem, None, f"it {recognition.predicate}: {recognition.fix}", is_refused=True
    )


def lenient_value(raw: bytes) -> Any:
    """Return the value of a JSON text of another program, which may have NaN and infinities.

    A key that occurs twice in one object with two values gets the value REPEATED_KEY. Raises
    ValueError if the text is not JSON, RecursionError if it is nested too deeply.
    """
    return json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_members_by_key)


def _members_by_key(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object, with REPEATED_KEY for keys that have two values."""
    members = dict(pairs)
    if len(members) < len(pairs):
        first_values: dict[str, Any] = {}
        for name, value in pairs:
            members[name] = value if first_values.setdefault(name, value) == value else REPEATED_KEY
    return members


def task_and_regime(stem: str, benchmark: Benchmark) -> tuple[str | None, str]:
    """Return task and regime from a file name without extension; the longest matching id wins.

    The task is None if the name contains no task id between underscores.
    """
    few_shot = {f"_k-{k}": regime for regime, k in benchmark.protocol.few_shot_k.items()}
    suffix = next((ending for ending in few_shot if stem.endswith(ending)), "")
    regime = few_shot.get(suffix, benchmark.regimes[0])
    name = f"_{stem.removesuffix(suffix)}_"
    matching_tasks = [task for task in benchmark.task_ids if f"_{task}_" in name]
    return max(matching_tasks, key=len, default=None), regime


def scores_of(
    result: Any, regime: str, benchmark: Benchmark, settings: Mapping[str, Any]
) -> dict[str, float]:
    """Return the scores in a parsed result file. Raises UnusableResultError with the reason."""
    if is_mteb_result(result):
        return _mteb_scores(result, regime, benchmark, settings)
    _require_same_protocol((result,) if isinstance(result, dict) else (), regime, benchmark)
    scores: dict[str, float] = {}
    for log_member, metric in LOG_METRICS.items():
        scores[metric] = _finite_number(member_at(result, log_member, "mean"), f"{log_member}.mean")
    return scores


def _finite_number(score: object, name: str) -> float:
    """Return a score as a number. Raises UnusableResultError unless it is a finite number."""
    if score is REPEATED_KEY:
        raise UnusableResultError(f"{name} is {score}: write the file again")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise UnusableResultError(f"{name} is missing or not a number")
    try:
        number = float(score)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnusableResultError(f"{name} is {number}: find out why, and score the task again")
    return number


def _in_new_mteb_form(result: Any) -> Any:
    """Return a result of MTEB before version 1.11 in today's form; return others unchanged.

    In the old form every member that is an object is a split; its members that are objects are
    subsets.
    """
    if not isinstance(result, dict) or "mteb_dataset_name" not in result or "scores" in result:
        return result
    scores = {}
    for split, content in result.items():
        if isinstance(content, dict):
            subsets = {name: subset for name, subset in content.items() if isinstance(subset, dict)}
            subsets_by_name = subsets or {DEFAULT_SUBSET: content}
            scores[split] = [
                subset | {"hf_subset": name} for name, subset in subsets_by_name.items()
            ]
    return {
        "task_name": result["mteb_dataset_name"],
        "dataset_revision": result.get("dataset_revision"),
        "scores": scores,
    }


def _mteb_scores(
    result: Mapping[str, Any], regime: str, benchmark: Benchmark, settings: Mapping[str, Any]
) -> dict[str, float]:
    """Return the scores of one result of MTEB. Raises UnusableResultError."""
    revision, expected = result.get("dataset_revision"), benchmark.dataset.revision
    if revision != expected:
        raise UnusableResultError(
            f"the revision of the task data is {quoted(revision)}, expected {expected}"
        )
    splits = result["scores"]
    subsets = splits.get(TEST_SPLIT) if isinstance(splits, dict) else None
    candidates = [s for s in subsets if isinstance(s, dict)] if isinstance(subsets, list) else []
    count = len(candidates)
    if count > 1:
        candidates = [subset for subset in candidates if subset.get("hf_subset") == DEFAULT_SUBSET]
        if len(candidates) != 1:
            raise UnusableResultError(
                f"scores.{TEST_SPLIT} has {count} subsets, of which {len(candidates)} "
                f"have the name {DEFAULT_SUBSET!r}, expected 1"
            )
    if not candidates:
        raise UnusableResultError(f"scores.{TEST_SPLIT} has no subset")
    (scores,) = candidates
    _require_same_protocol((settings, result, scores), regime, benchmark)
    missing_keys = [key for key in MTEB_METRICS if scores.get(key) is None]
    if missing_keys:
        raise UnusableResultError(
            f"scores.{TEST_SPLIT} lacks {' and '.join(missing_keys)}: run the task in MTEB again, "
            "with every metric"
        )
    return {
        metric: _finite_number(scores[key], f"scores.{TEST_SPLIT}.{key}")
        for key, metric in MTEB_METRICS.items()
    }


_SAMPLE_COUNT_KEYS = ("samples_per_label", "k_shot", "n_shots", "num_shots")
"""Keys of other programs for the number of training samples of each class."""
_EXPERIMENT_COUNT_KEYS = ("n_experiments", "n_seeds", "num_seeds", "n_runs", "num_runs")
"""Keys of other programs for the number of fits that a score averages."""
_FOLD_COUNT_KEYS = ("n_folds", "n_splits", "cv")
"""Keys of other programs for the number of folds of a cross-validation."""
_CLASSIFIER_KEYS = ("classifier", "method", "probe")
"""Keys of other programs for the name of the probe."""
_LOGISTIC_REGRESSION_NAMES = frozenset(
    {"logistic_regression", "logreg", "logistic regression", "logisticregression"}
)
"""Names of logistic regression in other programs, in lower case."""


def _require_same_protocol(
    objects: Iterable[Mapping[str, Any]], regime: str, benchmark: Benchmark
) -> None:
    """Raise UnusableResultError if a file or its settings show another protocol."""
    for object_ in objects:
        reason = next(_protocol_differences(object_, regime, benchmark), "")
        if reason:
            raise UnusableResultError(
                f"{reason}; {_expected_protocol(regime, benchmark)}: {_RUN_FIX}"
            )


def _expected_protocol(regime: str, benchmark: Benchmark) -> str:
    """Return words for the benchmark's protocol in a regime, for a message."""
    samples = (
        "all training data"
        if regime == FULL
        else f"{benchmark.protocol.few_shot_k[regime]} a label"
    )
    seeds = plural(_seed_count(benchmark), "seed")
    return f'expected {samples} and {seeds} as in "{regime}" of {benchmark.name}'


def _seed_count(benchmark: Benchmark) -> int:
    """Return the number of seeds of the benchmark."""
    return len(benchmark.protocol.seeds)


def _protocol_differences(
    members: Mapping[str, Any], regime: str, benchmark: Benchmark
) -> Iterator[str]:
    """Yield each difference from the benchmark's protocol in an object of a file or settings."""
    experiments = members.get("scores_per_experiment")
    if isinstance(experiments, list) and experiments and len(experiments) != _seed_count(benchmark):
        default_note = f", as by {MTEB_PROTOCOL}" if len(experiments) == MTEB_EXPERIMENTS else ""
        yield f"the scores are means over {plural(len(experiments), 'experiment')}{default_note}"
    samples = benchmark.protocol.few_shot_k.get(regime)
    expected: tuple[tuple[tuple[str, ...], object, str], ...] = (
        (_SAMPLE_COUNT_KEYS, samples, "the probe was trained on {} samples a label"),
        (
            _EXPERIMENT_COUNT_KEYS,
            _seed_count(benchmark),
            "the scores are means over {} experiments",
        ),
        (_FOLD_COUNT_KEYS, 1, "the scores are of a cross-validation with {} folds"),
        (("max_iter",), benchmark.protocol.logreg["max_iter"], "the probe has {} iterations"),
    )
    for aliases, expected_count, objection in expected:
        for alias in aliases:
            count = members.get(alias)
            if type(count) is int and count != expected_count:
                yield f"{objection.format(count)} ({alias})"
    for alias in _CLASSIFIER_KEYS:
        word = members.get(alias)
        if isinstance(word, str) and word and word.casefold() not in _LOGISTIC_REGRESSION_NAMES:
            yield f"the probe is {quoted(word)} ({alias})"
