"""Rules on what was run, and when: weights, extractor, receipt, dates."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, cast

from geneb_ci.check.interface import SIGNATURE, interface_fault
from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, KeyPath, Need, Severity
from geneb_ci.submission.placeholders import placeholder_name
from reference_harness.formats.files import line_ends_of
from reference_harness.formats.packages import OF_THE_HARNESS, LockRefused, read_lock
from reference_harness.formats.submission_terms import ITEM
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from reference_harness.formats.submission import EmbeddingReceipt, SubmissionV11, SubmissionV12


def wrong_receipt(context: Context) -> Iterator[Fault]:
    """Report each number of a receipt that does not follow from the others."""
    typed = context.submission
    if typed is None or str(typed.schema_version) != "1.2":
        return
    submission = cast("SubmissionV12", typed)
    receipt = submission.receipt
    if receipt is None:
        return
    yield from _tasks(context, receipt)
    yield from _numbers(context, receipt, submission.run.embedding.dim)


def _tasks(context: Context, receipt: "EmbeddingReceipt") -> Iterator[Fault]:
    # A check of a file without a receipt does without the typed models, and starts sooner.

    scored = {cell.task for cell in context.cells}
    for task in context.benchmark.task_ids:
        if (task in scored) != (task in receipt.tasks):
            path: KeyPath = ("receipt", "tasks")
            has = "scores without a receipt"
            if task in receipt.tasks:
                path, has = (*path, task), "a receipt without scores"
            yield Fault(
                WRONG_RECEIPT.id, path, f"{quoted(task)} has {has}", has, "both", on_key=True
            )
    for task, part in receipt.tasks.items():
        path = ("receipt", "tasks", task)
        task_facts = context.benchmark.by_id.get(task)
        size = ITEM * receipt.dim * (part.train + part.test)
        if task_facts is None:
            yield Fault(
                WRONG_RECEIPT.id, path, f"the benchmark has no task {quoted(task)}", quoted(task),
                "tasks of the benchmark", on_key=True,
            )  # fmt: skip
        elif task_facts.n_test is not None and task_facts.n_test != part.test:
            yield Fault(
                WRONG_RECEIPT.id, (*path, "test"),
                f"the receipt has {part.test} test rows of {quoted(task)}; its test split has "
                f"{task_facts.n_test}",
                str(part.test), str(task_facts.n_test),
            )  # fmt: skip
        if part.bytes != size:
            yield Fault(
                WRONG_RECEIPT.id, (*path, "bytes"),
                f"the file of {quoted(task)} has {part.bytes} bytes; {part.train + part.test} rows "
                f"of {receipt.dim} numbers have {size}",
                str(part.bytes), str(size),
            )  # fmt: skip


def _numbers(context: Context, receipt: "EmbeddingReceipt", width: int) -> Iterator[Fault]:
    from reference_harness.formats.submission import receipt_root  # see _tasks

    rows = sum(part.train + part.test for part in receipt.tasks.values())
    root = receipt_root(receipt, context.benchmark.task_ids)
    follows: dict[str, tuple[object, object, str]] = {
        "rows": (receipt.rows, rows, "the rows of its tasks add up to"),
        "dim": (receipt.dim, width, "the width of the run's embeddings is"),
        "root": (receipt.root, root, "the root over its tasks is"),
    }
    for key, (claimed, expected, meaning) in follows.items():
        if claimed != expected:
            text = f"{key} of the receipt is {claimed}; {meaning} {expected}"
            yield Fault(WRONG_RECEIPT.id, ("receipt", key), text, str(claimed), str(expected))


WRONG_RECEIPT = Rule(
    id="wrong-receipt",
    severity=Severity.ERROR,
    what="A receipt contradicts itself or the rest of the file.",
    why=(
        "Everything in a receipt follows from the files of embeddings, and its root commits to all "
        "of them: one number that was changed makes the others worthless."
    ),
    fix="Write both together, with `geneb-harness run --receipt DIR --submission FILE`.",
    check=wrong_receipt,
)


def unpinned_model(context: Context) -> Iterator[Fault]:
    """Report a Hugging Face model without a commit, and a model without digests of its weights.

    The placeholders of a template are neither, nor a link to the weights.
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
    """Report each value of a template that should say which weights these are."""
    model = ("run", "model")
    paths: list[tuple[str, ...]] = [("meta", "url"), (*model, "location"), (*model, "revision")]
    paths += [(*model, "weights", name) for name in context.table(*model, "weights")]
    for path in paths:
        text = context.text(*path)
        placeholder = placeholder_name(text)
        if placeholder:
            yield Fault(
                UNPINNED_MODEL.id,
                path,
                f"{path[-1]} is {quoted(text)}: {quoted(placeholder)} is a placeholder",
                quoted(text),
                "the model's own",
                fix=_WEIGHTS_FIX,
            )


_WEIGHTS_FIX = (
    "Write where the model's own weights are: the link and the repository (`OWNER/MODEL` stands "
    "for both names), the 40 hex digits of the commit, and the sha256 of each file."
)
UNPINNED_MODEL = Rule(
    id="unpinned-model",
    severity=Severity.ERROR,
    what="The weights are not pinned.",
    why="Branches change: a rerun would load other weights, and honest scores would look forged.",
    fix=(
        'Write the sha256 of each weight file in "run.model.weights", such as '
        '{"model.safetensors": "<64 hex digits>"}, and for weights on the Hub the commit in '
        '"run.model.revision" (40 hex digits; `git ls-remote` shows it). The harness writes those '
        "of the files that the extractor loaded."
    ),
    check=unpinned_model,
)


def impossible_dates(context: Context) -> Iterator[Fault]:
    """Report invalid dates and dates in the wrong order; they are not compared with the clock."""
    began, ended = (_moment(context.text("run", key)) for key in ("started_at", "finished_at"))
    for key, moment in (("started_at", began), ("finished_at", ended)):
        text = context.text("run", key)
        if text and moment is None and not context.is_reported("run", key):
            yield Fault(
                IMPOSSIBLE_DATES.id,
                ("run", key),
                f"{key} {quoted(text)} is not a date",
                quoted(text),
                "a date and time in UTC",
            )
    if began and ended and ended < began:
        yield Fault(
            IMPOSSIBLE_DATES.id,
            ("run", "finished_at"),
            "finished_at is before started_at",
            quoted(context.text("run", "finished_at")),
            f"after {quoted(context.text('run', 'started_at'))}",
        )


def _moment(text: str) -> datetime | None:
    """Return a time with its time zone; None if it is invalid or has no time zone."""
    try:
        moment = datetime.fromisoformat(text)
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
    ends = line_ends_of(extractor.raw, claimed)
    message = "the extractor in the repository is not the one used in the run"
    yield Fault(
        EXTRACTOR_MISMATCH.id,
        ("run", "extractor", "sha256"),
        f"{message}: only the line ends differ, which are {ends} in the run" if ends else message,
        f"sha256 {claimed}",
        f"sha256 {extractor.sha256} (of {path})",
        fix=_ENDS[ends].format(name=extractor.name),
    )


_ENDS = {
    "": "",
    "CRLF": "Commit the bytes that the run used: in the clone of the run, `git config "
    "core.autocrlf false`, `git add --renormalize {name}`, `git commit`.",
    "LF": "Commit the bytes that the run used: `git config core.autocrlf false`, write {name} with "
    "LF (`dos2unix {name}`), `git add {name}`, `git commit`.",
}
"""How to fix an extractor, by the line ends that it had in the run."""


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
    """Report a lock beside the extractor from which no audit would install packages."""
    lock = context.lock
    if lock is None:
        return
    try:
        read_lock(lock.raw, lock.name, OF_THE_HARNESS)
    except LockRefused as error:
        message = f"the lock {error.reason}"
        yield Fault(
            UNUSABLE_LOCK.id, (), message, "", "name==version with hashes alone",
            at=error.line, file=lock.name,
        )  # fmt: skip


UNUSABLE_LOCK = Rule(
    id="unusable-lock",
    severity=Severity.ERROR,
    what="The lock beside the extractor has more or less than packages with versions and hashes.",
    why=(
        "An audit installs what it names: an option, an address or a file in it would lead "
        "elsewhere, and without hashes anybody could put other packages in their place."
    ),
    fix=(
        "Write it with `uv pip compile --generate-hashes --only-binary :all:`, and run again with "
        "it."
    ),
    check=unusable_lock,
    needs=(Need.EXTRACTOR,),
)


def lock_mismatch(context: Context) -> Iterator[Fault]:
    """Report a lock that is not that of the run, one that is missing, and one that was not used."""
    if context.extractor is None or context.extractor.fault is not None:
        return
    claimed, lock = context.text("run", "environment"), context.lock
    if lock is None and claimed:
        yield Fault(
            LOCK_MISMATCH.id,
            ("run", "environment"),
            "the run names a lock, and none lies beside the extractor",
            "no lock",
            f"sha256 {claimed}",
        )
    elif lock is not None and lock.sha256 != claimed:
        path: KeyPath = ("run", "environment") if claimed else ("run",)
        has = f"sha256 {claimed}" if claimed else "no environment"
        message = f"the lock beside the extractor is not one of the run: {quoted(lock.name)}"
        expected = f"sha256 {lock.sha256}"
        yield Fault(LOCK_MISMATCH.id, path, message, has, expected, on_key=not claimed)


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
    """Report an available extractor that the harness cannot call, by its source alone."""
    extractor = context.extractor
    if extractor is None or extractor.fault is not None:
        return
    fault = interface_fault(extractor.raw, context.text("run", "extractor", "class_name"))
    if fault is not None and fault.is_certain:
        yield Fault(
            UNCALLABLE_EXTRACTOR.id, (), fault.message, "", SIGNATURE,
            at=fault.line, file=extractor.name,
        )  # fmt: skip


UNCALLABLE_EXTRACTOR = Rule(
    id="uncallable-extractor",
    severity=Severity.ERROR,
    what="The harness cannot call the extractor.",
    why="An audit calls it as the harness does: where that fails, no score can be confirmed.",
    fix=(
        f"Write `{SIGNATURE}` in the class that the run names, "
        "`geneb-harness extractors check FILE.py:CLASS` tries it, and run again with that file."
    ),
    check=uncallable_extractor,
    needs=(Need.EXTRACTOR,),
)
