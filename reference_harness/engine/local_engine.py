"""The engine of one machine: it embeds here or on several devices, and probes in processes."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from typing import Self

from reference_harness.embedding.embedder import EmbedJob, EmbedResult
from reference_harness.errors import WorkerDiedError
from reference_harness.run.task_job import ProbeFailure, ProbeResult, ProbeTaskJob

from . import ATTEMPTS_MAX, Notice
from .devices import TaskEmbedder
from .worker_pool import Pool

WAITING_TASKS_PER_WORKER = 2
"""Number of waiting tasks per worker: enough to keep it busy, few enough to need little memory."""
POLL_SECONDS = 0.5
"""Seconds between two reports of the progress of embedding in other processes."""


class LocalEngine:
    """Embeds tasks, while workers probe those already embedded."""

    def __init__(
        self,
        embedder: TaskEmbedder,
        workers: int,
        *,
        array_api: bool = False,
        fail_fast: bool = False,
    ) -> None:
        self._embedder = embedder
        self.facts, self.longest_first = embedder.facts, embedder.longest_first
        self.workers = self._workers = workers
        self._array_api = array_api
        self._fail_fast = fail_fast
        self._pool = self._new_pool()
        self._jobs: dict[str, ProbeTaskJob] = {}
        """Id of a task -> its job that workers have not finished, in order of submission."""
        self._deaths: Counter[str] = Counter()
        """Id of a task -> number of times that the only worker died in it."""
        self._death: WorkerDiedError | None = None
        """Error that `probe` met because a worker had died; `results` handles it."""

    def _new_pool(self) -> Pool[ProbeResult | ProbeFailure]:
        """Return a pool of workers that fit and score probes."""
        return Pool(self._workers, array_api=self._array_api)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self._embedder.close(error)
        self._pool.__exit__(error)

    @property
    def accepts_task(self) -> bool:
        """Whether few jobs wait for the workers, and a device can take a task."""
        return (
            self._embedder.accepts_task
            and len(self._jobs) <= WAITING_TASKS_PER_WORKER * self._workers
        )

    @property
    def open_jobs(self) -> int:
        """Number of jobs without a result."""
        return self._embedder.open_jobs + len(self._jobs)

    def embed(self, job: EmbedJob, progress: Callable[[int, int], None]) -> None:
        """Embed a task."""
        self._embedder.embed(job, progress)

    def probe(self, job: ProbeTaskJob) -> None:
        """Queue a task for the workers."""
        self._jobs[job.task_id] = job
        try:
            self._pool.submit(job)
        except WorkerDiedError as death:
            self._death = death

    def results(
        self, *, block: bool
    ) -> Iterator[EmbedResult | ProbeResult | ProbeFailure | Notice]:
        """Yield the available results; with `block`, wait for the first one.

        If a worker was killed, all workers are replaced by half as many.
        """
        has_yielded = False
        while not has_yielded:
            for result in (*self._embedder.results(), *self._probed()):
                has_yielded = True
                yield result
            running = [*self._embedder.futures, *self._pool.futures]
            if not block or not running:
                return
            if not has_yielded:
                # Only the progress of other processes has to be polled.
                timeout = POLL_SECONDS if self._embedder.futures else None
                wait(running, timeout, FIRST_COMPLETED)

    def _probed(self) -> Iterator[ProbeResult | ProbeFailure | Notice]:
        """Yield the results of finished probes."""
        try:
            if self._death is not None:
                raise self._death
            for result in self._pool.results(block=False):
                del self._jobs[result.task_id]
                yield result
        except WorkerDiedError as death:
            yield self._replace_workers(death)

    def _replace_workers(self, death: WorkerDiedError) -> ProbeFailure | Notice:
        """Submit all unfinished jobs again, to half as many workers, and return a notice.

        If there was only one worker, it died in the first job; after `ATTEMPTS_MAX` deaths, that
        job is dropped and its failure returned. Raise `death` if the run is to end at the first
        failure.
        """
        if self._fail_fast:
            raise death
        self._pool.__exit__(WorkerDiedError)
        first_id = next(iter(self._jobs))
        self._deaths[first_id] += self._workers == 1
        outcome: ProbeFailure | Notice
        if self._deaths[first_id] == ATTEMPTS_MAX:
            del self._jobs[first_id]
            outcome = ProbeFailure(first_id, str(death).partition(": ")[2])
        else:
            self._workers = max(1, min(self._workers, len(self._jobs)) // 2)
            outcome = Notice(
                "a worker process was killed, probably out of memory: its tasks are probed again "
                f"with --jobs {self._workers}"
            )
        self._death, self._pool = None, self._new_pool()
        for job in self._jobs.values():
            self._pool.submit(job)
        return outcome
