"""Memory: measure the largest batch that fits, and cut batches until they fit.

If an accelerator runs out of memory, a batch is lost, not the run. The batch is halved, earlier
results are kept, and the size that fits limits every later batch, as the memory of a batch grows
with its padded tokens. A process on the host is usually killed instead. So `fitting_budget` tries
batches from one row on, and stops before the next one would need almost all memory.
"""

import contextlib
import gc
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Argument = TypeVar("Argument")
Value = TypeVar("Value")
Batch = npt.NDArray[np.int64]
"""Indices of the sequences of a batch."""

OUT_OF_MEMORY_TEXTS = (
    "out of memory",  # CUDA, HIP, MPS, XPU
    "not enough memory",  # torch on a CPU under Windows
    "can't allocate memory",  # torch on a CPU
    "cannot allocate memory",  # the operating system
    "failed to allocate memory",  # kernels that bring their own allocator
    "alloc_failed",  # CUBLAS_STATUS_ALLOC_FAILED and those of the other CUDA libraries
    "resource_exhausted",  # XLA
)
"""Parts of a RuntimeError's text, in lower case, that mean lack of memory."""
ACCELERATORS = ("cuda", "mps", "xpu")
"""Modules of torch that keep freed memory until `empty_cache`."""
MESSAGE_CHARACTERS_MAX = 200  # characters quoted of an allocator's message, which may be long


FREE_MEMORY_SHARE = 0.8
"""Share of the free memory that a batch may use: allocators round up and leave gaps, and the
batches of a run differ."""
BATCH_SECONDS_MAX = 1.0
"""Time of a batch after which no larger one is tried: the device is busy enough, and all trials
together take twice as long as the last."""
HOST_TOKENS_MAX, DEVICE_TOKENS_MAX = 2048, 1 << 18
"""Largest batch that is tried, in padded tokens. On a CPU, larger ones were slower; on an
accelerator it is 2,048 sequences of 128 tokens, and larger ones were not measured."""


class DoesNotFitError(Exception):
    """A single sequence needs more memory than there is."""

    def __init__(self, row: int, cause: str) -> None:
        super().__init__(f"one sequence alone does not fit into memory: {cause}")
        self.row = row
        """Index of the row among all rows to be computed."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one of its causes, means that memory ran out."""
    torch_error = getattr(sys.modules.get("torch"), "OutOfMemoryError", MemoryError)
    if isinstance(error, MemoryError | torch_error):
        return True
    if isinstance(error, RuntimeError) and any(
        phrase in str(error).lower() for phrase in OUT_OF_MEMORY_TEXTS
    ):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)


def release_memory() -> None:
    """Free the memory of the failed batch, and the accelerator's cache of freed memory."""
    gc.collect()
    torch = sys.modules.get("torch")
    for accelerator in ACCELERATORS:
        module = getattr(torch, accelerator, None)
        if module is not None and module.is_available():
            module.empty_cache()


class MemoryLimit:
    """The largest batch that memory allows, learnt from the batches that did not fit.

    It lasts as long as the model and never grows.
    """

    def __init__(self, memory: "MeasuredMemory | None" = None) -> None:
        self.memory = memory
        """Memory for which the size of a batch is measured before the first one; None if the size
        is given."""
        self.tokens: int | None = None
        """Maximum number of padded tokens per batch; None until memory ran out."""
        self.budget: int | None = None
        """Measured padded tokens that a batch may have; None until they were measured."""
        self._longest = 0
        """Largest `row_tokens` for which the budget was measured."""

    def measure(self, row_tokens: int, fits: Callable[[int], bool]) -> int | None:
        """Return the measured budget; it is measured again if `row_tokens` is larger than before.

        The arguments are those of `fitting_budget`. Return None without `memory`, and if memory
        cannot be measured.
        """
        if self.memory is not None and row_tokens > self._longest:
            self._longest = row_tokens
            budget = fitting_budget(self.memory, row_tokens, fits)
            if budget is not None:
                self.budget = min(budget, self.budget or budget)
        return self.budget

    def fitting(
        self,
        plan: Iterable[Batch],
        lengths: Sequence[int],
        compute: Callable[[Batch], Value],
        owners: Sequence[int] | npt.NDArray[np.int64] | None = None,
    ) -> Iterator[tuple[Batch, Value]]:
        """Yield each batch of `plan`, or parts of it that fit, with the result of `compute`.

        `lengths` are the tokens of each row. A batch that runs out of memory is divided and
        computed again in parts; computed batches are not repeated. Rows keep their order. Raise
        DoesNotFitError for a single row, and other errors of `compute`. `owners[i]` is the index of
        the sequence of which row i is a window, if rows are windows; the error has that index.
        """
        sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 1)
        batches = deque(plan)
        while batches:
            planned = batches.popleft()
            rows = self._rows_within_limit(planned, sizes)
            if len(rows) < len(planned):
                batches.appendleft(planned[len(rows) :])
            computed, cause = try_to_compute(compute, rows)
            if cause is None:
                # `computed` is a list, as None may be a result.
                yield rows, computed[0]
                continue
            # Not in an except clause, whose traceback would keep the failed tensors alive.
            release_memory()
            if len(rows) == 1:
                row = int(rows[0])
                raise DoesNotFitError(row if owners is None else int(owners[row]), cause)
            self.tokens = max(1, int(sizes[rows].max()) * len(rows) // 2)
            batches.appendleft(rows)

    def _rows_within_limit(self, rows: Batch, sizes: Batch) -> Batch:
        """Return the first rows of a batch within the limit, at least one."""
        if self.tokens is None:
            return rows
        padded = np.maximum.accumulate(sizes[rows]) * np.arange(1, len(rows) + 1)
        return rows[: max(1, int(np.searchsorted(padded, self.tokens, side="right")))]


def try_to_compute(
    compute: Callable[[Argument], Value], rows: Argument
) -> tuple[list[Value], str | None]:
    """Call `compute`; return [result] and None, or [] and the message if memory ran out.

    No traceback keeps the objects of the failed batch alive afterwards. Raise other errors.
    """
    try:
        return [compute(rows)], None
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        return [], cause[:MESSAGE_CHARACTERS_MAX]


class MeasuredMemory(Protocol):
    """The interface of the memory of a device, of which batches are measured."""

    tokens_max: int
    """Largest batch to try, in padded tokens."""

    def begin(self) -> int | None:
        """Return the free bytes and start to measure; None if memory cannot be measured."""

    def used(self) -> int:
        """Return the largest growth of memory since `begin`, in bytes."""


def memory_of(device: str, allowed: int | None = None) -> "MeasuredMemory":
    """Return the memory of a CUDA GPU; for any other device that of the host.

    `allowed` is the most bytes that the process may use on the host, if another process enforces
    that.
    """
    return _CudaMemory(device) if device.partition(":")[0] == "cuda" else HostMemory(allowed)


def peak_memory(device: str) -> int:
    """Return the most bytes in use on a CUDA GPU, or by this process on a CPU; 0 if unknown.

    On a CPU, they are counted since the process began; on a GPU, since the size of a batch was last
    measured.
    """
    if device.partition(":")[0] == "cuda":
        cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
        return int(cuda.max_memory_allocated(device)) if cuda is not None else 0
    if device != "cpu":
        return 0
    unit = 1 if sys.platform == "darwin" else 1024  # getrusage(2) of macOS and Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def fitting_budget(
    memory: MeasuredMemory, row_tokens: int, fits: Callable[[int], bool]
) -> int | None:
    """Return the padded tokens that a batch may have: a power of two, at most `memory.tokens_max`.

    As a power of two, it is mostly the same in all runs on a machine, although free memory varies.
    `row_tokens` is the number of tokens of the longest row; `fits(n)` computes a batch of n such
    rows, and returns False if memory ran out. Return None if memory cannot be measured. Raise the
    errors of `fits`.
    """
    budget = 1 << max(0, row_tokens - 1).bit_length()
    if budget >= memory.tokens_max:
        return memory.tokens_max  # a single row is a batch
    # Run once before measuring: the first batch of a process also starts threads and kernels.
    if memory.begin() is None:
        return None
    has_fitted = fits(1)
    while has_fitted:
        free_bytes, started = memory.begin() or 0, time.perf_counter()
        rows = budget // row_tokens
        has_fitted = fits(rows)
        seconds, used_bytes = time.perf_counter() - started, memory.used()
        if not has_fitted or used_bytes > FREE_MEMORY_SHARE * free_bytes:
            break
        is_large_enough = budget >= HOST_TOKENS_MAX and seconds > BATCH_SECONDS_MAX
        if (
            is_large_enough
            or 2 * budget > memory.tokens_max
            or used_bytes * (2 * budget // row_tokens) > FREE_MEMORY_SHARE * free_bytes * rows
        ):
            return budget
        budget *= 2
    return max(1, budget // 2)


class HostMemory:
    """Memory of this process on the host, within all its limits."""

    tokens_max = HOST_TOKENS_MAX

    def __init__(self, allowed: int | None = None) -> None:
        self._allowed = allowed
        self._bytes_before = 0

    def begin(self) -> int | None:
        """Return the free bytes and start to measure; None if /proc does not show them."""
        # The peak is reset if allowed; in a sandbox it stays that of the whole process.
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        try:
            status = self._status()
            free_bytes = [
                limit - status[name]
                for name, limit in _memory_limits()
                if limit != resource.RLIM_INFINITY
            ]
            free_bytes += [
                _bytes_by_name("/proc/meminfo")["MemAvailable"],
                *free_memory_of_groups(),
            ]
        except (OSError, KeyError, ValueError):
            return None
        self._bytes_before = status["VmRSS"]
        if self._allowed is not None:
            free_bytes.append(self._allowed - status["VmRSS"])
        return max(0, min(free_bytes))

    def used(self) -> int:
        """Return the growth of resident memory since `begin` in bytes, or an upper bound.

        It is only a bound if the peak could not be reset and was higher before `begin`.
        """
        return max(0, self._status()["VmHWM"] - self._bytes_before)

    @staticmethod
    def _status() -> dict[str, int]:
        """Return the memory of this process in bytes, by the names in /proc/self/status."""
        return _bytes_by_name("/proc/self/status")


class _CudaMemory:
    """Memory of one GPU, according to torch's allocator."""

    tokens_max = DEVICE_TOKENS_MAX

    def __init__(self, device: str) -> None:
        self._device = device
        self._bytes_before = 0

    def begin(self) -> int | None:
        cuda = self._torch_cuda()
        if cuda is None or not cuda.is_available():
            return None
        cuda.synchronize(self._device)
        cuda.reset_peak_memory_stats(self._device)
        self._bytes_before = cuda.memory_allocated(self._device)
        reserved = cuda.memory_reserved(self._device) - self._bytes_before
        return int(cuda.mem_get_info(self._device)[0] + reserved)

    def used(self) -> int:
        """Return the largest growth of allocated GPU memory since `begin`, in bytes."""
        cuda: Any = self._torch_cuda()
        cuda.synchronize(self._device)
        return int(cuda.max_memory_allocated(self._device) - self._bytes_before)

    @staticmethod
    def _torch_cuda() -> Any:  # the module torch.cuda; None if torch is not imported
        return getattr(sys.modules.get("torch"), "cuda", None)


def _memory_limits() -> Iterator[tuple[str, int]]:
    """Yield each soft limit: the name of the line in /proc/self/status it bounds, and its bytes."""
    yield "VmSize", resource.getrlimit(resource.RLIMIT_AS)[0]
    yield "VmData", resource.getrlimit(resource.RLIMIT_DATA)[0]


def _bytes_by_name(file: str) -> dict[str, int]:
    """Return the bytes of the lines `Name: number kB` of a file in /proc, by name."""
    lines = (line.split() for line in Path(file).read_text(encoding="ascii").splitlines())
    return {words[0][:-1]: int(words[1]) << 10 for words in lines if words[2:] == ["kB"]}


def free_memory_of_groups(
    group_file: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> list[int]:
    """Return the free bytes of each control group of this process that limits memory.

    Both versions of control groups are read. Cached pages of files that are not in use count as
    free. The list is empty if no group is visible.
    """
    free_by_group = []
    with contextlib.suppress(OSError):
        for line in group_file.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                top_folder, limit, usage = root, "memory.max", "memory.current"
            elif "memory" in controllers.split(","):
                top_folder, limit, usage = (
                    root / "memory",
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                )
            else:
                continue
            folder = top_folder / path.lstrip("/")
            for group in (folder, *folder.parents):
                if not group.is_relative_to(top_folder):
                    break
                with contextlib.suppress(OSError, ValueError):  # "max", or an invisible group
                    free_in_group = int((group / limit).read_text(encoding="ascii"))
                    free_in_group -= int((group / usage).read_text(encoding="ascii"))
                    free_by_group.append(free_in_group + _reclaimable_bytes(group / "memory.stat"))
    return free_by_group


def _reclaimable_bytes(file: Path) -> int:
    """Return the bytes of inactive cached files, which a control group frees if needed."""
    with contextlib.suppress(OSError, ValueError):
        lines = (line.split() for line in file.read_text(encoding="ascii").splitlines())
        bytes_by_counter = {words[0]: int(words[1]) for words in lines}
        return bytes_by_counter.get("total_inactive_file", bytes_by_counter.get("inactive_file", 0))
    return 0
