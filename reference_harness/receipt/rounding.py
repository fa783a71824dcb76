"""Round embeddings to float16 with a power of two as scale per task, as scored and published.

Every score is computed from rounded embeddings, so that everyone with the receipt computes the same
predictions, bit for bit.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.errors import ProbeError
from reference_harness.formats.submission_terms import (
    FLOAT16_MAX,
    SCALE_MAX,
    SCALE_MIN,
    SCALED_MAGNITUDE_LOG2,
    UNSCALED_MIN,
)

HalfMatrix = npt.NDArray[np.float16]
"""(n, d) float16 numbers."""

MINUS_ZERO_BITS = 0x8000
"""Bits of -0.0, which is written as 0.0. Comparing bits takes a tenth of the time."""
ROUNDED_TO_ZERO_MAX = 2.0**-25
"""Largest magnitude that becomes 0 in float16. Such values, as jittered zeros are, make NumPy's
conversion ten times slower by underflow, so they are set to 0 before."""
BLOCK_EMBEDDINGS = 4096
"""Number of embeddings of a task that other probes read at once; the rounding of sums depends on
it."""
BLOCK_VALUES = 1 << 20
"""Number of values converted at once, at least one embedding: 8 MiB in float64."""
ROUNDED_VALUES = 1 << 15
"""Number of values rounded at once, at least one embedding: 256 KiB in float64, which fit into a
cache."""


class RoundedEmbeddings(NamedTuple):
    """The embeddings of a task as they are scored and published."""

    values: HalfMatrix
    """(n, d), C-ordered; never -0.0, NaN or infinite."""
    scale_log2: int
    """The embeddings are `values` times 2 ** scale_log2."""


class WidenedEmbeddings:
    """Rounded embeddings that are converted to float32 when read.

    They have the interface that `optimum.solve` needs of a matrix, so that a task mapped from its
    file need not be in memory.
    """

    ndim = 2

    def __init__(self, values: HalfMatrix, scale_log2: int) -> None:
        self.values = values
        self.scale_log2 = scale_log2
        self.shape: tuple[int, ...] = values.shape
        self.size = values.size

    def __len__(self) -> int:
        """Return the number of embeddings."""
        return len(self.values)

    def __getitem__(self, rows: Any) -> npt.NDArray[np.float32]:  # slice or array
        """Return the embeddings of a slice or of indices as float32."""
        return widened(self.values[rows], self.scale_log2)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return all embeddings, in the requested type."""
        del copy  # the result is always new
        rows = self[:]
        return rows if dtype is None else rows.astype(dtype)


def widened(embeddings: HalfMatrix, scale_log2: int) -> npt.NDArray[np.float32]:
    """Return float16 values times 2^scale_log2 as float32, exact for normal numbers."""
    float32_values = embeddings.astype(np.float32)
    return np.ldexp(float32_values, np.int32(scale_log2)) if scale_log2 else float32_values


def scale_log2_of_magnitude(largest: float) -> int:
    """Return the exponent of the scale of a task whose largest magnitude is `largest`.

    It is 0 if float16 represents the values well.
    """
    if largest == 0.0 or UNSCALED_MIN <= largest <= FLOAT16_MAX:
        return 0
    return math.frexp(largest)[1] - 1 - SCALED_MAGNITUDE_LOG2


def rounded(matrices: list[npt.NDArray[Any]]) -> RoundedEmbeddings:
    """Return the embeddings of all matrices, (n_i, d) each, in order, rounded.

    Raise ProbeError for a value that is not finite, or too large or small for any scale.
    """
    scale_log2 = common_scale_log2(matrices)
    return RoundedEmbeddings(rounded_at(matrices, scale_log2), scale_log2)


def common_scale_log2(matrices: list[npt.NDArray[Any]]) -> int:
    """Return the exponent of the scale for a task's embeddings. Raise ProbeError as `rounded`."""
    largest = 0.0
    for matrix in matrices:
        for block in _blocks(matrix):
            block_max = float(np.abs(block).max())
            if not math.isfinite(block_max):
                msg = "an embedding has NaN or infinity, expected finite values"
                raise ProbeError(msg)
            largest = max(largest, block_max)
    scale_log2 = scale_log2_of_magnitude(largest)
    if not SCALE_MIN <= scale_log2 <= SCALE_MAX:
        msg = f"the largest value of the embeddings is {largest:g}, expected a value from "
        low, high = (2.0 ** (scale + SCALED_MAGNITUDE_LOG2) for scale in (SCALE_MIN, SCALE_MAX))
        msg += f"{low:.0e} to {high:.0e}"
        raise ProbeError(msg)
    return scale_log2


def rounded_at(matrices: list[npt.NDArray[Any]], scale_log2: int) -> HalfMatrix:
    """Return the embeddings of all matrices as float16, divided by 2^scale_log2.

    Values too large for float16 at this scale become its largest value.
    """
    columns = matrices[0].shape[1]
    rounded = np.empty((sum(len(matrix) for matrix in matrices), columns), dtype=np.float16)
    step, factor = max(1, ROUNDED_VALUES // max(1, columns)), 2.0**-scale_log2
    position = 0
    for matrix in matrices:
        # Each value is rounded once, from its own type or from float64, which represents scaled
        # values and integers exactly.
        is_wide = bool(scale_log2) or matrix.dtype.kind != "f"
        buffer = np.empty((step, columns), dtype=np.float64 if is_wide else matrix.dtype)
        for start in range(0, len(matrix), step):
            block = matrix[start : start + step]
            scaled, target = buffer[: len(block)], rounded[position : position + len(block)]
            if scale_log2:
                block = np.multiply(block, factor, out=scaled, dtype=np.float64)
            np.clip(block, -FLOAT16_MAX, FLOAT16_MAX, out=scaled)
            scaled *= np.abs(scaled) > ROUNDED_TO_ZERO_MAX
            np.copyto(target, scaled, casting="same_kind")
            bits = target.view(np.uint16)
            bits[bits == MINUS_ZERO_BITS] = 0
            position += len(block)
    return rounded


def _blocks(matrix: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield consecutive rows of a matrix, `BLOCK_VALUES` values at a time."""
    rows = max(1, BLOCK_VALUES // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield matrix[start : start + rows]
