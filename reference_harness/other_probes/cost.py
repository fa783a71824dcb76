"""Estimate the cost of probing receipts, which is printed before the work begins."""

from collections.abc import Iterable
from typing import NamedTuple

from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.run_record import TaskReceipt
from reference_harness.formats.text import plural

from .kinds import HIDDEN_UNITS, is_seeded, mlp_epochs

PICOSECONDS_PER_MULTIPLICATION = {"logistic": 170, "ridge": 40, "knn": 60, "mlp": 150}
"""Time on one core per multiplication that `_multiplications` counts, by kind of probe. Measured on
3,000 to 8,000 embeddings of 256 to 768 columns; it may differ by a factor of three with the
processor and the features."""
BYTES_PER_FEATURE = 4 * 2
"""Bytes of memory per number of a task: the embeddings as float32, and one copy."""
MINUTE_SECONDS, HOUR_SECONDS = 60, 3600


class TaskOfReceipt(NamedTuple):
    """One task of a receipt."""

    task_id: str
    receipt: TaskReceipt
    """Numbers, width, size and digests of the task's embeddings."""


class Cost(NamedTuple):
    """The estimated cost of fitting other probes on receipts."""

    file_bytes: int
    """Bytes of the files to read."""
    seconds: float
    """Time in seconds on one core."""
    memory_bytes: int
    """Bytes that a worker needs for the largest task, besides Python and its libraries."""


def estimated_cost(
    tasks_of_receipts: Iterable[TaskOfReceipt],
    benchmark: Benchmark,
    kinds: tuple[str, ...],
    *,
    has_full_regime: bool,
    seeds: int,
) -> Cost:
    """Return the estimated cost; only fits in the full regime count."""
    all_tasks = list(tasks_of_receipts)
    picoseconds = sum(
        PICOSECONDS_PER_MULTIPLICATION[kind]
        * _multiplications(kind, task, benchmark)
        * (seeds if is_seeded(kind) else 1)
        for task in all_tasks
        for kind in kinds
        if has_full_regime
    )
    return Cost(
        sum(task.receipt.bytes for task in all_tasks),
        picoseconds / 1e12,
        max(BYTES_PER_FEATURE * task.receipt.bytes // 2 for task in all_tasks),
    )


def _multiplications(kind: str, task: TaskOfReceipt, benchmark: Benchmark) -> int:
    """Return the number of multiplications to which the time of a fit is proportional."""
    rows, dim = task.receipt.train, task.receipt.dim
    if kind == "knn":
        return rows * task.receipt.test * dim
    if kind == "mlp":
        return mlp_epochs(rows) * rows * dim * HIDDEN_UNITS
    counts = benchmark.by_id[task.task_id].test_class_counts or []
    column_count = len(counts) if len(counts) > 2 else 1  # noqa: PLR2004 - one column stands for two
    return rows * dim * min(rows, dim) * (column_count if kind == "logistic" else 1)


def cost_sentence(estimate: Cost, receipts: int, tasks: int, kinds: int, workers: int) -> str:
    """Return a sentence about an estimated cost."""
    return (
        f"{plural(receipts, 'receipt')}, {plural(tasks, 'task')}, "
        f"{plural(kinds, 'kind')} of probe: {_bytes_text(estimate.file_bytes)} to read, "
        f"{_bytes_text(estimate.memory_bytes)} of memory per worker, "
        f"about {_time_text(estimate.seconds / min(workers, receipts * tasks))} with "
        f"{plural(workers, 'worker')} (rough: up to three times more or less)"
    )


def _bytes_text(count: int) -> str:
    """Return a number of bytes with a readable unit."""
    number = float(count)
    for unit in ("B", "kB", "MB"):
        if number < 1000:  # noqa: PLR2004 - a step of the units
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.3g} GB"


def _time_text(seconds: float) -> str:
    """Return a number of seconds with a readable unit."""
    if seconds < MINUTE_SECONDS:
        return f"{max(1, round(seconds))} s"
    return (
        f"{seconds / MINUTE_SECONDS:.0f} min"
        if seconds < HOUR_SECONDS
        else f"{seconds / HOUR_SECONDS:.1f} h"
    )
