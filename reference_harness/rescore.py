"""Scores embeddings and jittered copies of them, with which an audit compares the claims."""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import sha256

from . import environment, noise
from .data import Source
from .engine.local import Pool, default_workers
from .errors import DataError
from .formats.rescored import Dtype, JitteredCopy, NoiseRef, Rescored, RescoredRegime, RescoredTask
from .formats.run_record import BenchmarkRef, DatasetRef, LibraryRef
from .further import FurtherFiles
from .matrix import open_matrix
from .progress import Listener, Silent
from .rescore_input import given_by, part_of
from .rescore_job import Based, BaseJob, Copied, CopyJob, TaskPart
from .settings import unknown_task
from .tasks import Labels, TaskData, sequence_digests

COPIES = 16
"""Plain copies of a task in the full regime."""
FEW_SHOT_TIMES = 2
"""Copies of a few-shot regime, plain and stressed, as a multiple of those of the full one. These
fits take milliseconds and carry most of an audit's weight: more copies narrow the tolerance."""
CHUNK = 8
"""Copies a job takes: few enough to spread one large task over the workers."""


@dataclass(frozen=True, kw_only=True)
class RescoreRequest:
    """What is to be rescored."""

    benchmark: Benchmark
    source: Source
    tasks: tuple[str, ...]
    sequences: Path
    """One sequence a line."""
    embeddings: Path
    """`.npy` of an (n, d) matrix, row i for line i."""
    dtype: Dtype
    seed: int
    copies: int = COPIES
    canonical: bool = True
    further: FurtherFiles | None = None
    """Rows beside those of the one task that is asked for."""
    workers: int = field(default_factory=default_workers)


def distinct(benchmark: Benchmark, source: Source, tasks: tuple[str, ...]) -> list[str]:
    """Return the sequences of both splits of the tasks, each once, in order of their digests.

    That order tells nothing of task, split or label. Raises OptionError for a task that is not in
    the benchmark, DataError for one whose data cannot be used.
    """
    found: set[str] = set()
    for task_id in tasks:
        data = load(benchmark, source, task_id)
        found.update(data.train.sequences, data.test.sequences)
    return sorted(found, key=lambda sequence: sequence_digests([sequence])[0])


def load(benchmark: Benchmark, source: Source, task_id: str) -> TaskData:
    """Return the data of a task by its id."""
    if task_id not in {task.id for task in benchmark.tasks}:
        raise unknown_task(task_id, benchmark)
    if task_id not in source.available():
        raise DataError([f"task {task_id}: the data folder has no file of it"])
    return source.load(benchmark.by_id[task_id])


Lend = Callable[[int], AbstractContextManager[Pool[Any]]]
"""Gives a pool of so many workers for one rescoring."""


def rescore(
    asked: RescoreRequest, listener: Listener | None = None, lent: Lend | None = None
) -> Rescored:
    """Score the embeddings and their copies, with the workers `lent`, else with new ones.

    Raises a HarnessError for what a user can cause.
    """
    return _Rescoring(asked, listener or Silent()).go(lent or Pool)


class _Rescoring:
    def __init__(self, asked: RescoreRequest, listener: Listener) -> None:
        self.asked = asked
        self.listener = listener
        self.started = time.perf_counter()
        self.base: dict[str, Based] = {}
        self.copies: defaultdict[tuple[str, str, bool], list[Copied]] = defaultdict(list)
        self.parts: dict[str, TaskPart] = {}
        self.open: defaultdict[tuple[str, str, bool], int] = defaultdict(int)

    def go(self, lent: Lend) -> Rescored:
        asked = self.asked
        matrix = open_matrix(asked.embeddings)
        given = given_by(asked.sequences, asked.embeddings, len(matrix))
        data = {t: load(asked.benchmark, asked.source, t) for t in asked.tasks}
        self.parts = {
            task_id: part_of(one, asked.benchmark, given, canonical=asked.canonical)
            for task_id, one in data.items()
        }
        with lent(self.asked.workers) as pool:
            for part in self.parts.values():
                pool.submit(BaseJob(part, asked.further))
            while pool.waiting:
                for found in pool.done(block=True):
                    if isinstance(found, Based):
                        self._based(found, pool)
                    else:
                        self._copied(found, pool)
        return self._rescored(matrix, data)

    def _based(self, found: Based, pool: Pool[Based | Copied]) -> None:
        self.base[found.task_id] = found
        for name in found.regimes:
            self._submit(pool, found.task_id, name, stressed=False)
            if name in self.asked.benchmark.protocol.few_shot_k:
                self._submit(pool, found.task_id, name, stressed=True)

    def _copied(self, found: Copied, pool: Pool[Based | Copied]) -> None:
        key = (found.task_id, found.regime, found.stressed)
        self.copies[key].append(found)
        self.open[key] -= 1
        if self.open[key]:
            return
        if found.regime not in self.asked.benchmark.protocol.few_shot_k and not found.stressed:
            self._submit(pool, found.task_id, found.regime, stressed=True)
        if not any(count for (task, _, _), count in self.open.items() if task == found.task_id):
            self.listener.finish(found.task_id, "rescored")

    def _submit(
        self, pool: Pool[Based | Copied], task_id: str, name: str, *, stressed: bool
    ) -> None:
        """Queue copies of one regime.

        A fit on all rows takes many steps, and then nearly every copy ends elsewhere: their spread
        says all, and stressed copies, which look for rare outcomes, say no more. A fit that few
        copies move took few steps, and is cheap. The canonical score knows no chance of that kind:
        it gets stressed copies alone.
        """
        base = self.base[task_id].regimes[name]
        few = name in self.asked.benchmark.protocol.few_shot_k
        record: list[Labels] | None = base.predictions
        if (
            stressed
            and not few
            and _most_copies_change(self._gathered(task_id, name, stressed=False))
        ):
            record = None
        canonical = base.canonical if stressed else None
        if record is None and canonical is None:
            return
        count = self.asked.copies * (FEW_SHOT_TIMES if few else 1)
        for first in range(0, count, CHUNK):
            last = min(first + CHUNK, count) - 1
            pool.submit(
                CopyJob(
                    part=self.parts[task_id],
                    regime=name,
                    dtype=self.asked.dtype,
                    seed=self.asked.seed,
                    stressed=stressed,
                    first=first,
                    last=last,
                    record=record,
                    canonical=canonical,
                )
            )
            self.open[task_id, name, stressed] += 1

    def _gathered(
        self, task_id: str, name: str, *, stressed: bool, canonical: bool = False
    ) -> list[JitteredCopy]:
        found = sorted(self.copies[task_id, name, stressed], key=lambda one: one.first)
        return [copy for one in found for copy in (one.canonical if canonical else one.record)]

    def _rescored(self, matrix: noise.Rows, data: dict[str, TaskData]) -> Rescored:
        asked, protocol = self.asked, self.asked.benchmark.protocol
        pin = asked.benchmark.dataset
        loaded = {tuple(one.values()): one for b in self.base.values() for one in b.libraries}
        return Rescored(
            schema_version="1.0",
            benchmark=BenchmarkRef(name=asked.benchmark.name, sha256=asked.benchmark.sha256),
            dataset=DatasetRef(
                repo_id=pin.repo_id, revision=pin.revision, verified=asked.source.verified
            ),
            harness=environment.harness(),
            embeddings_sha256=sha256(asked.embeddings),
            sequences_sha256=sha256(asked.sequences),
            dim=matrix.shape[1],
            feature_dtype=matrix.dtype.name,  # type: ignore[arg-type]  # open_matrix held it to these
            noise=NoiseRef(
                dtype=asked.dtype,
                units=noise.UNITS[asked.dtype],
                stress=noise.STRESS,
                seed=asked.seed,
                copies=asked.copies,
            ),
            seeds=protocol.seeds,
            few_shot_k=protocol.few_shot_k,
            libraries=[LibraryRef(**loaded[key]) for key in sorted(loaded)],
            packages=environment.packages(),
            seconds=round(time.perf_counter() - self.started, 3),
            tasks={task_id: self._task(one) for task_id, one in data.items()},
        )

    def _task(self, data: TaskData) -> RescoredTask:
        return RescoredTask(
            data_sha256=data.sha256,
            train=data.train.class_counts,
            test=data.test.class_counts,
            distinct_sequences=len(self.parts[data.id].rows),
            regimes={
                name: RescoredRegime(
                    base=base.regime,
                    plain=self._gathered(data.id, name, stressed=False),
                    stressed=self._gathered(data.id, name, stressed=True),
                    halts=self.base[data.id].halts[name],
                    canonical=self._gathered(data.id, name, stressed=True, canonical=True),
                )
                for name, base in self.base[data.id].regimes.items()
            },
            decisions=self.base[data.id].decisions,
        )


def _most_copies_change(plain: list[JitteredCopy]) -> bool:
    """Whether more than half of the copies changed a prediction."""
    return 2 * sum(any(copy.flips) for copy in plain) > len(plain)
