"""The scores of a board as one long table, a pandas DataFrame.

pandas comes with the extra `tables` alone, so this module is imported where a table is made.
"""

import math
from collections.abc import Iterable

import pandas as pd

from geneb_ci.board.columns import Entry
from geneb_ci.board.numbers import ranked_regimes, scored_cells
from geneb_ci.board.parts import unknown_sizes
from geneb_ci.board.uncertainty import task_errors
from reference_harness.formats.benchmark import Benchmark

KEYS = ("model", "task", "category", "regime", "metric")
"""The columns that tell a line from every other."""
COLUMNS = (*KEYS, "value", "standard_error")


def score_frame(entries: Iterable[Entry], benchmark: Benchmark) -> pd.DataFrame:
    """Return a line for each score of some rows, with COLUMNS.

    Lines stand in the order of the lower-case model id, then of regimes, tasks and metrics as the
    benchmark lists them. The columns of KEYS are categorical in that order, so that what is
    grouped, pivoted or sorted by them keeps it. A standard error is known of MCC, in the unit of
    the score, where the row has every task of the regime and every test set has a known size; it
    is NaN elsewhere.
    """
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    rows = [entry.submission for entry in ordered]
    lines: list[tuple[str | float, ...]] = []
    for entry, row in zip(ordered, rows, strict=True):
        errors = _errors(entry, benchmark)
        for regime, task, scores in scored_cells(row, benchmark):
            for metric in benchmark.metrics:
                key = (row.model_id, task.id, task.category, regime, metric)
                # Adding 0.0 turns -0.0 into 0.0, as in the files of the board.
                value = getattr(scores, metric) + 0.0
                lines.append((*key, value, errors.get((regime, task.id, metric), math.nan)))
    frame = pd.DataFrame(lines, columns=COLUMNS).astype({"value": float, "standard_error": float})
    orders = (
        [row.model_id for row in rows],
        benchmark.task_ids,
        benchmark.category_order,
        benchmark.regimes,
        benchmark.metrics,
    )
    for name, order in zip(KEYS, orders, strict=True):
        frame[name] = pd.Categorical(frame[name], order, ordered=True)
    return frame


def _errors(entry: Entry, benchmark: Benchmark) -> dict[tuple[str, str, str], float]:
    """Return the standard errors that are known of a row, by regime, task and metric."""
    if unknown_sizes(benchmark):
        return {}
    return {
        (regime, task, "MCC"): error
        for regime in ranked_regimes(entry.submission, benchmark)
        for task, error in zip(
            benchmark.task_ids, task_errors(entry, regime, benchmark), strict=True
        )
    }
