"""The comparison of embeddings in audit records of version 1.0; `column_rule` has the newer rule.

c is the receipt's value, r the auditor's in float32, both divided by the receipt's scale; s is the
root mean square of r. An embedding agreed if every coordinate had

    |c - r| <= 1/2 ulp16(c) + TAU s

and if few coordinates differed from the rounding of r. Float32 in other batches moves a coordinate
by up to 8e-7 s; with bfloat16 nearly every embedding fails.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.rounding import (
    Float16Array,
    Float64Array,
    divided_by_scale,
    receipt_values,
    rounded_for_record,
)


class EmbeddingComparison(NamedTuple):
    """The result of comparing n committed embeddings with their rerun, by the earlier rule."""

    deviation: Float64Array
    """(n,) largest distance of a coordinate beyond half a unit of float16, divided by the root mean
    square of the rerun embedding."""
    mismatch: npt.NDArray[np.int64]
    """(n,) number of coordinates that differ from the rounded rerun."""


def compare_by_first_rule(
    committed: Float16Array, rerun: npt.NDArray[np.floating], scale_log2: int
) -> EmbeddingComparison:
    """Return how (n, d) finite embeddings compare with a rerun, by the rule of version 1.0.

    A rerun that overflows has an infinite deviation.
    """
    scaled_rerun, committed_values = (
        divided_by_scale(rerun, scale_log2),
        committed.astype(np.float64),
    )
    half_unit = np.spacing(np.abs(committed)).astype(np.float64) / 2
    distance_beyond = np.maximum(np.abs(committed_values - scaled_rerun) - half_unit, 0).max(axis=1)
    root_mean_square = np.sqrt(np.mean(scaled_rerun * scaled_rerun, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.where(distance_beyond > 0, distance_beyond / root_mean_square, 0.0)
    deviation[~np.isfinite(scaled_rerun).all(axis=1)] = np.inf
    mismatch = (receipt_values(rerun, scale_log2) != committed).sum(axis=1)
    return EmbeddingComparison(rounded_for_record(deviation), mismatch.astype(np.int64))
