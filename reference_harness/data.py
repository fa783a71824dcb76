"""Reads and validates task data from a folder, in the flat or the remote layout.

Flat: `<task_id>.csv` with the columns text, label and split. Remote, as the pinned dataset has it:
`tasks/<task_id>/train.csv` and `test.csv` with text and label. Every file may be gzipped.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from reference_harness.formats.benchmark import Benchmark, Task

from . import mini
from .errors import DataError
from .manifest import Manifest
from .tasks import SPLITS, Split, TaskData

IUPAC = "ACGTURYSWKMBDHVN"
"""Letters of a nucleotide sequence, with ambiguity codes, in either case; without gaps."""
VALUE_SHOWN = 40
"""Characters of an invalid value in a message."""
# The csv module refuses fields beyond 131,072 characters unless told; no task comes near this.
FIELD_MAX = 10_000_000
# Fits a signed 64-bit integer, with room: labels are class numbers.
LABEL_DIGITS = 9

_SEQUENCE = re.compile(f"[{IUPAC}{IUPAC.lower()}]+")
_OTHER_LETTERS = re.compile(f"[^{IUPAC}{IUPAC.lower()}]")
_LABEL = re.compile(rf"-?[0-9]{{1,{LABEL_DIGITS}}}")
_ENDINGS = (".csv", ".csv.gz")


class Source(Protocol):
    """Where the data of a benchmark's tasks come from."""

    @property
    def verified(self) -> bool:
        """Whether the content was verified to be that of `dataset.revision`."""

    def available(self) -> set[str]:
        """Return the ids of the tasks it has."""

    def load(self, task: Task) -> TaskData:
        """Return one task. Raises DataError, which names file, line and value."""


@dataclass(frozen=True)
class MiniSource:
    """The generated data of GENEB-mini."""

    verified: bool = True

    def available(self) -> set[str]:
        """Return the ids of all 13 tasks."""
        return {task.id for task in mini.TASKS}

    def load(self, task: Task) -> TaskData:
        """Return one generated task."""
        return mini.load(task.id)


class Folder:
    """A folder of task files."""

    def __init__(self, path: Path, benchmark: Benchmark) -> None:
        """Read the folder's file names, and its manifest if it has one.

        Raises DataError if it is not a folder, has no task, or has a task twice.
        """
        self.path = path
        if not path.is_dir():
            raise DataError([f"{path}: no such folder"])
        ids = {task.id for task in benchmark.tasks}
        self._files: dict[str, tuple[Path, ...]] = {}
        self.ignored: list[str] = []
        faults: list[str] = []
        for task_id, files in layout(path, faults):
            if task_id not in ids:
                self.ignored.append(files[0].name if len(files) == 1 else task_id)
            elif task_id in self._files:
                first = self._files[task_id][0]
                faults.append(f"{files[0]}: task {task_id} is already in {first}: keep one")
            else:
                self._files[task_id] = files
        if faults:
            raise DataError(faults)
        if not self._files:
            msg = (
                f"{path}: holds no task of {benchmark.name}: expected <task_id>.csv, "
                f"for example {benchmark.tasks[0].id}.csv, or tasks/<task_id>/train.csv; for tasks "
                f"of your own write a definition first: geneb-harness data define {path}"
            )
            raise DataError([msg])
        self.manifest = Manifest.of_folder(path)
        self.verified = self.manifest is not None and self.manifest.names(benchmark.dataset)

    def available(self) -> set[str]:
        """Return the ids of the tasks whose files are here."""
        return set(self._files)

    def files(self, task_id: str) -> tuple[Path, ...]:
        """Return the file of a task, or its train and test file."""
        return self._files[task_id]

    def load(self, task: Task) -> TaskData:
        """Return one task, verified against the manifest and the benchmark's counts."""
        files = self._files[task.id]
        if self.manifest:
            self.manifest.verify(self.path, files)
        data = read_task(task.id, files)
        _against_benchmark(data, task, files[-1])
        return data


def layout(path: Path, faults: list[str]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Yield (task id, files) in order of name: one file, or train and test.

    What is wrong with a folder of a task is added to `faults`.
    """
    for file in sorted(path.iterdir()):
        ending = next((e for e in _ENDINGS if file.name.endswith(e)), None)
        if file.is_file() and ending:
            yield file.name.removesuffix(ending), (file,)
    tasks = path / "tasks"
    for folder in sorted((tasks if tasks.is_dir() else path).iterdir()):
        if not folder.is_dir():
            continue
        files = [[folder / f"{split}{e}" for e in _ENDINGS] for split in SPLITS]
        present = [[file for file in either if file.is_file()] for either in files]
        if not any(present):
            continue
        for split, either in zip(SPLITS, present, strict=True):
            if len(either) != 1:
                names = " and ".join(file.name for file in either) or "neither"
                faults.append(f"{folder}: expected {split}.csv or {split}.csv.gz, found {names}")
        if all(len(either) == 1 for either in present):
            yield folder.name, (present[0][0], present[1][0])


def read_task(task_id: str, files: tuple[Path, ...]) -> TaskData:
    """Read one flat file, or a train and a test file.

    Raises DataError with every error found, each with file, line and value.
    """
    faults: list[str] = []
    rows: dict[str, tuple[list[str], list[int]]] = {split: ([], []) for split in SPLITS}
    for file, split in zip(files, SPLITS if len(files) > 1 else (None,), strict=True):
        for sequence, label, where in _sequences_in(file, split, faults):
            rows[where][0].append(sequence)
            rows[where][1].append(label)
    if faults:
        raise DataError(faults)
    splits = {s: Split(t, np.asarray(labels, dtype=np.int64)) for s, (t, labels) in rows.items()}
    for split, file in zip(SPLITS, (files[0], files[-1]), strict=True):
        counts = splits[split].class_counts
        if not counts:
            faults.append(f"{file}: no {split} sequence")
        elif len(counts) == 1:
            faults.append(f"{file}: every {split} sequence has the label {next(iter(counts))}, "
                          "expected two classes or more")  # fmt: skip
    if faults:
        raise DataError(faults)
    return TaskData(task_id, splits["train"], splits["test"])


def _sequences_in(
    file: Path, split: str | None, faults: list[str]
) -> Iterator[tuple[str, int, str]]:
    """Yield (sequence, label, split) of each valid line; add errors of the others to `faults`."""
    header = ["text", "label"] if split else ["text", "label", "split"]
    csv.field_size_limit(FIELD_MAX)
    opener = gzip.open if file.name.endswith(".gz") else open
    try:
        with opener(file, "rt", encoding="utf-8", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            columns = next(reader, [])
            if columns != header:
                columns_text = ",".join(columns)[:VALUE_SHOWN]
                mark = columns_text.startswith("\ufeff")
                cure = ": save it without a byte order mark, as plain UTF-8" if mark else ""
                faults.append(
                    f"{file}:1: columns are {columns_text!r}, expected {','.join(header)!r}{cure}"
                )
                return
            for row in reader:
                fault = _fault(row, header)
                if fault:
                    faults.append(f"{file}:{reader.line_num}: {fault}")
                else:
                    yield row[0], int(row[1]), split or row[2]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        faults.append(f"{file}: cannot be read: {error}")


def _fault(row: list[str], header: list[str]) -> str | None:
    if len(row) != len(header):
        return f"{len(row)} values, expected {len(header)}"
    sequence, label = row[:2]
    if not _LABEL.fullmatch(label):
        return f"label {label[:VALUE_SHOWN]!r} is not an integer of at most {LABEL_DIGITS} digits"
    if len(row) > len(SPLITS) and row[2] not in SPLITS:
        return f"split {row[2][:VALUE_SHOWN]!r} is neither train nor test"
    if not sequence:
        return "the sequence is empty"
    if not _SEQUENCE.fullmatch(sequence):
        strange = _OTHER_LETTERS.search(sequence)
        at = strange.start() if strange else 0
        return f"character {sequence[at]!r} at position {at + 1} of the sequence is not IUPAC"
    return None


def _against_benchmark(data: TaskData, task: Task, file: Path) -> None:
    counts = sorted(data.test.class_counts.values())
    size = len(data.test.labels)
    if task.n_test is not None and size != task.n_test:
        raise DataError([f"{file}: {size} test sequences, the benchmark has {task.n_test}"])
    if task.test_class_counts is not None and counts != task.test_class_counts:
        expected = task.test_class_counts
        raise DataError(
            [f"{file}: test classes of {counts} sequences, the benchmark has {expected}"]
        )
