"""Round embeddings to the float16 values of a receipt, and deviations to the digits of a record."""

import numpy as np
import numpy.typing as npt

DEVIATION_DIGITS = 3
"""Number of significant digits of deviations in a record."""

Float16Array = npt.NDArray[np.float16]
"""An array of the dtype of a receipt."""
Float64Array = npt.NDArray[np.float64]


def divided_by_scale(rerun: npt.NDArray[np.floating], scale_log2: int) -> Float64Array:
    """Return rerun embeddings divided by the receipt's scale, exactly."""
    return np.ldexp(rerun.astype(np.float64), -scale_log2)


def receipt_values(rerun: npt.NDArray[np.floating], scale_log2: int) -> Float16Array:
    """Return the float16 values of embeddings in a receipt; infinite if they overflow."""
    with np.errstate(over="ignore"):
        rounded = divided_by_scale(rerun, scale_log2).astype(np.float16)
    rounded[rounded == 0] = 0  # -0.0 becomes 0.0
    return rounded


def rounded_for_record(deviation: Float64Array) -> Float64Array:
    """Return deviations rounded to the digits of a record; infinite ones become a large number."""
    capped = np.minimum(deviation, np.finfo(np.float64).max / 2)
    return np.array([float(f"{value:.{DEVIATION_DIGITS - 1}e}") for value in capped.tolist()])
