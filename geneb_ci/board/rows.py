"""From submissions to rows: category means, micro and macro scores, exactly rounded."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.audit.trust_evidence import gather
from geneb_ci.board.columns import BY_TASK, PUBLISHED, Entry, entry_of, facts_of
from geneb_ci.check.rule import Rule
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Severity
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.models import Submission, SubmissionV11


def mean(values: Iterable[float]) -> float:
    """Return the mean, from a sum that is rounded once (math.fsum): equal on every Python.

    Raises ZeroDivisionError when there is no value: the mean of nothing is not a score.
    """
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)


def leaderboards(
    entries: Iterable[Entry], benchmark: Benchmark
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return leaderboard.json and leaderboard_tasks.json as values.

    A regime with missing cells has no row: its means would not be comparable.
    """
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    by_category: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    by_task: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    for entry in ordered:
        for regime in benchmark.regimes:
            if regime in ranked_regimes(entry.submission, benchmark):
                category_row, task_row = _rows(entry, regime, benchmark)
                by_category[regime].append(category_row)
                by_task[regime].append(task_row)
    tasks = [{"id": t.id, "label": t.label, "cat": t.category} for t in benchmark.tasks]
    return {"data": by_category}, {"tasks": tasks, "data": by_task}


def ranked_regimes(submission: Submission, benchmark: Benchmark) -> list[str]:
    """Name the regimes in which a submission has every task."""
    gaps = submission.gaps if isinstance(submission, SubmissionV11) else {}
    return [regime for regime in benchmark.regimes if not gaps.get(regime)]


def _rows(entry: Entry, regime: str, benchmark: Benchmark) -> tuple[dict[str, Any], dict[str, Any]]:
    cells = entry.submission.results[regime]
    category_row, task_row = facts_of(entry, PUBLISHED), facts_of(entry, BY_TASK)
    for metric in benchmark.metrics:
        # Adding 0.0 turns -0.0 into 0.0: a score has one way to be zero.
        scores = {task: float(getattr(cells[task], metric)) + 0.0 for task in benchmark.task_ids}
        categories = category_means(scores, benchmark)
        summary = {
            f"micro_{metric}": mean(scores.values()),
            f"macro_{metric}": mean(categories.values()),
        }
        category_row |= summary | {f"cat_{metric}": categories}
        task_row |= summary | {f"task_{metric}": scores}
    return category_row, task_row


def category_means(scores: Mapping[str, float], benchmark: Benchmark) -> dict[str, float]:
    """Return the mean score of each category, in board order, from the score of each task."""
    return {
        name: mean(scores[task] for task in tasks) for name, tasks in benchmark.categories.items()
    }


Results = Iterable[FileResult | NothingChecked]
Watch = Callable[[Results, int], Results]


def checked_entries(
    layout: Layout,
    checker: Checker,
    files: list[Path],
    watch: Watch = lambda results, _: results,
) -> Iterator[tuple[FileResult | NothingChecked, Entry | None]]:
    """Check files and decide their levels: each result with its entry, None where it has none.

    `watch` passes results on and may show progress; it is told how many there will be. An entry may
    have errors: the result says so.
    Raises BadConfiguration, and BrokenRecordError where an audit record is broken.
    """
    evidence = gather(layout)
    evidence.require_sound()
    registry = ModelRegistry(layout)
    for result in watch(checker.run(files), len(files)):
        if isinstance(result, FileResult) and result.submission is not None:
            decision = evidence.decide(result.document.sha256)
            yield result, entry_of(result.submission, decision, registry)
        else:
            yield result, None


class RejectedSubmission(NamedTuple):
    """A submission that no board takes."""

    file: str
    errors: int
    """Findings that are errors; 0 where the file could not be read as a submission at all."""


class Read(NamedTuple):
    """What a folder holds."""

    entries: tuple[Entry, ...]
    refused: tuple[RejectedSubmission, ...]


def read_entries(root: Path, rules: tuple[Rule, ...]) -> Read:
    """Read every submission of a repository, each checked by the rules.

    Raises NothingChecked when there is none, BadConfiguration when the repository's benchmark or
    policy cannot be used, BrokenRecordError when one of its audit records is broken.
    """
    entries: list[Entry] = []
    refused: list[RejectedSubmission] = []
    files = files_of([root])
    checked = checked_entries(find_layout(root), Checker(rules), files)
    for path, (result, entry) in zip(files, checked, strict=True):
        findings = result.findings if isinstance(result, FileResult) else ()
        errors = sum(finding.severity is Severity.ERROR for finding in findings)
        if errors or entry is None:
            refused.append(RejectedSubmission(path.name, errors))
        else:
            entries.append(entry)
    return Read(tuple(entries), tuple(refused))
