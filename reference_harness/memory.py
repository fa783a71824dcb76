"""Out of memory: what counts as that, and batches that are halved until they fit.

An accelerator that runs out of memory costs one batch, not the run. A batch that does not fit is
halved, what was computed before is kept, and the size that fits limits every later batch: the
memory that a batch takes grows with its padded tokens, so the next one of that size would fail,
too.
"""

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Value = TypeVar("Value")
Batch = npt.NDArray[np.int64]

SIGNS = (
    "out of memory",  # CUDA, HIP, MPS, XPU
    "not enough memory",  # torch on a CPU under Windows
    "can't allocate memory",  # torch on a CPU
    "cannot allocate memory",  # the operating system
    "failed to allocate memory",  # kernels that bring their own allocator
    "alloc_failed",  # CUBLAS_STATUS_ALLOC_FAILED and those of the other CUDA libraries
    "resource_exhausted",  # XLA
)
"""What a RuntimeError says that means lack of memory, in lower case."""
ACCELERATORS = ("cuda", "mps", "xpu")
"""Modules of torch that keep freed memory until `empty_cache`."""
SAID_MAX = 200  # characters of an allocator's message in an error: it may list the whole memory


class DoesNotFitError(Exception):
    """One row alone takes more memory than there is."""

    def __init__(self, row: int, said: str) -> None:
        super().__init__(f"one sequence alone does not fit into memory: {said}")
        self.row = row
        """Its number among the rows that were to be computed."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one that it was raised from, says that memory ran out."""
    known = getattr(sys.modules.get("torch"), "OutOfMemoryError", MemoryError)
    if isinstance(error, MemoryError | known):
        return True
    if isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in SIGNS):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)


def release() -> None:
    """Free what the failed batch held, and the accelerator's cache of freed memory."""
    gc.collect()
    torch = sys.modules.get("torch")
    for name in ACCELERATORS:
        module = getattr(torch, name, None)
        if module is not None and module.is_available():
            module.empty_cache()


class MemoryLimit:
    """The size of a batch that memory allows, learnt from the batches that did not fit.

    Kept as long as the model is: it never grows again.
    """

    def __init__(self) -> None:
        self.tokens: int | None = None
        """Limit of padded tokens per batch; None until memory ran out."""

    def fitting(
        self,
        plan: Iterable[Batch],
        lengths: Sequence[int],
        compute: Callable[[Batch], Value],
        owners: Sequence[int] | npt.NDArray[np.int64] | None = None,
    ) -> Iterator[tuple[Batch, Value]]:
        """Yield each batch of `plan`, or parts of it that fit, with what `compute` returns.

        `lengths` are the tokens of each row. A batch whose computation runs out of memory is cut
        and computed again in parts; no batch that was computed is. Rows keep their order.

        Raises DoesNotFitError for a single row, which is named by `owners[row]` where that is
        given, and whatever else `compute` raises.
        """
        sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 1)
        left = deque(plan)
        while left:
            planned = left.popleft()
            rows = self._allowed(planned, sizes)
            if len(rows) < len(planned):
                left.appendleft(planned[len(rows) :])
            value, said = _attempt(compute, rows)
            if said is None:
                # A list of none or one: None may be a result.
                yield rows, value[0]
                continue
            # Here and not in an except clause, whose traceback would hold the failed tensors.
            release()
            if len(rows) == 1:
                row = int(rows[0])
                raise DoesNotFitError(row if owners is None else int(owners[row]), said)
            self.tokens = max(1, int(sizes[rows].max()) * len(rows) // 2)
            left.appendleft(rows)

    def _allowed(self, rows: Batch, sizes: Batch) -> Batch:
        """Return the first rows of a batch that keep to the limit: at least one."""
        if self.tokens is None:
            return rows
        padded = np.maximum.accumulate(sizes[rows]) * np.arange(1, len(rows) + 1)
        return rows[: max(1, int(np.searchsorted(padded, self.tokens, side="right")))]


def _attempt(compute: Callable[[Batch], Value], rows: Batch) -> tuple[list[Value], str | None]:
    """Return the result, or what was said when memory ran out."""
    try:
        return [compute(rows)], None
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return [], said[:SAID_MAX]
