"""Runs the harness in a separate process, and stops it at limits of time and memory.

The process serves all tasks of an audit. A call that exceeds a limit ends it with all its children;
the next call starts another.

The harness fits probes on numbers that an extractor chose, on which the duration of a fit depends:
with a constant column or values of very different size, it iterates up to its maximum. So the
process is stopped at `LIMIT_FACTOR` times the duration of a slow but honest task of this shape.
"""

import contextlib
import json
import os
import resource
import selectors
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, Self

from geneb_ci.common.config import is_practice
from geneb_ci.common.errors import (
    ExtractorRefused,
    LimitExceeded,
    NothingChecked,
    ResultRefused,
    UsageProblem,
)
from geneb_ci.sandbox import processes
from geneb_ci.sandbox.limits import MIB, limit_fix
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import read_json
from reference_harness.formats.processes import module_command


@dataclass(frozen=True)
class TaskSource:
    """The files from which the harness reads the tasks."""

    data: Path | None
    """Folder of task data; None for the practice benchmark, whose data are generated."""
    definition: Path | None
    """File of the benchmark definition; None for a shipped one."""

    @property
    def options(self) -> list[str]:
        """Options of the harness's command line."""
        path_by_option = {"--data": self.data, "--benchmark": self.definition}
        return [
            word for key, value in path_by_option.items() if value for word in (key, str(value))
        ]


def task_source(benchmark: Benchmark, definition: Path | None, data: Path | None) -> TaskSource:
    """Return the source of a benchmark's tasks.

    Raises UsageProblem if the benchmark needs a folder of task data, and `data` is None.
    """
    if data is None:
        if not is_practice(benchmark.sha256):
            raise UsageProblem(
                f"--data is missing: {benchmark.name} needs its task data",
                "download them with `geneb-ci data pull`, then pass --data DIR",
            )
        return TaskSource(None, None)
    return TaskSource(data.resolve(), definition)


LIMIT_FACTOR = 2
"""Ratio of a limit to the largest honest use that was measured, since other machines are slower."""
CORE_FLOPS = 1e9
"""Operations per second of one core: a matrix times a vector in float64 reaches 1 to 3e9."""
STEP_SECONDS = 3e-4
"""Overhead of one step of a solver, whatever the size: 0.1 to 0.2 ms were measured."""
FLOPS_PER_VALUE = 4
"""Number of operations of one solver step for each number of the embeddings and each class: loss
and gradient each multiply and add once."""
RECORD_STEPS_MAX = 1000
"""Maximum steps of the solver of record; unscaled features of many models reach it."""
OPTIMUM_STEPS = 100
"""Time to solve the probe of a receipt to its optimum, as a number of steps of the solver of
record: 2 to 33 were measured with 256 to 4,096 columns (`make bench-harness`)."""
STOPPING_POINT_STEPS = 96 * 96 // 2
"""Number of solver steps of all fits that search for stopping points: 96 fits, of 1 to 96 steps."""
FEW_SHOT_FITS = 10
"""Number of few-shot fits: two regimes with five seeds each."""
FEW_SHOT_STEPS_MAX = 600
"""Maximum steps of one few-shot fit and its probe at the optimum together."""
FEW_SHOT_SEQUENCES = 10
"""Number of training sequences of each class in a few-shot fit."""
FEW_SHOT_COPY_FACTOR = 4
"""Number of noisy copies of each few-shot fit, as a multiple of that of the full fit."""
NOISE_FLOPS_PER_VALUE = 40
"""Number of operations that draw noise and add it to one number of an embedding."""
START_SECONDS = 15
"""Time to start the harness and each worker: 2 to 4 s were measured."""
START_MIB = 512
"""Memory of the harness and of each worker before any matrix: 180 to 250 MiB were measured."""
MATRICES_PER_WORKER = 8
"""Number of float64 matrices in a worker: embeddings, noise, their sum, splits, solver matrices."""
WALL_FACTOR = 10
"""Seconds on the clock per CPU second, because other programs may use most of the processor."""
THREADS_MAX = 64
"""Maximum threads of the harness and of each worker: array libraries start some per core."""
ASSUMED_CLASSES = 40
"""Number of classes assumed for a task whose classes are not listed: no task of GENEB has more."""


class ScoringLimitOverrides(NamedTuple):
    """Limits of one task that replace the computed ones; None keeps a computed limit."""

    seconds: int | None = None
    """CPU time of all processes together, in seconds."""
    memory_mib: int | None = None
    """Memory of all processes together, in MiB."""


NO_LIMIT_OVERRIDES = ScoringLimitOverrides()
"""No limit is replaced: all of them are computed from the size of the task."""


class ScoringLimits(NamedTuple):
    """Limits of scoring one task."""

    seconds: int
    """Largest CPU time of all processes together, in seconds."""
    memory_mib: int
    """Largest memory of all processes together, in MiB."""
    wall_seconds: int
    """Largest time on the clock, in seconds."""
    processes: int
    """Largest number of processes and threads."""


class ScoringSize(NamedTuple):
    """The numbers that determine the cost of scoring a task."""

    rows: int
    """Number of embeddings."""
    width: int
    """Number of columns of an embedding."""
    classes: int
    """Number of classes of the task."""


def scoring_limits(
    shape: ScoringSize,
    copies: int,
    workers: int,
    options: ScoringLimitOverrides = NO_LIMIT_OVERRIDES,
) -> ScoringLimits:
    """Return the limits of scoring one task, with `copies` noisy copies and `workers` processes."""
    seconds = options.seconds or round(LIMIT_FACTOR * honest_seconds(shape, copies, workers))
    matrix_mib = MATRICES_PER_WORKER * shape.rows * shape.width * 8 // MIB
    memory = (workers + 1) * START_MIB + LIMIT_FACTOR * workers * matrix_mib
    return ScoringLimits(
        seconds=seconds,
        memory_mib=options.memory_mib or memory,
        wall_seconds=WALL_FACTOR * seconds,
        processes=THREADS_MAX * (workers + 1),
    )


def honest_seconds(shape: ScoringSize, copies: int, workers: int) -> float:
    """Return the maximum CPU seconds in which honest embeddings of this shape are scored."""
    coefficients = shape.width * (shape.classes if shape.classes > 2 else 1)  # noqa: PLR2004 (one set)
    steps = (1 + 2 * copies) * RECORD_STEPS_MAX + OPTIMUM_STEPS + STOPPING_POINT_STEPS
    full_seconds = steps * (FLOPS_PER_VALUE * shape.rows * coefficients / CORE_FLOPS + STEP_SECONDS)
    fit_count = FEW_SHOT_FITS * (1 + FEW_SHOT_COPY_FACTOR * copies)
    sequences = FEW_SHOT_SEQUENCES * shape.classes
    fit_seconds = FEW_SHOT_STEPS_MAX * (
        FLOPS_PER_VALUE * sequences * coefficients / CORE_FLOPS + STEP_SECONDS
    )
    noise_seconds = fit_count * NOISE_FLOPS_PER_VALUE * shape.rows * shape.width / CORE_FLOPS
    return (1 + workers) * START_SECONDS + full_seconds + fit_count * fit_seconds + noise_seconds


SCORING_STAGE = "scoring"
"""Name of the stage of an audit in which embeddings are scored, for errors."""
SECONDS_LIMIT, WALL_LIMIT = "scoring_seconds", "scoring_wall_seconds"
MEMORY_LIMIT, PROCESSES_LIMIT = "scoring_memory_mib", "scoring_processes"
"""Names of the limits in errors and records."""
CHECK_INTERVAL_SECONDS = 0.1
"""Seconds between two checks of the limits."""
KILL_SECONDS = 5.0
"""Seconds that a process has to end by itself, and then as many to end after SIGKILL."""
ADDRESS_SLACK_BYTES = 8192 * MIB
"""Address space beyond the limit of memory: libraries reserve it for each core and use little."""
FILE_BYTES_MAX = 1 << 30
"""Largest file that the harness may write: a rescoring, or the sequences of the largest task."""
READ_BYTES = 1 << 16
"""Bytes of an answer that are read at once."""
ANSWER_BYTES_MAX = 1 << 20
"""Largest answer of the harness to a command, in bytes: a message names at most some sequences."""
LOG_BYTES_SHOWN = 2000
"""Number of bytes, from the end of the printed text, that a message shows."""
EMBEDDING_ERRORS = frozenset({"EmbeddingError", "ProbeError"})
"""Errors of the harness that the embeddings cause."""
OUT_OF_MEMORY, WORKER_DIED = "OutOfMemoryError", "WorkerDiedError"
NEAR_LIMIT_SHARE = 0.9
"""Share of the time limit after which a worker that ended is said to have reached the limit."""


class ResourceUse(NamedTuple):
    """The time and memory that a command of the harness used."""

    seconds: float
    """CPU seconds of all processes together."""
    peak: int
    """Largest memory in use at a check, in bytes."""


class HarnessProcess:
    """Calls commands of the harness in one process, which the first call starts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, at_once: bool = False) -> None:
        """End the process and all its children; `at_once` kills them even while they work."""
        process, self._process = self._process, None
        if process is not None:
            if not at_once and process.stdin is not None:
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    process.stdin.close()  # it ends its workers itself
                    process.wait(KILL_SECONDS)
            processes.kill(_process_tree(process), KILL_SECONDS)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def call(
        self, arguments: Sequence[str], task: str = "", limits: ScoringLimits | None = None
    ) -> ResourceUse:
        """Run a command of the harness, within `limits` if it scores the embeddings of `task`.

        Raises LimitExceeded if it exceeds a limit, ResultRefused if the embeddings cannot be scored
        (both name the task), and NothingChecked, with the harness's message, for any other error.
        """
        process = self._running_process()
        call = _Call(process, task, limits)
        try:
            answer = call.answer(arguments)
        except BaseException:
            self.close(at_once=True)
            raise
        if answer is None:
            message = self._last_output(process)
            self.close()
            raise _harness_error(arguments, message)
        if answer["error"] is not None:
            raise call.error(arguments, answer["error"], answer["message"])
        return call.used

    def _running_process(self) -> "subprocess.Popen[bytes]":
        """Return the process of the harness, started if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(  # noqa: S603 (our own module)
            [*module_command("reference_harness"), "batch"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            start_new_session=True,  # Ctrl-C is for this process alone, which then ends that one
        )  # fmt: skip
        return self._process

    def _last_output(self, process: "subprocess.Popen[bytes]") -> str:
        """Return what the process printed before it ended, or its exit code if it was silent."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_SECONDS)
        log = b""
        if self._log is not None:
            self._log.seek(0)
            log = self._log.read()[-LOG_BYTES_SHOWN:]
        log_text = log.decode(errors="backslashreplace").strip()
        return log_text.removeprefix("error: ") or f"code {process.returncode}"


class _Call:
    """One command given to the harness: waits for the answer, and enforces the limits meanwhile."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", task: str, limits: ScoringLimits | None
    ) -> None:
        self._process = process
        self._task = task
        self._limits = limits
        self._started_at = time.monotonic()
        tree = _process_tree(process)
        self._cpu_seconds_before = sum(processes.cpu_seconds(member.pid) for member in tree)
        self._peak = 0
        if limits is not None:
            for member in tree:
                _set_kernel_limits(member.pid, limits)

    @property
    def used(self) -> ResourceUse:
        """The resources that the call has used so far."""
        total = sum(processes.cpu_seconds(member.pid) for member in _process_tree(self._process))
        return ResourceUse(total - self._cpu_seconds_before, self._peak)

    def answer(self, arguments: Sequence[str]) -> dict[str, str | None] | None:
        """Return the answer of the harness; None when its process ended. Raises LimitExceeded."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            msg = "the process has no pipe"
            raise AssertionError(msg)
        try:
            stdin.write(json.dumps(list(arguments)).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return None
        raw = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not raw.endswith(b"\n"):
                if selector.select(CHECK_INTERVAL_SECONDS):
                    chunk = os.read(stdout.fileno(), READ_BYTES)
                    raw += chunk
                    if not chunk or len(raw) > ANSWER_BYTES_MAX:
                        return None
                self._check_limits()
        reply: dict[str, str | None] = read_json(bytes(raw), is_own=True)
        return reply

    def _check_limits(self) -> None:
        """Raise LimitExceeded if the processes exceed a limit of time, memory or threads."""
        if self._limits is None:
            return
        tree = _process_tree(self._process)
        memory_max = self._limits.memory_mib * MIB
        used_memory = processes.used_memory(tree, memory_max)
        self._peak = max(self._peak, used_memory)
        seconds = (
            sum(processes.cpu_seconds(member.pid) for member in tree) - self._cpu_seconds_before
        )
        threads = sum(member.threads for member in tree)
        wall_seconds = time.monotonic() - self._started_at
        if used_memory > memory_max:
            raise self._limit_error(
                MEMORY_LIMIT, f"it used more than {self._limits.memory_mib} MiB"
            )
        if seconds > self._limits.seconds:
            raise self._limit_error(
                SECONDS_LIMIT, f"it took more than {self._limits.seconds} s of CPU time"
            )
        if wall_seconds > self._limits.wall_seconds:
            raise self._limit_error(WALL_LIMIT, f"it ran longer than {self._limits.wall_seconds} s")
        if threads > self._limits.processes:
            raise self._limit_error(
                PROCESSES_LIMIT, f"it had more than {self._limits.processes} threads"
            )

    def error(self, arguments: Sequence[str], error_class: str, message: str | None) -> Exception:
        """Return the exception for an error of the harness, whose class is `error_class`."""
        message_text = str(message)
        if self._limits is None:
            return _harness_error(arguments, message_text)
        if error_class == OUT_OF_MEMORY:
            return self._limit_error(
                MEMORY_LIMIT, f"it needs more than {self._limits.memory_mib} MiB"
            )
        if (
            error_class == WORKER_DIED
            and self.used.seconds > NEAR_LIMIT_SHARE * self._limits.seconds
        ):
            return self._limit_error(SECONDS_LIMIT, f"it took {self._limits.seconds} s of CPU time")
        if error_class in EMBEDDING_ERRORS:
            return _as_scoring_error(
                ResultRefused(
                    f"task {self._task}: the embeddings cannot be scored: {message_text}",
                    "ask the contributor for an extractor whose embeddings a probe can fit",
                ),
                self._task,
            )
        return _harness_error(arguments, message_text)

    def _limit_error(self, limit: str, excess: str) -> ExtractorRefused:
        message = f"task {self._task}: scoring its embeddings was stopped: {excess}"
        return _as_scoring_error(LimitExceeded(limit, message, limit_fix(limit)), self._task)


def _as_scoring_error(error: ExtractorRefused, task: str) -> ExtractorRefused:
    """Return the error with the stage and the task in which it occurred."""
    error.stage, error.task = SCORING_STAGE, task
    return error


def _process_tree(process: "subprocess.Popen[bytes]") -> list[processes.Process]:
    """Return the process of the harness and all its descendants."""
    status = processes.read_process(process.pid)
    return [*([status] if status is not None else []), *processes.descendants(process.pid)]


def _set_kernel_limits(pid: int, limits: ScoringLimits) -> None:
    """Set limits that the kernel enforces on a process, and on its later children, at any time."""
    used_seconds = round(processes.cpu_seconds(pid))
    resource_limits = {
        resource.RLIMIT_CPU: used_seconds + limits.seconds + 1,
        resource.RLIMIT_AS: limits.memory_mib * MIB + ADDRESS_SLACK_BYTES,
        resource.RLIMIT_FSIZE: FILE_BYTES_MAX,
        # 1, not 0: see `sandbox.limits.kernel_limits`.
        resource.RLIMIT_CORE: 1,
    }
    for resource_id, limit in resource_limits.items():
        with contextlib.suppress(ProcessLookupError):
            _, hard_limit = resource.prlimit(pid, resource_id)
            soft_limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
            resource.prlimit(pid, resource_id, (soft_limit, hard_limit))


def _harness_error(arguments: Sequence[str], message: str) -> NothingChecked:
    return NothingChecked(
        f"`geneb-harness {arguments[0]}` failed: {message}",
        "fix what the message names, then run the command again",
    )
