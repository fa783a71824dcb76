"""Confusion matrices of regimes of one fit, as the page shows them."""

from collections.abc import Iterable
from typing import Any

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.matrices import recovered_cell
from geneb_ci.build.rows import Entry
from geneb_ci.check.claims import claims_of, two_classes


def matrices(entries: Iterable[Entry], benchmark: Benchmark) -> dict[str, Any]:
    """Give the two-class tasks of such regimes, and of every model what was recovered in each.

    A model's list has three numbers a task: how many matrices give the scores as printed, then the
    right predictions in the smaller and in the larger class of the one that comes nearest.
    """
    regimes = [r for r in benchmark.regimes if r not in benchmark.protocol.few_shot_k]
    tasks = [index for index, task in enumerate(benchmark.tasks) if two_classes(task)]
    rows = list(entries)
    return {
        "tasks": tasks,
        "regimes": {
            regime: [_row(entry, regime, benchmark, tasks) for entry in rows] for regime in regimes
        },
    }


def _row(entry: Entry, regime: str, benchmark: Benchmark, tasks: list[int]) -> list[int]:
    cells = {
        task: scores.model_dump()
        for task, scores in entry.submission.results.get(regime, {}).items()
    }
    claims = {claim.task.id: claim for claim in claims_of({regime: cells}, {}, benchmark)}
    found: list[int] = []
    for index in tasks:
        claim = claims.get(benchmark.tasks[index].id)
        if claim is None or claim.classes is None:
            found += [0, 0, 0]
            continue
        one = recovered_cell(regime, claim.task.id, None, claim.classes, claim.reading)
        right = (one.table.small_right, one.table.large_right) if one.table else (0, 0)
        found += [one.matrices, *right]
    return found
