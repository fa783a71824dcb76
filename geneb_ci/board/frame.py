"""The scores of a board as one long table, a pandas DataFrame.

pandas comes with the extra `tables` alone, so this module is imported where a table is made.
"""

from collections.abc import Iterable

import pandas as pd

from geneb_ci.board.columns import Row
from geneb_ci.board.parts import unknown_sizes
from geneb_ci.board.score_list import SCORE_COLUMNS, score_lines
from reference_harness.formats.benchmark import Benchmark

KEYS, COLUMNS = SCORE_COLUMNS[:5], SCORE_COLUMNS[:7]
"""The columns that identify a line, and these with the value and its standard error."""


def score_frame(rows: Iterable[Row], benchmark: Benchmark) -> pd.DataFrame:
    """Return a DataFrame with COLUMNS and a line for each score of some rows.

    Lines are ordered by lower-case model id, then by regime, task and metric as in the benchmark.
    The columns of KEYS are categorical in that order, which grouping, pivoting and sorting keep.
    The standard error is known for MCC, in the unit of the score, if the row has every task of the
    regime and every test set has a known size; otherwise it is NaN.
    """
    lines = list(score_lines(rows, benchmark, has_errors=not unknown_sizes(benchmark)))
    frame = pd.DataFrame([line[: len(COLUMNS)] for line in lines], columns=COLUMNS)
    frame = frame.astype({"value": float, "standard_error": float})
    orders = (
        list(dict.fromkeys(model for model, *_ in lines)),
        benchmark.task_ids,
        benchmark.category_order,
        benchmark.regimes,
        benchmark.metrics,
    )
    for key_column, order in zip(KEYS, orders, strict=True):
        frame[key_column] = pd.Categorical(frame[key_column], order, ordered=True)
    return frame
