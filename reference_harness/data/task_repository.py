"""Write task data as in their repository on the Hub: both layouts, and a card."""

import csv
import io
from pathlib import Path

from reference_harness.errors import DataError
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.files import write_bytes

from .task_data import SPLITS, Split, TaskData
from .task_folder import Folder

CARD_FILE = "README.md"
REMOTE, FLAT = "tasks", "flat"
"""Folders of `tasks/<task_id>/{train,test}.csv`, which a run reads, and `flat/<task_id>.csv`."""


def write_repository(benchmark: Benchmark, folder: Path, out: Path) -> list[str]:
    """Write every task of the benchmark from `folder` into `out`, and return their ids.

    The bytes depend only on the content, not on the layout and compression in `folder`. Raise
    DataError if a task is missing, unreadable or not the benchmark's: a repository with only some
    tasks would break every run that pins it.
    """
    source = Folder(folder, benchmark)
    available = source.available()
    if missing_ids := [task.id for task in benchmark.tasks if task.id not in available]:
        raise DataError(
            [f"{folder}: task {name} is missing, expected every task" for name in missing_ids]
        )
    table_rows = []
    for task in benchmark.tasks:
        data = source.load(task)
        splits = dict(zip(SPLITS, (data.train, data.test), strict=True))
        for name, split in splits.items():
            write_bytes(out / REMOTE / task.id / f"{name}.csv", _csv({name: split}, is_flat=False))
        write_bytes(out / FLAT / f"{task.id}.csv", _csv(splits, is_flat=True))
        table_rows.append(_card_table_row(task, data))
    write_bytes(out / CARD_FILE, _card_text(benchmark, table_rows).encode())
    return [task.id for task in benchmark.tasks]


def _csv(splits: dict[str, Split], *, is_flat: bool) -> bytes:
    """Return the bytes of a CSV file of some splits, with a column for the split if `is_flat`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["text", "label", *(["split"] if is_flat else [])])
    for split_name, split in splits.items():
        for sequence, label in zip(split.sequences, split.labels.tolist(), strict=True):
            writer.writerow([sequence, label, *([split_name] if is_flat else [])])
    return stream.getvalue().encode()


def _card_table_row(task: Task, task_data: TaskData) -> str:
    """Return the row of a task in the table of the card."""
    counts = [sum(split.class_counts.values()) for split in (task_data.train, task_data.test)]
    return (
        f"| `{task.id}` | {task.category} | {counts[0]:,} | {counts[1]:,} "
        f"| {len(task_data.test.class_counts)} | `{task_data.sha256[:16]}` |"
    )


def _card_text(benchmark: Benchmark, table_rows: list[str]) -> str:
    """Return the text of the card, the README of the dataset."""
    configs = "\n".join(
        f"- config_name: {task.id}\n  data_files:\n"
        + "\n".join(
            f"  - split: {split}\n    path: {REMOTE}/{task.id}/{split}.csv" for split in SPLITS
        )
        for task in benchmark.tasks
    )
    table = "\n".join(table_rows)
    return f"""---
pretty_name: {benchmark.name} task data
task_categories:
- text-classification
tags:
- biology
configs:
{configs}
---

# {benchmark.name} task data

{len(table_rows)} classification tasks on sequences. `{REMOTE}/<task_id>/train.csv` and `test.csv`
have the columns text and label;
`{FLAT}/<task_id>.csv` has the same sequences and a third column, split.
Scores are comparable only at the same revision: pin it by its commit.

| task | category | train | test | classes | content sha256 |
|---|---|---:|---:|---:|---|
{table}

The digest is the first 16 digits of the sha256 of the lines `<split>,<label>,<sequence>`, train
first.
Written by `geneb-ci data push`.
"""
