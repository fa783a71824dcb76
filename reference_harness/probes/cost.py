"""The cost of probing receipts, printed before it is spent."""

from collections.abc import Iterable
from typing import NamedTuple

from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.run_record import TaskReceipt
from reference_harness.formats.text import plural

from .kinds import HIDDEN, epochs, is_seeded

PICOSECONDS = {"logistic": 170, "ridge": 40, "knn": 60, "mlp": 150}
"""Time of one step of the work below on one core, measured on 3,000 to 8,000 embeddings of 256 to
768 columns; other processors, and features that are hard to separate, differ by a factor of
three."""
FEATURE_BYTES = 4 * 2
"""Bytes of memory for each number of a task: the embeddings as float32, and one copy of them."""
MINUTE, HOUR = 60, 3600


class TaskOfReceipt(NamedTuple):
    """One task of one receipt."""

    task_id: str
    receipt: TaskReceipt


class Cost(NamedTuple):
    """An estimate."""

    read: int
    """Bytes of the files."""
    seconds: float
    """On one core."""
    memory: int
    """Bytes that a worker needs for the largest task, beside Python and its libraries."""


def cost(
    work: Iterable[TaskOfReceipt],
    benchmark: Benchmark,
    kinds: tuple[str, ...],
    *,
    full: bool,
    seeds: int,
) -> Cost:
    """Return the estimate; without the full regime, fits take next to nothing."""
    all_work = list(work)
    picoseconds = sum(
        PICOSECONDS[kind] * _steps(kind, task, benchmark) * (seeds if is_seeded(kind) else 1)
        for task in all_work
        for kind in kinds
        if full
    )
    return Cost(
        sum(task.receipt.bytes for task in all_work),
        picoseconds / 1e12,
        max(FEATURE_BYTES * task.receipt.bytes // 2 for task in all_work),
    )


def _steps(kind: str, task: TaskOfReceipt, benchmark: Benchmark) -> int:
    """Return the multiplications that the time of a fit in the full regime grows with."""
    rows, dim = task.receipt.train, task.receipt.dim
    if kind == "knn":
        return rows * task.receipt.test * dim
    if kind == "mlp":
        return epochs(rows) * rows * dim * HIDDEN
    counts = benchmark.by_id[task.task_id].test_class_counts or []
    classes = len(counts) if len(counts) > 2 else 1  # noqa: PLR2004 - one column stands for two
    return rows * dim * min(rows, dim) * (classes if kind == "logistic" else 1)


def sentence(estimate: Cost, receipts: int, tasks: int, kinds: int, workers: int) -> str:
    """Return the sentence that is printed before the work begins."""
    return (
        f"{plural(receipts, 'receipt')}, {plural(tasks, 'task')}, "
        f"{plural(kinds, 'kind')} of probe: {_size(estimate.read)} to read, "
        f"{_size(estimate.memory)} of memory a worker, "
        f"about {_time(estimate.seconds / min(workers, receipts * tasks))} with "
        f"{plural(workers, 'worker')} (rough: up to three times more or less)"
    )


def _size(count: int) -> str:
    number = float(count)
    for unit in ("B", "kB", "MB"):
        if number < 1000:  # noqa: PLR2004 - a step of the units
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.3g} GB"


def _time(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < HOUR else f"{seconds / HOUR:.1f} h"
