"""How far two rankings agree, and the normal distribution, for arrays."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from geneb_ci.board.variance import Floats

Positions = npt.NDArray[np.intp]
COMPARED = 64
"""Neighbours of which each pair is compared; at most 256, since they are counted in a byte."""
REACH = 9.0
"""Standard errors beyond which a normal has no weight: 1e-19."""
_erfc = np.frompyfunc(math.erfc, 1, 1)


def kendall_taus(columns: Sequence[Floats]) -> Floats:
    """Return Kendall's tau-b of each of K columns of M scores with each other: (K, K).

    NaN where it is not defined: fewer than two models, or all of a column equal. The counts of
    pairs are whole numbers, so the result does not depend on their order or on the machine.
    """
    models = len(columns[0])
    ranks = np.array([np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns])
    tied = np.array([_tied_pairs(np.sort(column)) for column in ranks])
    agree = np.diag(models * (models - 1) // 2 - tied).astype(float)
    for k, base in enumerate(ranks[:-1]):
        # After Knight (1966): of the pairs that differ in both columns, those that one orders
        # against the other are its inversions where the rows stand in the order of the other.
        later_columns = slice(k + 1, None)
        ordered = np.sort(base * np.intp(models) + ranks[later_columns], axis=1)
        tied_pairs = np.array([_tied_pairs(column) for column in ordered])
        differing = models * (models - 1) // 2 - tied[k] - tied[later_columns] + tied_pairs
        agree[k, later_columns] = agree[later_columns, k] = differing - 2 * _inversions(
            ordered % max(models, 1)
        )
    untied = np.sqrt(np.diag(agree))
    defined_ = (untied[:, None] > 0) & (untied[None, :] > 0)
    left, right = (np.where(defined_, side, 1.0) for side in (untied[:, None], untied[None, :]))
    return np.where(defined_, np.clip(agree / left / right, -1.0, 1.0), np.nan)


def _tied_pairs(ordered: Positions) -> int:
    """Return how many pairs of sorted values are equal."""
    last = np.flatnonzero(np.diff(ordered, append=-1))
    counts = np.diff(last, prepend=-1)
    return int((counts * (counts - 1) // 2).sum())


def _inversions(columns: Positions) -> Positions:
    """Return how many pairs of each of K columns (K, M) fall, of values from 0 to M.

    Pairs of which neither places nor values are near are counted by blocks of both.
    """
    count, length = columns.shape
    small = np.min_scalar_type(length)  # two bytes are sorted in a tenth of the time of eight
    by_value = np.argsort(columns.astype(small), axis=1, kind="stable")
    # Equal values ascend, so that none of their pairs falls.
    value, places = np.empty((count, length), dtype=small), np.arange(length)
    np.put_along_axis(value, by_value, places.astype(small)[None, :], axis=1)
    falling = _near_inversions(value) + _near_inversions((by_value // COMPARED).astype(small))
    blocks = -(-length // COMPARED)
    at = places // COMPARED * blocks
    for k, block in enumerate(value // COMPARED):
        inside = np.bincount(at + block, minlength=blocks * blocks).reshape(blocks, blocks)
        # Of the blocks of places before, how many have a value of a block after.
        above = np.cumsum(np.cumsum(inside[:-1], axis=0)[:, :0:-1], axis=1)[:, ::-1]
        falling[k] += (inside[1:, :-1] * above).sum()
    return falling


def _near_inversions(columns: npt.NDArray[np.unsignedinteger[Any]]) -> Positions:
    """Return how many pairs of each column fall of those in the same block of `COMPARED` places."""
    count, length = columns.shape
    padded = np.full((count, -(-length // COMPARED) * COMPARED), length, dtype=columns.dtype)
    padded[:, :length] = columns
    near = np.ascontiguousarray(np.moveaxis(padded.reshape(count, -1, COMPARED), 2, 0))
    falling = np.zeros(near.shape, dtype=np.uint8)
    for apart in range(1, COMPARED):
        falling[:-apart] += near[:-apart] > near[apart:]
    return np.asarray(falling.sum(axis=(0, 2), dtype=np.intp))


def normal_below(values: Floats) -> Floats:
    """Return the probability that a standard normal is below each value: erfc(-x / sqrt 2) / 2."""
    return np.asarray(_erfc(-values / math.sqrt(2)), dtype=float) / 2
