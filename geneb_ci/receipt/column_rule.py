"""Test whether committed embeddings agree with a rerun, by a tolerance for each column.

c is the receipt's value, r the value of the rerun in float32, both divided by the receipt's scale.
An embedding agrees if every coordinate has

|c - r| <= 1/2 ulp16(c) + t, t = max(TAU spread of the column, FLOOR |r|),

and if few coordinates differ from the rounding of r, in the embedding and in all drawn embeddings
together.

The spread of a column is computed from the rerun of all drawn embeddings of the task. It must
depend neither on other columns with large values nor on a few of the embeddings:

max(q, min(s, median of q over the columns)),

where s is the standard deviation of the column, and q the distance of its quartiles divided by
1.349, so that both are equal for normal values. Outliers in less than a quarter of the drawn
embeddings do not change q. A column that is 0 in most embeddings has q = 0; its spread is s, but at
most the median q. A contributor can foresee that support embeddings and the strongest ones will be
computed again, and these may be more than a quarter of all: therefore q is at most `FORESEEN` times
the q of the embeddings that nobody could foresee.

Embeddings that float16 represents badly cannot be compared: if one value is so large that the
others are subnormal, or if a column varies little about a large constant.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.embeddings import FLOOR, TAU_OF_COLUMN, is_within
from geneb_ci.receipt.rounding import (
    Float16Array,
    Float64Array,
    divided_by_scale,
    receipt_values,
    rounded_for_record,
)

QUARTILES_OF_NORMAL = 1.349
"""Distance between the quartiles of a normal distribution, in standard deviations."""
NORMAL = 2.0**-14
"""Smallest magnitude at which float16 has its full precision."""
EMBEDDINGS_MIN = 2
"""Smallest number of embeddings from which the spread of a column is computed."""
FORESEEN = 2.0
"""Largest ratio of a column's quartile distance over all drawn embeddings to that over the
embeddings whose draw nobody could foresee. Computed from 45 embeddings, the distance has an error
of 17 %."""
OWN_NOISE = 8.0
"""Largest deviation of a receipt that counts as noise of the extractor, as a multiple of the
largest distance between some dozens of repeated embeddings. Simulated: at most 4, with one column
far noisier than the others."""
SPREAD_MIN = 1e-3
"""Smallest standard deviation of a column, as a share of its root mean square, that is compared: of
less variation, float16 keeps fewer than two digits."""


class EmbeddingComparison(NamedTuple):
    """Result of the comparison of n committed embeddings with their rerun."""

    deviation: Float64Array
    """(n,) largest distance of a coordinate beyond half a unit of float16, in tolerances."""
    mismatch: npt.NDArray[np.int64]
    """(n,) number of coordinates that differ from the rounded rerun."""

    def failed(self, width: int) -> npt.NDArray[np.bool_]:
        """Return (n,) whether each embedding differs from its rerun."""
        pairs = zip(self.deviation.tolist(), self.mismatch.tolist(), strict=True)
        return np.array([not is_within(*pair, width) for pair in pairs], dtype=np.bool_)


def column_spreads(
    embeddings: Float64Array, unforeseen: npt.NDArray[np.bool_] | None = None
) -> Float64Array:
    """Return the (d,) spreads of the columns of (n, d) embeddings; 0 if fewer than two are finite.

    `unforeseen` is true for the embeddings that nobody could foresee, which limit the spreads; None
    for records before version 2.2, where they do not.
    """
    is_finite = np.isfinite(embeddings).all(axis=1)
    finite = embeddings[is_finite]
    if len(finite) < EMBEDDINGS_MIN:
        return np.zeros(embeddings.shape[1])
    quartile_spreads = _quartile_spreads(finite)
    if unforeseen is not None and (is_finite & unforeseen).sum() >= EMBEDDINGS_MIN:
        quartile_spreads = np.minimum(
            quartile_spreads, FORESEEN * _quartile_spreads(embeddings[is_finite & unforeseen])
        )
    # Summed over embeddings of one memory order, so that the bytes depend on the values alone.
    deviation = np.ascontiguousarray(finite).std(axis=0, ddof=1)
    spread: Float64Array = np.maximum(
        quartile_spreads, np.minimum(deviation, np.median(quartile_spreads))
    )
    return spread


def _quartile_spreads(embeddings: Float64Array) -> Float64Array:
    """Return the (d,) distances between quartiles, divided by that of a standard normal."""
    lower, upper = np.quantile(embeddings, (0.25, 0.75), axis=0)
    distances: Float64Array = (upper - lower) / QUARTILES_OF_NORMAL
    return distances


def coordinate_tolerances(
    rerun: npt.NDArray[np.floating],
    scale_log2: int,
    unforeseen: npt.NDArray[np.bool_] | None = None,
) -> Float64Array:
    """Return the (n, d) tolerances of the coordinates of the drawn embeddings of a task.

    They are divided by the receipt's scale. `unforeseen` is as in `column_spreads`.
    """
    scaled_rerun = divided_by_scale(rerun, scale_log2)
    column_tolerances: Float64Array = np.maximum(
        TAU_OF_COLUMN * column_spreads(scaled_rerun, unforeseen), FLOOR * np.abs(scaled_rerun)
    )
    return column_tolerances


def compare_with_rerun(
    committed: Float16Array, rerun: npt.NDArray[np.floating], limits: Float64Array, scale_log2: int
) -> EmbeddingComparison:
    """Return how (n, d) finite embeddings of a receipt compare with a rerun, in tolerances.

    A rerun that overflows has an infinite deviation.
    """
    scaled_rerun, committed_values = (
        divided_by_scale(rerun, scale_log2),
        committed.astype(np.float64),
    )
    half_unit = np.spacing(np.abs(committed)).astype(np.float64) / 2
    deviation = _in_tolerances(
        np.maximum(np.abs(committed_values - scaled_rerun) - half_unit, 0), limits
    )
    deviation[~np.isfinite(scaled_rerun).all(axis=1)] = np.inf
    mismatch = (receipt_values(rerun, scale_log2) != committed).sum(axis=1)
    return EmbeddingComparison(rounded_for_record(deviation), mismatch.astype(np.int64))


class RepeatComparison(NamedTuple):
    """The comparison of a committed embedding with a second rerun of this embedding alone."""

    deviation: float
    """Largest distance of a coordinate beyond half a unit of float16, in tolerances."""
    mismatch: int
    """Number of coordinates that differ from the rounded second rerun."""
    distance: float
    """Distance from the first rerun, in tolerances."""


def compare_with_repeat(
    committed: Float16Array,
    first: npt.NDArray[np.floating],
    repeat: npt.NDArray[np.floating],
    limits: Float64Array,
    scale_log2: int,
) -> RepeatComparison:
    """Return how a committed (d,) embedding compares with `repeat`, a second rerun.

    `first` is the embedding of the first rerun, from which the distance of `repeat` is computed.
    """
    comparison = compare_with_rerun(
        committed[None, :], repeat[None, :], limits[None, :], scale_log2
    )
    return RepeatComparison(
        float(comparison.deviation[0]),
        int(comparison.mismatch[0]),
        distance_in_tolerances(first, repeat, limits, scale_log2),
    )


def distance_in_tolerances(
    first: npt.NDArray[np.floating],
    repeat: npt.NDArray[np.floating],
    limits: Float64Array,
    scale_log2: int,
) -> float:
    """Return the distance of two (d,) embeddings of one sequence, in tolerances."""
    with np.errstate(invalid="ignore"):
        distances = np.abs(
            divided_by_scale(repeat, scale_log2) - divided_by_scale(first, scale_log2)
        )
    return float(rounded_for_record(_in_tolerances(distances[None, :], limits[None, :]))[0])


def is_own_noise(deviation: float, repeat_distance: float) -> bool:
    """Whether an extractor whose repeats differ by `repeat_distance` may cause this deviation.

    Both are the largest over the coordinates, in tolerances. If true, no tolerance is widened: the
    receipt cannot be compared.
    """
    return repeat_distance > 1 and deviation <= OWN_NOISE * repeat_distance


def _in_tolerances(distances: Float64Array, limits: Float64Array) -> Float64Array:
    """Return the largest of d distances of n embeddings, in tolerances; infinite for NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(distances == 0, 0.0, distances / limits)
    largest = ratios.max(axis=1, initial=0.0)
    return np.where(np.isnan(largest), np.inf, largest)


def unfit_reason(committed: Float16Array) -> str:
    """Return why (n, d) embeddings of a task in a receipt cannot be compared, or ""."""
    embeddings = committed.astype(np.float64)
    magnitudes = np.abs(embeddings[embeddings != 0])
    if not magnitudes.size:
        return ""
    if np.median(magnitudes) < NORMAL:
        return (
            f"half of the non-zero values are below {NORMAL:.1e} times the scale of the receipt, "
            f"where float16 has fewer digits; the largest is {magnitudes.max():g} times the scale"
        )
    root_mean_squares = np.sqrt(np.mean(embeddings * embeddings, axis=0))
    used_count = int((root_mean_squares > 0).sum())
    narrow_count = int((embeddings.std(axis=0) < SPREAD_MIN * root_mean_squares).sum())
    if len(embeddings) > 1 and 2 * narrow_count > used_count:
        return (
            f"{narrow_count} of the {used_count} columns vary by less than {SPREAD_MIN:g} of their "
            "root mean square, so float16 keeps too few digits of the variation"
        )
    return ""
