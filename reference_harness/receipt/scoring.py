"""Computes canonical cells from the files of a receipt; no model and no extractor is needed."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from reference_harness import environment, metrics, probe
from reference_harness.benchmark import Benchmark
from reference_harness.canonical import solve
from reference_harness.data import Source
from reference_harness.engine.local import Pool
from reference_harness.engine.threads import Library, libraries
from reference_harness.errors import DataError, ProbeError
from reference_harness.job import columns
from reference_harness.record import (
    BenchmarkRef,
    Canonical,
    DatasetRef,
    HarnessRef,
    Hex64,
    LibraryRef,
    Part,
    ReceiptTask,
    Seconds,
    Triple,
)
from reference_harness.rescore import load
from reference_harness.tasks import DIGEST_BYTES, Labels, TaskData, sequence_digests
from reference_harness.text import first_and_more

from .rounding import Widened
from .task_file import file_of

ROWS = 65_536
"""Rows hashed at once."""


class TaskCells(Part):
    """Canonical cells of one task."""

    data_sha256: Hex64
    regimes: Annotated[dict[str, Canonical], Field(min_length=1)]
    seconds: Seconds


class ReceiptCells(Part):
    """Every canonical cell of a receipt's tasks; `schemas/receipt-cells.schema.json`."""

    schema_version: str = "1.0"
    benchmark: BenchmarkRef
    dataset: DatasetRef
    harness: HarnessRef
    packages: dict[str, str]
    libraries: list[LibraryRef]
    tasks: Annotated[dict[str, TaskCells], Field(min_length=1)]
    unequal: list[str]
    """Rows of equal sequences whose bytes differ: a sentence for each scale that has some."""
    seconds: Seconds


class Named(NamedTuple):
    """What tells whether equal sequences have equal rows: (n, 16) digests of both."""

    sequences: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.uint8]


class Celled(NamedTuple):
    """Result of a worker."""

    task_id: str
    cells: TaskCells
    named: Named
    libraries: list[Library]


@dataclass(frozen=True)
class CellsJob:
    """Scores one task from its file; small, for it is pickled."""

    task_id: str
    file: Path
    said: ReceiptTask
    benchmark: Benchmark
    source: Source
    regimes: tuple[str, ...]

    def execute(self) -> Celled:
        """Return the canonical cells. Raises DataError or ProbeError, which name the task."""
        started = time.perf_counter()
        data = load(self.benchmark, self.source, self.task_id)
        values = values_of(self.file, self.said, data)
        cut = self.said.train
        train = Widened(values[:cut], self.said.scale_log2)
        test = Widened(values[cut:], self.said.scale_log2)
        try:
            regimes = {name: self._cell(train, test, data, name) for name in self.regimes}
        except ProbeError as error:
            msg = f"{self.task_id}: {error}"
            raise ProbeError(msg) from error
        cells = TaskCells(
            data_sha256=data.sha256,
            regimes=regimes,
            seconds=round(time.perf_counter() - started, 6),
        )
        return Celled(self.task_id, cells, named(values, data), libraries())

    def _cell(self, train: Widened, test: Widened, data: TaskData, regime: str) -> Canonical:
        started = time.perf_counter()
        protocol = self.benchmark.protocol
        labels = data.train.labels
        drawn = probe.rows_of_regime(labels, regime, list(protocol.seeds), protocol.few_shot_k)
        solved = [
            solve(train, labels) if rows is None else solve(train[rows], labels[rows])
            for rows in drawn
        ]
        found: list[Labels] = [one.predict(test) for one in solved]
        if len(found) == 1:
            found = found * len(protocol.seeds)
        classes = np.unique(np.concatenate([labels, data.test.labels]))
        matrices = [metrics.confusion_matrix(data.test.labels, one, classes) for one in found]
        triples = [metrics.scores(matrix) for matrix in matrices]
        return Canonical(
            scores=Triple(**metrics.mean(triples)._asdict()),
            per_seed=columns(triples),
            confusion=[matrix.tolist() for matrix in matrices],
            predictions_sha256=metrics.predictions_sha256(found),
            solvers=sorted({one.solver for one in solved}),
            seconds=round(time.perf_counter() - started, 6),
        )


def values_of(file: Path, said: ReceiptTask, data: TaskData) -> npt.NDArray[np.float16]:
    """Map the rows of a task from its file.

    Raises DataError when the file or the receipt does not have the rows of the data.
    """
    counts = (len(data.train.labels), len(data.test.labels))
    if counts != (said.train, said.test):
        msg = f"{data.id}: the receipt has {said.train} training and {said.test} test rows, the "
        msg += f"data have {counts[0]} and {counts[1]}"
        raise DataError([msg])
    size, expected = file.stat().st_size, 2 * said.dim * sum(counts)
    if size != expected:
        raise DataError([f"{file}: {size} bytes, expected {expected}"])
    return np.memmap(file, dtype="<f2", mode="r", shape=(sum(counts), said.dim))


def named(values: npt.NDArray[np.float16], data: TaskData) -> Named:
    """Return digests of every sequence and of its row's bytes."""
    sequences = b"".join(sequence_digests([*data.train.sequences, *data.test.sequences]))
    rows = b"".join(hashlib.sha256(row.data).digest()[:DIGEST_BYTES] for row in values)
    one, two = (
        np.frombuffer(each, np.uint8).reshape(-1, DIGEST_BYTES) for each in (sequences, rows)
    )
    return Named(one, two)


def unequal_rows(found: Mapping[str, Named], tasks: Mapping[str, ReceiptTask]) -> list[str]:
    """Return a sentence for each scale at which equal sequences have rows that differ.

    Bytes of tasks with different scales are not compared. Takes 32 bytes a row, twice.
    """
    sentences = []
    for scale in sorted({said.scale_log2 for said in tasks.values()}):
        names = [name for name, said in tasks.items() if said.scale_log2 == scale]
        pairs = np.vstack([np.hstack(found[name]) for name in names])
        task = np.repeat(np.arange(len(names)), [len(found[name].rows) for name in names])
        order = np.lexsort(pairs.T[::-1])
        pairs, task = pairs[order], task[order]
        same = (pairs[1:, :DIGEST_BYTES] == pairs[:-1, :DIGEST_BYTES]).all(axis=1)
        other = same & (pairs[1:] != pairs[:-1]).any(axis=1)
        if other.any():
            where = sorted({names[i] for i in (*task[1:][other], *task[:-1][other])})
            sentences.append(
                f"{int(other.sum())} sequences have rows that differ, in {first_and_more(where)}"
            )
    return sentences


@dataclass(frozen=True)
class CellsRequest:
    """What is to be computed."""

    benchmark: Benchmark
    source: Source
    folder: Path
    tasks: Mapping[str, ReceiptTask]
    regimes: tuple[str, ...]
    workers: int


def cells(asked: CellsRequest) -> ReceiptCells:
    """Compute every canonical cell. Raises DataError or ProbeError, which name the task."""
    started = time.perf_counter()
    found: dict[str, TaskCells] = {}
    used: dict[tuple[str, str, str, int], LibraryRef] = {}
    rows: dict[str, Named] = {}
    with Pool[Celled](min(asked.workers, len(asked.tasks))) as pool:
        # Largest first, so that no worker is left with it at the end.
        order = sorted(asked.tasks, key=lambda name: (-asked.tasks[name].bytes, name))
        for name in order:
            said = asked.tasks[name]
            pool.submit(
                CellsJob(
                    name,
                    file_of(asked.folder, name),
                    said,
                    asked.benchmark,
                    asked.source,
                    asked.regimes,
                )
            )
        while pool.waiting:
            for one in pool.done(block=True):
                found[one.task_id] = one.cells
                for library in one.libraries:
                    ref = LibraryRef(**library)
                    used[(ref.library, ref.version, ref.kernel, ref.threads)] = ref
                rows[one.task_id] = one.named
    pin = asked.benchmark.dataset
    return ReceiptCells(
        benchmark=BenchmarkRef(name=asked.benchmark.name, sha256=asked.benchmark.sha256),
        dataset=DatasetRef(
            repo_id=pin.repo_id, revision=pin.revision, verified=asked.source.verified
        ),
        harness=environment.harness(),
        packages=environment.packages(),
        libraries=[used[key] for key in sorted(used)],
        tasks={name: found[name] for name in asked.tasks},
        unequal=unequal_rows(rows, asked.tasks),
        seconds=round(time.perf_counter() - started, 6),
    )


def tasks_said(receipt: object) -> dict[str, ReceiptTask]:
    """Return the tasks of a submission's `receipt`. Raises DataError for anything else."""
    try:
        dim = receipt["dim"]  # type: ignore[index]
        tasks = receipt["tasks"]  # type: ignore[index]
        return {name: ReceiptTask(**one, dim=dim) for name, one in tasks.items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError([f"the receipt cannot be read: {error}"]) from error
