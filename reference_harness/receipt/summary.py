"""The receipt in a submission: every task's file, and one root over all of them."""

from reference_harness.errors import OptionError
from reference_harness.formats.run_record import RunRecord
from reference_harness.formats.submission import (
    EmbeddingReceipt,
    ReceiptTask,
    root_over,
)


def receipt_of(record: RunRecord) -> EmbeddingReceipt | None:
    """Return the receipt's part of a submission, or None for a run without one.

    Its location is null until the files are published. Raises OptionError when only some tasks
    have a receipt, or when they differ in width.
    """
    written = {name: task.receipt for name, task in record.tasks.items() if task.receipt}
    if not written:
        return None
    if lacking := [name for name in record.tasks if name not in written]:
        msg = f"task {lacking[0]} has no receipt, others have: run again with --receipt DIR"
        raise OptionError(msg)
    tasks = {
        name: ReceiptTask.model_validate(task.model_dump(exclude={"dim"}))
        for name, task in written.items()
    }
    if len(widths := sorted({task.dim for task in written.values()})) > 1:
        raise OptionError(
            f"embeddings of {len(widths)} widths in one run: {widths}, expected one width"
        )
    return EmbeddingReceipt.model_validate(
        {
            "version": "1",
            "location": None,
            "dtype": "float16",
            "compute_dtype": record.embedding.dtype,
            "tf32": record.tf32,
            "dim": widths[0],
            "rows": sum(task.train + task.test for task in tasks.values()),
            "root": root_over(tasks, widths[0]),
            "tasks": tasks,
            "predictions": record.predictions and record.predictions.model_dump(),
        }
    )
