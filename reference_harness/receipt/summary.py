"""The receipt in a submission: an entry per task, and one root over all of them."""

from reference_harness.errors import OptionError
from reference_harness.formats.run_record import RunRecord
from reference_harness.formats.submission import (
    EmbeddingReceipt,
    ReceiptTask,
    root_of_tasks,
)


def receipt_of(record: RunRecord) -> EmbeddingReceipt | None:
    """Return the receipt as a submission contains it; None for a run without a receipt.

    Its location is null until the files are published. Raise OptionError if only some tasks have a
    receipt, or they differ in width.
    """
    receipts = {name: task.receipt for name, task in record.tasks.items() if task.receipt}
    if not receipts:
        return None
    if tasks_without_receipt := [name for name in record.tasks if name not in receipts]:
        msg = f"task {tasks_without_receipt[0]} has no receipt, but others have: run again with "
        msg += "--receipt DIR"
        raise OptionError(msg)
    tasks = {
        name: ReceiptTask.model_validate(task.model_dump(exclude={"dim"}))
        for name, task in receipts.items()
    }
    if len(widths := sorted({task.dim for task in receipts.values()})) > 1:
        raise OptionError(
            f"the embeddings of the run have {len(widths)} widths: {widths}, expected one width: "
            "correct the extractor"
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
            "root": root_of_tasks(tasks, widths[0]),
            "tasks": tasks,
            "predictions": record.predictions and record.predictions.model_dump(),
        }
    )
