"""Tasks that a published rule names for a rerun beside the sample; they carry no guarantee.

1. By the sum of the plausibility scores of what `geneb-ci check` finds in a task's cells, highest
   first.
2. Where that names too few: by the largest gain over the neighbours in any cell, which is how far
   the score lies above what the row's other cells and the other rows predict, in standard
   deviations; with too few rows for a prediction, above the median of the other rows.
Equals stand in board order.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from geneb_ci.audit.plan import Plan
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.check.context import Context
from geneb_ci.check.registry import BY_ID, RULES
from geneb_ci.check.runner import Checker
from geneb_ci.config import Layout
from geneb_ci.errors import UsageProblem
from geneb_ci.finding import Finding
from geneb_ci.plausibility.view import View

FAMILY = "plausibility"
_DEPTH = 3  # /results/<regime>/<task>, and perhaps the metric


def targets_of(plan: Plan, count: int, submission: Path | None, layout: Layout) -> list[str]:
    """Name tasks beside the sample by the plausibility of the committed submission's scores.

    Raises UsageProblem without a submission, AuditRefused when it is another one.
    """
    if count < 1:
        return []
    model_id = plan.commitment.model_id
    folder = layout.submissions
    if submission is None and folder is None:
        raise UsageProblem("no submission is at hand", "name it: --submission FILE")
    file = submission or Path(str(folder)) / f"{model_id}.json"
    checker = Checker(RULES)
    result = checker.check(file)
    if result.document.sha256 != plan.commitment.submission_sha256:
        raise AuditRefused(
            f"{file}: this is not the submission that was committed to",
            "name the file with the sha256 of the commitment: --submission FILE",
        )
    taken = {one.task for one in plan.chosen}
    candidates = [task for task in plan.commitment.tasks if task not in taken]
    return targets(checker.context(file), result.findings, count, candidates)


def targets(
    context: Context, findings: Iterable[Finding], count: int, candidates: Sequence[str]
) -> list[str]:
    """Give up to `count` of the candidates, the most suspicious first."""
    scores = suspicion(findings)
    gain = gains(context.view)
    board = {task: place for place, task in enumerate(context.benchmark.task_ids)}
    left = [task for task in board if task in set(candidates)]
    named = [task for task in left if scores.get(task, 0.0) > 0]
    others = [task for task in left if task not in named and gain.get(task, 0.0) > 0]
    named.sort(key=lambda task: (-scores[task], board[task]))
    others.sort(key=lambda task: (-gain[task], board[task]))
    return [*named, *others][:count]


def suspicion(findings: Iterable[Finding]) -> dict[str, float]:
    """Give the sum of scores of each task that a finding points at."""
    found: dict[str, list[float]] = {}
    for finding in findings:
        parts = finding.pointer.split("/")[1:]
        if BY_ID[finding.rule].family != FAMILY or finding.score <= 0:
            continue
        if len(parts) >= _DEPTH and parts[0] == "results":
            found.setdefault(parts[2], []).append(finding.score)
    return {task: math.fsum(scores) for task, scores in found.items()}


def gains(view: View) -> dict[str, float]:
    """Give the largest gain of each task over its neighbours; none where nobody has the cell."""
    standing = view.standing
    sizes = standing.distance if standing is not None else _above_median(view)
    found: dict[str, float] = {}
    for number, size in enumerate(sizes):
        _, task = view.cell(number)
        found[task] = max(size, found.get(task, 0.0))
    return found


def _above_median(view: View) -> list[float]:
    rows = [row for _, row in view.others]
    sizes = []
    for number, score in enumerate(view.row):
        column = [row[number] for row in rows if not math.isnan(row[number])]
        known = bool(column) and not math.isnan(score)
        sizes.append(score - median(column) if known else 0.0)
    return sizes
