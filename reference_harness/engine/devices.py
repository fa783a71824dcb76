"""The part of an engine that embeds on one machine: in this process, or in one per device.

The process of a device loads the extractor and embeds task after task. Embeddings are passed by the
cache. If a process dies, only its unsaved embeddings are lost: another process repeats the task and
finds the saved ones in the cache.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from reference_harness.embedding.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.errors import EmbeddingError, OptionError, WorkerDiedError
from reference_harness.formats.processes import WorkerProcesses, processors
from reference_harness.formats.text import Say, plural, silent
from reference_harness.loading.extractor_facts import ExtractorFacts

from . import ATTEMPTS_MAX, Notice
from .device_process import EmbeddedTask, embed_task, load_extractor, prepare_process
from .remote import StartedEmbedder, facts_difference, thread_variables

VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
"""Environment variable that lists the GPUs that CUDA, or torch for ROCm, may see."""

TASKS_AHEAD = 1
"""Number of tasks that are read in advance, so that no device waits for a file."""

Progress = Callable[[int, int], None]
"""Function that receives how many sequences and letters were newly embedded."""


class TaskEmbedder(Protocol):
    """The interface of the classes that embed tasks for the engine of one machine."""

    facts: ExtractorFacts
    longest_first: bool
    """Whether the longest tasks come first, so that no device is left with one at the end."""

    @property
    def accepts_task(self) -> bool:
        """Whether the run should pass another task to `embed` now."""

    @property
    def open_jobs(self) -> int:
        """Number of tasks without a result."""

    @property
    def futures(self) -> list[Future[Any]]:
        """Futures of running work; as soon as one is done, `results` yields its result."""

    def embed(self, job: EmbedJob, progress: Progress) -> None:
        """Embed a task, at once or as soon as a device is free."""

    def results(self) -> Iterator[EmbedResult | Notice]:
        """Yield the available results, and report the progress."""

    def close(self, error: object) -> None:
        """End every process; at once if `error` is an exception or a class of them."""


class InProcessEmbedder:
    """Embeds tasks in this process, one at a time."""

    longest_first = False
    futures: list[Future[Any]] = []  # noqa: RUF012 - there is nothing to wait for

    def __init__(self, spec: EmbedderSpec) -> None:
        """Load the extractor. Raise EmbeddingError if that fails."""
        self._embedder = spec.load()
        self.facts = self._embedder.facts
        self._results: list[EmbedResult] = []

    @property
    def accepts_task(self) -> bool:
        """Whether `results` has yielded every result."""
        return not self._results

    @property
    def open_jobs(self) -> int:
        """Number of results that `results` has not yielded yet."""
        return len(self._results)

    def embed(self, job: EmbedJob, progress: Progress) -> None:
        """Embed a task at once."""
        with closing(self._embedder.embed(job)) as steps:  # Ctrl-C saves what was computed
            for step in steps:
                if isinstance(step, EmbedResult):
                    self._results.append(step)
                else:
                    progress(*step)

    def results(self) -> Iterator[EmbedResult | Notice]:
        """Yield the results of the tasks embedded since the last call."""
        while self._results:
            yield self._results.pop()

    def close(self, error: object) -> None:
        """Do nothing, as there is no process to end."""


@dataclass
class _Task:
    """A job, or a part of a job, and the function to call with its progress."""

    job: EmbedJob
    progress: Progress
    divided_job: "_DividedJob | None" = None
    """The job of which this is a part; None for a job that is not divided."""


@dataclass
class _DividedJob:
    """A job that several devices embed in parts, and the results of its finished parts."""

    job: EmbedJob
    parts: int
    results: list[EmbedResult] = field(default_factory=list)


@dataclass
class _Device:
    """A device, its process and the task it embeds."""

    name: str
    variables: dict[str, str]
    """Environment variables of its process."""
    processes: WorkerProcesses | None = None
    executor: Any = None
    counts: Any = None
    """Numbers of sequences and letters that its process embedded, in shared memory."""
    reported_counts: list[int] = field(default_factory=lambda: [0, 0])
    """The counts that were last passed to the progress of a task."""
    loading: Future[StartedEmbedder] | None = None
    embedding: Future[EmbeddedTask] | None = None
    task: _Task | None = None
    deaths: int = 0
    """Number of processes of the device that died since it last finished a task."""

    @property
    def is_idle(self) -> bool:
        """Whether the device has loaded the extractor and embeds nothing."""
        return self.loading is None and self.embedding is None

    def end(self, error: object) -> None:
        """End the device's process, at once if `error` is an exception or a class of them."""
        if self.processes is not None:
            self.processes.__exit__(error)


class DeviceEmbedders:
    """Embeds tasks in one process per device, the longest first, each large one on all devices.

    When all parts of a task are in the cache, one device gets the whole task: it embeds sequences
    that are missing there, usually none, and measures the letters that the model reads and the
    drift, which is the change when the first sequences are embedded again.
    """

    longest_first = True

    def __init__(
        self, spec: EmbedderSpec, count: int, *, fail_fast: bool = False, say: Say = silent
    ) -> None:
        """Load the extractor on `count` devices, first on one alone, as it may download the model.

        Raise EmbeddingError, with the name of the device, if a device cannot load it or has other
        facts than the first; OptionError for a device other than cpu and cuda, and for too few
        GPUs.
        """
        self._spec, self._fail_fast = spec, fail_fast
        self._threads = max(1, processors() // count)
        self._devices = [
            _Device(name, thread_variables(self._threads) | variables)
            for name, variables in devices_of(spec.device, count)
        ]
        self._queue: deque[_Task] = deque()
        self._faults: Counter[str] = Counter()
        """Id of a task -> number of processes that could not continue after it."""
        try:
            first_device, *other_devices = self._devices
            self._start(first_device)
            self.facts = self._loaded(first_device)
            for device in other_devices:
                self._start(device)
            for device in other_devices:
                self._loaded(device)
        except BaseException as error:
            self.close(error)
            raise
        say(f"embedders: {', '.join(device.name for device in self._devices)}")

    def _start(self, device: _Device) -> None:
        """Start the process of a device, which loads the extractor."""
        import multiprocessing

        device.counts = multiprocessing.get_context("spawn").RawArray("q", 2)
        device.reported_counts = [0, 0]
        device.processes = WorkerProcesses(
            1, "spawn", prepare_process, device.variables, device.counts
        )
        device.executor = device.processes.__enter__()
        device.loading = device.executor.submit(
            load_extractor, self._spec, str(Path.cwd()), self._threads
        )

    def _loaded(self, device: _Device) -> ExtractorFacts:
        """Wait until a device has loaded the extractor, and return its facts.

        Raise EmbeddingError, with the name of the device, if it could not.
        """
        loading, device.loading = device.loading, None
        try:
            started: StartedEmbedder | None = loading.result() if loading is not None else None
        except BrokenProcessPool as error:
            msg = f"{device.name}: its process was killed while the model was loaded, probably "
            raise EmbeddingError(f"{msg}out of memory: use fewer --embedders") from error
        if started is None or started.facts is None:
            failure = started.failure if started is not None else "nothing was loaded"
            raise EmbeddingError(f"{device.name}: {failure}")
        expected = getattr(self, "facts", started.facts)
        if started.facts != expected:
            raise EmbeddingError(
                f"{device.name} differs from {self._devices[0].name}: "
                f"{facts_difference(expected, started.facts)}: list only devices of one kind in "
                f"{VISIBLE_VARIABLE}"
            )
        return started.facts

    @property
    def accepts_task(self) -> bool:
        """Whether fewer tasks wait than there are idle devices, plus `TASKS_AHEAD`."""
        return len(self._queue) < TASKS_AHEAD + sum(device.is_idle for device in self._devices)

    @property
    def open_jobs(self) -> int:
        """Number of tasks without a result."""
        return len(self._queue) + sum(device.task is not None for device in self._devices)

    @property
    def futures(self) -> list[Future[Any]]:
        """Futures of what the devices load or embed."""
        running = (device.embedding or device.loading for device in self._devices)
        return [future for future in running if future is not None]

    def embed(self, job: EmbedJob, progress: Progress) -> None:
        """Queue a task, or its parts, for the next free devices."""
        part_jobs = job.parts(len(self._devices), by_calls=not self._spec.measures_budget)
        divided_job = _DividedJob(job, len(part_jobs)) if len(part_jobs) > 1 else None
        self._queue.extend(_Task(part_job, progress, divided_job) for part_job in part_jobs)
        self._assign()

    def _assign(self) -> None:
        """Embed the waiting tasks on idle devices."""
        for device in self._devices:
            if self._queue and device.is_idle:
                device.task = self._queue.popleft()
                try:
                    device.embedding = device.executor.submit(embed_task, device.task.job)
                except BrokenProcessPool as error:
                    device.embedding = Future()
                    device.embedding.set_exception(error)

    def results(self) -> Iterator[EmbedResult | Notice]:
        """Yield the results of the devices; a task whose process died is repeated in another.

        Raise WorkerDiedError if no device is left.
        """
        for device in list(self._devices):
            self._report_progress(device)
            if device.loading is not None and device.loading.done():
                try:
                    self._loaded(device)
                except EmbeddingError as error:
                    yield self._stop_using(device, str(error))
            if device.embedding is not None and device.embedding.done():
                yield from self._outcomes(device)
        self._assign()

    def _report_progress(self, device: _Device) -> None:
        """Call the progress function of a device's task with what is new since the last call."""
        embedded_counts = list(device.counts)
        if device.task is not None and embedded_counts != device.reported_counts:
            device.task.progress(
                embedded_counts[0] - device.reported_counts[0],
                embedded_counts[1] - device.reported_counts[1],
            )
            device.reported_counts = embedded_counts

    def _outcomes(self, device: _Device) -> Iterator[EmbedResult | Notice]:
        """Yield the result of a device's task, or a notice that the task is repeated."""
        task, embedding = device.task, device.embedding
        if task is None or embedding is None:
            raise AssertionError
        device.task = device.embedding = None
        task_id = task.job.task_id
        try:
            result, works = embedding.result()
        except BrokenProcessPool:
            failure = "its process was killed, probably out of memory"
            result, works = EmbedResult(task_id, 0.0, failure=f"{task_id}: {failure}"), False
        if result.failure:
            failure = f"{device.name}: {result.failure.removeprefix(f'{task_id}: ')}"
            result = replace(result, failure=f"{task_id}: {failure}")
        if works:
            device.deaths = 0
            yield from self._completed(task, result)
            return
        self._faults[task_id] += 1
        if self._fail_fast or self._faults[task_id] == ATTEMPTS_MAX:
            yield from self._completed(task, result)
        else:
            yield Notice(f"{task_id}: {failure}; the task continues in another process")
            self._queue.appendleft(task)
        yield from self._replace(device, failure)

    def _completed(self, task: _Task, result: EmbedResult) -> Iterator[EmbedResult]:
        """Yield the result of a job that is not divided, or whose last part is finished.

        When all parts of a job have succeeded, the whole job is queued, and yielded later. If one
        failed, the failure is yielded after the last part.
        """
        divided_job = task.divided_job
        if divided_job is None:
            yield result
            return
        divided_job.results.append(result)
        if len(divided_job.results) < divided_job.parts:
            return
        joined = result_of_parts(divided_job.results)
        if task.job is divided_job.job or joined.failure:
            yield joined
        else:
            divided_job.parts += 1
            self._queue.appendleft(replace(task, job=divided_job.job))

    def _replace(self, device: _Device, failure: str) -> Iterator[Notice]:
        """Start another process for a device; drop a device that lost `ATTEMPTS_MAX` processes."""
        device.deaths += 1
        if device.deaths == ATTEMPTS_MAX:
            yield self._stop_using(device, failure)
            return
        device.end(WorkerDiedError)
        self._start(device)

    def _stop_using(self, device: _Device, failure: str) -> Notice:
        """Stop using a device. Raise WorkerDiedError if it was the last one."""
        self._devices.remove(device)
        device.end(WorkerDiedError)
        if not self._devices:
            raise WorkerDiedError(
                f"{failure}: no embedder is left: run the command again with --resume"
            )
        names_left = ", ".join(device.name for device in self._devices)
        return Notice(f"{failure}: the device is no longer used; remaining: {names_left}")

    def close(self, error: object) -> None:
        """End every process."""
        for device in self._devices:
            device.end(error)


def result_of_parts(results: Sequence[EmbedResult]) -> EmbedResult:
    """Return the result of a job from the results of its parts.

    Times, letters, memory, budgets, notes and failures are combined; the rest is of the last part.
    """
    return replace(
        results[-1],
        seconds=sum(result.seconds for result in results),
        letters=sum(result.letters for result in results),
        peak_memory=max(result.peak_memory for result in results),
        budget=min(
            (result.budget for result in results if result.budget is not None), default=None
        ),
        notes=tuple(dict.fromkeys(note for result in results for note in result.notes)),
        failure=next((result.failure for result in results if result.failure), ""),
    )


def devices_of(device: str, count: int) -> list[tuple[str, dict[str, str]]]:
    """Return (name, environment variables that make only its device visible) of each embedder.

    Each process sees its GPU as the only one, `cuda`, so that records and caches are those of one
    GPU. Raise OptionError for another device, or for too few visible GPUs.
    """
    if device == "cpu":
        return [(f"embedder {number}", {}) for number in range(1, count + 1)]
    if device != "cuda":
        msg = (
            f"--embedders {count} --device {device}: expected --device cpu, or --device cuda "
            "with a "
            "GPU for each embedder"
        )
        raise OptionError(msg)
    visible_devices = os.environ.get(VISIBLE_VARIABLE)
    gpus = (
        [str(n) for n in range(count)]
        if visible_devices is None
        else [*filter(None, visible_devices.split(","))]
    )
    if len(gpus) < count:
        msg = (
            f"--embedders {count}: {VISIBLE_VARIABLE} lists {plural(len(gpus), 'GPU')}, expected a "
            f"GPU for each embedder: list {count}, or use fewer --embedders"
        )
        raise OptionError(msg)
    return [(f"GPU {gpu}", {VISIBLE_VARIABLE: gpu}) for gpu in gpus[:count]]
