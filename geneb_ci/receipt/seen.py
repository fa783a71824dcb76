"""Notes of maintainers on published receipts: the day each was last seen, and shared errors.

A board is a function of a commit and asks no server: it reads what `geneb-ci receipt seen --write`
and `receipt pairs --write` noted. A row whose receipt was not seen for the days of the policy is
marked; two rows with predictions are compared by the error of their pair.
"""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import BadConfiguration, GenebError
from geneb_ci.receipt.source import published_at, purpose
from reference_harness.formats.base import Hex64, StrictModel, parsed
from reference_harness.formats.files import NotReadable, lies_there, read_text, write_whole
from reference_harness.formats.submission import EmbeddingReceipt, Submission, SubmissionV12

FILE, PAIRS = "receipts.json", "pairs.json"
"""In the policy folder."""
BYTES_MAX = 1_000_000
"""A row takes 150 bytes."""
PAIRS_BYTES_MAX = 1 << 24
"""100 rows in three regimes of 15 scores: 227,000 numbers of about 14 bytes."""
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Published = Literal["published", "missing"]
"""The board's words for a receipt that a submission publishes."""


class SeenReceipt(StrictModel):
    """When one receipt was looked for."""

    root: Hex64
    """Of the receipt: another one of the same row begins again."""
    since: Day
    """When it was first looked for."""
    seen: Day | None
    """When it was last there, whole; null before that."""
    looked: Day
    """When it was last looked for."""


class SeenReceipts(StrictModel):
    """The file `receipts.json` of the policy folder."""

    schema_version: Literal["1.0"] = "1.0"
    rows: dict[str, SeenReceipt] = {}  # noqa: RUF012 (pydantic copies it)
    """By the id of the model."""


Triangle = list[list[float]]
"""Of the rows of `SharedErrors`: covariance of each with those before it, then its variance."""


class SharedErrors(StrictModel):
    """The file `pairs.json` of the policy folder: how alike the errors of rows are."""

    schema_version: Literal["1.0"] = "1.0"
    benchmark: Hex64
    """SHA-256 of its definition."""
    rows: dict[str, Hex64]
    """Model to the SHA-256 of the predictions that its errors follow from."""
    regimes: dict[str, dict[str, Triangle]]
    """Regime, then score ("macro", "micro" or a category), in squared MCC."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name, scores in self.regimes.items():
            for triangle in scores.values():
                if [len(row) for row in triangle] != list(range(1, len(self.rows) + 1)):
                    raise PydanticCustomError(
                        "pairs", "a triangle of {name} lacks lines", {"name": name}
                    )
        return self

    def triangle_positions(self, rows: Sequence[Submission]) -> list[int | None]:
        """Return the place of each row in the triangles; None for one with other predictions."""
        indexes = {model: index for index, model in enumerate(self.rows)}
        return [
            indexes[row.model_id]
            if row.model_id in indexes and _predictions_of(row) == self.rows[row.model_id]
            else None
            for row in rows
        ]


def _predictions_of(submission: Submission) -> str | None:
    receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
    entry = receipt.predictions if receipt is not None else None
    return entry.sha256 if entry is not None else None


def receipt_published(submission: Submission) -> EmbeddingReceipt | None:
    """Return the receipt of a submission that says where its files are; None without one."""
    receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
    return receipt if receipt is not None and receipt.location is not None else None


def missing_files(receipt: EmbeddingReceipt) -> str:
    """Return the missing files of a published receipt, without fetching it; "" where none is.

    Only sizes are compared: `geneb-ci receipt verify` compares digests.
    """
    from geneb_ci.common.download import served_length  # http.client: 20 ms that a board needs not

    try:
        origin = published_at(receipt.location)
        for task, entry in receipt.tasks.items():
            address = origin.address(task)
            length = served_length(address, purpose(origin))
            if length != entry.bytes:
                return f"{address} has {length} bytes; the receipt says {entry.bytes}"
    except GenebError as error:
        return error.message
    return ""


def updated_notes(
    before: SeenReceipts, model: str, root: str, day: str, *, is_there: bool
) -> SeenReceipts:
    """Return the notes after a look at the receipt of one row."""
    note = before.rows.get(model)
    if note is None or note.root != root:
        note = SeenReceipt(root=root, since=day, seen=None, looked=day)
    now = note.model_copy(update={"looked": day, "seen": day if is_there else note.seen})
    return before.model_copy(update={"rows": dict(sorted({**before.rows, model: now}.items()))})


def published_state(submission: Submission, notes: SeenReceipts, days: int) -> Published | None:
    """Return the state of a row's receipt for the board; None for a row that publishes none.

    It is missing when the last look was more than `days` after it was last there, or first looked
    for.
    """
    receipt = receipt_published(submission)
    if receipt is None:
        return None
    missing_since = gone_since(notes, submission.model_id, receipt.root, days)
    return "missing" if missing_since else "published"


def gone_since(notes: SeenReceipts, model: str, root: str, days: int) -> str:
    """Return the day on which a receipt was last there, or was first looked for.

    "" unless the last look was more than `days` after it.
    """
    note = notes.rows.get(model)
    if note is None or note.root != root:
        return ""
    last = note.seen or note.since
    absence = dt.date.fromisoformat(note.looked) - dt.date.fromisoformat(last)
    return last if absence.days > days else ""


def place_of_notes(layout: Layout) -> Path | None:
    """Return the path of receipts.json in a repository; None where it has no policy folder."""
    return layout.policy / FILE if layout.policy is not None else None


def seen_receipts(layout: Layout) -> SeenReceipts:
    """Return the notes of a repository on receipts. Raises BadConfiguration for a broken file."""
    path = place_of_notes(layout)
    if path is None or not lies_there(path):
        return SeenReceipts()
    fix = "restore the file from the main branch, or delete it: `geneb-ci receipt seen` writes it"
    try:
        notes = parsed(SeenReceipts, read_text(path, BYTES_MAX))
        for receipt in notes.rows.values():
            for day in (receipt.since, receipt.seen or receipt.since, receipt.looked):
                dt.date.fromisoformat(day)
    except NotReadable as error:
        raise BadConfiguration(f"{path}: {error.reason}", fix) from error
    except ValueError as error:
        raise BadConfiguration(f"{path}: {error}", fix) from error
    return notes


def write_seen(path: Path, notes: SeenReceipts | SharedErrors) -> None:
    """Write the notes, whole or not at all. Raises OSError."""
    indent = 2 if isinstance(notes, SeenReceipts) else None
    text = notes.model_dump_json(indent=indent) + "\n"
    write_whole(path, lambda stream: stream.write(text.encode()))


def shared_errors(layout: Layout) -> SharedErrors | None:
    """Return the noted shared errors of rows; None without any, or for those of another benchmark.

    Raises BadConfiguration for a file that is not right.
    """
    path = layout.policy / PAIRS if layout.policy is not None else None
    if path is None or not lies_there(path):
        return None
    fix = "restore the file from the main branch, or delete it: `geneb-ci receipt pairs` writes it"
    try:
        errors = parsed(SharedErrors, read_text(path, PAIRS_BYTES_MAX))
    except NotReadable as error:
        raise BadConfiguration(f"{path}: {error.reason}", fix) from error
    return errors if errors.benchmark == benchmark_of(layout).sha256 else None
