"""The engine of a Ray cluster: embedders on GPUs or CPUs, and probes on one core each.

Embeddings are passed by the cache. If a process or machine dies, only unsaved embeddings are lost:
another embedder repeats the job and finds the saved ones in the cache.
"""

import heapq
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from reference_harness.embedding.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.errors import EmbeddingError, OptionError, WorkerDiedError
from reference_harness.formats.text import Say, plural, silent
from reference_harness.loading.extractor_facts import ExtractorFacts
from reference_harness.run.task_job import ProbeFailure, ProbeResult, ProbeTaskJob

from . import Notice
from .cluster import Cluster, ClusterSize
from .remote import (
    RemoteEmbedder,
    StartedEmbedder,
    facts_difference,
    probe_task,
    probe_variables,
    thread_variables,
)

PROCESS_DEATHS_MAX = 8
"""Number of dead processes after which a task fails: more than on one machine, since a machine may
leave the cluster for reasons that are not related to the task."""
WAITING_JOBS_PER_EMBEDDER = 2
"""Maximum number of jobs that wait per embedder: enough to keep it busy, few enough for the
memory."""
POLL_SECONDS = 1.0
"""Seconds between two queries of the cluster's resources."""
NOTICE_SECONDS = 60.0
"""Seconds without running work after which the user gets a notice."""

Progress = Callable[[int, int], None]
"""Function that receives how many sequences and letters were newly embedded."""
RunEvent = EmbedResult | ProbeResult | ProbeFailure | Notice
"""Types of results that an engine returns to the run."""


@dataclass
class _Task:
    """A job, the function to call with its progress, and the embedder (Ray actor) that runs it."""

    job: EmbedJob
    progress: Progress
    actor: Any = None


class RayEngine:
    """Embeds and probes on a cluster, the longest tasks first."""

    longest_first = True

    def __init__(
        self,
        spec: EmbedderSpec,
        cluster: Cluster,
        *,
        embedders: int | None = None,
        workers: int | None = None,
        array_api: bool = False,
        fail_fast: bool = False,
        say: Say = silent,
    ) -> None:
        """Load the extractor on the first embedder.

        `embedders` and `workers` limit the use of the cluster; None uses all of it. Raise
        EmbeddingError if loading fails, OptionError if the device is neither cpu nor cuda.
        """
        size = cluster.size()
        self._ray, self._cluster = cluster.ray, cluster
        self._gpus = _takes_gpu(spec.device, size, is_own_cluster=cluster.is_own)
        self._requested_embedders, self._requested_probes = embedders, workers
        self.workers = workers or size.cpus
        self._threads = 1
        if embedders and not self._gpus:
            self._threads = max(1, min(size.cpus // embedders, size.cpus_of_smallest))
        self._fail_fast = fail_fast
        self._actor_class = self._ray.remote(RemoteEmbedder).options(
            num_cpus=self._threads,
            num_gpus=1 if self._gpus else 0,
            runtime_env={"env_vars": thread_variables(self._threads)},
        )
        probe_environment = {"env_vars": probe_variables(array_api=array_api)}
        self._remote_probe = self._ray.remote(max_retries=0, runtime_env=probe_environment)(
            probe_task
        )
        self._arguments = (spec, str(Path.cwd()), self._threads)
        self._size, self._size_time = size, time.monotonic()
        self._starting: dict[Any, Any] = {}
        """Reference of the call `load` -> embedder that runs it, a Ray actor."""
        self._idle: list[Any] = []
        """Embedders without a job."""
        self._parked: list[Any] = []
        """Embedders whose extractor failed or differs from the first one's: kept alive, so that no
        other is started in their place."""
        self._queue: deque[_Task] = deque()
        self._streams: dict[Any, _Task] = {}
        """Stream of the progress of a job -> its task."""
        self._probe_queue: list[tuple[int, int, ProbeTaskJob]] = []
        """Heap of (minus the number of training rows, number of the job, job)."""
        self._job_numbers = itertools.count()
        self._probing: dict[Any, ProbeTaskJob] = {}
        """Reference of a running probe -> its job."""
        self._deaths: Counter[str] = Counter()
        """Id of a task -> number of its processes that died."""
        self._notices: deque[Notice] = deque()
        self._last_run_time = time.monotonic()
        """Monotonic time, in seconds, at which embedding or probing was last seen running."""
        try:
            self.facts = self._first_facts(say)
        except BaseException:
            self.__exit__(None)
            raise
        count = plural(self._embedders_max, "embedder")
        say(f"{size}: {count} of {plural(self._threads, 'thread')}")

    def _first_facts(self, say: Say) -> ExtractorFacts:
        """Start the first embedder, and return the facts of the extractor when it is loaded."""
        self._start()
        ((ref, actor),) = self._starting.items()
        while not self._ray.wait([ref], timeout=POLL_SECONDS)[0]:
            if reason := self._waiting_reason():
                say(reason)
        started: StartedEmbedder = self._ray.get(ref)
        if started.facts is None:
            raise EmbeddingError(started.failure)
        del self._starting[ref]
        self._idle.append(actor)
        return started.facts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        for ref in self._probing:
            self._ray.cancel(ref, force=True)
        busy_actors = [task.actor for task in self._streams.values()]
        for actor in [*self._starting.values(), *self._idle, *self._parked, *busy_actors]:
            self._ray.kill(actor)

    @property
    def _embedders_max(self) -> int:
        """Number of embedders that fit the current cluster."""
        capacity = self._size.gpus if self._gpus else self._size.cpus // self._threads
        return self._requested_embedders or max(1, capacity)

    @property
    def accepts_task(self) -> bool:
        """Whether fewer than `WAITING_JOBS_PER_EMBEDDER` jobs per embedder wait."""
        return len(self._queue) < WAITING_JOBS_PER_EMBEDDER * self._embedders_max

    @property
    def open_jobs(self) -> int:
        """Number of jobs without a result."""
        embedding = len(self._queue) + len(self._streams)
        return embedding + len(self._probe_queue) + len(self._probing)

    def embed(self, job: EmbedJob, progress: Progress) -> None:
        """Queue a task for the embedders."""
        self._queue.append(_Task(replace(job, cache=_absolute(job.cache)), progress))

    def probe(self, job: ProbeTaskJob) -> None:
        """Queue a task for the probes; those with the most embeddings are started first."""
        rows = len(job.train_labels)
        receipt = job.receipt and job.receipt.absolute()
        job = replace(job, cache=_absolute(job.cache), receipt=receipt)
        heapq.heappush(self._probe_queue, (-rows, next(self._job_numbers), job))

    def results(self, *, block: bool) -> Iterator[RunEvent]:
        """Yield results; the work of a dead process or machine is repeated by another."""
        while True:
            if self._cluster.stopped.is_set():
                raise KeyboardInterrupt
            self._start_and_stop_workers()
            event = self._poll(POLL_SECONDS if block else 0)
            while self._notices:
                yield self._notices.popleft()
            if event is not None:
                yield event
            if event is not None or not block:
                return

    def _start_and_stop_workers(self) -> None:
        """Start embedders and probes for the waiting work, and end idle embedders.

        Ending an idle embedder frees its GPU or CPU for probes, or for another model.
        """
        if time.monotonic() - self._size_time > POLL_SECONDS:
            self._size, self._size_time = self._cluster.size(), time.monotonic()
        while self._queue and self._idle:
            self._assign(self._idle.pop(), self._queue.popleft())
        while self._idle:
            self._ray.kill(self._idle.pop())
        needed_count = min(self._embedders_max - len(self._streams), len(self._queue))
        while len(self._starting) + len(self._parked) < needed_count:
            self._start()
        probes_max = self._requested_probes or max(1, self._size.cpus)
        while self._probe_queue and len(self._probing) < probes_max:
            job = heapq.heappop(self._probe_queue)[2]
            # After each death the probe reserves twice the CPUs, so that fewer share the memory.
            cpus = min(1 << self._deaths[job.task_id], self._size.cpus_of_smallest)
            self._probing[self._remote_probe.options(num_cpus=cpus).remote(job)] = job

    def _start(self) -> None:
        """Start an embedder."""
        actor = self._actor_class.remote(*self._arguments)
        self._starting[actor.load.remote()] = actor

    def _assign(self, actor: Any, task: _Task) -> None:  # Ray's own type
        """Start to embed a task in an embedder."""
        task.actor = actor
        self._streams[actor.embed.options(num_returns="streaming").remote(task.job)] = task

    def _poll(self, timeout: float) -> RunEvent | None:
        """Wait for an event of any process; return the result for the run, or None."""
        running = [*self._streams, *self._probing]
        if running:
            self._last_run_time = time.monotonic()
        elif reason := self._waiting_reason():
            self._notices.append(Notice(reason))
        awaited_refs = [*self._starting, *running]
        if not awaited_refs:
            return None
        ready_refs, _ = self._ray.wait(awaited_refs, timeout=timeout)
        for ref in ready_refs:
            if ref in self._starting:
                self._add_started(ref)
            elif ref in self._streams:
                return self._step(ref)
            else:
                return self._probe_result(ref)
        return None

    def _add_started(self, ref: Any) -> None:  # Ray's own type
        """Use the embedder whose `load` ended, if its extractor's facts equal the first one's."""
        actor = self._starting.pop(ref)
        try:
            started: StartedEmbedder = self._ray.get(ref)
        except self._ray.exceptions.RayActorError:
            return  # it died; another one is started
        if started.facts == self.facts:
            self._idle.append(actor)
            return
        self._parked.append(actor)
        fault = (
            started.failure
            if started.facts is None
            else facts_difference(self.facts, started.facts)
        )
        self._notices.append(Notice(f"an embedder on {started.machine} is not used: {fault}"))

    def _step(self, stream: Any) -> RunEvent | None:  # Ray's own type
        """Take the next event of a job's stream; return it if it is a result, else None."""
        task = self._streams[stream]
        try:
            step = self._ray.get(next(stream))
        except self._ray.exceptions.RayActorError:
            del self._streams[stream]
            self._ray.kill(task.actor)
            return self._repeat_or_fail(
                task.job.task_id, "an embedder", lambda: self._queue.appendleft(task)
            )
        if not isinstance(step, EmbedResult):
            task.progress(*step)
            return None
        del self._streams[stream]
        self._idle.append(task.actor)
        return step

    def _probe_result(self, ref: Any) -> RunEvent | None:  # Ray's own type
        """Return the result of a finished probe; None if its process died and it is repeated."""
        job = self._probing.pop(ref)
        try:
            probed: ProbeResult | ProbeFailure = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError:
            return self._repeat_or_fail(job.task_id, "a probe", lambda: self.probe(job))
        return probed

    def _repeat_or_fail(
        self, task_id: str, process_name: str, repeat: Callable[[], None]
    ) -> ProbeFailure | None:
        """Repeat the task of a dead process, and return None.

        Return the failure of the task after `PROCESS_DEATHS_MAX` deaths. Raise WorkerDiedError if
        the run is to end at the first failure.
        """
        self._deaths[task_id] += 1
        cause = "its process was killed, or its machine left the cluster"
        if self._fail_fast:
            msg = f"{task_id}: {process_name} died: {cause}: run the command again with --resume"
            raise WorkerDiedError(msg)
        if self._deaths[task_id] >= PROCESS_DEATHS_MAX:
            return ProbeFailure(
                task_id, f"{task_id}: {process_name} died {PROCESS_DEATHS_MAX} times: {cause}"
            )
        self._notices.append(
            Notice(f"{task_id}: {process_name} died: {cause}; the task continues elsewhere")
        )
        repeat()
        return None

    def _waiting_reason(self) -> str:
        """Return, once after each minute in which nothing ran, which resources are missing.

        Return "" otherwise.
        """
        if self._cluster.stopped.is_set():
            raise KeyboardInterrupt
        if time.monotonic() - self._last_run_time < NOTICE_SECONDS:
            return ""
        self._last_run_time = time.monotonic()
        needed_resources = (
            "a GPU and a CPU" if self._gpus else f"{plural(self._threads, 'CPU')} on one machine"
        )
        return (
            f"the run waits: an embedder needs {needed_resources} that no other program uses; the "
            f"cluster has {self._cluster.size()}"
        )


def _absolute(cache: Path | str) -> Path | str:
    """Return a folder as an absolute path, as machines may have other working directories."""
    return cache.absolute() if isinstance(cache, Path) else cache


def _takes_gpu(device: str, size: ClusterSize, *, is_own_cluster: bool) -> bool:
    """Whether an embedder needs a GPU.

    Raise OptionError for a device other than cpu and cuda, and if the run's own cluster has no GPU.
    """
    if device == "cpu":
        return False
    if device != "cuda":
        msg = f"--engine ray --device {device}: expected --device cpu, or --device cuda with a GPU "
        msg += "for each embedder"
        raise OptionError(msg)
    if is_own_cluster and not size.gpus:
        msg = "--engine ray --device cuda: Ray finds no GPU on this machine: use --device cpu"
        raise OptionError(msg)
    return True
