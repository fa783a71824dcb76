"""Score embeddings and jittered copies of them, with which an audit compares the claims."""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_harness import environment
from reference_harness.data.task_data import TaskData, sequence_digests
from reference_harness.data.task_folder import Source
from reference_harness.embedding import noise
from reference_harness.embedding.matrix import open_matrix
from reference_harness.engine.worker_pool import Pool
from reference_harness.errors import DataError, ScorerError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import file_sha256
from reference_harness.formats.processes import processors
from reference_harness.formats.rescored import (
    JitteredCopy,
    NoiseRef,
    Rescored,
    RescoredRegime,
    RescoredTask,
    most_copies_change,
)
from reference_harness.formats.run_record import DatasetRef, LibraryRef
from reference_harness.formats.submission import BenchmarkRef
from reference_harness.formats.submission_terms import Dtype
from reference_harness.probe.scorer import SCORER
from reference_harness.run.progress import Listener, SilentListener
from reference_harness.run.settings import unknown_task_error

from .further_sequences import FurtherFiles
from .input_files import read_embedding_files, task_part_of
from .job import BaseJob, BaseResult, CopyJob, CopyResult, TaskPart

PLAIN_COPIES = 16
"""Number of plain copies of a task in the full regime."""
FEW_SHOT_COPIES_FACTOR = 2
"""Factor by which few-shot regimes have more copies, plain and stressed, than the full regime.
Their fits take milliseconds and matter most in an audit; more copies narrow the tolerance."""
COPIES_PER_JOB = 8
"""Number of copies per job: few enough to distribute one large task over the workers."""


@dataclass(frozen=True, kw_only=True)
class RescoreRequest:
    """The embeddings to rescore, and the settings."""

    benchmark: Benchmark
    source: Source
    tasks: tuple[str, ...]
    sequences: Path
    """Text file with one sequence per line."""
    embeddings: Path
    """`.npy` file of an (n, d) matrix; row i is the embedding of line i."""
    dtype: Dtype
    seed: int
    regimes: tuple[str, ...] = ()
    """Regimes to score; all of the benchmark if empty."""
    copies: int = PLAIN_COPIES
    is_rounded: bool = True
    """Whether to round the embeddings to float16 and to require the scorer of record.

    False for claims of older harnesses, which did neither.
    """
    further: FurtherFiles | None = None
    """Further sequences, if only one task is requested."""
    other_draws: str | None = None
    """Text from which the seeds of other few-shot draws of that task are derived, or None."""
    workers: int = field(default_factory=processors)


def distinct_sequences(benchmark: Benchmark, source: Source, tasks: tuple[str, ...]) -> list[str]:
    """Return the distinct sequences of both splits of the tasks, in order of their digests.

    That order reveals neither task, split nor label. Raise OptionError for a task that is not in
    the benchmark, DataError for one whose data cannot be used.
    """
    sequences: set[str] = set()
    for task_id in tasks:
        task_data = load_task(benchmark, source, task_id)
        sequences.update(task_data.train.sequences, task_data.test.sequences)
    return sorted(sequences, key=lambda sequence: sequence_digests([sequence])[0])


def load_task(benchmark: Benchmark, source: Source, task_id: str) -> TaskData:
    """Return the data of a task by its id. Raise OptionError or DataError if there is none."""
    if task_id not in {task.id for task in benchmark.tasks}:
        raise unknown_task_error(task_id, benchmark)
    if task_id not in source.available():
        raise DataError(
            [f"task {task_id}: the data folder has no file for it: pass a folder with its file"]
        )
    return source.load(benchmark.by_id[task_id])


WorkerLender = Callable[[int], AbstractContextManager[Pool[Any]]]
"""Function that lends a pool of a number of workers for one computation, as a context manager."""


def rescore(
    request: RescoreRequest,
    listener: Listener | None = None,
    lend_workers: WorkerLender | None = None,
) -> Rescored:
    """Return the scores of the embeddings and their copies, computed by borrowed or new workers.

    Raise a HarnessError for errors that a user can cause.
    """
    return _Rescoring(request, listener or SilentListener()).result(lend_workers or Pool)


class _Rescoring:
    """One rescoring: the jobs that were submitted, and the results so far."""

    def __init__(self, request: RescoreRequest, listener: Listener) -> None:
        self.request = request
        self.listener = listener
        self.started = time.perf_counter()
        self.base_by_task: dict[str, BaseResult] = {}
        self.copies: defaultdict[tuple[str, str, bool], list[CopyResult]] = defaultdict(list)
        """Results by task, regime, and whether the copies are stressed."""
        self.part_by_task: dict[str, TaskPart] = {}
        self.open_jobs: defaultdict[tuple[str, str, bool], int] = defaultdict(int)
        """Number of unfinished jobs of copies, by the same keys."""

    def result(self, lend_workers: WorkerLender) -> Rescored:
        """Execute all jobs, and return the scores of embeddings and copies."""
        request = self.request
        matrix = open_matrix(request.embeddings)
        embedding_files = read_embedding_files(request.sequences, request.embeddings, len(matrix))
        data_by_task = {t: load_task(request.benchmark, request.source, t) for t in request.tasks}
        self.part_by_task = {
            task_id: task_part_of(
                task_data,
                request.benchmark,
                embedding_files,
                is_rounded=request.is_rounded,
            )
            for task_id, task_data in data_by_task.items()
        }
        with lend_workers(self.request.workers) as pool:
            for part in self.part_by_task.values():
                pool.submit(
                    BaseJob(
                        part,
                        request.regimes or part.regimes,
                        request.further,
                        request.other_draws,
                    )
                )
            while pool.waiting:
                for result in pool.results(block=True):
                    if isinstance(result, BaseResult):
                        self._add_base(result, pool)
                    else:
                        self._add_copies(result, pool)
        return self._rescored(matrix, data_by_task)

    def _add_base(self, result: BaseResult, pool: Pool[BaseResult | CopyResult]) -> None:
        """Store the scores of a task's original embeddings, and queue their jittered copies."""
        if self.request.is_rounded and result.scorer.reason:
            raise ScorerError(result.scorer.reason)
        self.base_by_task[result.task_id] = result
        for regime in result.regimes:
            self._submit(pool, result.task_id, regime, is_stressed=False)
            if regime in self.request.benchmark.protocol.few_shot_k:
                self._submit(pool, result.task_id, regime, is_stressed=True)

    def _add_copies(self, result: CopyResult, pool: Pool[BaseResult | CopyResult]) -> None:
        """Store the scores of copies; after the last plain copies, queue the stressed ones."""
        job_key = (result.task_id, result.regime, result.is_stressed)
        self.copies[job_key].append(result)
        self.open_jobs[job_key] -= 1
        if self.open_jobs[job_key]:
            return
        if (
            result.regime not in self.request.benchmark.protocol.few_shot_k
            and not result.is_stressed
        ):
            self._submit(pool, result.task_id, result.regime, is_stressed=True)
        if not any(
            count for (task, _, _), count in self.open_jobs.items() if task == result.task_id
        ):
            self.listener.finish(result.task_id, "rescored")

    def _submit(
        self, pool: Pool[BaseResult | CopyResult], task_id: str, regime: str, *, is_stressed: bool
    ) -> None:
        """Queue copies of one regime, unless stressed copies are not needed.

        In a fit on all sequences that takes many steps, almost every copy stops at another step:
        the spread of plain copies is sufficient, and stressed copies, which show rare outcomes, add
        nothing. A fit that few copies change takes few steps, and stressed copies are cheap.
        """
        base, scale = self.base_by_task[task_id].regimes[regime], self.base_by_task[task_id].scale
        is_few_shot = regime in self.request.benchmark.protocol.few_shot_k
        if (
            is_stressed
            and not is_few_shot
            and most_copies_change(self._copies_of(task_id, regime, is_stressed=False))
        ):
            return
        count = self.request.copies * (FEW_SHOT_COPIES_FACTOR if is_few_shot else 1)
        for first_copy in range(0, count, COPIES_PER_JOB):
            last_copy = min(first_copy + COPIES_PER_JOB, count) - 1
            pool.submit(
                CopyJob(
                    part=self.part_by_task[task_id],
                    regime=regime,
                    dtype=self.request.dtype,
                    seed=self.request.seed,
                    is_stressed=is_stressed,
                    first_copy=first_copy,
                    last_copy=last_copy,
                    scale=scale,
                    base=base.predictions,
                )
            )
            self.open_jobs[task_id, regime, is_stressed] += 1

    def _copies_of(self, task_id: str, regime: str, *, is_stressed: bool) -> list[JitteredCopy]:
        """Return the scores of the copies of a task in a regime, in order of their numbers."""
        copy_results = sorted(
            self.copies[task_id, regime, is_stressed], key=lambda result: result.first_copy
        )
        return [copy for result in copy_results for copy in result.copies]

    def _rescored(self, matrix: noise.Embeddings, data_by_task: dict[str, TaskData]) -> Rescored:
        """Return the document with all scores."""
        request, protocol = self.request, self.request.benchmark.protocol
        dataset = request.benchmark.dataset
        library_by_values = {
            tuple(library.values()): library
            for base in self.base_by_task.values()
            for library in base.libraries
        }
        return Rescored(
            schema_version="1.0",
            benchmark=BenchmarkRef(name=request.benchmark.name, sha256=request.benchmark.sha256),
            dataset=DatasetRef(
                repo_id=dataset.repo_id, revision=dataset.revision, verified=request.source.verified
            ),
            harness=environment.harness(),
            embeddings_sha256=file_sha256(request.embeddings),
            sequences_sha256=file_sha256(request.sequences),
            dim=matrix.shape[1],
            feature_dtype=matrix.dtype.name,  # type: ignore[arg-type] # open_matrix allows only these
            noise=NoiseRef(
                dtype=request.dtype,
                units=noise.DEVIATION_IN_ROUNDOFFS[request.dtype],
                stress=noise.STRESS_FACTOR,
                seed=request.seed,
                copies=request.copies,
            ),
            seeds=protocol.seeds,
            few_shot_k=protocol.few_shot_k,
            libraries=[LibraryRef(**library_by_values[key]) for key in sorted(library_by_values)],
            packages=environment.packages(),
            scorer=SCORER.ref if request.is_rounded else None,
            seconds=round(time.perf_counter() - self.started, 3),
            tasks={task_id: self._task(task_data) for task_id, task_data in data_by_task.items()},
        )

    def _task(self, task_data: TaskData) -> RescoredTask:
        """Return the scores of one task."""
        return RescoredTask(
            data_sha256=task_data.sha256,
            train=task_data.train.class_counts,
            test=task_data.test.class_counts,
            distinct_sequences=len(self.part_by_task[task_data.id].rows),
            regimes={
                name: RescoredRegime(
                    base=base.regime,
                    plain=self._copies_of(task_data.id, name, is_stressed=False),
                    stressed=self._copies_of(task_data.id, name, is_stressed=True),
                    halts=self.base_by_task[task_data.id].scores_at_stops[name],
                )
                for name, base in self.base_by_task[task_data.id].regimes.items()
            },
            decisions=self.base_by_task[task_data.id].decisions,
        )
