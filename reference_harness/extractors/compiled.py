"""Compile a loaded model with torch.compile, which fuses kernels and changes last digits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import ExtractorError
from .checkpoint import error_and_cause_text

BACKEND = "inductor"
"""Name of the compiler that torch.compile uses by default."""

ShortBatches = Callable[[], list[np.ndarray]]
"""Type of a function that returns the embeddings of the same short batches at each call."""


def compile_in_place(model: Any, embed_short_batches: ShortBatches, tolerance: float) -> None:
    """Compile a module for all lengths and batch sizes, and compare embeddings before and after.

    Raise ExtractorError if torch cannot compile it or compiles no part of it, or if an embedding
    changes by more than `tolerance` times its length.
    """
    from torch._dynamo.utils import counters  # two seconds to import

    subject = f"compile=true: {type(model).__name__}"
    embeddings_before = embed_short_batches()
    graph_count_before = counters["stats"]["unique_graphs"]
    try:
        model.compile(dynamic=True, backend=BACKEND)
        embeddings_after = embed_short_batches()
    except Exception as error:
        msg = f"{subject} cannot be compiled: {error_and_cause_text(error)}: leave compile out"
        raise ExtractorError(msg) from error
    if counters["stats"]["unique_graphs"] == graph_count_before:
        msg = f"{subject}: torch.compile compiled no part of it: leave compile out"
        raise ExtractorError(msg)
    distance_max = max(
        _relative_distance_max(*pair)
        for pair in zip(embeddings_before, embeddings_after, strict=True)
    )
    if not distance_max <= tolerance:
        msg = (
            f"{subject}: compiling changes embeddings by {distance_max:.1e} of their length, "
            "expected "
            f"{tolerance:.0e} at most: leave compile out"
        )
        raise ExtractorError(msg)


def _relative_distance_max(before: np.ndarray, after: np.ndarray) -> float:
    """Return the largest distance of a row (b, d) after from before, over its length before."""
    norms = np.linalg.norm(before, axis=1)
    return float((np.linalg.norm(after - before, axis=1) / np.maximum(norms, 1e-30)).max())
