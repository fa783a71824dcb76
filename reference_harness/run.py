"""One run: checks the data, embeds task by task, fits probes in workers, returns the record."""

import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import environment
from .benchmark import Task
from .cache import Cache
from .embed import Embedded, Embedder
from .engine.local import Pool
from .errors import DataError, FailedTasksError, HarnessError, ProbeError, WorkerDiedError
from .job import Failed, Job, Probed
from .progress import Listener, Silent
from .receipt.task_file import is_written
from .record import LibraryRef, RunRecord, TaskRecord
from .settings import Settings, key_parts, record_of, tasks_to_run
from .state import State
from .tasks import TaskData, sequence_digests

AHEAD = 2
"""Tasks a worker may have waiting: enough to keep it busy, few enough to hold little memory."""
ROUNDS = 3
"""Attempts at a task whose embeddings are lost before they are read, or whose worker is killed. One
is an accident; a disk that damages all it is given, or a task that memory cannot hold, shows by
then."""


@dataclass
class _Open:
    """A task between its embedding and its scores."""

    data: dict[str, Any]
    embedded: Embedded
    seconds: float
    """Time of embedding."""


def run(settings: Settings, listener: Listener | None = None) -> RunRecord:
    """Run and return the record; nothing is written but the cache and the resumable state.

    A task that fails does not end the others, unless `settings.fail_fast` says so. Raises
    FailedTasksError at the end if one did, and a HarnessError for anything else that a user can
    cause; KeyboardInterrupt passes through. Every finished task and embedding is kept.
    """
    return _Run(settings, listener or Silent()).go()


class _Run:
    def __init__(self, settings: Settings, listener: Listener) -> None:
        self.settings = settings
        self.listener = listener
        self.started_at = environment.now()
        self.harness = environment.harness()
        self.state = State(settings.output)
        self.finished: dict[str, TaskRecord] = {}
        self.libraries: dict[tuple[str, str, str, int], LibraryRef] = {}
        self.open: dict[str, _Open] = {}
        self.jobs: dict[str, Job] = {}
        """Submitted to workers and without a result yet, in the order in which they were."""
        self.failed: dict[str, str] = {}
        self.rounds: Counter[str] = Counter()
        self.todo: deque[Task] = deque()
        self.workers = settings.workers
        self.packages = environment.packages_of(settings.loaded.extractor)
        self.key_parts = key_parts(settings, self.packages)
        self.embedder = Embedder(
            settings.loaded, Cache(settings.cache, self.key_parts), settings.batching
        )

    def go(self) -> RunRecord:
        tasks = tasks_to_run(self.settings)
        if self.settings.receipt is not None:
            # Rows of a receipt are compared with a rerun to 1e-5; TF32 differs by 1e-3.
            environment.set_tf32(allowed=False)
        digests = self._check(tasks)
        resumed = self.state.begin(self._identity(digests), resume=self.settings.resume)
        self.todo.extend(task for task in tasks if not self._restored(task, resumed=resumed))
        while self.todo:
            self.workers = max(1, min(self.workers, len(self.todo)))
            with Pool[Probed | Failed](
                self.workers, array_api=self.settings.probe_device.torch
            ) as pool:
                try:
                    self._work(pool)
                except WorkerDiedError as error:
                    self._after(error)
        if self.failed:
            failed = {task.id: self.failed[task.id] for task in tasks if task.id in self.failed}
            raise FailedTasksError(failed, len(self.finished), str(self.state.folder))
        return record_of(
            self.settings,
            tasks={task.id: self.finished[task.id] for task in tasks},
            libraries=[self.libraries[key] for key in sorted(self.libraries)],
            harness=self.harness,
            packages=self.packages,
            started_at=self.started_at,
            resumed=resumed,
        )

    def _work(self, pool: Pool[Probed | Failed]) -> None:
        """Embed and probe until nothing is left. Raises WorkerDiedError; `jobs` has what waited."""
        ahead = AHEAD * self.workers
        while self.todo or pool.waiting:
            if self.todo and pool.waiting <= ahead:
                self._begin(self.todo.popleft(), pool)
            self._collect(pool, block=not self.todo or pool.waiting > ahead)

    def _begin(self, task: Task, pool: Pool[Probed | Failed]) -> None:
        try:
            job = self._embed(task)
        except HarnessError as error:
            self._fail(task.id, error)
            return
        finally:
            self._say(self.embedder.cache.set_aside)
            self.embedder.cache.set_aside.clear()
        self.jobs[task.id] = job
        pool.submit(job)

    def _after(self, death: WorkerDiedError) -> None:
        """Queue again what waited for a worker; half as many of these take half the memory.

        The only worker was at the task that it was given first: that one fails, if it was that
        task's last round.
        """
        if self.settings.fail_fast:
            raise death
        waiting = list(self.jobs)
        self.jobs.clear()
        if self.workers == 1 and not self._another_round(waiting[0]):
            self._fail(waiting.pop(0), death)
        else:
            self.workers = max(1, self.workers // 2)
            self.listener.say(
                "a worker process was killed, probably out of memory: its tasks are probed again "
                f"with --workers {self.workers}"
            )
        self.todo.extendleft(self.settings.benchmark.task(name) for name in reversed(waiting))

    def _another_round(self, task_id: str) -> bool:
        """Count one more attempt at a task; return whether it has one left."""
        self.rounds[task_id] += 1
        return self.rounds[task_id] < ROUNDS

    def _fail(self, task_id: str, error: HarnessError) -> None:
        """Note that a task failed, and say so."""
        if self.settings.fail_fast:
            raise error
        self.open.pop(task_id, None)
        self.failed[task_id] = str(error).removeprefix(f"{task_id}: ")
        self.listener.finish(task_id, f"failed: {self.failed[task_id]}")

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.listener.say(line)

    def _load(self, task: Task) -> TaskData:
        data = self.settings.source.load(task)
        return data if self.settings.limit is None else data.head(self.settings.limit)

    def _check(self, tasks: list[Task]) -> dict[str, str]:
        """Read every task before the first is embedded, so that invalid data show early."""
        digests: dict[str, str] = {}
        faults: list[str] = []
        for task in tasks:
            try:
                digests[task.id] = self._load(task).sha256
            except DataError as error:
                faults.extend(error.faults)
        if faults:
            raise DataError(faults)
        return digests

    def _identity(self, digests: dict[str, str]) -> dict[str, Any]:
        """Return everything that must be equal in a resumed run."""
        chosen = self.settings
        return {
            "model_id": chosen.model_id,
            "benchmark": chosen.benchmark.sha256,
            "data": digests,
            "regimes": list(self.settings.regimes_to_run),
            "canonical": chosen.canonical,
            "probe_device": chosen.probe_device.name,
            "receipt": chosen.receipt is not None,
            **self.key_parts,
        }

    def _restored(self, task: Task, *, resumed: bool) -> bool:
        found = self.state.load(task.id) if resumed else None
        if found is None or not self._has_receipt(task.id, found[0]):
            return False
        self.finished[task.id] = found[0]
        self._note(found[1])
        self.listener.finish(task.id, "taken from the stopped run")
        return True

    def _has_receipt(self, task_id: str, task: TaskRecord) -> bool:
        """Return whether the receipt of a finished task is there, or none is asked for."""
        folder = self.settings.receipt
        return folder is None or (
            task.receipt is not None and is_written(folder, task_id, task.receipt)
        )

    def _embed(self, task: Task) -> Job:
        started = time.perf_counter()
        data = self._load(task)
        self.listener.begin(task.id, len(self.embedder.missing(data)))
        budget = self.embedder.token_budget
        embedded = self.embedder.embed(data, self.listener.step)
        if (now := self.embedder.token_budget) != budget:
            self.listener.say(
                f"{task.id}: memory ran out; batches have at most {now:,} padded tokens from now on"
            )
        facts = {
            "data_sha256": data.sha256,
            "train": data.train.class_counts,
            "test": data.test.class_counts,
        }
        seconds = time.perf_counter() - started
        if before := self.open.get(task.id):  # its embeddings were lost, or its worker died
            seconds += before.seconds
            computed = embedded.computed + before.embedded.computed
            embedded = Embedded(embedded.distinct, computed)
        self.open[task.id] = _Open(facts, embedded, seconds)
        protocol = self.settings.benchmark.protocol
        return Job(
            task_id=task.id,
            cache=self.settings.cache,
            key_parts=self.key_parts,
            train_digests=b"".join(sequence_digests(data.train.sequences)),
            train_labels=data.train.labels,
            test_digests=b"".join(sequence_digests(data.test.sequences)),
            test_labels=data.test.labels,
            regimes=self.settings.regimes_to_run,
            seeds=tuple(protocol.seeds),
            few_shot_k=protocol.few_shot_k,
            canonical=self.settings.canonical,
            device=self.settings.probe_device,
            receipt=self.settings.receipt,
        )

    def _collect(self, pool: Pool[Probed | Failed], *, block: bool) -> None:
        for found in pool.done(block=block):
            del self.jobs[found.task_id]
            self._say(found.said)
            if isinstance(found, Probed):
                self._finish(found)
            elif found.lost and self._another_round(found.task_id):
                self.todo.appendleft(self.settings.benchmark.task(found.task_id))
            else:
                self._fail(found.task_id, ProbeError(found.why))

    def _finish(self, probed: Probed) -> None:
        record = self._task_record(probed)
        libraries = [LibraryRef(**one) for one in probed.libraries]
        self.state.save(probed.task_id, record, libraries)
        self.finished[probed.task_id] = record
        self._note(libraries)
        self.listener.finish(probed.task_id, summary(record))

    def _task_record(self, probed: Probed) -> TaskRecord:
        known = self.open.pop(probed.task_id)
        return TaskRecord(
            **known.data,
            distinct_sequences=known.embedded.distinct,
            embedded_now=known.embedded.computed,
            token_budgets=list(probed.token_budgets),
            dim=probed.dim,
            feature_dtype=probed.dtype,
            embed_seconds=round(known.seconds, 6),
            probe_seconds=round(probed.seconds, 6),
            regimes=probed.regimes,
            receipt=probed.receipt,
        )

    def _note(self, libraries: list[LibraryRef]) -> None:
        for one in libraries:
            self.libraries[(one.library, one.version, one.kernel, one.threads)] = one


def summary(record: TaskRecord) -> str:
    """Return a task's scores and warnings in one line."""
    parts = [f"{name} MCC {regime.scores.MCC:.3f}" for name, regime in record.regimes.items()]
    kinds = sorted({w.kind for regime in record.regimes.values() for w in regime.warnings})
    return ", ".join(parts) + (f" ({', '.join(kinds)})" if kinds else "")
