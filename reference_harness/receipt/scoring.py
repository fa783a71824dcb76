"""Computes canonical cells from the files of a receipt; no model and no extractor is needed."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness import environment, metrics, probe
from reference_harness.canonical import solve
from reference_harness.data import Source
from reference_harness.engine.local import Pool
from reference_harness.engine.threads import Library, libraries
from reference_harness.errors import DataError, EmbeddingError, OptionError, ProbeError
from reference_harness.formats.base import Scores
from reference_harness.formats.benchmark import SUBMISSION_BYTES_MAX, Benchmark
from reference_harness.formats.files import NotReadable, read_json, read_regular, write_bytes
from reference_harness.formats.receipt_cells import EqualRows, ReceiptCells, TaskCells
from reference_harness.formats.run_record import (
    BenchmarkRef,
    Canonical,
    DatasetRef,
    LibraryRef,
    ReceiptTask,
)
from reference_harness.formats.text import plural
from reference_harness.job import columns
from reference_harness.rescore import Lend, load
from reference_harness.tasks import DIGEST_BYTES, Labels, TaskData, sequence_digests
from reference_harness.text import first_and_more

from .rounding import Widened
from .strata import FittedRegime, write_strata
from .task_file import file_of

DIGESTS = ".digests"
"""Ending of a task's file of digests: of each sequence and of its row, 16 bytes each."""


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
    strata: Path | None = None
    """Folder for what rows are drawn by; None where nothing is drawn."""

    def execute(self) -> Celled:
        """Return the canonical cells. Raises a HarnessError, which names the task."""
        started = time.perf_counter()
        data = load(self.benchmark, self.source, self.task_id)
        values = values_of(self.file, self.said, data)
        cut = self.said.train
        train = Widened(values[:cut], self.said.scale_log2)
        test = Widened(values[cut:], self.said.scale_log2)
        try:
            fitted = {name: self._cell(train, test, data, name) for name in self.regimes}
        except ProbeError as error:
            msg = f"{self.task_id}: {error}"
            raise ProbeError(msg) from error
        if self.strata is not None:
            write_strata(self.strata, data, {name: fit for name, (fit, _) in fitted.items()})
        cells = TaskCells(
            data_sha256=data.sha256,
            regimes={name: cell for name, (_, cell) in fitted.items()},
            seconds=round(time.perf_counter() - started, 6),
        )
        return Celled(self.task_id, cells, named(values, data), libraries())

    def _cell(
        self, train: Widened, test: Widened, data: TaskData, regime: str
    ) -> tuple[FittedRegime, Canonical]:
        started = time.perf_counter()
        protocol = self.benchmark.protocol
        labels = data.train.labels
        drawn = probe.rows_of_regime(labels, regime, list(protocol.seeds), protocol.few_shot_k)
        solved = [
            solve(train, labels) if rows is None else solve(train[rows], labels[rows])
            for rows in drawn
        ]
        found: list[Labels] = [one.predict(test) for one in solved]
        fitted = FittedRegime(solved, [rows for rows in drawn if rows is not None], found)
        if len(found) == 1:
            found = found * len(protocol.seeds)
        classes = np.unique(np.concatenate([labels, data.test.labels]))
        matrices = [metrics.confusion_matrix(data.test.labels, one, classes) for one in found]
        triples = [metrics.scores(matrix) for matrix in matrices]
        return fitted, Canonical(
            scores=Scores(**metrics.mean(triples)._asdict()),
            per_seed=columns(triples),
            confusion=[matrix.tolist() for matrix in matrices],
            predictions_sha256=metrics.predictions_sha256(found),
            solvers=sorted({one.solver for one in solved}),
            seconds=round(time.perf_counter() - started, 6),
        )


def values_of(file: Path, said: ReceiptTask, data: TaskData) -> npt.NDArray[np.float16]:
    """Map the rows of a task from its file.

    Raises EmbeddingError when the file or the receipt does not have the rows of the data.
    """
    counts = (len(data.train.labels), len(data.test.labels))
    if counts != (said.train, said.test):
        msg = f"{data.id}: the receipt has {said.train} training and {said.test} test rows, the "
        msg += f"data have {counts[0]} and {counts[1]}"
        raise EmbeddingError(msg)
    size, expected = file.stat().st_size, 2 * said.dim * sum(counts)
    if size != expected:
        msg = f"{file}: {size} bytes, expected {expected}"
        raise EmbeddingError(msg)
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
    for scale in sorted({tasks[name].scale_log2 for name in found}):
        names = [name for name in found if tasks[name].scale_log2 == scale]
        words = np.vstack([np.hstack(found[name]) for name in names]).view("<u8")
        task = np.repeat(np.arange(len(names)), [len(found[name].rows) for name in names])
        order = np.lexsort(words.T[::-1])
        words, task = words[order], task[order]
        half = DIGEST_BYTES // 8
        same = (words[1:, :half] == words[:-1, :half]).all(axis=1)
        other = same & (words[1:] != words[:-1]).any(axis=1)
        if other.any():
            where = sorted({names[i] for i in (*task[1:][other], *task[:-1][other])})
            has = "sequence has" if other.sum() == 1 else "sequences have"
            sentences.append(f"{other.sum()} {has} rows that differ, in {first_and_more(where)}")
    return sentences


def write_digests(folder: Path, task_id: str, found: Named) -> None:
    """Write the digests of a task, 32 bytes a row."""
    write_bytes(folder / f"{task_id}{DIGESTS}", np.hstack(found).tobytes())


def compared(folder: Path, tasks: Mapping[str, ReceiptTask]) -> EqualRows:
    """Compare the rows of equal sequences over all tasks whose digests lie in a folder.

    Raises DataError when a task has none, or another number of rows than the receipt says.
    """
    found = {}
    for name, said in tasks.items():
        path = folder / f"{name}{DIGESTS}"
        raw = path.read_bytes() if path.is_file() else b""
        if len(raw) != 2 * DIGEST_BYTES * (said.train + said.test):
            msg = f"{path}: expected the digests of {plural(said.train + said.test, 'row')}: run "
            raise DataError([f"{msg}receipt-cells --digests for this task"])
        pairs = np.frombuffer(raw, np.uint8).reshape(-1, 2 * DIGEST_BYTES)
        found[name] = Named(pairs[:, :DIGEST_BYTES], pairs[:, DIGEST_BYTES:])
    first = [np.ascontiguousarray(one.sequences).view("<u8")[:, 0] for one in found.values()]
    return EqualRows(
        schema_version="1.0",
        rows=sum(len(one.rows) for one in found.values()),
        sequences=len(np.unique(np.concatenate(first))),
        unequal=unequal_rows(found, tasks),
    )


@dataclass(frozen=True)
class CellsRequest:
    """What is to be computed."""

    benchmark: Benchmark
    source: Source
    folder: Path
    tasks: Mapping[str, ReceiptTask]
    regimes: tuple[str, ...]
    workers: int
    strata: Path | None = None
    """Folder for what an audit draws rows by."""
    digests: Path | None = None
    """Folder to write the digests of sequences and rows into."""


def cells(asked: CellsRequest, lent: Lend | None = None) -> ReceiptCells:
    """Compute every canonical cell, with the workers `lent`, else with new ones.

    Raises DataError, EmbeddingError or ProbeError, which name the task.
    """
    started = time.perf_counter()
    found: dict[str, TaskCells] = {}
    used: dict[tuple[str, str, str, int], LibraryRef] = {}
    rows: dict[str, Named] = {}
    with (lent or Pool)(min(asked.workers, len(asked.tasks))) as pool:
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
                    asked.strata,
                )
            )
        while pool.waiting:
            for one in pool.done(block=True):
                found[one.task_id] = one.cells
                for library in one.libraries:
                    ref = LibraryRef(**library)
                    used[(ref.library, ref.version, ref.kernel, ref.threads)] = ref
                rows[one.task_id] = one.named
                if asked.digests is not None:
                    write_digests(asked.digests, one.task_id, one.named)
    pin = asked.benchmark.dataset
    return ReceiptCells(
        schema_version="1.0",
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


def receipt_in(path: Path) -> tuple[dict[str, Any], dict[str, ReceiptTask]]:
    """Return a submission, and what its receipt says of each task.

    Raises OptionError, which names the file, for one without scores or without a receipt.
    """
    try:
        document = read_json(read_regular(path, SUBMISSION_BYTES_MAX))
        document["results"].keys()
        dim, tasks = document["receipt"]["dim"], document["receipt"]["tasks"]
        return document, {name: ReceiptTask(**task, dim=dim) for name, task in tasks.items()}
    except NotReadable as error:
        raise OptionError(f"{path}: {error.reason}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        msg = f"{path}: no submission with a receipt, which `geneb-harness run --receipt DIR` "
        msg += "writes"
        raise OptionError(msg) from error
