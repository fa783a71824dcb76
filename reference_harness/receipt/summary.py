"""What a submission says of its receipt: every task's file, and one root over all of them."""

from collections.abc import Mapping
from typing import Any

from reference_harness.errors import OptionError
from reference_harness.formats.merkle import Tree, task_leaf
from reference_harness.formats.run_record import ReceiptTask, RunRecord

VERSION = "1"


def root_of(tasks: Mapping[str, ReceiptTask]) -> str:
    """Return the root over the tasks, which are in the benchmark's order, as hex digits."""
    return (
        Tree(
            task_leaf(
                name, task.train + task.test, task.dim, task.scale_log2, bytes.fromhex(task.root)
            )
            for name, task in tasks.items()
        )
        .root()
        .hex()
    )


def receipt_of(record: RunRecord) -> dict[str, Any] | None:
    """Return the receipt's part of a submission, or None for a run without one.

    Its location is null until the files are published. Raises OptionError when only some tasks
    have a receipt.
    """
    written = {name: task.receipt for name, task in record.tasks.items() if task.receipt}
    if not written:
        return None
    if lacking := [name for name in record.tasks if name not in written]:
        msg = f"task {lacking[0]} has no receipt, others have: run again with --receipt DIR"
        raise OptionError(msg)
    tasks = {name: task for name, task in written.items() if task is not None}
    return {
        "version": VERSION,
        "location": None,
        "dtype": "float16",
        "compute_dtype": record.embedding.dtype,
        "tf32": record.tf32,
        "dim": next(iter(tasks.values())).dim,
        "rows": sum(each.train + each.test for each in tasks.values()),
        "root": root_of(tasks),
        "tasks": {name: each.model_dump(exclude={"dim"}) for name, each in tasks.items()},
        "predictions": record.predictions and record.predictions.model_dump(),
    }
