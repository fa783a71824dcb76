"""Files of the policy folder about published receipts: when each was seen, and shared errors.

Building a board sends no request, so that it depends only on a commit. It reads the notes that
`geneb-ci receipt seen --write` and `receipt pairs --write` made. A row whose receipt was not seen
for the number of days in the policy is marked; two rows with predictions are compared by the error
of their difference.
"""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import BadConfiguration, GenebError
from geneb_ci.receipt.source import published_folder, receipt_download_kind
from reference_harness.formats.base import Hex64, StrictModel, parsed
from reference_harness.formats.files import NotReadable, path_exists, read_text, write_whole
from reference_harness.formats.submission import EmbeddingReceipt, Submission, SubmissionV12

FILE, PAIRS = "receipts.json", "pairs.json"
"""Files in the policy folder: the days on which receipts were seen, and the shared errors."""
NOTES_BYTES_MAX = 1_000_000
"""Largest size of receipts.json: a row takes 150 bytes."""
PAIRS_BYTES_MAX = 1 << 24
"""Largest size of pairs.json: 100 rows, three regimes and 15 scores make 227,000 numbers."""
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
PublishedState = Literal["published", "missing"]
"""States of a published receipt on the board."""


class ReceiptNote(StrictModel):
    """The days on which one receipt's files were requested, and on which they were available."""

    root: Hex64
    """Merkle root of the receipt; a new receipt of the row replaces the note."""
    since: Day
    """Day of the first request."""
    seen: Day | None
    """Last day on which all files were available; null if never."""
    looked: Day
    """Day of the last request."""


class ReceiptNotes(StrictModel):
    """The file `receipts.json` of the policy folder."""

    schema_version: Literal["1.0"] = "1.0"
    rows: dict[str, ReceiptNote] = {}  # noqa: RUF012 (pydantic copies it)
    """The note on each receipt, by model id."""


Triangle = list[list[float]]
"""For each row of `SharedErrors`: its covariance with every earlier row, then its variance."""


class SharedErrors(StrictModel):
    """The file `pairs.json` of the policy folder: the covariances of the errors of rows."""

    schema_version: Literal["1.0"] = "1.0"
    benchmark: Hex64
    """SHA-256 of the benchmark definition."""
    rows: dict[str, Hex64]
    """SHA-256 of the predictions of each model, by model id."""
    regimes: dict[str, dict[str, Triangle]]
    """Covariances in squared MCC, by regime and score ("macro", "micro" or a category)."""

    @model_validator(mode="after")
    def _has_full_triangles(self) -> Self:
        """Refuse a triangle of covariances without a line for each row."""
        for regime, scores in self.regimes.items():
            for triangle in scores.values():
                if [len(row) for row in triangle] != list(range(1, len(self.rows) + 1)):
                    raise PydanticCustomError(
                        "pairs",
                        "a triangle of {name} does not have a line for each row",
                        {"name": regime},
                    )
        return self

    def triangle_positions(self, rows: Sequence[Submission]) -> list[int | None]:
        """Return the index of each row in the triangles of covariances.

        The index is None for a row that is not in them, or whose predictions have changed.
        """
        indexes = {model: index for index, model in enumerate(self.rows)}
        return [
            indexes[row.model_id]
            if row.model_id in indexes and _predictions_digest(row) == self.rows[row.model_id]
            else None
            for row in rows
        ]


def _predictions_digest(submission: Submission) -> str | None:
    """Return the SHA-256 of the predictions of a submission; None without predictions."""
    receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
    predictions = receipt.predictions if receipt is not None else None
    return predictions.sha256 if predictions is not None else None


def published_receipt(submission: Submission) -> EmbeddingReceipt | None:
    """Return the receipt of a submission whose files are published, or None."""
    receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
    return receipt if receipt is not None and receipt.location is not None else None


def missing_file_reason(receipt: EmbeddingReceipt) -> str:
    """Return why a file of a published receipt counts as missing; "" if all are available.

    Nothing is downloaded. Only sizes are compared; `geneb-ci receipt verify` compares digests.
    """
    from geneb_ci.common.download import served_length  # 20 ms (http.client), unused by a board

    try:
        origin = published_folder(receipt.location)
        for task, expected in receipt.tasks.items():
            address = origin.address(task)
            length = served_length(address, receipt_download_kind(origin))
            if length != expected.bytes:
                return f"{address} has {length} bytes; expected {expected.bytes}, as in the receipt"
    except GenebError as error:
        return error.message
    return ""


def updated_notes(
    notes: ReceiptNotes, model: str, root: str, day: str, *, is_available: bool
) -> ReceiptNotes:
    """Return the notes with one more request of the files of a row's receipt, on `day`.

    `root` is the Merkle root of the receipt; `is_available` is whether all files were available.
    """
    note = notes.rows.get(model)
    if note is None or note.root != root:
        note = ReceiptNote(root=root, since=day, seen=None, looked=day)
    updated_note = note.model_copy(
        update={"looked": day, "seen": day if is_available else note.seen}
    )
    return notes.model_copy(
        update={"rows": dict(sorted({**notes.rows, model: updated_note}.items()))}
    )


def published_state(
    submission: Submission, notes: ReceiptNotes, days: int
) -> PublishedState | None:
    """Return whether a row's receipt is `published` or `missing`; None if never published."""
    receipt = published_receipt(submission)
    if receipt is None:
        return None
    missing_since = missing_since_day(notes, submission.model_id, receipt.root, days)
    return "missing" if missing_since else "published"


def missing_since_day(notes: ReceiptNotes, model: str, root: str, days: int) -> str:
    """Return the day on which a missing receipt was last available; "" if it is not missing.

    If it was never available, it is the day of the first request. A receipt is missing if the last
    request was more than `days` after that day.
    """
    note = notes.rows.get(model)
    if note is None or note.root != root:
        return ""
    last_day = note.seen or note.since
    absence = dt.date.fromisoformat(note.looked) - dt.date.fromisoformat(last_day)
    return last_day if absence.days > days else ""


def notes_path(layout: Layout) -> Path | None:
    """Return the path of receipts.json in a repository; None without a policy folder."""
    return layout.policy / FILE if layout.policy is not None else None


def read_receipt_notes(layout: Layout) -> ReceiptNotes:
    """Return receipts.json: when each receipt was seen. Raises BadConfiguration if it is broken."""
    path = notes_path(layout)
    if path is None or not path_exists(path):
        return ReceiptNotes()
    fix = "restore the file from the main branch, or delete it: `geneb-ci receipt seen` writes it"
    try:
        notes = parsed(ReceiptNotes, read_text(path, NOTES_BYTES_MAX))
        for receipt in notes.rows.values():
            for day in (receipt.since, receipt.seen or receipt.since, receipt.looked):
                dt.date.fromisoformat(day)
    except NotReadable as error:
        raise BadConfiguration(f"{path}: {error.reason}", fix) from error
    except ValueError as error:
        raise BadConfiguration(f"{path}: {error}", fix) from error
    return notes


def write_notes(path: Path, notes: ReceiptNotes | SharedErrors) -> None:
    """Write the notes completely or not at all. Raises OSError."""
    indent = 2 if isinstance(notes, ReceiptNotes) else None
    notes_json = notes.model_dump_json(indent=indent) + "\n"
    write_whole(path, lambda stream: stream.write(notes_json.encode()))


def read_shared_errors(layout: Layout) -> SharedErrors | None:
    """Return the covariances of the errors of rows, from pairs.json.

    Return None if there is no such file, or if it is of another version of the benchmark. Raises
    BadConfiguration for a malformed file.
    """
    path = layout.policy / PAIRS if layout.policy is not None else None
    if path is None or not path_exists(path):
        return None
    fix = "restore the file from the main branch, or delete it: `geneb-ci receipt pairs` writes it"
    try:
        covariances = parsed(SharedErrors, read_text(path, PAIRS_BYTES_MAX))
    except NotReadable as error:
        raise BadConfiguration(f"{path}: {error.reason}", fix) from error
    return covariances if covariances.benchmark == benchmark_of(layout).sha256 else None
