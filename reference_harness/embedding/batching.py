"""Divide sequences into batches by their numbers of tokens.

A batch is an array of indices of sequences, called rows. Every function returns each row once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

DEFAULT_TOKEN_BUDGET = 2048
"""Default limit of padded tokens per batch. On a CPU in float32 with mixed lengths, 2,048 was 7 to
30 % faster than 8,192, as lengths in a batch differ less; in bfloat16 8,192 was up to 30 % faster.
Accelerators need more; none was measured."""

EXACT_ROWS_MAX = 64
"""Maximum number of rows per batch of equal lengths, unless the limit is measured on the device: in
batches of up to 64, no row differed from a batch of one in eight settings of length, dtype and
attention on CPUs."""

EXACT_TOKENS_MIN = 16
"""Minimum number of tokens of sequences that share an exact batch: shorter ones are batches of one,
as matrix libraries use other kernels for few rows: on a CPU, sequences of up to 9 tokens differed
in the last bit from a batch of one, and none of 13 or more tokens did."""


class RowLimit(NamedTuple):
    """The largest batch of sequences of one length that leaves each embedding equal bit for bit."""

    tokens: int
    """Number of tokens of each row."""
    rows: int


DEFAULT_EXACT_LIMITS = (RowLimit(EXACT_TOKENS_MIN, EXACT_ROWS_MAX),)
"""Limits of exact batches, unless they are measured on the device."""


def rows_max_at(limits: Sequence[RowLimit], tokens: int) -> int:
    """Return the maximum number of rows of `tokens` tokens in a batch; limits ascend by tokens.

    Between the lengths of two limits the smaller limit applies, and above the last length the last
    limit. Below the first length the result is 1.
    """
    if not limits or tokens < limits[0].tokens:
        return 1
    upper = next((i for i, limit in enumerate(limits) if limit.tokens >= tokens), len(limits) - 1)
    lower = upper if limits[upper].tokens <= tokens else upper - 1
    return min(limits[lower].rows, limits[upper].rows)


def batches_in_file_order(count: int, batch_size: int) -> list[np.ndarray]:
    """Return rows 0..count-1 in batches of `batch_size`, as in upstream's loop."""
    if batch_size < 1:
        msg = f"batch size is {batch_size}, expected at least 1: pass another --batch-size"
        raise ValueError(msg)
    return [np.arange(i, min(i + batch_size, count)) for i in range(0, count, batch_size)]


def batches_within_budget(
    lengths: Sequence[int], budget: int = DEFAULT_TOKEN_BUDGET
) -> list[np.ndarray]:
    """Return batches of at most `budget` padded tokens, longest rows first.

    The longest are first so that a lack of memory shows at once. A row longer than the budget is a
    batch of one. Rows of equal length keep their order.
    """
    _refuse_below_one(budget)
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    batches: list[np.ndarray] = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = start + max(1, budget // longest)
        batches.append(order[start:stop])
        start = stop
    return batches


def batches_of_equal_length(
    lengths: Sequence[int],
    budget: int = DEFAULT_TOKEN_BUDGET,
    limits: Sequence[RowLimit] = DEFAULT_EXACT_LIMITS,
) -> list[np.ndarray]:
    """Return batches of rows of equal length, without padding, longest first.

    If `limits` were measured on the device (`exact_batches.py`), embeddings do not depend on other
    sequences, bit for bit; otherwise kernels may depend on the shape of the batch.
    """
    _refuse_below_one(budget)
    _refuse_below_one(min((limit.rows for limit in limits), default=1))
    length_array = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-length_array, kind="stable")
    edges = np.flatnonzero(np.diff(length_array[order])) + 1
    batches: list[np.ndarray] = []
    for group in np.split(order, edges) if len(order) else []:
        length = int(length_array[group[0]])
        size = min(rows_max_at(limits, length), max(1, budget // max(1, length)))
        batches.extend(group[i : i + size] for i in range(0, len(group), size))
    return batches


def _refuse_below_one(limit: int) -> None:
    """Raise ValueError for a limit of a batch below 1."""
    if limit < 1:
        msg = f"the batch limit is {limit}, expected at least 1: pass a larger --token-budget"
        raise ValueError(msg)
