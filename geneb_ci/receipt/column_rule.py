"""Whether embeddings are those that the extractor gives, by tolerances of each column.

c is the receipt's value, r that of the rerun in float32, both divided by the receipt's scale. An
embedding is the same if every coordinate has

    |c - r| <= 1/2 ulp16(c) + t,    t = max(TAU spread of the column, FLOOR |r|),

and few coordinates differ from the rounding of r at all, in the embedding and in all drawn
embeddings together.

The spread is taken from the rerun of the drawn embeddings of the task, and from no embedding alone:
one column of large values must not widen the tolerance of others, nor few embeddings that of the
rest. It is

    max(q, min(s, median of q over the columns)),

q the distance of the quartiles and s the standard deviation of the column, q divided by 1.349, so
that both are equal for normal values. Embeddings that are outliers in less than a quarter of the
draw do not move q. A column that is 0 in most embeddings has q = 0: it has s, but no more than is
usual in the task. Support embeddings and the strongest are computed again in any case, so that
whoever writes the extractor knows them, and where few others are drawn they are more than a quarter
of all: q is at most `FORESEEN` times that of the embeddings that nobody could foresee.

What float16 holds badly is no receipt that embeddings can be compared with: one value so large that
the others are subnormal, or columns whose constant hides what differs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.embeddings import FLOOR, TAU_OF_COLUMN, is_within
from geneb_ci.receipt.rounding import Half, Wide, recorded, rounding, scaled

QUARTILES_OF_NORMAL = 1.349
"""Distance of the quartiles of normal values, in standard deviations."""
NORMAL = 2.0**-14
"""Float16 has its full precision from here."""
EMBEDDINGS_MIN = 2
"""Embeddings from which there is a spread."""
FORESEEN = 2.0
"""Times the spread of embeddings that nobody could foresee: that of 45 is known to about 17 %."""
OWN_NOISE = 8.0
"""Times the distance of some dozens of repeats of one sequence that thousands of others deviate by.
Simulated: at most 4, where one column in 128 is far more noisy than the others."""
SPREAD_MIN = 1e-3
"""Of the root mean square of a column: one that varies by less has fewer than two digits left in
float16, and FLOOR would let it move by a thousandth of what it varies by."""


class EmbeddingComparison(NamedTuple):
    """Result of the comparison of n embeddings."""

    deviation: Wide
    """(n,) largest distance beyond half a unit of float16, in tolerances of its coordinate."""
    mismatch: npt.NDArray[np.int64]
    """(n,) coordinates that differ from the rounding of the rerun."""

    def failed(self, width: int) -> npt.NDArray[np.bool_]:
        """Return which embeddings are not the same."""
        pairs = zip(self.deviation.tolist(), self.mismatch.tolist(), strict=True)
        return np.array([not is_within(*pair, width) for pair in pairs], dtype=np.bool_)


def spreads(values: Wide, unforeseen: npt.NDArray[np.bool_] | None = None) -> Wide:
    """Return the (d,) spreads of the columns of (n, d) finite embeddings; 0 for a single one.

    `unforeseen` says which of them nobody could foresee; None where that does not count, as in
    records before version 2.2.
    """
    is_finite = np.isfinite(values).all(axis=1)
    finite = values[is_finite]
    if len(finite) < EMBEDDINGS_MIN:
        return np.zeros(values.shape[1])
    quartiles = _quartiles(finite)
    if unforeseen is not None and (is_finite & unforeseen).sum() >= EMBEDDINGS_MIN:
        quartiles = np.minimum(quartiles, FORESEEN * _quartiles(values[is_finite & unforeseen]))
    # Summed over embeddings of one memory order, so that the bytes depend on the values alone.
    deviation = np.ascontiguousarray(finite).std(axis=0, ddof=1)
    spread: Wide = np.maximum(quartiles, np.minimum(deviation, np.median(quartiles)))
    return spread


def _quartiles(values: Wide) -> Wide:
    """Return the (d,) distances of the quartiles, in standard deviations of normal values."""
    lower, upper = np.quantile(values, (0.25, 0.75), axis=0)
    distances: Wide = (upper - lower) / QUARTILES_OF_NORMAL
    return distances


def tolerances(
    rerun: npt.NDArray[np.floating],
    scale_log2: int,
    unforeseen: npt.NDArray[np.bool_] | None = None,
) -> Wide:
    """Return the (n, d) tolerances of the coordinates of the drawn embeddings of a task.

    They are divided by the receipt's scale, as what is compared. `unforeseen` is that of `spreads`.
    """
    wide = scaled(rerun, scale_log2)
    allowed: Wide = np.maximum(TAU_OF_COLUMN * spreads(wide, unforeseen), FLOOR * np.abs(wide))
    return allowed


def judge(
    committed: Half, rerun: npt.NDArray[np.floating], allowed: Wide, scale_log2: int
) -> EmbeddingComparison:
    """Compare (n, d) finite embeddings of a receipt with those of a rerun by their tolerances.

    A rerun that float32 or float16 cannot hold is no embedding of a receipt: it deviates as far as
    can be said.
    """
    wide, receipt = scaled(rerun, scale_log2), committed.astype(np.float64)
    half = np.spacing(np.abs(committed)).astype(np.float64) / 2
    deviation = _in_tolerances(np.maximum(np.abs(receipt - wide) - half, 0), allowed)
    deviation[~np.isfinite(wide).all(axis=1)] = np.inf
    mismatch = (rounding(rerun, scale_log2) != committed).sum(axis=1)
    return EmbeddingComparison(recorded(deviation), mismatch.astype(np.int64))


class RepeatComparison(NamedTuple):
    """Result for an embedding that was computed again, alone."""

    deviation: float
    mismatch: int
    distance: float
    """From the embedding of the first rerun, in tolerances."""


def judge_again(
    committed: Half,
    first: npt.NDArray[np.floating],
    again: npt.NDArray[np.floating],
    allowed: Wide,
    scale_log2: int,
) -> RepeatComparison:
    """Compare a (d,) embedding with the second rerun, and that with the first."""
    comparison = judge(committed[None, :], again[None, :], allowed[None, :], scale_log2)
    return RepeatComparison(
        float(comparison.deviation[0]),
        int(comparison.mismatch[0]),
        distance(first, again, allowed, scale_log2),
    )


def distance(
    first: npt.NDArray[np.floating],
    again: npt.NDArray[np.floating],
    allowed: Wide,
    scale_log2: int,
) -> float:
    """Return how far two (d,) embeddings of one sequence lie apart, in tolerances."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(scaled(again, scale_log2) - scaled(first, scale_log2))
    return float(recorded(_in_tolerances(apart[None, :], allowed[None, :]))[0])


def is_own_noise(deviation: float, apart: float) -> bool:
    """Return whether an extractor whose repeats lie so far apart may deviate so much by itself.

    Both are the largest, in tolerances. No tolerance becomes wider by it: a receipt that fails so
    cannot be compared at all.
    """
    return apart > 1 and deviation <= OWN_NOISE * apart


def _in_tolerances(distances: Wide, allowed: Wide) -> Wide:
    """Return the largest of each of (n, d) distances, in tolerances; infinite where it is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(distances == 0, 0.0, distances / allowed)
    largest = ratios.max(axis=1, initial=0.0)
    return np.where(np.isnan(largest), np.inf, largest)


def unfit(committed: Half) -> str:
    """Return why (n, d) embeddings of a task in a receipt cannot be compared, or ""."""
    values = committed.astype(np.float64)
    sizes = np.abs(values[values != 0])
    if not sizes.size:
        return ""
    if np.median(sizes) < NORMAL:
        return (
            f"half of the values that are not 0 are below {NORMAL:.1e} of its scale, where float16 "
            f"has fewer digits: the largest is {sizes.max():g}"
        )
    sizes_of_columns = np.sqrt(np.mean(values * values, axis=0))
    used = int((sizes_of_columns > 0).sum())
    narrow = int((values.std(axis=0) < SPREAD_MIN * sizes_of_columns).sum())
    if len(values) > 1 and 2 * narrow > used:
        return (
            f"{narrow} of its {used} columns vary by less than {SPREAD_MIN:g} of their root mean "
            "square: float16 holds too little of what differs"
        )
    return ""
