"""Where one machine embeds: in this process, or in one process for each device.

A process for each device keeps its extractor and embeds task after task, as an embedder of a
cluster does, and the cache is how embeddings travel. A process that dies costs what it had not
saved yet: another one takes its task and finds the rest in the cache.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from reference_harness.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.errors import EmbeddingError, OptionError, WorkerDiedError
from reference_harness.facts import ExtractorFacts
from reference_harness.formats.processes import WorkerProcesses, processors
from reference_harness.formats.text import Say, plural, silent

from . import ATTEMPTS, Notice
from .device_process import Embedded, begin, embed, load
from .remote import StartedEmbedder, difference, thread_variables

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The variable by which CUDA, and ROCm's torch too, shows a process only some GPUs."""

TASKS_AHEAD = 1
"""Tasks that are read and ready, so that no device waits for a file."""

Progress = Callable[[int, int], None]


class Embedding(Protocol):
    """Embeds tasks for the engine of one machine."""

    facts: ExtractorFacts
    longest_first: bool
    """Whether the longest tasks come first, so that no device has one left at the end."""

    @property
    def has_room(self) -> bool:
        """Whether it takes another task now."""

    @property
    def open(self) -> int:
        """Number of tasks without a result."""

    @property
    def futures(self) -> list[Future[Any]]:
        """What there is to wait for until `results` has more."""

    def embed(self, job: EmbedJob, progress: Progress) -> None:
        """Embed a task, now or as soon as a device is free."""

    def results(self) -> Iterator[EmbedResult | Notice]:
        """Yield what is there by now, and report the progress."""

    def close(self, kind: object) -> None:
        """End every process; where `kind` is an exception without waiting for what runs."""


class InProcess:
    """Embeds in this process, one task at a time."""

    longest_first = False
    futures: list[Future[Any]] = []  # noqa: RUF012 - there is nothing to wait for

    def __init__(self, spec: EmbedderSpec) -> None:
        """Load the extractor. Raises EmbeddingError, which says what failed."""
        self._embedder = spec.load()
        self.facts = self._embedder.facts
        self._embedded: list[EmbedResult] = []

    @property
    def has_room(self) -> bool:
        """Whether every result was taken."""
        return not self._embedded

    @property
    def open(self) -> int:
        """Results that were not taken."""
        return len(self._embedded)

    def embed(self, job: EmbedJob, progress: Progress) -> None:
        """Embed a task, now."""
        with closing(self._embedder.embed(job)) as steps:  # Ctrl-C saves what was computed
            for step in steps:
                if isinstance(step, EmbedResult):
                    self._embedded.append(step)
                else:
                    progress(*step)

    def results(self) -> Iterator[EmbedResult | Notice]:
        """Yield the tasks that were embedded."""
        while self._embedded:
            yield self._embedded.pop()

    def close(self, kind: object) -> None:
        """Do nothing: there is no process."""


@dataclass
class _Task:
    """A task, and where its progress goes."""

    job: EmbedJob
    progress: Progress


@dataclass
class _Device:
    """A device with its process."""

    name: str
    variables: dict[str, str]
    """Of the environment of its process."""
    processes: WorkerProcesses | None = None
    executor: Any = None
    counts: Any = None
    """Sequences and letters that its process embedded, in memory that both share."""
    reported: list[int] = field(default_factory=lambda: [0, 0])
    loading: Future[StartedEmbedder] | None = None
    embedding: Future[Embedded] | None = None
    task: _Task | None = None
    faults: int = 0
    """Processes that were lost on it."""

    @property
    def is_idle(self) -> bool:
        """Whether it is loaded and has nothing to do."""
        return self.loading is None and self.embedding is None

    def end(self, kind: object) -> None:
        """End its process; where `kind` is an exception without waiting for what runs."""
        if self.processes is not None:
            self.processes.__exit__(kind)


class OnDevices:
    """Embeds in a process for each device, the longest tasks first."""

    longest_first = True

    def __init__(
        self, spec: EmbedderSpec, count: int, *, fail_fast: bool = False, say: Say = silent
    ) -> None:
        """Load the extractor on each of `count` devices: the first alone, as it may download.

        Raises EmbeddingError, which names the device that cannot load it or is another one than
        the first, and OptionError where the devices are not of this kind.
        """
        self._spec, self._fail_fast = spec, fail_fast
        self._threads = max(1, processors() // count)
        self._devices = [
            _Device(name, thread_variables(self._threads) | variables)
            for name, variables in devices_of(spec.device, count)
        ]
        self._queue: deque[_Task] = deque()
        self._faults: Counter[str] = Counter()
        try:
            first, *others = self._devices
            self._start(first)
            self.facts = self._loaded(first)
            for device in others:
                self._start(device)
            for device in others:
                self._loaded(device)
        except BaseException as error:
            self.close(error)
            raise
        say(f"embedders: {', '.join(device.name for device in self._devices)}")

    def _start(self, device: _Device) -> None:
        import multiprocessing

        device.counts = multiprocessing.get_context("spawn").RawArray("q", 2)
        device.reported = [0, 0]
        device.processes = WorkerProcesses(1, "spawn", begin, device.variables, device.counts)
        device.executor = device.processes.__enter__()
        device.loading = device.executor.submit(load, self._spec, str(Path.cwd()), self._threads)

    def _loaded(self, device: _Device) -> ExtractorFacts:
        """Wait until a device has its extractor, and return the facts.

        Raises EmbeddingError, which names the device.
        """
        loading, device.loading = device.loading, None
        try:
            started: StartedEmbedder | None = loading.result() if loading is not None else None
        except BrokenProcessPool as error:
            msg = f"{device.name}: its process was killed while the model was loaded, probably "
            raise EmbeddingError(f"{msg}out of memory: give fewer --embedders") from error
        if started is None or started.facts is None:
            why = started.failure if started is not None else "nothing was loaded"
            raise EmbeddingError(f"{device.name}: {why}")
        expected = getattr(self, "facts", started.facts)
        if started.facts != expected:
            raise EmbeddingError(
                f"{device.name} is not like {self._devices[0].name}: "
                f"{difference(expected, started.facts)}: name devices of one kind in {VISIBLE}"
            )
        return started.facts

    @property
    def has_room(self) -> bool:
        """Whether few tasks are ready for the next device that is free."""
        return len(self._queue) < TASKS_AHEAD + sum(device.is_idle for device in self._devices)

    @property
    def open(self) -> int:
        """Tasks without a result."""
        return len(self._queue) + sum(device.task is not None for device in self._devices)

    @property
    def futures(self) -> list[Future[Any]]:
        """What the devices do."""
        running = (device.embedding or device.loading for device in self._devices)
        return [future for future in running if future is not None]

    def embed(self, job: EmbedJob, progress: Progress) -> None:
        """Hand a task to the next device that is free."""
        self._queue.append(_Task(job, progress))
        self._assign()

    def _assign(self) -> None:
        for device in self._devices:
            if self._queue and device.is_idle:
                device.task = self._queue.popleft()
                try:
                    device.embedding = device.executor.submit(embed, device.task.job)
                except BrokenProcessPool as error:
                    device.embedding = Future()
                    device.embedding.set_exception(error)

    def results(self) -> Iterator[EmbedResult | Notice]:
        """Yield what the devices embedded; what died with a process goes to another one.

        Raises WorkerDiedError where no device is left.
        """
        for device in list(self._devices):
            self._tell(device)
            if device.loading is not None and device.loading.done():
                try:
                    self._loaded(device)
                except EmbeddingError as error:
                    yield self._dropped(device, str(error))
            if device.embedding is not None and device.embedding.done():
                yield from self._outcomes(device)
        self._assign()

    def _tell(self, device: _Device) -> None:
        """Report the progress of a device since the last time."""
        now = list(device.counts)
        if device.task is not None and now != device.reported:
            device.task.progress(now[0] - device.reported[0], now[1] - device.reported[1])
            device.reported = now

    def _outcomes(self, device: _Device) -> Iterator[EmbedResult | Notice]:
        """Yield the result of a device; where its process is lost, what is done about it."""
        task, embedding = device.task, device.embedding
        if task is None or embedding is None:
            raise AssertionError
        device.task = device.embedding = None
        task_id = task.job.task_id
        try:
            result, works = embedding.result()
        except BrokenProcessPool:
            why = "its process was killed, probably out of memory"
            result, works = EmbedResult(task_id, 0.0, failure=f"{task_id}: {why}"), False
        if result.failure:
            why = f"{device.name}: {result.failure.removeprefix(f'{task_id}: ')}"
            result = replace(result, failure=f"{task_id}: {why}")
        if works:
            device.faults = 0
            yield result
            return
        self._faults[task_id] += 1
        if self._fail_fast or self._faults[task_id] == ATTEMPTS:
            yield result
        else:
            yield Notice(f"{task_id}: {why}; it goes on in another process")
            self._queue.appendleft(task)
        yield from self._replaced(device, why)

    def _replaced(self, device: _Device, why: str) -> Iterator[Notice]:
        """End the process of a device and start another, unless that was its last attempt."""
        device.faults += 1
        if device.faults == ATTEMPTS:
            yield self._dropped(device, why)
            return
        device.end(WorkerDiedError)
        self._start(device)

    def _dropped(self, device: _Device, why: str) -> Notice:
        """Use a device no more. Raises WorkerDiedError where it was the last one."""
        self._devices.remove(device)
        device.end(WorkerDiedError)
        if not self._devices:
            raise WorkerDiedError(f"{why}: no embedder is left: continue with --resume")
        names_left = ", ".join(device.name for device in self._devices)
        return Notice(f"{why}: it is not used any more; left: {names_left}")

    def close(self, kind: object) -> None:
        """End every process."""
        for device in self._devices:
            device.end(kind)


def devices_of(device: str, count: int) -> list[tuple[str, dict[str, str]]]:
    """Return the name of each embedder, and the variables that show its process its device alone.

    Each process sees its GPU as the only one, `cuda`: so a record and a cache are those of one GPU.
    Raises OptionError for another device, or fewer visible GPUs.
    """
    if device == "cpu":
        return [(f"embedder {number}", {}) for number in range(1, count + 1)]
    if device != "cuda":
        msg = f"--embedders {count} --device {device}: expected cpu, or cuda: each has its own GPU"
        raise OptionError(msg)
    visible_devices = os.environ.get(VISIBLE)
    gpus = (
        [str(n) for n in range(count)]
        if visible_devices is None
        else [*filter(None, visible_devices.split(","))]
    )
    if len(gpus) < count:
        msg = f"--embedders {count}: {VISIBLE} has {plural(len(gpus), 'GPU')}: name one for each"
        raise OptionError(msg)
    return [(f"GPU {gpu}", {VISIBLE: gpu}) for gpu in gpus[:count]]
