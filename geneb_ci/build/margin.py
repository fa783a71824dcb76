"""How far macro MCC may lie from what another test set of the same size would give.

The one place that says so for `diff`: an analytic bound that needs the printed scores alone.
"""

import math
from collections.abc import Callable
from typing import Any

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.standing import Interval

# 97.5 % quantile of the normal distribution: an interval that holds 95 times in 100.
NORMAL_97_5 = 1.959964
# Accuracy of chance of two even classes: taken where the scores do not tell it.
CHANCE_EVEN = 0.5


def standard_error(mcc: float, accuracy: float, n_test: int) -> float:
    """Give the standard error of MCC on a test set of `n_test` sequences.

    Where a class is predicted as often as it occurs, MCC is Cohen's kappa, (A - e) / (1 - e) with
    e the accuracy of chance, whose large-sample error is sqrt(A (1 - A) / n) / (1 - e) (Cohen
    1960); and 1 - e = (1 - A) / (1 - MCC). A mean over seeds has no larger error than one fit.
    """
    right = min(max(accuracy, 1 / n_test), 1 - 1 / n_test)  # none or all right is luck, too
    known = accuracy < 1 and mcc < 1
    spread = (1 - accuracy) / (1 - mcc) if known else 1 - CHANCE_EVEN
    return math.sqrt(right * (1 - right) / n_test) / max(spread, 1 / n_test)


def interval_of(tasks: dict[str, Any], benchmark: Benchmark) -> Callable[[str, str], Interval]:
    """Give the intervals of macro MCC of a board, `leaderboard_tasks.json` as a value.

    Tasks are taken as independent. Tasks without a known size count as sure, so that their
    interval is too narrow; the benchmark of GENEB has all sizes.
    """
    rows = {(row["model"], name): row for name, found in tasks["data"].items() for row in found}

    def interval(model: str, regime: str) -> Interval:
        row = rows[model, regime]
        error = _macro_error(row["task_MCC"], row["task_Acc"], benchmark)
        return Interval(row["macro_MCC"] - error, row["macro_MCC"] + error)

    return interval


def _macro_error(mcc: dict[str, float], accuracy: dict[str, float], benchmark: Benchmark) -> float:
    parts = []
    for members in benchmark.categories.values():
        share = 1 / (len(benchmark.categories) * len(members))
        for task in members:
            n_test = benchmark.by_id[task].n_test
            if n_test is not None:
                parts.append((share * standard_error(mcc[task], accuracy[task], n_test)) ** 2)
    return NORMAL_97_5 * math.sqrt(math.fsum(parts))
