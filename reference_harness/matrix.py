"""Matrices of embeddings in `.npy` files, which an untrusted extractor may have made."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from . import noise
from .errors import EmbeddingError

FINITE_EMBEDDINGS = 1 << 12  # embeddings looked at together: a large matrix is not read into memory
WIDTH_MAX = 8192
"""Columns of an embedding: twice those of the widest of the 41 public models, 4,096. The time of a
fit grows with them, so a width that no model has is refused before anything is fitted."""
MAGNITUDE_MAX = float(np.sqrt(np.finfo(np.float32).max / WIDTH_MAX))
"""Largest absolute value, about 2e17: the squared length of an embedding is then a float32, in
which the probe computes. Public models stay far below."""


class AnyMatrix(Protocol):
    """The interface of (n, d) features: an array, or embeddings converted when they are read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Embeddings and columns."""

    @property
    def size(self) -> int:
        """Number of values: rows times columns."""

    def __len__(self) -> int:
        """Return the number of embeddings."""

    def __getitem__(self, rows: Any, /) -> npt.NDArray[Any]:  # slice or array
        """Return embeddings."""

    def __array__(self, dtype: Any = ..., /) -> npt.NDArray[Any]:  # NumPy's protocol
        """Return all embeddings."""


_FLOATS = ("float16", "float32", "float64")


def open_matrix(path: Path) -> noise.Embeddings:
    """Map an (n, d) matrix of finite floating numbers; nothing in the file is ever run.

    Raises EmbeddingError, which says what the file is instead.
    """
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        msg = f"{path}: not a .npy file of numbers: {error}"
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
    for start in range(0, len(matrix), FINITE_EMBEDDINGS):
        part = matrix[start : start + FINITE_EMBEDDINGS]
        for wrong, objection in (
            (~np.isfinite(part), "a number that is not finite"),
            (np.abs(part) > MAGNITUDE_MAX, f"a number beyond {MAGNITUDE_MAX:.3g}"),
        ):
            if wrong.any():
                row = start + int(np.argmax(wrong.any(axis=1)))
                msg = f"{path}: embedding {row} holds {objection}"
                raise EmbeddingError(msg)
    return matrix
