"""Matrices of embeddings in `.npy` files, which an untrusted extractor may have made."""

from pathlib import Path

import numpy as np

from . import noise
from .errors import EmbeddingError

FINITE_ROWS = 1 << 12  # rows looked at together: a large matrix is not read into memory

_FLOATS = ("float16", "float32", "float64")


def open_matrix(path: Path) -> noise.Rows:
    """Map an (n, d) matrix of finite floating numbers; nothing in the file is ever run.

    Raises EmbeddingError, which says what the file is instead.
    """
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        msg = f"{path}: not a .npy file of numbers: {error}"
        raise EmbeddingError(msg) from error
    if not isinstance(found, np.ndarray) or found.ndim != 2 or not found.size:  # noqa: PLR2004
        msg = f"{path}: shape {getattr(found, 'shape', None)}, expected (sequences, columns)"
        raise EmbeddingError(msg)
    if found.dtype.name not in _FLOATS or not found.dtype.isnative:
        msg = f"{path}: numbers of type {found.dtype.str}, expected {', '.join(_FLOATS)}"
        raise EmbeddingError(msg)
    for start in range(0, len(found), FINITE_ROWS):
        rows = np.isfinite(found[start : start + FINITE_ROWS]).all(axis=1)
        if not rows.all():
            msg = f"{path}: row {start + int(np.argmin(rows))} holds a number that is not finite"
            raise EmbeddingError(msg)
    return found
