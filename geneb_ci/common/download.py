"""Download files with known digests over https."""

import contextlib
import fcntl
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, NamedTuple

from geneb_ci.common.addresses import AllowedServers
from geneb_ci.common.connection import opener
from geneb_ci.common.errors import GenebError, unwritable
from reference_harness.formats.files import file_sha256

REASON_CHARACTERS_MAX = 200
"""Maximum characters of a server's reason in a message."""
SILENCE_SECONDS = 60
"""Seconds without any byte after which a connection is closed."""
CHUNK_BYTES = 1 << 20
"""Maximum bytes that are read at once."""
DOWNLOAD_BYTES_MAX = 1 << 38
"""Maximum size of a file or archive: ten times the largest model of the board in float32."""
PARTIAL_SUFFIX = ".part"
"""Ending of a file whose download has not finished."""

ErrorOfMessage = Callable[[str, str], GenebError]
"""A function that returns the error for a message and its fix."""


class DownloadKind(NamedTuple):
    """A kind of download: the errors that it raises, their advice, and the allowed servers."""

    not_served: ErrorOfMessage
    """Returns the error for a file that the server does not deliver."""
    wrong_content: ErrorOfMessage
    """Returns the error for a file with another digest or size."""
    folder_option: str
    """The option for a folder of files downloaded by hand, such as "--weights DIR"."""
    changed_fix: str
    """The fix that the error for another digest shows."""
    is_user_named: bool = False
    """Whether the user named the server, which may then be in the user's own network."""


def download(
    address: str, path: Path, sha256: str, kind: DownloadKind, bytes_max: int = DOWNLOAD_BYTES_MAX
) -> None:
    """Download one file to `path`, continuing an earlier download of it.

    Raises `kind.not_served` if the server does not deliver it, and `kind.wrong_content` if
    it has another digest or more than `bytes_max` bytes; the file is then deleted.
    """
    unfinished = partial_path(path, kind)
    with _only_writer(unfinished, path, kind):
        size = unfinished.stat().st_size
        # The unfinished bytes may be those of another file, or the server may send other bytes.
        if not (
            0 < size <= bytes_max
            and _continue_download(address, unfinished, size, kind, sha256, bytes_max)
        ):
            try:
                _download_rest(address, unfinished, 0, kind, bytes_max)
            except _TooManyBytes as error:
                raise kind.wrong_content(
                    f"{address}: the file is at least {error.args[0]:,} bytes longer than expected",
                    "check the address of the file",
                ) from error
        finish_download(unfinished, path, sha256, address, kind)


@contextlib.contextmanager
def _only_writer(partial_file: Path, path: Path, kind: DownloadKind) -> Iterator[None]:
    """Create the unfinished file and lock it in the block, so that no other process writes it.

    Raises `kind.not_served` if another process has the lock.
    """
    with file_in_write_errors(path, kind):
        stream = partial_file.open("ab")
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = (
                partial_file.exists()
                and os.fstat(stream.fileno()).st_ino == partial_file.stat().st_ino
            )
        except BlockingIOError:
            is_ours = False
        if not is_ours:  # locked, or renamed by a process that finished it meanwhile
            raise kind.not_served(
                f"{path}: another process is downloading this file",
                "wait until it has ended, then run the command again",
            )
        try:
            yield
        finally:
            if partial_file.exists() and not partial_file.stat().st_size:
                partial_file.unlink()


def _continue_download(
    address: str, partial_file: Path, size: int, kind: DownloadKind, sha256: str, bytes_max: int
) -> bool:
    """Continue a download, and return whether the complete file has the digest."""
    try:
        _download_rest(address, partial_file, size, kind, bytes_max)
    except _TooManyBytes:
        return False
    return file_sha256(partial_file) == sha256


class _TooManyBytes(Exception):  # noqa: N818 (no error of this program)
    """The file exceeds its expected size by at least `args[0]` bytes."""


def _download_rest(
    address: str, partial_file: Path, size: int, kind: DownloadKind, bytes_max: int
) -> None:
    """Download the rest of a file to `partial_file`, which has its first `size` bytes.

    Raises `kind.not_served`, and _TooManyBytes if the file would exceed `bytes_max`.
    """
    with contextlib.suppress(_NothingLeft), open_address(address, size, kind) as response:
        if size and response.status != HTTPStatus.PARTIAL_CONTENT:
            size = 0  # the server sends it from the beginning
        with (
            file_in_write_errors(partial_file, kind),
            partial_file.open("ab" if size else "wb") as stream,
        ):
            _copy_body(response, stream, bytes_max - size, address, kind)


def served_length(address: str, kind: DownloadKind) -> int:
    """Return the size in bytes of the file at an address; 0 if the server does not state it.

    Only the first byte is requested. Raises `kind.not_served`.
    """
    with open_address(address, 0, kind, byte_range="bytes=0-0") as response:
        _, slash, total = str(response.headers.get("Content-Range", "")).partition("/")
        length = total if slash else str(response.headers.get("Content-Length", ""))
    return int(length) if length.isdigit() else 0


class _NothingLeft(Exception):  # noqa: N818 (no error)
    """The server has no bytes after those downloaded."""


@contextlib.contextmanager
def open_address(
    address: str, start: int, kind: DownloadKind, byte_range: str = ""
) -> Iterator[Any]:
    """Open an address from byte `start` on, or with another `byte_range`; yield the response.

    Raises `kind.not_served`, and _NothingLeft if the file ends at `start`.
    """
    byte_range = byte_range or (f"bytes={start}-" if start else "")
    allowed_servers = AllowedServers(is_user_named=kind.is_user_named)
    if not allowed_servers.allows(address):
        raise kind.not_served(
            f"{address} is not an https address of a public server with a host name",
            "publish the files on such a server",
        )
    request = urllib.request.Request(  # noqa: S310 (https, or this machine)
        address, headers={"Range": byte_range} if byte_range else {}
    )
    try:
        response = opener(allowed_servers).open(request, timeout=SILENCE_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _NothingLeft from error
        raise kind.not_served(
            f"{address}: the server answered {error.code} {_short_reason(error.reason)}",
            "check that the file is public; if it is, download the file by hand and name its "
            f"folder: {kind.folder_option}",
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise delivery_error(address, error, kind) from error
    with response:
        if response.headers.get_content_type() == "text/html":
            raise kind.not_served(
                f"{address}: the server sent a web page instead of the file; it may limit "
                "downloads or require a login",
                "run the command again tomorrow, or download the file by hand and name its "
                f"folder: {kind.folder_option}",
            )
        yield response


def _copy_body(
    response: http.client.HTTPResponse,
    file: IO[bytes],
    limit: int,
    address: str,
    kind: DownloadKind,
) -> None:
    """Copy the body of a response to a file.

    Raises `kind.not_served` if the body ends early, _TooManyBytes if it exceeds `limit` bytes.
    """
    # In some versions of Python read1 does not count `length` down, so it is read once.
    expected, copied = response.length or 0, 0
    while chunk := _next_bytes(response, expected - copied, address, kind):
        copied += len(chunk)
        if copied > limit:
            file.truncate(0)  # so that the next call does not continue it
            raise _TooManyBytes(copied - limit)
        file.write(chunk)


def _next_bytes(
    reply: http.client.HTTPResponse, missing: int, address: str, kind: DownloadKind
) -> bytes:
    """Return the next bytes as they arrive, none at the end of the file.

    Raises `kind.not_served` if the stream ends while `missing` bytes are still expected.
    """
    try:
        chunk = reply.read1(CHUNK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise delivery_error(address, error, kind) from error
    if not chunk and missing > 0:
        raise delivery_error(address, EOFError(f"{missing:,} bytes are missing"), kind)
    return chunk


def partial_path(path: Path, kind: DownloadKind) -> Path:
    """Return the path of the unfinished download of `path`, after creating its folder."""
    with file_in_write_errors(path, kind):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(path.name + PARTIAL_SUFFIX)


@contextlib.contextmanager
def file_in_write_errors(path: Path, kind: DownloadKind) -> Iterator[None]:
    """Raise UsageProblem or MachineFault with the name of the file for an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise unwritable(
            str(path), error, f"free disk space, or name another folder: {kind.folder_option}"
        ) from error


def _short_reason(reason: object) -> str:
    """Return a server's reason, which may be any text, as a single line of limited length."""
    words = " ".join(str(reason).split())
    return words[:REASON_CHARACTERS_MAX]


def require_complete_response(response: object) -> None:
    """Raise EOFError if a server closed early, which http.client does not report."""
    missing = getattr(response, "length", None)
    if missing:
        raise EOFError(f"{missing:,} bytes are missing")


def finish_download(
    partial_file: Path, path: Path, sha256: str, address: str, kind: DownloadKind
) -> None:
    """Rename a finished download to `path`.

    Deletes it and raises `kind.wrong_content` if its digest is not `sha256`.
    """
    digest = file_sha256(partial_file)
    if digest != sha256:
        partial_file.unlink()
        raise kind.wrong_content(
            f"{address}: the file has sha256 {digest}, expected sha256 {sha256}", kind.changed_fix
        )
    with file_in_write_errors(path, kind):
        partial_file.replace(path)


def delivery_error(address: str, error: Exception, kind: DownloadKind) -> GenebError:
    """Return the error `kind.not_served` for a download that failed, with the reason."""
    reason = str(getattr(error, "reason", "") or error) or type(error).__name__
    return kind.not_served(
        f"{address} cannot be fetched: {reason}",
        "run the command again, which continues the download; if that fails, download the file by "
        f"hand and name its folder: {kind.folder_option}",
    )
