"""Open the files of a receipt in a folder, or download them from a server or a data set.

A downloaded file is kept in a cache, or in a temporary folder with one task at a time. It is
accepted by its digest, so that any mirror can serve a receipt.
"""

import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from geneb_ci.common.errors import NothingChecked, UsageProblem, unwritable
from geneb_ci.common.hosts import LOOPBACK, PUBLIC_ADDRESS
from geneb_ci.receipt.embeddings import FILES, EmbeddingsRefused, verified_digests
from geneb_ci.receipt.predictions import PREDICTIONS_BYTES_MAX, PredictionsRefused, prediction_bytes
from geneb_ci.receipt.predictions import PREDICTIONS_FILE as PREDICTIONS
from geneb_ci.submission.document import Document, read_document
from reference_harness.formats.files import write_whole
from reference_harness.formats.submission import (
    EmbeddingReceipt,
    PredictionsFile,
    ReceiptLocation,
    ReceiptTask,
)
from reference_harness.formats.submission_terms import EMBEDDINGS_SUFFIX, receipt_file
from reference_harness.formats.text import Say, quoted, silent

if TYPE_CHECKING:
    from geneb_ci.common.download import DownloadKind

REPOSITORY_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
TASK_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A valid task id, which contains no slash."""
HUB_LOCATION_KIND: Literal["huggingface-dataset"] = "huggingface-dataset"
"""Kind of location: a data set on the Hugging Face Hub."""


def receipt_download_kind(origin: "ServerFolder") -> "DownloadKind":
    """Return the errors and fixes of a failed download of a receipt's file."""
    from geneb_ci.common.download import DownloadKind  # 20 ms (http.client), unused by a board

    return DownloadKind(
        not_served=NothingChecked,
        wrong_content=lambda message, fix: EmbeddingsRefused(FILES, message, fix),
        folder_option="--receipt DIR",
        changed_fix="the file was changed since the submission was written: ask the contributor, "
        "or name a mirror: --mirror URL",
        is_user_named=origin.is_user_named,
    )


class ServerFolder(NamedTuple):
    """A folder of files on a server."""

    name: str
    """Name of the source in messages."""
    base: str
    """Address of the folder, with a slash at the end."""
    is_user_named: bool = False
    """Whether the user of this machine named the server, which may then be in a private network."""

    def address(self, task: str) -> str:
        """Return the address of a task's file."""
        return f"{self.base}{task}{EMBEDDINGS_SUFFIX}"

    def download(self, address: str, path: Path, sha256: str, size: int) -> None:
        """Download a file of this folder to `path`; raise what `common.download` raises."""
        from geneb_ci.common.download import download  # as above

        download(address, path, sha256, receipt_download_kind(self), size)


def hub_folder(repo: str, revision: str) -> ServerFolder:
    """Return the folder of a data set on the Hub, or on the server in HF_ENDPOINT."""
    from huggingface_hub import hf_hub_url  # a second to import

    address = hf_hub_url(repo, f"x{EMBEDDINGS_SUFFIX}", repo_type="dataset", revision=revision)
    base = address.removesuffix(f"x{EMBEDDINGS_SUFFIX}")
    return ServerFolder(
        f"datasets/{repo} at {revision}", base, is_user_named="HF_ENDPOINT" in os.environ
    )


def published_folder(location: ReceiptLocation | None) -> ServerFolder:
    """Return the folder at the location that a submission states.

    Raises UsageProblem for None, NothingChecked for a revision that is not a commit, an address
    that is not public, or a name that is not a repository.
    """
    if location is None:
        raise UsageProblem(
            "the receipt is not published: its location is null",
            "pass the folder of its files, --receipt DIR, or publish them: geneb-ci receipt push",
        )
    address = location.address
    if location.kind == HUB_LOCATION_KIND:
        if not REPOSITORY_PATTERN.fullmatch(address):
            raise NothingChecked(
                f"the receipt is in {quoted(address)}, expected OWNER/NAME of a data set",
                "ask the contributor to correct `receipt.location`",
            )
        if location.revision is None or not COMMIT_PATTERN.fullmatch(location.revision):
            raise NothingChecked(
                f"the receipt is in datasets/{address} without a commit, so its files can change",
                "ask the contributor for the revision, 40 hex digits: geneb-ci receipt push "
                "writes it",
            )
        return hub_folder(address, location.revision)
    folder = f"{address.rstrip('/')}/"
    if not PUBLIC_ADDRESS.fullmatch(folder):
        raise NothingChecked(
            f"the receipt is at {quoted(address)}, expected an https address of a public server, "
            "without a query",
            "ask the contributor for such an address, or pass a mirror: --mirror URL",
        )
    return ServerFolder(address, folder)


def mirror_folder(mirror: str) -> ServerFolder:
    """Return the folder of `--mirror`: an address, or OWNER/NAME[@REVISION] of a data set.

    Raises UsageProblem for anything else.
    """
    if mirror.startswith(("https://", *LOOPBACK)):
        return ServerFolder(mirror, f"{mirror.rstrip('/')}/", is_user_named=True)
    repo, _, revision = mirror.partition("@")
    if not REPOSITORY_PATTERN.fullmatch(repo):
        raise UsageProblem(
            f"--mirror {mirror!r} is neither an https address nor OWNER/NAME of a data set",
            "pass for example --mirror https://example.org/receipts/model",
        )
    return hub_folder(repo, revision or "main")


class ReceiptFiles:
    """The files of a receipt, each downloaded if necessary and verified on request.

    It is a context manager, which deletes temporary files at its end.
    """

    def __init__(
        self, receipt: EmbeddingReceipt, folder: Path | None, origin: ServerFolder | None, say: Say
    ) -> None:
        self._receipt = receipt
        self._folder = folder
        self._origin = origin
        self._say = say
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._verified: dict[str, tuple[int, ...]] = {}

    def __enter__(self) -> Self:
        if self._folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="geneb-ci-receipt-")
            self._folder = Path(self._temporary.name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary, self._folder = None, None

    @property
    def is_local(self) -> bool:
        """Whether all files are in a local folder, so that none is downloaded."""
        return self._origin is None

    def bytes_to_fetch(self, tasks: list[str]) -> int:
        """Return the number of bytes to download for these tasks."""
        if self._origin is None:
            return 0
        return sum(
            entry.bytes
            for task, entry in self._receipt.tasks.items()
            if task in tasks and _file_size(receipt_file(self._opened_folder, task)) != entry.bytes
        )

    def file(self, task: str) -> Path:
        """Return the file of a task after verifying its size, digest, values and root.

        Raises EmbeddingsRefused, which names the step, for a wrong file; UsageProblem for a task
        that the receipt lacks; NothingChecked if the file is missing or not delivered.
        """
        expected = self._receipt.tasks.get(task)
        if expected is None or not TASK_PATTERN.fullmatch(task):
            raise UsageProblem(
                f"the receipt has no task {quoted(task)}", "name tasks of the receipt"
            )
        path = receipt_file(self._opened_folder, task)
        if (known_state := self._verified.get(task)) and known_state == _file_fingerprint(path):
            return path
        if self._origin is None:
            self._read(path, expected)
        else:
            self._fetch(self._origin, path, task, expected)
        self._verified[task] = _file_fingerprint(path)
        return path

    def predictions(self) -> Path | None:
        """Return the file of predicted labels, downloaded if necessary; None without one.

        Raises PredictionsRefused for a wrong file, and what a download raises.
        """
        expected = self._receipt.predictions
        if expected is None:
            return None
        path = self._opened_folder / PREDICTIONS
        if expected.bytes > PREDICTIONS_BYTES_MAX:
            raise PredictionsRefused(
                "file",
                f"the predictions have {expected.bytes:,} bytes; the limit is "
                f"{PREDICTIONS_BYTES_MAX:,}",
            )
        if self._origin is not None and not _is_downloaded(path, expected):
            path.unlink(missing_ok=True)
            self._say(
                f"fetching {path.name} ({size_text(expected.bytes)}) from {self._origin.name}"
            )
            address = f"{self._origin.base}{PREDICTIONS}"
            self._origin.download(address, path, expected.sha256, expected.bytes)
        if not os.path.lexists(path):
            raise _missing_file(path, "the predictions")
        prediction_bytes(path, expected)
        return path

    def release(self, task: str) -> None:
        """Delete the file of a task if it is in the temporary folder."""
        if self._temporary is not None:
            self._verified.pop(task, None)
            receipt_file(self._opened_folder, task).unlink(missing_ok=True)

    @property
    def _opened_folder(self) -> Path:
        if self._folder is None:
            msg = "ReceiptFiles is used as a context"
            raise AssertionError(msg)
        return self._folder

    def _read(self, path: Path, expected: ReceiptTask) -> None:
        try:
            verified_digests(path, expected, self._receipt.dim)
        except FileNotFoundError as error:
            raise _missing_file(path, "this task") from error
        except OSError as error:
            raise NothingChecked(
                f"{path}: cannot be read: {error.strerror}",
                "make the file readable, or download it: geneb-ci receipt pull",
            ) from error

    def _fetch(self, origin: ServerFolder, path: Path, task: str, expected: ReceiptTask) -> None:
        if path.exists():
            try:
                return self._read(path, expected)
            except EmbeddingsRefused as error:
                if error.step != FILES:
                    raise
                self._say(f"{error.message}; it is fetched again")
                path.unlink()
        self._say(f"fetching {path.name} ({size_text(expected.bytes)}) from {origin.name}")
        origin.download(origin.address(task), path, expected.sha256, expected.bytes)
        return self._read(path, expected)


def receipt_files(
    receipt: EmbeddingReceipt,
    folder: Path | None = None,
    *,
    mirror: str | None = None,
    cache: Path | None = None,
    say: Say = silent,
) -> ReceiptFiles:
    """Return the files of a receipt: in `folder`, else on `mirror`, else where it is published.

    Downloaded files are kept in the folder `cache`, if it is passed. Raises what
    `published_folder` and `mirror_folder` raise.
    """
    if folder is not None:
        return ReceiptFiles(receipt, folder, None, say)
    origin = mirror_folder(mirror) if mirror is not None else published_folder(receipt.location)
    return ReceiptFiles(receipt, cache, origin, say)


def size_text(count: float) -> str:
    """Return a number of bytes as text, in bytes, kB, MB or GB."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:  # noqa: PLR2004 (the next unit)
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _missing_file(path: Path, member: str) -> NothingChecked:
    """Return the error of a file that is not in the folder of a receipt."""
    return NothingChecked(
        f"{path}: there is no such file, but the receipt has one for {member}",
        "name the folder of all its files, or download the missing ones: geneb-ci receipt pull",
    )


def _is_downloaded(path: Path, expected: PredictionsFile) -> bool:
    """Whether a file of predictions was downloaded before, with the right size and digest."""
    try:
        prediction_bytes(path, expected)
    except PredictionsRefused:
        return False
    return True


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _file_fingerprint(path: Path) -> tuple[int, ...]:
    """Return numbers that change whenever a file does; () for a missing file."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


LOCATION_MEMBERS = ("receipt", "location")
"""Path of the location in the JSON of a submission."""


def write_location(path: Path, location: ReceiptLocation) -> bool:
    """Write the location of a receipt, and return whether the file changed.

    Raises NothingChecked for a submission without `receipt.location`, UsageProblem or MachineFault
    if the file cannot be written.
    """
    document = read_document(path, spans=True)
    if document.span(LOCATION_MEMBERS) is None:
        raise NothingChecked(
            f"{path} has no `receipt.location`", "write it with `geneb-harness run --receipt`"
        )
    changed_text = with_location(document, location)
    if changed_text == document.text:
        return False
    try:
        write_whole(path, lambda stream: stream.write(changed_text.encode()))
    except OSError as error:
        raise unwritable(str(path), error, "make the file writable, then repeat") from error
    return True


def with_location(document: Document, location: ReceiptLocation) -> str:
    """Return the text of a document with another location, indented like the members next to it."""
    span = document.span(LOCATION_MEMBERS)
    if span is None:
        raise ValueError("the document has no member for a location")
    text_before = document.text[: span.key]
    line = text_before[text_before.rfind("\n") + 1 :]
    members = location.model_dump()
    if line.strip():  # the member does not begin its line, so the new value is on one line
        location_text = json.dumps(members)
    else:
        indent_step = line[len(_parent_indentation(text_before, line)) :]
        lines = json.dumps(members, indent=indent_step).split("\n")
        location_text = f"\n{line}".join(lines)
    return f"{document.text[: span.start]}{location_text}{document.text[span.end :]}"


def _parent_indentation(text_before: str, line: str) -> str:
    """Return the indentation of the nearest line above that is indented less than `line`."""
    for line_above in reversed(text_before.split("\n")[:-1]):
        indent = line_above[: len(line_above) - len(line_above.lstrip())]
        if line_above.strip() and len(indent) < len(line) and line.startswith(indent):
            return indent
    return ""
