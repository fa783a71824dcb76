"""Round embeddings to the float16 values of a receipt, and deviations to the digits of a record."""

import numpy as np
import numpy.typing as npt

DIGITS = 3
"""Number of significant digits of deviations in a record."""

Half = npt.NDArray[np.float16]
Wide = npt.NDArray[np.float64]


def scaled(rerun: npt.NDArray[np.floating], scale_log2: int) -> Wide:
    """Return rerun embeddings divided by the receipt's scale, exactly."""
    return np.ldexp(rerun.astype(np.float64), -scale_log2)


def receipt_values(rerun: npt.NDArray[np.floating], scale_log2: int) -> Half:
    """Return the float16 values of embeddings in a receipt; infinite if they overflow."""
    with np.errstate(over="ignore"):
        rounded = scaled(rerun, scale_log2).astype(np.float16)
    rounded[rounded == 0] = 0  # -0.0 becomes 0.0
    return rounded


def rounded_for_record(deviation: Wide) -> Wide:
    """Return deviations rounded as in a record; infinite ones become a large number."""
    capped = np.minimum(deviation, np.finfo(np.float64).max / 2)
    return np.array([float(f"{value:.{DIGITS - 1}e}") for value in capped.tolist()])
