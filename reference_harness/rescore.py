"""Scores given embeddings and jittered copies of them: what an audit compares a claim with."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import environment, noise, probe
from .benchmark import Benchmark
from .data import Source
from .engine.local import Pool, default_workers
from .errors import DataError, EmbeddingError, OptionError
from .files import sha256
from .progress import Listener, Silent
from .record import BenchmarkRef, DatasetRef, LibraryRef
from .rescore_job import Based, BaseJob, Copied, CopyJob, Part
from .rescored import Copy, NoiseRef, Rescored, RescoredRegime, RescoredTask
from .tasks import TaskData, sequence_digests

COPIES = 16
"""Plain copies of a task and regime."""
FEW_SHOT_STRESSED = 2
"""Stressed copies of a few-shot regime, as a multiple of the plain ones. These fits take
milliseconds and carry most of an audit's weight: more copies make a narrower tolerance."""
CHUNK = 8
"""Copies a job takes: few enough to spread one large task over the workers."""
FINITE_ROWS = 1 << 12  # rows looked at together: a large matrix is not read into memory

_FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be rescored."""

    benchmark: Benchmark
    source: Source
    tasks: tuple[str, ...]
    sequences: Path
    """One sequence a line."""
    embeddings: Path
    """`.npy` of an (n, d) matrix, row i for line i."""
    dtype: noise.Dtype
    seed: int
    copies: int = COPIES
    canonical: bool = True
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
        msg = f"task {task_id!r}: {benchmark.name} has no such task"
        raise OptionError(msg)
    if task_id not in source.available():
        raise DataError([f"task {task_id}: the data folder has no file of it"])
    return source.load(benchmark.task(task_id))


def rescore(asked: Asked, listener: Listener | None = None) -> Rescored:
    """Score the embeddings and their copies. Raises a HarnessError for what a user can cause."""
    return _Rescoring(asked, listener or Silent()).go()


class _Rescoring:
    def __init__(self, asked: Asked, listener: Listener) -> None:
        self.asked = asked
        self.listener = listener
        self.started = time.perf_counter()
        self.base: dict[str, Based] = {}
        self.copies: defaultdict[tuple[str, str, bool], list[Copied]] = defaultdict(list)
        self.open: defaultdict[tuple[str, str, bool], int] = defaultdict(int)

    def go(self) -> Rescored:
        matrix = open_matrix(self.asked.embeddings)
        at = self._lines(len(matrix))
        data = {t: load(self.asked.benchmark, self.asked.source, t) for t in self.asked.tasks}
        self.parts = {task_id: self._part(one, at) for task_id, one in data.items()}
        with Pool[Based | Copied](self.asked.workers) as pool:
            for part in self.parts.values():
                pool.submit(BaseJob(part))
            while pool.waiting:
                for found in pool.done(block=True):
                    if isinstance(found, Based):
                        self._based(found, pool)
                    else:
                        self._copied(found, pool)
        return self._rescored(matrix, data)

    def _lines(self, rows: int) -> dict[bytes, int]:
        lines = self.asked.sequences.read_text(encoding="utf-8").splitlines()
        if len(lines) != rows:
            msg = (
                f"{self.asked.embeddings}: {rows} rows, but {self.asked.sequences} has "
                f"{len(lines)} lines: one row a line is expected"
            )
            raise EmbeddingError(msg)
        return {digest: i for i, digest in enumerate(sequence_digests(lines))}

    def _part(self, data: TaskData, at: dict[bytes, int]) -> Part:
        protocol = self.asked.benchmark.protocol
        digests = sequence_digests([*data.train.sequences, *data.test.sequences])
        lacking = [i for i, digest in enumerate(digests) if digest not in at]
        if lacking:
            both = [*data.train.sequences, *data.test.sequences]
            msg = (
                f"task {data.id}: {len(lacking)} of its sequences are not in "
                f"{self.asked.sequences}, the first being {both[lacking[0]][:60]!r}"
            )
            raise DataError([msg])
        line = np.array([at[digest] for digest in digests], dtype=np.int64)
        count = len(data.train.sequences)
        drawn = [
            probe.few_shot_rows(data.train.labels, k, seed)
            for k in protocol.few_shot_k.values()
            for seed in protocol.seeds
        ]
        first = np.unique(np.concatenate([line[count:], *(line[:count][rows] for rows in drawn)]))
        rest = np.setdiff1d(line, first)
        rows = np.concatenate([first, rest])
        place = np.empty(int(rows.max()) + 1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        return Part(
            task_id=data.id,
            embeddings=self.asked.embeddings,
            rows=rows,
            few=len(first),
            train=place[line[:count]],
            train_labels=data.train.labels,
            test=place[line[count:]],
            test_labels=data.test.labels,
            regimes=tuple(self.asked.benchmark.regimes),
            seeds=tuple(protocol.seeds),
            few_shot_k=protocol.few_shot_k,
            canonical=self.asked.canonical,
        )

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
        record: list[np.ndarray] | None = base.predictions
        if stressed and not few and _restless(self._gathered(task_id, name, stressed=False)):
            record = None
        canonical = base.canonical if stressed else None
        if record is None and canonical is None:
            return
        count = self.asked.copies * (FEW_SHOT_STRESSED if few and stressed else 1)
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
    ) -> list[Copy]:
        found = sorted(self.copies[task_id, name, stressed], key=lambda one: one.first)
        return [copy for one in found for copy in (one.canonical if canonical else one.record)]

    def _rescored(self, matrix: noise.Rows, data: dict[str, TaskData]) -> Rescored:
        asked, protocol = self.asked, self.asked.benchmark.protocol
        pin = asked.benchmark.dataset
        loaded = {tuple(one.values()): one for b in self.base.values() for one in b.libraries}
        return Rescored(
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
                units=noise.UNITS,
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
                    canonical=self._gathered(data.id, name, stressed=True, canonical=True),
                )
                for name, base in self.base[data.id].regimes.items()
            },
        )


def _restless(plain: list[Copy]) -> bool:
    """Whether more than half of the copies moved a prediction."""
    return 2 * sum(any(copy.flips) for copy in plain) > len(plain)


def open_matrix(path: Path) -> noise.Rows:
    """Map an (n, d) matrix of finite floating numbers; nothing in the file is ever run.

    Raises EmbeddingError, which says what the file is instead.
    """
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        msg = f"{path}: not a .npy file of numbers: {error}"
        raise EmbeddingError(msg) from error
    if not isinstance(found, np.ndarray) or found.ndim != 2 or not found.size:  # noqa: PLR2004
        msg = f"{path}: shape {getattr(found, 'shape', None)}, expected (sequences, columns)"
        raise EmbeddingError(msg)
    if found.dtype.name not in _FLOATS or not found.dtype.isnative:
        msg = f"{path}: numbers of type {found.dtype.str}, expected {', '.join(_FLOATS)}"
        raise EmbeddingError(msg)
    for start in range(0, len(found), FINITE_ROWS):
        rows = np.isfinite(found[start : start + FINITE_ROWS]).all(axis=1)
        if not rows.all():
            msg = f"{path}: row {start + int(np.argmin(rows))} holds a number that is not finite"
            raise EmbeddingError(msg)
    return found
