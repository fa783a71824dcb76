"""Memory: the batch that has room in it, and batches that are cut until they fit.

An accelerator that runs out of memory costs one batch, not the run. A batch that does not fit is
halved, what was computed before is kept, and the size that fits limits every later batch: the
memory that a batch takes grows with its padded tokens, so the next one of that size would fail,
too. A process on the host is killed instead, as a rule, and cannot go back: `fitting_budget` grows
a batch from one row, and stops before the next one would come near the end of the memory.
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

SIGNS = (
    "out of memory",  # CUDA, HIP, MPS, XPU
    "not enough memory",  # torch on a CPU under Windows
    "can't allocate memory",  # torch on a CPU
    "cannot allocate memory",  # the operating system
    "failed to allocate memory",  # kernels that bring their own allocator
    "alloc_failed",  # CUBLAS_STATUS_ALLOC_FAILED and those of the other CUDA libraries
    "resource_exhausted",  # XLA
)
"""Words of a RuntimeError that mean lack of memory, in lower case."""
ACCELERATORS = ("cuda", "mps", "xpu")
"""Modules of torch that keep freed memory until `empty_cache`."""
MESSAGE_MAX = 200  # characters of an allocator's message in an error: it may list the whole memory


SHARE = 0.8
"""Part of the free memory that a batch may take: allocators round up and leave holes, and the
batches of a run are not all alike."""
SECONDS = 1.0
"""Time of a batch after which no larger one is tried: the device has enough to do, and the trials
together take twice as long as the last one."""
HOST_TOKENS, DEVICE_TOKENS = 2048, 1 << 18
"""Largest batch that is tried, in padded tokens. On a CPU more was slower; on an accelerator it is
what 2,048 sequences of 128 tokens fill. Whether more would be faster was not measured."""


class DoesNotFitError(Exception):
    """One row alone takes more memory than there is."""

    def __init__(self, row: int, cause: str) -> None:
        super().__init__(f"one sequence alone does not fit into memory: {cause}")
        self.row = row
        """Its number among the rows that were to be computed."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one that it was raised from, says that memory ran out."""
    torch_error = getattr(sys.modules.get("torch"), "OutOfMemoryError", MemoryError)
    if isinstance(error, MemoryError | torch_error):
        return True
    if isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in SIGNS):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)


def release_memory() -> None:
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

    def __init__(self, room: "Room | None" = None) -> None:
        self.room = room
        """Where the size of a batch is measured before the first one; None where it is given."""
        self.tokens: int | None = None
        """Limit of padded tokens per batch; None until memory ran out."""
        self.budget: int | None = None
        """Padded tokens of a batch that there is room for; None until that was measured."""
        self._longest = 0

    def measure(self, row: int, run: Callable[[int], bool]) -> int | None:
        """Return the budget that there is room for, measured again where a row is longer.

        `row` is the tokens of the longest row; `run` as in `fitting_budget`. None without `room`,
        and where memory cannot be measured.
        """
        if self.room is not None and row > self._longest:
            self._longest = row
            budget = fitting_budget(self.room, row, run)
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
        """Yield each batch of `plan`, or parts of it that fit, with what `compute` returns.

        `lengths` are the tokens of each row. A batch whose computation runs out of memory is cut
        and computed again in parts; no batch that was computed is. Rows keep their order.

        Raises DoesNotFitError for a single row, which is named by `owners[row]` where that is
        given, and whatever else `compute` raises.
        """
        sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 1)
        batches = deque(plan)
        while batches:
            planned = batches.popleft()
            rows = self._allowed(planned, sizes)
            if len(rows) < len(planned):
                batches.appendleft(planned[len(rows) :])
            value, cause = attempt(compute, rows)
            if cause is None:
                # A list of none or one: None may be a result.
                yield rows, value[0]
                continue
            # Here and not in an except clause, whose traceback would hold the failed tensors.
            release_memory()
            if len(rows) == 1:
                row = int(rows[0])
                raise DoesNotFitError(row if owners is None else int(owners[row]), cause)
            self.tokens = max(1, int(sizes[rows].max()) * len(rows) // 2)
            batches.appendleft(rows)

    def _allowed(self, rows: Batch, sizes: Batch) -> Batch:
        """Return the first rows of a batch that keep to the limit: at least one."""
        if self.tokens is None:
            return rows
        padded = np.maximum.accumulate(sizes[rows]) * np.arange(1, len(rows) + 1)
        return rows[: max(1, int(np.searchsorted(padded, self.tokens, side="right")))]


def attempt(compute: Callable[[Argument], Value], rows: Argument) -> tuple[list[Value], str | None]:
    """Return the result as the only one of a list, or what was said when memory ran out.

    Outside of this no traceback holds what the failed batch had. Raises other errors.
    """
    try:
        return [compute(rows)], None
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        return [], cause[:MESSAGE_MAX]


class Room(Protocol):
    """Memory in which batches are computed."""

    most: int
    """Largest batch to try, in padded tokens."""

    def begin(self) -> int | None:
        """Return the free bytes and begin to watch; None where memory cannot be measured."""

    def used(self) -> int:
        """Return the bytes by which memory had grown, at its largest, since `begin`."""


def room_of(device: str, allowed: int | None = None) -> "Room":
    """Return the memory of a torch device; that of the host for any but a GPU of CUDA.

    `allowed` is the bytes that the process may hold on the host, where somebody else watches that.
    """
    return _Cuda(device) if device.partition(":")[0] == "cuda" else HostMemory(allowed)


def peak_memory(device: str) -> int:
    """Return the most bytes that a GPU of CUDA gave out, or that this process held; 0 if unknown.

    Since the process began, or, on a GPU, since the size of a batch was last measured.
    """
    if device.partition(":")[0] == "cuda":
        cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
        return int(cuda.max_memory_allocated(device)) if cuda is not None else 0
    if device != "cpu":
        return 0
    unit = 1 if sys.platform == "darwin" else 1024  # getrusage(2) of each
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def fitting_budget(room: Room, row: int, run: Callable[[int], bool]) -> int | None:
    """Return the padded tokens that a batch may have: a power of two, at most `room.most`.

    Runs on one machine then mostly have the same budget, though its free memory varies. `row` is
    the tokens of the longest row; `run` computes a batch of as many such rows as it is told, and
    returns False where memory ran out. None where memory cannot be measured. Raises what `run`
    does.
    """
    budget = 1 << max(0, row - 1).bit_length()
    if budget >= room.most:
        return room.most  # such a row is a batch of its own, and there is nothing to choose
    # Once before it is measured: the first batch of a process also starts threads and kernels.
    if room.begin() is None:
        return None
    fits = run(1)
    while fits:
        free, started = room.begin() or 0, time.perf_counter()
        rows = budget // row
        fits = run(rows)
        took, used = time.perf_counter() - started, room.used()
        if not fits or used > SHARE * free:
            break
        enough = budget >= HOST_TOKENS and took > SECONDS
        if enough or 2 * budget > room.most or used * (2 * budget // row) > SHARE * free * rows:
            return budget
        budget *= 2
    return max(1, budget // 2)


class HostMemory:
    """Memory of this process on the host, under each limit that it has."""

    most = HOST_TOKENS

    def __init__(self, allowed: int | None = None) -> None:
        self._allowed = allowed
        self._before = 0

    def begin(self) -> int | None:
        """Return the free bytes and begin to watch; None where /proc does not tell."""
        # The peak is that of the whole life unless it may be reset, which a sandbox refuses.
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        try:
            now = self._status()
            free = [
                limit - now[name] for name, limit in _limits() if limit != resource.RLIM_INFINITY
            ]
            free += [_kib("/proc/meminfo")["MemAvailable"], *group_room()]
        except (OSError, KeyError, ValueError):
            return None
        self._before = now["VmRSS"]
        if self._allowed is not None:
            free.append(self._allowed - now["VmRSS"])
        return max(0, min(free))

    def used(self) -> int:
        """Return the bytes by which the resident memory had grown since `begin`, or more.

        More where the peak was not reset, and the process once held more than at `begin`.
        """
        return max(0, self._status()["VmHWM"] - self._before)

    @staticmethod
    def _status() -> dict[str, int]:
        return _kib("/proc/self/status")


class _Cuda:
    """Memory of one GPU, as far as torch's allocator gives it out."""

    most = DEVICE_TOKENS

    def __init__(self, device: str) -> None:
        self._device = device
        self._before = 0

    def begin(self) -> int | None:
        cuda = self._cuda()
        if cuda is None or not cuda.is_available():
            return None
        cuda.synchronize(self._device)
        cuda.reset_peak_memory_stats(self._device)
        self._before = cuda.memory_allocated(self._device)
        reserved = cuda.memory_reserved(self._device) - self._before
        return int(cuda.mem_get_info(self._device)[0] + reserved)

    def used(self) -> int:
        cuda: Any = self._cuda()
        cuda.synchronize(self._device)
        return int(cuda.max_memory_allocated(self._device) - self._before)

    @staticmethod
    def _cuda() -> Any:  # a module of torch, which need not be here
        return getattr(sys.modules.get("torch"), "cuda", None)


def _limits() -> Iterator[tuple[str, int]]:
    """Yield the soft limits of this process, each with the line of its status that it is about."""
    yield "VmSize", resource.getrlimit(resource.RLIMIT_AS)[0]
    yield "VmData", resource.getrlimit(resource.RLIMIT_DATA)[0]


def _kib(file: str) -> dict[str, int]:
    """Return the bytes in the lines `Name: number kB` of a file of /proc."""
    lines = (line.split() for line in Path(file).read_text(encoding="ascii").splitlines())
    return {words[0][:-1]: int(words[1]) << 10 for words in lines if words[2:] == ["kB"]}


def group_room(
    groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> list[int]:
    """Return the free bytes of each control group around this process that limits memory.

    Both versions are read. A page of a file that was read once is free again when it is needed, so
    it does not count as used. Empty where no group is visible.
    """
    free_bytes = []
    with contextlib.suppress(OSError):
        for line in groups.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                top, limit, usage = root, "memory.max", "memory.current"
            elif "memory" in controllers.split(","):
                top, limit, usage = (
                    root / "memory",
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                )
            else:
                continue
            folder = top / path.lstrip("/")
            for group in (folder, *folder.parents):
                if not group.is_relative_to(top):
                    break
                with contextlib.suppress(OSError, ValueError):  # "max", or a group out of sight
                    free = int((group / limit).read_text(encoding="ascii"))
                    free -= int((group / usage).read_text(encoding="ascii"))
                    free_bytes.append(free + _reclaimable(group / "memory.stat"))
    return free_bytes


def _reclaimable(file: Path) -> int:
    """Return the bytes of files that a group holds and has not used of late."""
    with contextlib.suppress(OSError, ValueError):
        lines = (line.split() for line in file.read_text(encoding="ascii").splitlines())
        values = {words[0]: int(words[1]) for words in lines}
        return values.get("total_inactive_file", values.get("inactive_file", 0))
    return 0
