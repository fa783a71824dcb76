"""Baselines without training: scores of k-mers and of random weights, shown beside the rows.

They have no rank and no page. `benchmarks/baselines.py` computes them with the harness, on those
tasks whose data it has.
"""

import functools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from geneb_ci.board.means import mean
from geneb_ci.common.shipped import shipped
from reference_harness.formats.benchmark import Benchmark

FILE = "baselines.json"
Scores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Baseline, regime and task to MCC."""


@functools.cache
def _by_benchmark() -> dict[str, Scores]:
    by_benchmark: dict[str, Scores] = json.loads(shipped("schemas", FILE).read_bytes())
    return by_benchmark


def baseline_scores(benchmark: Benchmark) -> Scores:
    """Return the scores of the baselines; empty for a benchmark without baselines."""
    return _by_benchmark().get(benchmark.sha256, {})


def baseline_lines(benchmark: Benchmark) -> dict[str, dict[str, dict[str, float]]]:
    """Return MCC by regime, baseline and key of a column of the page.

    A mean is left out unless the baseline has scores of all its tasks.
    """
    means = {"micro": benchmark.task_ids}
    means |= {f"category:{name}": tasks for name, tasks in benchmark.categories.items()}
    means |= {f"task:{task}": (task,) for task in benchmark.task_ids}
    lines: dict[str, dict[str, dict[str, float]]] = {}
    for name, regimes in baseline_scores(benchmark).items():
        for regime, scores in regimes.items():
            mean_by_key = {
                key: mean([scores[task] for task in tasks])
                for key, tasks in means.items()
                if all(task in scores for task in tasks)
            }
            categories = [f"category:{category}" for category in benchmark.categories]
            if all(key in mean_by_key for key in categories):
                mean_by_key["macro"] = mean(mean_by_key[key] for key in categories)
            if mean_by_key:
                lines.setdefault(regime, {})[name] = mean_by_key
    return lines


class BesideBaselines(NamedTuple):
    """Mean MCC of a row and of the baselines on the tasks that all have, in the first regime."""

    tasks: int
    row: float
    baselines: dict[str, float]


def beside_baselines(
    results: Mapping[str, Mapping[str, Any]], benchmark: Benchmark
) -> BesideBaselines | None:
    """Return mean MCC of a row and of each baseline; None if they have no task in common."""
    regime, scores = benchmark.regimes[0], baseline_scores(benchmark)
    cells = results.get(regime, {})
    tasks = [task for task in benchmark.task_ids if task in cells]
    tasks = [
        task
        for task in tasks
        if all(task in scores_by_regime[regime] for scores_by_regime in scores.values())
    ]
    if not scores or not tasks:
        return None
    return BesideBaselines(
        len(tasks),
        mean([cells[task].MCC for task in tasks]),
        {
            name: mean([scores_by_regime[regime][task] for task in tasks])
            for name, scores_by_regime in scores.items()
        },
    )
