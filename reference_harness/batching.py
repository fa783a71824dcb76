"""Which sequences go through a model together: pure functions from token counts to batches.

A batch is an array of row numbers. Every function returns each row exactly once.
"""

from collections.abc import Sequence

import numpy as np

TOKEN_BUDGET = 2048
"""Padded tokens a batch may hold. On a CPU in float32, 2,048 was faster than 8,192 by 7 to 30 % on
mixed lengths, since fewer lengths share a batch; in bfloat16 8,192 was faster by up to 30 %. An
accelerator wants more: none was measured."""

EXACT_ROWS = 64
"""Rows a batch of equal lengths may hold: the largest for which no row differed from a batch of
one, in eight settings of length, dtype and attention kernel."""

EXACT_ALONE = 16
"""Rows of fewer tokens than this go alone under exact batching. Matrix libraries have other kernels
for few rows, and a batch lifts a row over their threshold: on CPU, rows of up to 9 tokens differed
from a batch of one in the last bit, and none of 13 tokens and more did."""


def file_order(count: int, batch_size: int) -> list[np.ndarray]:
    """Cut rows 0..count-1 into runs of `batch_size`, as upstream's loop does."""
    if batch_size < 1:
        msg = f"batch size is {batch_size}, expected at least 1: pass another --batch-size"
        raise ValueError(msg)
    return [np.arange(i, min(i + batch_size, count)) for i in range(0, count, batch_size)]


def token_budget(lengths: Sequence[int], budget: int = TOKEN_BUDGET) -> list[np.ndarray]:
    """Sort rows by length, longest first, and fill batches up to `budget` padded tokens.

    The longest come first so that a batch too large for the memory fails at once. A row longer
    than the budget makes a batch of its own. Rows of one length keep their order.
    """
    _positive(budget)
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    batches: list[np.ndarray] = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = start + max(1, budget // longest)
        batches.append(order[start:stop])
        start = stop
    return batches


def exact_length(
    lengths: Sequence[int], budget: int = TOKEN_BUDGET, rows: int = EXACT_ROWS
) -> list[np.ndarray]:
    """Batch rows of equal length only, so that nothing is padded; longest first.

    Their embeddings are then the same bits whatever else there is to embed: measured on CPU, and
    not promised where the choice of kernel follows the shape of the batch, as on CUDA.
    """
    _positive(budget)
    _positive(rows)
    values = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-values, kind="stable")
    edges = np.flatnonzero(np.diff(values[order])) + 1
    batches: list[np.ndarray] = []
    for group in np.split(order, edges) if len(order) else []:
        length = int(values[group[0]])
        size = 1 if length < EXACT_ALONE else min(rows, max(1, budget // length))
        batches.extend(group[i : i + size] for i in range(0, len(group), size))
    return batches


def _positive(value: int) -> None:
    if value < 1:
        msg = f"a batch may hold {value}, expected at least 1: pass a larger token budget"
        raise ValueError(msg)
