"""wrong-receipt: a receipt contradicts itself or the rest of the file."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.receipt.embeddings import ITEM, receipt_root
from geneb_ci.submission.fault import Fault, Path
from geneb_ci.submission.models import EmbeddingReceipt, SubmissionV12

ID = "wrong-receipt"


def check(context: Context) -> Iterator[Fault]:
    """Report each number of a receipt that does not follow from the others."""
    submission = context.submission
    if not isinstance(submission, SubmissionV12) or submission.receipt is None:
        return
    receipt = submission.receipt
    yield from _tasks(context, receipt)
    yield from _numbers(context, receipt, submission.run.embedding.dim)


def _tasks(context: Context, receipt: EmbeddingReceipt) -> Iterator[Fault]:
    scored = {cell.task for cell in context.cells}
    for task in context.benchmark.task_ids:
        if (task in scored) != (task in receipt.tasks):
            place: Path = ("receipt", "tasks")
            has = "scores without a receipt"
            if task in receipt.tasks:
                place, has = (*place, task), "a receipt without scores"
            yield Fault(ID, place, f"{quoted(task)} has {has}", has, "both", on_key=True)
    for task, said in receipt.tasks.items():
        place = ("receipt", "tasks", task)
        known = context.benchmark.by_id.get(task)
        size = ITEM * receipt.dim * (said.train + said.test)
        if known is None:
            yield Fault(
                ID, place, f"the benchmark has no task {quoted(task)}", quoted(task),
                "tasks of the benchmark", on_key=True,
            )  # fmt: skip
        elif known.n_test is not None and known.n_test != said.test:
            yield Fault(
                ID, (*place, "test"),
                f"the receipt has {said.test} test rows of {quoted(task)}; its test split has "
                f"{known.n_test}",
                str(said.test), str(known.n_test),
            )  # fmt: skip
        if said.bytes != size:
            yield Fault(
                ID, (*place, "bytes"),
                f"the file of {quoted(task)} has {said.bytes} bytes; {said.train + said.test} rows "
                f"of {receipt.dim} numbers have {size}",
                str(said.bytes), str(size),
            )  # fmt: skip


def _numbers(context: Context, receipt: EmbeddingReceipt, width: int) -> Iterator[Fault]:
    rows = sum(said.train + said.test for said in receipt.tasks.values())
    root = receipt_root(receipt, context.benchmark.task_ids)
    follows: dict[str, tuple[object, object, str]] = {
        "rows": (receipt.rows, rows, "the rows of its tasks add up to"),
        "dim": (receipt.dim, width, "the width of the run's embeddings is"),
        "root": (receipt.root, root, "the root over its tasks is"),
    }
    for key, (found, expected, what) in follows.items():
        if found != expected:
            yield Fault(
                ID, ("receipt", key), f"{key} of the receipt is {found}; {what} {expected}",
                str(found), str(expected),
            )  # fmt: skip


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="A receipt contradicts itself or the rest of the file.",
    why=(
        "Everything in a receipt follows from the files of embeddings, and its root commits to all "
        "of them: one number that was changed makes the others worthless."
    ),
    fix="Write both together, with `geneb-harness run --receipt DIR --submission FILE`.",
    check=check,
)
