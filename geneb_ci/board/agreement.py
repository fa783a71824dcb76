"""The agreement of rankings as Kendall's tau, and the normal distribution, for arrays."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from geneb_ci.statistics.student import Floats, Positions

BLOCK_SIZE = 64
"""Number of values in a block, all pairs of which are compared: at most 256, since a byte counts
them."""
NORMAL_REACH = 9.0
"""Number of standard deviations beyond which the normal distribution counts as 0: only 1e-19 of it
lie there."""
_erfc = np.frompyfunc(math.erfc, 1, 1)
"""The complementary error function, for arrays."""


def kendall_taus(columns: Sequence[Floats]) -> Floats:
    """Return Kendall's tau-b between each two of K columns of scores, as an array (K, K).

    An element is NaN for fewer than two models, or if one of the two columns is constant. Pairs are
    counted as integers, so the result does not depend on the order of models or on the machine.
    """
    models = len(columns[0])
    ranks = np.array([np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns])
    tied = np.array([_tied_pairs(np.sort(column)) for column in ranks])
    concordance = np.diag(models * (models - 1) // 2 - tied).astype(float)
    for k, base_ranks in enumerate(ranks[:-1]):
        # After Knight (1966): with the rows sorted by one column, the discordant pairs are the
        # inversions of the other column.
        later_columns = slice(k + 1, None)
        ordered = np.sort(base_ranks * np.intp(models) + ranks[later_columns], axis=1)
        tied_pairs = np.array([_tied_pairs(column) for column in ordered])
        differing = models * (models - 1) // 2 - tied[k] - tied[later_columns] + tied_pairs
        concordance[k, later_columns] = concordance[later_columns, k] = differing - 2 * _inversions(
            ordered % max(models, 1)
        )
    untied = np.sqrt(np.diag(concordance))
    is_defined = (untied[:, None] > 0) & (untied[None, :] > 0)
    left, right = (np.where(is_defined, side, 1.0) for side in (untied[:, None], untied[None, :]))
    return np.where(is_defined, np.clip(concordance / left / right, -1.0, 1.0), np.nan)


def _tied_pairs(ordered: Positions) -> int:
    """Return the number of pairs of equal values in a sorted array."""
    last_positions = np.flatnonzero(np.diff(ordered, append=-1))
    counts = np.diff(last_positions, prepend=-1)
    return int((counts * (counts - 1) // 2).sum())


def _inversions(columns: Positions) -> Positions:
    """Return the number of inversions in each row of a (K, M) array of integers from 0 to M.

    An inversion is a pair of numbers in a row, the first of which is larger. Pairs within a block
    of positions or of values are compared; all others are counted by blocks.
    """
    count, length = columns.shape
    dtype = np.min_scalar_type(length)  # two bytes are sorted in a tenth of the time of eight
    by_value = np.argsort(columns.astype(dtype), axis=1, kind="stable")
    # Replace values by ranks; equal values ascend by position, so none of their pairs descends.
    ranks, positions = np.empty((count, length), dtype=dtype), np.arange(length)
    np.put_along_axis(ranks, by_value, positions.astype(dtype)[None, :], axis=1)
    inversions = _near_inversions(ranks) + _near_inversions((by_value // BLOCK_SIZE).astype(dtype))
    blocks = -(-length // BLOCK_SIZE)
    position_blocks = positions // BLOCK_SIZE * blocks
    for k, block in enumerate(ranks // BLOCK_SIZE):
        # Number of values by block of positions (row) and block of values (column).
        counts = np.bincount(position_blocks + block, minlength=blocks * blocks)
        counts = counts.reshape(blocks, blocks)
        # For each block: how many values in earlier positions belong to a later block of values.
        above = np.cumsum(np.cumsum(counts[:-1], axis=0)[:, :0:-1], axis=1)[:, ::-1]
        inversions[k] += (counts[1:, :-1] * above).sum()
    return inversions


def _near_inversions(columns: npt.NDArray[np.unsignedinteger[Any]]) -> Positions:
    """Return the inversions in each row between positions of the same block."""
    count, length = columns.shape
    padded = np.full((count, -(-length // BLOCK_SIZE) * BLOCK_SIZE), length, dtype=columns.dtype)
    padded[:, :length] = columns
    blocks = np.ascontiguousarray(np.moveaxis(padded.reshape(count, -1, BLOCK_SIZE), 2, 0))
    inversions = np.zeros(blocks.shape, dtype=np.uint8)
    for distance in range(1, BLOCK_SIZE):
        inversions[:-distance] += blocks[:-distance] > blocks[distance:]
    return np.asarray(inversions.sum(axis=(0, 2), dtype=np.intp))


def normal_below(values: Floats) -> Floats:
    """Return the probability that a standard normal is below each value: erfc(-x / sqrt 2) / 2."""
    return np.asarray(_erfc(-values / math.sqrt(2)), dtype=float) / 2
