"""Rules on what was run and when: weights, extractor, lock file, receipt, dates."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, cast

from geneb_ci.check.interface import EMBED_SIGNATURE, interface_fault
from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, KeyPath, Need, Severity
from geneb_ci.submission.placeholders import placeholder_name
from reference_harness.formats.files import line_ends_of
from reference_harness.formats.package_lock import HARNESS_PACKAGES, LockRefused, read_lock
from reference_harness.formats.submission_terms import FLOAT16_BYTES
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from reference_harness.formats.submission import EmbeddingReceipt, SubmissionV11, SubmissionV12


def wrong_receipt(context: Context) -> Iterator[Fault]:
    """Report each number of a receipt that contradicts its other numbers or the file."""
    typed = context.submission
    if typed is None or str(typed.schema_version) != "1.2":
        return
    submission = cast("SubmissionV12", typed)
    receipt = submission.receipt
    if receipt is None:
        return
    yield from _task_faults(context, receipt)
    yield from _number_faults(context, receipt, submission.run.embedding.dim)


def _task_faults(context: Context, receipt: "EmbeddingReceipt") -> Iterator[Fault]:
    """Report tasks with scores alone or a receipt alone, and wrong sizes of a task in a receipt."""
    scored = {cell.task for cell in context.cells}
    for task in context.benchmark.task_ids:
        if (task in scored) != (task in receipt.tasks):
            path: KeyPath = ("receipt", "tasks")
            defect = "scores without a receipt"
            if task in receipt.tasks:
                path, defect = (*path, task), "a receipt without scores"
            yield Fault(
                WRONG_RECEIPT.id, path, f"{quoted(task)} has {defect}", defect, "both", on_key=True
            )
    for task, receipt_task in receipt.tasks.items():
        path = ("receipt", "tasks", task)
        task_facts = context.benchmark.by_id.get(task)
        size = FLOAT16_BYTES * receipt.dim * (receipt_task.train + receipt_task.test)
        if task_facts is None:
            yield Fault(
                WRONG_RECEIPT.id, path, f"the benchmark has no task {quoted(task)}", quoted(task),
                "tasks of the benchmark", on_key=True,
            )  # fmt: skip
        elif task_facts.n_test is not None and task_facts.n_test != receipt_task.test:
            yield Fault(
                WRONG_RECEIPT.id, (*path, "test"),
                f"the receipt has {receipt_task.test} test embeddings of {quoted(task)}, but the "
                f"test split has {task_facts.n_test} sequences",
                str(receipt_task.test), str(task_facts.n_test),
            )  # fmt: skip
        if receipt_task.bytes != size:
            yield Fault(
                WRONG_RECEIPT.id, (*path, "bytes"),
                f"the file of {quoted(task)} has {receipt_task.bytes} bytes, but "
                f"{receipt_task.train + receipt_task.test} embeddings "
                f"of {receipt.dim} numbers take {size}",
                str(receipt_task.bytes), str(size),
            )  # fmt: skip


def _number_faults(context: Context, receipt: "EmbeddingReceipt", width: int) -> Iterator[Fault]:
    """Report a total number, a width or a root of a receipt that does not follow from its tasks."""
    from reference_harness.formats.submission import receipt_root  # only for files with a receipt

    rows = sum(receipt_task.train + receipt_task.test for receipt_task in receipt.tasks.values())
    root = receipt_root(receipt, context.benchmark.task_ids)
    facts: dict[str, tuple[object, object, str]] = {
        "rows": (receipt.rows, rows, "the rows of its tasks add up to"),
        "dim": (receipt.dim, width, "the width of the run's embeddings is"),
        "root": (receipt.root, root, "the root computed from its tasks is"),
    }
    for member, (claimed, expected, meaning) in facts.items():
        if claimed != expected:
            message = f"{member} of the receipt is {claimed}, but {meaning} {expected}"
            yield Fault(WRONG_RECEIPT.id, ("receipt", member), message, str(claimed), str(expected))


WRONG_RECEIPT = Rule(
    id="wrong-receipt",
    severity=Severity.ERROR,
    what="A receipt contradicts itself or the rest of the file.",
    why=(
        "Everything in a receipt is computed from the files of embeddings, and its root is a "
        "digest "
        "of all of them: if one number was changed, none of the others can be trusted."
    ),
    fix=(
        "Write the receipt and the submission in one run: "
        "`geneb-harness run --receipt DIR --submission FILE`."
    ),
    check=wrong_receipt,
)


def unpinned_model(context: Context) -> Iterator[Fault]:
    """Report a Hugging Face model without a commit, and weights without digests.

    Placeholders of a template do not count as values, and neither does a link to the weights.
    """
    yield from _placeholders(context)
    submission = context.submission
    if submission is None or context.member("run") is None:
        return
    model = cast("SubmissionV11", submission).run.model
    if model.kind == "huggingface" and model.revision is None:
        yield Fault(
            UNPINNED_MODEL.id,
            ("run", "model", "revision"),
            "the revision of the weights is null",
            "null",
            "the 40-hex commit of the model repository",
        )
    if model.kind != "none" and not model.weights:
        yield Fault(
            UNPINNED_MODEL.id,
            ("run", "model", "weights"),
            "no weight file has a digest",
            "no digest",
            "the sha256 of each weight file",
        )


def _placeholders(context: Context) -> Iterator[Fault]:
    """Report each placeholder of a template where the weights should be named."""
    model = ("run", "model")
    paths: list[tuple[str, ...]] = [("meta", "url"), (*model, "location"), (*model, "revision")]
    paths += [(*model, "weights", file) for file in context.table(*model, "weights")]
    for path in paths:
        stated = context.text(*path)
        placeholder = placeholder_name(stated)
        if placeholder:
            yield Fault(
                UNPINNED_MODEL.id,
                path,
                f"{path[-1]} is {quoted(stated)}: {quoted(placeholder)} is a placeholder",
                quoted(stated),
                "the value for this model",
                fix=_WEIGHTS_FIX,
            )


_WEIGHTS_FIX = (
    "Say where this model's weights are: replace the placeholders (such as `OWNER/MODEL`) by its "
    "link and repository, the 40 hex digits of the commit, and the sha256 of each file."
)
UNPINNED_MODEL = Rule(
    id="unpinned-model",
    severity=Severity.ERROR,
    what="The weights are not pinned.",
    why="Branches change: a rerun would load other weights, and honest scores would look forged.",
    fix=(
        'Write the sha256 of each weight file in "run.model.weights", such as '
        '{"model.safetensors": "<64 hex digits>"}, and for weights on the Hub the commit in '
        '"run.model.revision" (40 hex digits; `git ls-remote` shows it). `geneb-harness run` '
        "writes "
        "these values for the files that the extractor loaded."
    ),
    check=unpinned_model,
)


def impossible_dates(context: Context) -> Iterator[Fault]:
    """Report invalid dates and dates in the wrong order; the current time plays no part."""
    start, end = (
        _timestamp(context.text("run", member)) for member in ("started_at", "finished_at")
    )
    for member, moment in (("started_at", start), ("finished_at", end)):
        date_text = context.text("run", member)
        if date_text and moment is None and not context.is_reported("run", member):
            yield Fault(
                IMPOSSIBLE_DATES.id,
                ("run", member),
                f"{member} {quoted(date_text)} is not a date",
                quoted(date_text),
                "a date and time in UTC",
            )
    if start and end and end < start:
        yield Fault(
            IMPOSSIBLE_DATES.id,
            ("run", "finished_at"),
            "finished_at is before started_at",
            quoted(context.text("run", "finished_at")),
            f"after {quoted(context.text('run', 'started_at'))}",
        )


def _timestamp(date_text: str) -> datetime | None:
    """Return the time that a text states; None if the text is invalid or has no time zone."""
    try:
        moment = datetime.fromisoformat(date_text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


IMPOSSIBLE_DATES = Rule(
    id="impossible-dates",
    severity=Severity.ERROR,
    what="The dates of the run are invalid or in the wrong order.",
    why="Dates tie a run to versions of data and weights; wrong dates suggest an edited record.",
    fix="Copy both dates from the run record, in UTC.",
    check=impossible_dates,
)


def extractor_mismatch(context: Context) -> Iterator[Fault]:
    """Report an available extractor whose digest differs from that in `run`."""
    claimed, extractor = context.text("run", "extractor", "sha256"), context.extractor
    if extractor is None or extractor.fault is not None or claimed in {"", extractor.sha256}:
        return
    path = quoted(context.text("run", "extractor", "path"))
    run_line_ends = line_ends_of(extractor.raw, claimed)
    message = "the extractor in the repository is not the file that the run used"
    yield Fault(
        EXTRACTOR_MISMATCH.id,
        ("run", "extractor", "sha256"),
        f"{message}: only the line ends differ, which were {run_line_ends} in the run"
        if run_line_ends
        else message,
        f"sha256 {claimed}",
        f"sha256 {extractor.sha256} (of {path})",
        fix=_LINE_END_FIXES[run_line_ends].format(name=extractor.name),
    )


_LINE_END_FIXES = {
    "": "",
    "CRLF": "Commit the bytes that the run used: in the clone of the run, `git config "
    "core.autocrlf false`, `git add --renormalize {name}`, `git commit`.",
    "LF": "Commit the bytes that the run used: `git config core.autocrlf false`, write {name} with "
    "LF (`dos2unix {name}`), `git add {name}`, `git commit`.",
}
"""How to restore the extractor, by the line ends that it had in the run."""


EXTRACTOR_MISMATCH = Rule(
    id="extractor-mismatch",
    severity=Severity.ERROR,
    what="The extractor file is not the one used in the run.",
    why="An audit reruns the file in the repository: other code computes other scores.",
    fix="Submit the extractor exactly as used, or run again with the one you submit.",
    check=extractor_mismatch,
    needs=(Need.EXTRACTOR,),
)


def unusable_lock(context: Context) -> Iterator[Fault]:
    """Report a lock file next to the extractor from which an audit refuses to install packages."""
    lock = context.lock
    if lock is None:
        return
    try:
        read_lock(lock.raw, lock.name, HARNESS_PACKAGES)
    except LockRefused as error:
        message = f"the lock {error.reason}"
        yield Fault(
            UNUSABLE_LOCK.id, (), message, "", "name==version with hashes alone",
            at=error.line, file=lock.name,
        )  # fmt: skip


UNUSABLE_LOCK = Rule(
    id="unusable-lock",
    severity=Severity.ERROR,
    what="The extractor's lock file lists more, or less, than packages with versions and hashes.",
    why=(
        "An audit installs what the lock file lists. An option, an address or a file name could "
        "make the audit install something else, and without hashes a package could be replaced "
        "unnoticed."
    ),
    fix=(
        "Write the lock file with `uv pip compile --generate-hashes --only-binary :all:`, and run "
        "again with that file."
    ),
    check=unusable_lock,
    needs=(Need.EXTRACTOR,),
)


def lock_mismatch(context: Context) -> Iterator[Fault]:
    """Report a lock file that the run did not use, or that the run used and that is missing."""
    if context.extractor is None or context.extractor.fault is not None:
        return
    claimed, lock = context.text("run", "environment"), context.lock
    if lock is None and claimed:
        yield Fault(
            LOCK_MISMATCH.id,
            ("run", "environment"),
            "the run used a lock file, but there is none beside the extractor",
            "no lock",
            f"sha256 {claimed}",
        )
    elif lock is not None and lock.sha256 != claimed:
        path: KeyPath = ("run", "environment") if claimed else ("run",)
        actual = f"sha256 {claimed}" if claimed else "no environment"
        message = (
            "the lock file beside the extractor is not the one that the run used: "
            f"{quoted(lock.name)}"
        )
        expected = f"sha256 {lock.sha256}"
        yield Fault(LOCK_MISMATCH.id, path, message, actual, expected, on_key=not claimed)


LOCK_MISMATCH = Rule(
    id="lock-mismatch",
    severity=Severity.ERROR,
    what="The lock beside the extractor is not the one that the run used.",
    why="An audit installs the packages of the lock: others compute other embeddings.",
    fix="Submit the lock exactly as used, or run again with the one you submit.",
    check=lock_mismatch,
    needs=(Need.EXTRACTOR,),
)


def uncallable_extractor(context: Context) -> Iterator[Fault]:
    """Report an available extractor whose source shows that the harness cannot call it."""
    extractor = context.extractor
    if extractor is None or extractor.fault is not None:
        return
    fault = interface_fault(extractor.raw, context.text("run", "extractor", "class_name"))
    if fault is not None and fault.is_certain:
        yield Fault(
            UNCALLABLE_EXTRACTOR.id, (), fault.message, "", EMBED_SIGNATURE,
            at=fault.line, file=extractor.name,
        )  # fmt: skip


UNCALLABLE_EXTRACTOR = Rule(
    id="uncallable-extractor",
    severity=Severity.ERROR,
    what="The harness cannot call the extractor.",
    why="An audit calls it as the harness does: where that fails, no score can be confirmed.",
    fix=(
        f"Define `{EMBED_SIGNATURE}` in the class that `run` names, test it with `geneb-harness "
        "extractors "
        "check FILE.py:CLASS`, then run again with that file."
    ),
    check=uncallable_extractor,
    needs=(Need.EXTRACTOR,),
)
