"""From submissions to rows: category means, micro and macro scores, exactly rounded."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.audit.trust import Decision, Summary
from geneb_ci.audit.trust_evidence import gather
from geneb_ci.check.rule import Rule
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.finding import Severity
from geneb_ci.common.types import TrustLevel
from geneb_ci.submission.models import Submission, SubmissionV11


@dataclass(frozen=True)
class Entry:
    """One submission that passed every check, with the level its evidence gives it."""

    submission: Submission
    level: TrustLevel
    audit: Summary | None = None
    """What the board shows of its audits."""
    is_official: bool = False
    """Whether the file is the authors' own although its level is another, such as disputed."""


def entry_of(submission: Submission, decision: Decision) -> Entry:
    """Return the entry of a submission whose level was decided."""
    return Entry(submission, decision.level, decision.audit, decision.is_official)


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

    A regime with declared gaps has no row: its means would not be comparable.
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
    submission = entry.submission
    cells = submission.results[regime]
    name = {
        "model": submission.model_id,
        "disp": submission.meta.display,
        "params": submission.meta.params,
    }
    category_row: dict[str, Any] = name | {
        "official": entry.is_official or entry.level is TrustLevel.OFFICIAL,
        "zero_shot": submission.meta.zero_shot,
        "submitted": str(entry.level),
    }
    if entry.audit is not None:
        category_row["audit"] = _audit(entry.audit)
    task_row: dict[str, Any] = dict(name)
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


def _audit(found: Summary) -> dict[str, Any]:
    return {
        "tasks": found.tasks,
        "of": found.of,
        "date": found.date,
        "sandbox": found.sandbox,
        "verdict": "agrees" if found.agrees else "differs",
    }


def category_means(scores: Mapping[str, float], benchmark: Benchmark) -> dict[str, float]:
    """Return the mean score of each category, in board order, from the score of each task."""
    return {
        name: mean(scores[task] for task in tasks) for name, tasks in benchmark.categories.items()
    }


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
    """Read every submission of a repository, each held against the rules.

    Raises NothingChecked when there is none, BadConfiguration when the repository's benchmark or
    policy cannot be used, BrokenRecordError when one of its audit records is broken.
    """
    evidence = gather(find_layout(root))
    evidence.require_sound()
    entries: list[Entry] = []
    refused: list[RejectedSubmission] = []
    files = files_of([root])
    for path, result in zip(files, Checker(rules).run(files), strict=True):
        if not isinstance(result, FileResult):
            refused.append(RejectedSubmission(path.name, 0))
            continue
        errors = sum(finding.severity is Severity.ERROR for finding in result.findings)
        if errors or result.submission is None:
            refused.append(RejectedSubmission(path.name, errors))
        else:
            decision = evidence.decide(result.document.sha256)
            entries.append(entry_of(result.submission, decision))
    return Read(tuple(entries), tuple(refused))
