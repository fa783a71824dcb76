"""Read and validate task data from a folder, in the flat or the remote layout.

Flat: `<task_id>.csv` with the columns text, label and split. Remote, as in the pinned dataset:
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

from reference_harness import mini
from reference_harness.errors import DataError
from reference_harness.formats.benchmark import Benchmark, Task

from .manifest import Manifest
from .task_data import SPLITS, Split, TaskData

IUPAC_LETTERS = "ACGTURYSWKMBDHVN"
"""Letters allowed in a nucleotide sequence, in upper or lower case; "-" is not."""
VALUE_CHARACTERS_SHOWN = 40
"""Number of characters of an invalid value that a message quotes."""
# Characters of a field; the default of the csv module is 131,072.
FIELD_CHARACTERS_MAX = 10_000_000
# Most digits of a label, which is a class number kept as a signed 64-bit integer.
LABEL_DIGITS_MAX = 9

_SEQUENCE = re.compile(f"[{IUPAC_LETTERS}{IUPAC_LETTERS.lower()}]+")
_OTHER_LETTERS = re.compile(f"[^{IUPAC_LETTERS}{IUPAC_LETTERS.lower()}]")
_LABEL = re.compile(rf"-?[0-9]{{1,{LABEL_DIGITS_MAX}}}")
_FILE_ENDINGS = (".csv", ".csv.gz")
"""Endings of the names of task files."""


class Source(Protocol):
    """A source of the data of a benchmark's tasks."""

    @property
    def verified(self) -> bool:
        """Whether the content was verified to be that of `dataset.revision`."""

    def available(self) -> set[str]:
        """Return the ids of the tasks that the source has."""

    def load(self, task: Task) -> TaskData:
        """Return the data of one task. Raise DataError, which names file, line and value."""


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

        Raise DataError if it is not a folder, has no task of the benchmark, or has a task twice or
        without its test or training file.
        """
        self.path = path
        if not path.is_dir():
            raise DataError([f"{path}: no such folder"])
        ids = {task.id for task in benchmark.tasks}
        self._files: dict[str, tuple[Path, ...]] = {}
        self.ignored: list[str] = []
        """Files and folders of tasks that the benchmark does not have."""
        faults: list[str] = []
        for task_id, files in files_by_task(path, faults):
            if task_id not in ids:
                self.ignored.append(files[0].name if len(files) == 1 else task_id)
            elif task_id in self._files:
                first_file = self._files[task_id][0]
                faults.append(
                    f"{files[0]}: task {task_id} is already in {first_file}: delete one of the two"
                )
            else:
                self._files[task_id] = files
        if faults:
            raise DataError(faults)
        if not self._files:
            msg = (
                f"{path}: holds no task of {benchmark.name}: expected <task_id>.csv, "
                f"for example {benchmark.tasks[0].id}.csv, or tasks/<task_id>/train.csv; for tasks "
                f"of your own, write a definition first: geneb-harness data define {path}"
            )
            raise DataError([msg])
        self.manifest = Manifest.of_folder(path)
        self.verified = self.manifest is not None and self.manifest.is_of_dataset(benchmark.dataset)

    def available(self) -> set[str]:
        """Return the ids of the tasks that have files in the folder."""
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
        _check_counts(data, task, files[-1])
        return data


def files_by_task(path: Path, faults: list[str]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Yield (task id, files) in order of name: one file, or train and test.

    Errors in a task's folder are appended to `faults`.
    """
    for file in sorted(path.iterdir()):
        ending = next((e for e in _FILE_ENDINGS if file.name.endswith(e)), None)
        if file.is_file() and ending:
            yield file.name.removesuffix(ending), (file,)
    tasks = path / "tasks"
    for folder in sorted((tasks if tasks.is_dir() else path).iterdir()):
        if not folder.is_dir():
            continue
        files = [[folder / f"{split}{e}" for e in _FILE_ENDINGS] for split in SPLITS]
        present = [[file for file in candidates if file.is_file()] for candidates in files]
        if not any(present):
            continue
        for split, candidates in zip(SPLITS, present, strict=True):
            if len(candidates) != 1:
                fault = "found both: delete one" if candidates else "found neither"
                faults.append(f"{folder}: expected {split}.csv or {split}.csv.gz, {fault}")
        if all(len(candidates) == 1 for candidates in present):
            yield folder.name, (present[0][0], present[1][0])


def read_task(task_id: str, files: tuple[Path, ...]) -> TaskData:
    """Return the task data of one flat file, or of a train and a test file.

    Raise DataError with every error found, each with file, line and value.
    """
    faults: list[str] = []
    sequences_and_labels: dict[str, tuple[list[str], list[int]]] = {
        split: ([], []) for split in SPLITS
    }
    for file, split in zip(files, SPLITS if len(files) > 1 else (None,), strict=True):
        for sequence, label, file_split in _sequences_in(file, split, faults):
            sequences_and_labels[file_split][0].append(sequence)
            sequences_and_labels[file_split][1].append(label)
    if faults:
        raise DataError(faults)
    splits = {
        split: Split(sequences, np.asarray(labels, dtype=np.int64))
        for split, (sequences, labels) in sequences_and_labels.items()
    }
    for split, file in zip(SPLITS, (files[0], files[-1]), strict=True):
        counts = splits[split].class_counts
        if not counts:
            faults.append(f"{file}: no {split} sequence, expected sequences of two classes or more")
        elif len(counts) == 1:
            faults.append(f"{file}: every {split} sequence has the label {next(iter(counts))}, "
                          "expected two classes or more")  # fmt: skip
    if faults:
        raise DataError(faults)
    return TaskData(task_id, splits["train"], splits["test"])


def _sequences_in(
    file: Path, split: str | None, faults: list[str]
) -> Iterator[tuple[str, int, str]]:
    """Yield (sequence, label, split) of valid lines; append the errors of others to `faults`."""
    header = ["text", "label"] if split else ["text", "label", "split"]
    csv.field_size_limit(FIELD_CHARACTERS_MAX)
    opener = gzip.open if file.name.endswith(".gz") else open
    try:
        with opener(file, "rt", encoding="utf-8", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            columns = next(reader, [])
            if columns != header:
                columns_text = ",".join(columns)[:VALUE_CHARACTERS_SHOWN]
                has_byte_order_mark = columns_text.startswith("\ufeff")
                advice = (
                    ": save it without a byte order mark, as plain UTF-8"
                    if has_byte_order_mark
                    else ""
                )
                faults.append(
                    f"{file}:1: columns are {columns_text!r}, expected {','.join(header)!r}{advice}"
                )
                return
            for row in reader:
                fault = _row_error(row, header)
                if fault:
                    faults.append(f"{file}:{reader.line_num}: {fault}")
                else:
                    yield row[0], int(row[1]), split or row[2]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        faults.append(f"{file}: cannot be read: {error}")


def _row_error(row: list[str], header: list[str]) -> str | None:
    """Return what is invalid in a row of a file; None for a valid row."""
    if len(row) != len(header):
        return f"{len(row)} values, expected {len(header)}: {','.join(header)}"
    sequence, label = row[:2]
    if not _LABEL.fullmatch(label):
        quoted_label = repr(label[:VALUE_CHARACTERS_SHOWN])
        return f"label {quoted_label} is not an integer of at most {LABEL_DIGITS_MAX} digits"
    if len(row) > len(SPLITS) and row[2] not in SPLITS:
        return f"split {row[2][:VALUE_CHARACTERS_SHOWN]!r} is neither train nor test"
    if not sequence:
        return "the sequence is empty"
    if not _SEQUENCE.fullmatch(sequence):
        other_letter = _OTHER_LETTERS.search(sequence)
        index = other_letter.start() if other_letter else 0
        return (
            f"character {sequence[index]!r} at position {index + 1} of the sequence is no IUPAC "
            "letter"
        )
    return None


def _check_counts(task_data: TaskData, task: Task, file: Path) -> None:
    """Raise DataError if the test split has not the size or class counts of the benchmark."""
    counts = sorted(task_data.test.class_counts.values())
    size = len(task_data.test.labels)
    if task.n_test is not None and size != task.n_test:
        raise DataError(
            [f"{file}: {size} test sequences, expected {task.n_test} as in the benchmark"]
        )
    if task.test_class_counts is not None and counts != task.test_class_counts:
        expected = task.test_class_counts
        raise DataError(
            [f"{file}: test classes of {counts} sequences, expected {expected} as in the benchmark"]
        )
