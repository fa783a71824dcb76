"""The scores of a board as one long table, a pandas DataFrame.

pandas comes with the extra `tables` alone, so this module is imported where a table is made.
"""

from collections.abc import Iterable

import pandas as pd

from geneb_ci.board.columns import Entry
from geneb_ci.board.parts import unknown_sizes
from geneb_ci.board.score_list import SCORE_COLUMNS, score_lines
from reference_harness.formats.benchmark import Benchmark

KEYS, COLUMNS = SCORE_COLUMNS[:5], SCORE_COLUMNS[:7]
"""The columns that distinguish a line from every other, and these with the value and its error."""


def score_frame(entries: Iterable[Entry], benchmark: Benchmark) -> pd.DataFrame:
    """Return a line for each score of some rows, with COLUMNS.

    Lines stand in the order of the lower-case model id, then of regimes, tasks and metrics as the
    benchmark lists them. The columns of KEYS are categorical in that order, so that what is
    grouped, pivoted or sorted by them keeps it. A standard error is known of MCC, in the unit of
    the score, where the row has every task of the regime and every test set has a known size; it
    is NaN elsewhere.
    """
    lines = list(score_lines(entries, benchmark, has_errors=not unknown_sizes(benchmark)))
    frame = pd.DataFrame([line[: len(COLUMNS)] for line in lines], columns=COLUMNS)
    frame = frame.astype({"value": float, "standard_error": float})
    orders = (
        list(dict.fromkeys(model for model, *_ in lines)),
        benchmark.task_ids,
        benchmark.category_order,
        benchmark.regimes,
        benchmark.metrics,
    )
    for name, order in zip(KEYS, orders, strict=True):
        frame[name] = pd.Categorical(frame[name], order, ordered=True)
    return frame
