"""One run: checks the data, embeds task by task, fits probes in workers, returns the record."""

import time
from dataclasses import dataclass
from typing import Any

from . import environment
from .benchmark import Task
from .cache import Cache
from .embed import Embedded, Embedder
from .engine.local import Pool
from .errors import DataError
from .job import Job, Probed
from .progress import Listener, Silent
from .record import LibraryRef, RunRecord, TaskRecord
from .settings import Settings, key_parts, record_of, tasks_to_run
from .state import State
from .tasks import TaskData, sequence_digests

AHEAD = 2
"""Tasks a worker may have waiting: enough to keep it busy, few enough to hold little memory."""


@dataclass
class _Open:
    """A task between its embedding and its scores."""

    data: dict[str, Any]
    embedded: Embedded
    seconds: float


def run(settings: Settings, listener: Listener | None = None) -> RunRecord:
    """Run and return the record; nothing is written but the cache and the resumable state.

    Raises a HarnessError for anything a user can cause; KeyboardInterrupt passes through, with
    every finished task and embedding kept.
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
        self.key_parts = key_parts(settings)
        self.embedder = Embedder(
            settings.loaded, Cache(settings.cache, self.key_parts), settings.batching
        )

    def go(self) -> RunRecord:
        tasks = tasks_to_run(self.settings)
        digests = self._check(tasks)
        resumed = self.state.begin(self._identity(digests), resume=self.settings.resume)
        todo = [task for task in tasks if not self._restored(task, resumed=resumed)]
        if todo:
            workers = max(1, min(self.settings.workers, len(todo)))
            with Pool[Probed](workers, array_api=self.settings.probe_device.torch) as pool:
                for task in todo:
                    pool.submit(self._embed(task))
                    self._collect(pool, block=pool.waiting > AHEAD * workers)
                while pool.waiting:
                    self._collect(pool, block=True)
        return record_of(
            self.settings,
            tasks={task.id: self.finished[task.id] for task in tasks},
            libraries=[self.libraries[key] for key in sorted(self.libraries)],
            harness=self.harness,
            started_at=self.started_at,
            resumed=resumed,
        )

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
            **self.key_parts,
        }

    def _restored(self, task: Task, *, resumed: bool) -> bool:
        found = self.state.load(task.id) if resumed else None
        if found is None:
            return False
        self.finished[task.id] = found[0]
        self._note(found[1])
        self.listener.finish(task.id, "taken from the stopped run")
        return True

    def _embed(self, task: Task) -> Job:
        started = time.perf_counter()
        data = self._load(task)
        self.listener.begin(task.id, len(self.embedder.missing(data)))
        embedded = self.embedder.embed(data, self.listener.step)
        facts = {
            "data_sha256": data.sha256,
            "train": data.train.class_counts,
            "test": data.test.class_counts,
        }
        self.open[task.id] = _Open(facts, embedded, time.perf_counter() - started)
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
        )

    def _collect(self, pool: Pool[Probed], *, block: bool) -> None:
        for probed in pool.done(block=block):
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
            dim=probed.dim,
            feature_dtype=probed.dtype,
            embed_seconds=round(known.seconds, 6),
            probe_seconds=round(probed.seconds, 6),
            regimes=probed.regimes,
        )

    def _note(self, libraries: list[LibraryRef]) -> None:
        for one in libraries:
            self.libraries[(one.library, one.version, one.kernel, one.threads)] = one


def summary(record: TaskRecord) -> str:
    """Return a task's scores and warnings in one line."""
    parts = [f"{name} MCC {regime.scores.MCC:.3f}" for name, regime in record.regimes.items()]
    kinds = sorted({w.kind for regime in record.regimes.values() for w in regime.warnings})
    return ", ".join(parts) + (f" ({', '.join(kinds)})" if kinds else "")
