"""Compiles a loaded model with torch.compile, which fuses kernels and so moves last digits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import ExtractorError
from .checkpoint import cause_of

BACKEND = "inductor"
"""Of torch.compile: its default."""

Run = Callable[[], list[np.ndarray]]
"""Embeds the same short batches each time."""


def compile_in_place(model: Any, run: Run, tolerance: float) -> None:
    """Compile a module for every length and size of a batch; `run` calls it before and after.

    Raises ExtractorError where torch cannot compile it, compiles nothing of it, or gives rows that
    are farther from those before than `tolerance`, which is relative to their length.
    """
    from torch._dynamo.utils import counters  # two seconds to import

    name = f"compile=true: {type(model).__name__}"
    before, graphs = run(), counters["stats"]["unique_graphs"]
    try:
        model.compile(dynamic=True, backend=BACKEND)
        after = run()
    except Exception as error:
        msg = f"{name} cannot be compiled: {cause_of(error)}: leave compile out"
        raise ExtractorError(msg) from error
    if counters["stats"]["unique_graphs"] == graphs:
        msg = f"{name}: torch.compile compiled nothing of it: leave compile out"
        raise ExtractorError(msg)
    far = max(_distance(*pair) for pair in zip(before, after, strict=True))
    if not far <= tolerance:
        msg = (
            f"{name} gives other embeddings once it is compiled, by {far:.1e} of their length, "
            f"expected {tolerance:.0e} at most: leave compile out"
        )
        raise ExtractorError(msg)


def _distance(before: np.ndarray, after: np.ndarray) -> float:
    """Return the largest distance of two (b, d) rows, over the length of the first."""
    lengths = np.linalg.norm(before, axis=1)
    return float((np.linalg.norm(after - before, axis=1) / np.maximum(lengths, 1e-30)).max())
