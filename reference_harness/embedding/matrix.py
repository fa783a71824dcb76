"""Read matrices of embeddings from `.npy` files, which an untrusted extractor may have made."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from reference_harness.errors import EmbeddingError

from . import noise

BLOCK_ROWS = 1 << 12  # embeddings checked at once, to limit memory
WIDTH_MAX = 8192
"""Maximum number of columns of an embedding: twice those of the widest of the 41 public models,
4,096. The time of a fit grows with them, so a larger width is refused."""
MAGNITUDE_MAX = float(np.sqrt(np.finfo(np.float32).max / WIDTH_MAX))
"""Largest absolute value, about 2e17, for which the squared length of an embedding is a finite
float32, the type of the probe. Public models stay far below."""


class AnyMatrix(Protocol):
    """(n, d) features that a probe reads: an array, or embeddings that are converted when read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of embeddings and columns."""

    @property
    def size(self) -> int:
        """Number of values: rows times columns."""

    def __len__(self) -> int:
        """Return the number of embeddings."""

    def __getitem__(self, rows: Any, /) -> npt.NDArray[Any]:  # slice or array
        """Return the embeddings of a slice or array of indices."""

    def __array__(self, dtype: Any = ..., /) -> npt.NDArray[Any]:  # NumPy's protocol
        """Return all embeddings."""


_FLOATS = ("float16", "float32", "float64")


def open_matrix(path: Path) -> noise.Embeddings:
    """Return the (n, d) matrix of finite numbers in a file, mapped; no code in the file is run.

    Raise EmbeddingError for any other file.
    """
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        msg = f"{path}: cannot be read, expected a .npy file of numbers: {error}"
        raise EmbeddingError(msg) from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or not matrix.size:  # noqa: PLR2004
        msg = f"{path}: shape {getattr(matrix, 'shape', None)}, expected (sequences, columns)"
        raise EmbeddingError(msg)
    if matrix.dtype.name not in _FLOATS or not matrix.dtype.isnative:
        msg = f"{path}: numbers of type {matrix.dtype.str}, expected {', '.join(_FLOATS)}"
        raise EmbeddingError(msg)
    if matrix.shape[1] > WIDTH_MAX:
        msg = f"{path}: embeddings of {matrix.shape[1]:,} columns, expected at most {WIDTH_MAX:,}"
        raise EmbeddingError(msg)
    for start in range(0, len(matrix), BLOCK_ROWS):
        block = matrix[start : start + BLOCK_ROWS]
        for is_invalid, fault in (
            (~np.isfinite(block), "a number that is not finite"),
            (np.abs(block) > MAGNITUDE_MAX, f"a number of magnitude above {MAGNITUDE_MAX:.3g}"),
        ):
            if is_invalid.any():
                row = start + int(np.argmax(is_invalid.any(axis=1)))
                msg = f"{path}: embedding {row} has {fault}"
                raise EmbeddingError(msg)
    return matrix
