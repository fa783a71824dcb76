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

BASELINES_FILE = "baselines.json"
"""Shipped file with the scores of the baselines."""
BaselineScores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""MCC by baseline, regime and task."""


@functools.cache
def _scores_by_benchmark() -> dict[str, BaselineScores]:
    """Return the scores of all baselines, by digest of the benchmark."""
    scores_by_benchmark: dict[str, BaselineScores] = json.loads(
        shipped("schemas", BASELINES_FILE).read_bytes()
    )
    return scores_by_benchmark


def baseline_scores(benchmark: Benchmark) -> BaselineScores:
    """Return the scores of the baselines; empty for a benchmark without baselines."""
    return _scores_by_benchmark().get(benchmark.sha256, {})


def baseline_scores_by_column(benchmark: Benchmark) -> dict[str, dict[str, dict[str, float]]]:
    """Return MCC by regime, baseline and column of the page: macro, micro, categories, tasks.

    A mean is left out if the baseline has no score of one of the tasks.
    """
    tasks_by_key = {"micro": benchmark.task_ids}
    tasks_by_key |= {f"category:{name}": tasks for name, tasks in benchmark.categories.items()}
    tasks_by_key |= {f"task:{task}": (task,) for task in benchmark.task_ids}
    means_by_regime: dict[str, dict[str, dict[str, float]]] = {}
    for baseline, regimes in baseline_scores(benchmark).items():
        for regime, scores in regimes.items():
            mean_by_key = {
                key: mean([scores[task] for task in tasks])
                for key, tasks in tasks_by_key.items()
                if all(task in scores for task in tasks)
            }
            categories = [f"category:{category}" for category in benchmark.categories]
            if all(key in mean_by_key for key in categories):
                mean_by_key["macro"] = mean(mean_by_key[key] for key in categories)
            if mean_by_key:
                means_by_regime.setdefault(regime, {})[baseline] = mean_by_key
    return means_by_regime


class BaselineComparison(NamedTuple):
    """Mean MCC of a row and of each baseline, on the tasks for which all of them have a score."""

    tasks: int
    """Number of these tasks."""
    row_mean: float
    """Mean MCC of the row."""
    baseline_means: dict[str, float]
    """Mean MCC of each baseline."""


def baseline_comparison(
    results: Mapping[str, Mapping[str, Any]], benchmark: Benchmark
) -> BaselineComparison | None:
    """Return mean MCC of a row and of each baseline; None if they have no task in common."""
    regime, scores = benchmark.regimes[0], baseline_scores(benchmark)
    cells = results.get(regime, {})
    tasks = [task for task in benchmark.task_ids if task in cells]
    tasks = [
        task for task in tasks if all(task in baseline[regime] for baseline in scores.values())
    ]
    if not scores or not tasks:
        return None
    return BaselineComparison(
        len(tasks),
        mean([cells[task].MCC for task in tasks]),
        {
            name: mean([baseline[regime][task] for task in tasks])
            for name, baseline in scores.items()
        },
    )
