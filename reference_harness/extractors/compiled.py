"""Compile a loaded model with torch.compile, which fuses kernels and changes last digits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import ExtractorError
from .checkpoint import cause_of

BACKEND = "inductor"
"""The default backend of torch.compile."""

Run = Callable[[], list[np.ndarray]]
"""Function that returns the embeddings of the same short batches at each call."""


def compile_in_place(model: Any, run: Run, tolerance: float) -> None:
    """Compile a module for all lengths and batch sizes; `run` is called before and after.

    Raise ExtractorError if torch cannot compile it, compiles no part of it, or changes an embedding
    by more than `tolerance`, relative to its length.
    """
    from torch._dynamo.utils import counters  # two seconds to import

    name = f"compile=true: {type(model).__name__}"
    embeddings_before, graphs = run(), counters["stats"]["unique_graphs"]
    try:
        model.compile(dynamic=True, backend=BACKEND)
        embeddings_after = run()
    except Exception as error:
        msg = f"{name} cannot be compiled: {cause_of(error)}: leave compile out"
        raise ExtractorError(msg) from error
    if counters["stats"]["unique_graphs"] == graphs:
        msg = f"{name}: torch.compile compiled no part of it: leave compile out"
        raise ExtractorError(msg)
    distance_max = max(
        _distance(*pair) for pair in zip(embeddings_before, embeddings_after, strict=True)
    )
    if not distance_max <= tolerance:
        msg = (
            f"{name}: compiling changes embeddings by {distance_max:.1e} of their length, expected "
            f"{tolerance:.0e} at most: leave compile out"
        )
        raise ExtractorError(msg)


def _distance(before: np.ndarray, after: np.ndarray) -> float:
    """Return the largest distance between rows of two (b, d) arrays, relative to the first."""
    lengths = np.linalg.norm(before, axis=1)
    return float((np.linalg.norm(after - before, axis=1) / np.maximum(lengths, 1e-30)).max())
