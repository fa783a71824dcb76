"""Compute every cell from the files of a receipt, without a model or an extractor."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness import environment
from reference_harness.data.task_data import DIGEST_BYTES, Labels, TaskData, sequence_digests
from reference_harness.data.task_folder import Source
from reference_harness.engine.blas import NumericalLibrary, loaded_libraries
from reference_harness.engine.worker_pool import Pool
from reference_harness.errors import (
    DataError,
    EmbeddingError,
    OptionError,
    ProbeError,
    ScorerError,
)
from reference_harness.formats.base import Scores
from reference_harness.formats.benchmark import Benchmark, Protocol
from reference_harness.formats.files import NotReadable, read_json, read_text, write_bytes
from reference_harness.formats.receipt_cells import EqualEmbeddings, ReceiptCells, TaskCells
from reference_harness.formats.rescored import FewShotScores
from reference_harness.formats.run_record import Canonical, DatasetRef, LibraryRef, TaskReceipt
from reference_harness.formats.scorer import ScorerRef
from reference_harness.formats.submission import BenchmarkRef, EmbeddingReceipt
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX, receipt_file
from reference_harness.formats.text import plural
from reference_harness.probe import logistic, metrics, optimum
from reference_harness.probe.decisions import few_shot_draws, few_shot_scores
from reference_harness.probe.scorer import SCORER
from reference_harness.rescore.scoring import WorkerLender, load_task
from reference_harness.run.task_job import (
    ScoredRegime,
    metric_columns,
    metrics_by_seed,
    problem_of,
    score_regime,
)
from reference_harness.text import first_and_more

from .rounding import RoundedEmbeddings
from .strata import FittedRegime, write_labels, write_strata

DIGESTS_SUFFIX = ".digests"
"""Ending of the file of a task's digests: of each sequence and of its embedding, 16 bytes each."""


class DigestPairs(NamedTuple):
    """Digests of n sequences, and of their embeddings as float16 bytes, as (n, 16) bytes each."""

    sequences: npt.NDArray[np.uint8]
    embeddings: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ReceiptProbeSettings:
    """Settings for the probes of a receipt: those of the protocol, on the CPU."""

    protocol: Protocol
    device: logistic.Device = logistic.CPU

    @property
    def seeds(self) -> tuple[int, ...]:
        """The benchmark's seeds, in its order."""
        return tuple(self.protocol.seeds)

    @property
    def few_shot_k(self) -> Mapping[str, int]:
        """Training embeddings per class, by regime."""
        return self.protocol.few_shot_k


class CellsResult(NamedTuple):
    """The cells of one task, and what else a worker computed for it."""

    task_id: str
    cells: TaskCells
    digests: DigestPairs
    libraries: list[NumericalLibrary]
    scorer: ScorerRef


@dataclass(frozen=True)
class CellsJob:
    """Scores one task from its file. It is pickled, so it contains no embeddings."""

    task_id: str
    file: Path
    receipt: TaskReceipt
    benchmark: Benchmark
    source: Source
    regimes: tuple[str, ...]
    canonical: bool
    """Whether cells are also computed at the optimum of their probes."""
    strata: Path | None = None
    """Folder for the strata from which embeddings are drawn; None if none are drawn."""
    labels: Path | None = None
    """Folder for the labels of both splits; None to write none."""
    other_draws: str | None = None
    """Text from which the seeds of other few-shot draws are derived; None for no other draws."""

    def execute(self) -> CellsResult:
        """Return the cells: of record if this process has the scorer, canonical if requested.

        Raise a HarnessError, which names the task.
        """
        started = time.perf_counter()
        task_data = load_task(self.benchmark, self.source, self.task_id)
        embeddings = file_values(self.file, self.receipt, task_data)
        scorer = SCORER.in_use()
        try:
            problem = problem_of(
                RoundedEmbeddings(embeddings, self.receipt.scale_log2),
                self.receipt.train,
                task_data.train.labels,
                task_data.test.labels,
            )
            record = {} if scorer.reason else self._scores_of_record(problem)
            solved_regimes = self.regimes if self.canonical or self.strata is not None else ()
            cell_by_regime = {name: self._solved_cell(problem, name) for name in solved_regimes}
            few_shot = self._few_shot_scores(problem)
        except ProbeError as error:
            msg = f"{self.task_id}: {error}"
            raise ProbeError(msg) from error
        if self.strata is not None:
            write_strata(
                self.strata,
                task_data,
                {name: fit for name, (fit, _) in cell_by_regime.items()},
                {name: scored.fits for name, scored in record.items()},
            )
        if self.labels is not None:
            write_labels(self.labels, task_data)
        cells = TaskCells(
            data_sha256=task_data.sha256,
            record={name: scored.regime for name, scored in record.items()} or None,
            regimes={name: cell for name, (_, cell) in cell_by_regime.items() if self.canonical},
            few_shot=few_shot,
            seconds=round(time.perf_counter() - started, 6),
        )
        return CellsResult(
            self.task_id, cells, digest_pairs(embeddings, task_data), loaded_libraries(), scorer
        )

    def _scores_of_record(self, problem: logistic.Problem) -> dict[str, ScoredRegime]:
        """Return the scores of record by regime."""
        settings = ReceiptProbeSettings(self.benchmark.protocol)
        return {name: score_regime(problem, name, settings) for name in self.regimes}

    def _few_shot_scores(self, problem: logistic.Problem) -> dict[str, FewShotScores] | None:
        """Return scores with other draws of few-shot sequences; None if none are requested."""
        if self.other_draws is None:
            return None
        protocol = self.benchmark.protocol
        draws = few_shot_draws(
            problem.train_labels, protocol.few_shot_k, protocol.seeds, self.other_draws
        )
        return few_shot_scores(problem, draws)

    def _solved_cell(
        self, problem: logistic.Problem, regime: str
    ) -> tuple[FittedRegime, Canonical]:
        """Return the probes of a regime at their optimum, and the canonical scores."""
        started = time.perf_counter()
        protocol = self.benchmark.protocol
        rows_by_fit = logistic.fit_indices(
            problem.train_labels, regime, list(protocol.seeds), protocol.few_shot_k
        )
        solved_probes = [optimum.solve(*problem.training(rows)) for rows in rows_by_fit]
        predictions: list[Labels] = [fit.predict(problem.test) for fit in solved_probes]
        fitted = FittedRegime(
            solved_probes, [rows for rows in rows_by_fit if rows is not None], predictions
        )
        if len(predictions) == 1:
            predictions = predictions * len(protocol.seeds)
        scores_by_seed, matrices, _ = metrics_by_seed(problem, predictions)
        return fitted, Canonical(
            scores=Scores(**metrics.mean_scores(scores_by_seed)._asdict()),
            per_seed=metric_columns(scores_by_seed),
            confusion=[matrix.tolist() for matrix in matrices],
            predictions_sha256=metrics.predictions_sha256(predictions),
            solvers=sorted({fit.solver for fit in solved_probes}),
            seconds=round(time.perf_counter() - started, 6),
        )


def file_values(file: Path, receipt: TaskReceipt, task_data: TaskData) -> npt.NDArray[np.float16]:
    """Return the (n, d) float16 values of a task's file, mapped: embeddings / 2^scale_log2.

    Raise EmbeddingError if the file or the receipt does not match the data.
    """
    counts = (len(task_data.train.labels), len(task_data.test.labels))
    if counts != (receipt.train, receipt.test):
        msg = f"{task_data.id}: the receipt has {receipt.train} training and {receipt.test} test "
        msg += (
            f"embeddings, expected {counts[0]} and {counts[1]} as in the data: pass the data "
            "of the run"
        )
        raise EmbeddingError(msg)
    size, expected = file.stat().st_size, 2 * receipt.dim * sum(counts)
    if size != expected:
        msg = f"{file}: {size} bytes, expected {expected}: pass the folder of this receipt"
        raise EmbeddingError(msg)
    return np.memmap(file, dtype="<f2", mode="r", shape=(sum(counts), receipt.dim))


def digest_pairs(embeddings: npt.NDArray[np.float16], task_data: TaskData) -> DigestPairs:
    """Return the digests of every sequence and of its embedding's bytes."""
    sequences = b"".join(sequence_digests([*task_data.train.sequences, *task_data.test.sequences]))
    rows = b"".join(hashlib.sha256(row.data).digest()[:DIGEST_BYTES] for row in embeddings)
    digests, row_digests = (
        np.frombuffer(joined_digests, np.uint8).reshape(-1, DIGEST_BYTES)
        for joined_digests in (sequences, rows)
    )
    return DigestPairs(digests, row_digests)


def unequal_embeddings(
    digests: Mapping[str, DigestPairs], tasks: Mapping[str, TaskReceipt]
) -> list[str]:
    """Return a sentence per scale at which equal sequences have different embeddings.

    Tasks with different scales are not compared. This takes 64 bytes of memory per embedding.
    """
    sentences = []
    for scale in sorted({tasks[name].scale_log2 for name in digests}):
        task_ids = [name for name in digests if tasks[name].scale_log2 == scale]
        digest_words = np.vstack([np.hstack(digests[name]) for name in task_ids]).view("<u8")
        task_indices = np.repeat(
            np.arange(len(task_ids)), [len(digests[name].embeddings) for name in task_ids]
        )
        order = np.lexsort(digest_words.T[::-1])
        digest_words, task_indices = digest_words[order], task_indices[order]
        sequence_words = DIGEST_BYTES // 8
        is_same_sequence = (
            digest_words[1:, :sequence_words] == digest_words[:-1, :sequence_words]
        ).all(axis=1)
        is_unequal = is_same_sequence & (digest_words[1:] != digest_words[:-1]).any(axis=1)
        if is_unequal.any():
            unequal_tasks = sorted(
                {
                    task_ids[i]
                    for i in (*task_indices[1:][is_unequal], *task_indices[:-1][is_unequal])
                }
            )
            subject = "sequence has" if is_unequal.sum() == 1 else "sequences have"
            sentences.append(
                f"{is_unequal.sum()} {subject} embeddings that differ, in "
                f"{first_and_more(unequal_tasks)}"
            )
    return sentences


def write_digests(folder: Path, task_id: str, digests: DigestPairs) -> None:
    """Write the digests of a task, 32 bytes per embedding."""
    write_bytes(folder / f"{task_id}{DIGESTS_SUFFIX}", np.hstack(digests).tobytes())


def equal_embeddings(folder: Path, tasks: Mapping[str, TaskReceipt]) -> EqualEmbeddings:
    """Compare the embeddings of equal sequences in all tasks, by the digests in a folder.

    Raise DataError if a task has no digests, or another number than the receipt has embeddings.
    """
    digests_by_task = {}
    for task, receipt in tasks.items():
        path = folder / f"{task}{DIGESTS_SUFFIX}"
        raw = path.read_bytes() if path.is_file() else b""
        if len(raw) != 2 * DIGEST_BYTES * (receipt.train + receipt.test):
            found_text = f"{len(raw):,} bytes" if path.is_file() else "no such file"
            msg = f"{path}: found {found_text}, expected the digests of "
            msg += f"{plural(receipt.train + receipt.test, 'embedding')}: run "
            raise DataError(
                [f"{msg}`geneb-harness receipt-cells --digests {folder}` for task {task}"]
            )
        pairs = np.frombuffer(raw, np.uint8).reshape(-1, 2 * DIGEST_BYTES)
        digests_by_task[task] = DigestPairs(pairs[:, :DIGEST_BYTES], pairs[:, DIGEST_BYTES:])
    sequence_words = [
        np.ascontiguousarray(digests.sequences).view("<u8")[:, 0]
        for digests in digests_by_task.values()
    ]
    return EqualEmbeddings(
        schema_version="1.0",
        rows=sum(len(digests.embeddings) for digests in digests_by_task.values()),
        sequences=len(np.unique(np.concatenate(sequence_words))),
        unequal=unequal_embeddings(digests_by_task, tasks),
    )


@dataclass(frozen=True)
class CellsRequest:
    """The cells to compute, and further files to write."""

    benchmark: Benchmark
    source: Source
    folder: Path
    """Folder of the receipt, with one file for each task."""
    tasks: Mapping[str, TaskReceipt]
    regimes: tuple[str, ...]
    workers: int
    canonical: bool = False
    """Whether canonical cells are computed, which submissions of earlier runs claim."""
    strata: Path | None = None
    """Folder for the strata from which an audit draws embeddings; None to write none."""
    labels: Path | None = None
    """Folder for the labels of the tasks; None to write none."""
    of_record: bool = False
    """Whether to raise ScorerError on a machine that cannot compute cells of record."""
    digests: Path | None = None
    """Folder for the digests of sequences and embeddings; None to write none."""
    other_draws: str | None = None
    """Text from which the seeds of other few-shot draws are derived; None for no other draws."""


def cells(request: CellsRequest, lend_workers: WorkerLender | None = None) -> ReceiptCells:
    """Return every cell of a receipt, computed by workers of `lend_workers` or new ones.

    Raise DataError, EmbeddingError or ProbeError, which name the task; ScorerError if the cells of
    record are needed and a worker cannot compute them.
    """
    started = time.perf_counter()
    scorer = SCORER.ref
    cells_by_task: dict[str, TaskCells] = {}
    library_by_key: dict[tuple[str, str, str, int], LibraryRef] = {}
    digests_by_task: dict[str, DigestPairs] = {}
    with (lend_workers or Pool)(min(request.workers, len(request.tasks))) as pool:
        # The largest first, so that it is not left for the end.
        order = sorted(request.tasks, key=lambda name: (-request.tasks[name].bytes, name))
        for task in order:
            receipt = request.tasks[task]
            pool.submit(
                CellsJob(
                    task,
                    receipt_file(request.folder, task),
                    receipt,
                    request.benchmark,
                    request.source,
                    request.regimes,
                    request.canonical,
                    request.strata,
                    request.labels,
                    request.other_draws,
                )
            )
        while pool.waiting:
            for result in pool.results(block=True):
                scorer = result.scorer if result.scorer.reason else scorer
                if request.of_record and scorer.reason:
                    raise ScorerError(scorer.reason)
                cells_by_task[result.task_id] = result.cells
                for library in result.libraries:
                    ref = LibraryRef(**library)
                    library_by_key[(ref.library, ref.version, ref.kernel, ref.threads)] = ref
                digests_by_task[result.task_id] = result.digests
                if request.digests is not None:
                    write_digests(request.digests, result.task_id, result.digests)
    dataset = request.benchmark.dataset
    return ReceiptCells(
        schema_version="1.0",
        benchmark=BenchmarkRef(name=request.benchmark.name, sha256=request.benchmark.sha256),
        dataset=DatasetRef(
            repo_id=dataset.repo_id, revision=dataset.revision, verified=request.source.verified
        ),
        harness=environment.harness(),
        packages=environment.packages(),
        libraries=[library_by_key[key] for key in sorted(library_by_key)],
        scorer=scorer,
        tasks={name: cells_by_task[name] for name in request.tasks},
        unequal=unequal_embeddings(digests_by_task, request.tasks),
        seconds=round(time.perf_counter() - started, 6),
    )


def receipt_in(path: Path) -> tuple[dict[str, Any], dict[str, TaskReceipt]]:
    """Return the submission in a file, and the receipts of its tasks by id.

    Raise OptionError, which names the file, if it has no scores or no receipt.
    """
    try:
        document = read_json(read_text(path, SUBMISSION_BYTES_MAX))
        document["results"].keys()
        receipt = EmbeddingReceipt.model_validate(document["receipt"])
    except NotReadable as error:
        raise OptionError(f"{path}: {error.reason}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        msg = (
            f"{path}: not a submission with a receipt: make one with `geneb-harness run --receipt "
        )
        msg += "DIR`"
        raise OptionError(msg) from error
    return document, {
        name: TaskReceipt(**task.model_dump(), dim=receipt.dim)
        for name, task in receipt.tasks.items()
    }
