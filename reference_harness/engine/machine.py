"""The engine of one machine: embeds in this process, and probes in others beside it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Self

from reference_harness.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.errors import WorkerDiedError
from reference_harness.job import Job, ProbeFailure, ProbeResult

from . import ATTEMPTS, Notice
from .local import Pool

AHEAD = 2
"""Tasks a worker may have waiting: enough to keep it busy, few enough to hold little memory."""


class LocalEngine:
    """Embeds task by task in this process, while workers probe those that are embedded."""

    longest_first = False

    def __init__(
        self, spec: EmbedderSpec, workers: int, *, array_api: bool = False, fail_fast: bool = False
    ) -> None:
        """Load the extractor. Raises EmbeddingError, which says what failed."""
        self._embedder = spec.load()
        self.facts = self._embedder.facts
        self._embedded: list[EmbedResult] = []
        self.workers = self._workers = workers
        self._array_api = array_api
        self._fail_fast = fail_fast
        self._pool = self._started()
        self._jobs: dict[str, Job] = {}
        """Submitted to workers and without a result yet, in the order in which they were."""
        self._deaths: Counter[str] = Counter()
        self._death: WorkerDiedError | None = None
        """Met when a task was queued, and told with the results."""

    def _started(self) -> Pool[ProbeResult | ProbeFailure]:
        return Pool(self._workers, array_api=self._array_api)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._pool.__exit__(kind)

    @property
    def has_room(self) -> bool:
        """Whether few jobs wait for the workers."""
        return not self._embedded and len(self._jobs) <= AHEAD * self._workers

    @property
    def open(self) -> int:
        """Jobs without a result."""
        return len(self._embedded) + len(self._jobs)

    def embed(self, job: EmbedJob, progress: Callable[[int, int], None]) -> None:
        """Embed a task, now."""
        with closing(self._embedder.embed(job)) as steps:  # Ctrl-C saves what was computed
            for step in steps:
                if isinstance(step, EmbedResult):
                    self._embedded.append(step)
                else:
                    progress(*step)

    def probe(self, job: Job) -> None:
        """Queue a task for the workers."""
        self._jobs[job.task_id] = job
        try:
            self._pool.submit(job)
        except WorkerDiedError as death:
            self._death = death

    def results(
        self, *, block: bool
    ) -> Iterator[EmbedResult | ProbeResult | ProbeFailure | Notice]:
        """Yield results; workers that were killed are replaced by half as many."""
        if self._embedded:
            yield self._embedded.pop()
            block = False
        try:
            if self._death is not None:
                raise self._death
            for result in self._pool.results(block=block):
                del self._jobs[result.task_id]
                yield result
        except WorkerDiedError as death:
            yield self._after(death)

    def _after(self, death: WorkerDiedError) -> ProbeFailure | Notice:
        """Queue again what waited for a worker; half as many of these take half the memory.

        The only worker was at the task that it was given first: that one fails, if it was that
        task's last round.
        """
        if self._fail_fast:
            raise death
        self._pool.__exit__(WorkerDiedError)
        first = next(iter(self._jobs))
        self._deaths[first] += self._workers == 1
        outcome: ProbeFailure | Notice
        if self._deaths[first] == ATTEMPTS:
            del self._jobs[first]
            outcome = ProbeFailure(first, str(death).partition(": ")[2])
        else:
            self._workers = max(1, min(self._workers, len(self._jobs)) // 2)
            outcome = Notice(
                "a worker process was killed, probably out of memory: its tasks are probed again "
                f"with --jobs {self._workers}"
            )
        self._death, self._pool = None, self._started()
        for job in self._jobs.values():
            self._pool.submit(job)
        return outcome
