"""Downloads files by their digests over https."""

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

REASON_MAX = 200
"""Characters of what a server gave as a reason."""
SILENCE_MAX = 60
"""Seconds without a byte after which a server counts as gone."""
CHUNK = 1 << 20
BYTES_MAX = 1 << 38
"""Bytes of one file or archive: ten times the largest model of the board in float32."""
PARTIAL = ".part"
"""Ending of a file whose download has not finished."""

Refusal = Callable[[str, str], GenebError]
"""Makes an error of what was found, and what to do next."""


class Purpose(NamedTuple):
    """The purpose of the files, as errors word it."""

    not_served: Refusal
    """The server does not deliver the file."""
    wrong_content: Refusal
    """The file has another digest or size."""
    folder: str
    """The option that names a folder of files fetched by hand."""
    changed_fix: str
    """The fix for another digest."""
    is_user_named: bool = False
    """Whether this machine's user named the server, which then may be in his own network."""


def download(
    address: str, path: Path, sha256: str, purpose: Purpose, bytes_max: int = BYTES_MAX
) -> None:
    """Download one file to `path`, continuing an earlier download of it.

    Raises what `purpose` says when the server does not deliver it, and when its digest is another
    or it is longer than `bytes_max`; the file is then not kept.
    """
    unfinished = partial_path(path, purpose)
    with _only_writer(unfinished, path, purpose):
        have = unfinished.stat().st_size
        # What is here may be of another file, or the server may send other bytes than asked for.
        if not (
            0 < have <= bytes_max
            and _is_continued(address, unfinished, have, purpose, sha256, bytes_max)
        ):
            try:
                _receive(address, unfinished, 0, purpose, bytes_max)
            except _TooLong as error:
                more = f"{error.args[0]:,} bytes or more"
                raise purpose.wrong_content(
                    f"{address}: the file is longer than expected, by {more}",
                    "check the address of the file",
                ) from error
        keep_download(unfinished, path, sha256, address, purpose)


@contextlib.contextmanager
def _only_writer(partial_file: Path, path: Path, purpose: Purpose) -> Iterator[None]:
    """Keep other processes from writing an unfinished download, which is there then.

    Raises what `purpose` says where another one does.
    """
    with named_write_errors(path, purpose):
        stream = partial_file.open("ab")
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_named = (
                partial_file.exists()
                and os.fstat(stream.fileno()).st_ino == partial_file.stat().st_ino
            )
        except BlockingIOError:
            is_named = False
        if not is_named:  # or it was finished, and has its own name, since it was opened here
            raise purpose.not_served(
                f"{path}: another process is fetching this file",
                "wait until that has ended, then run the command again",
            )
        try:
            yield
        finally:
            if partial_file.exists() and not partial_file.stat().st_size:
                partial_file.unlink()


def _is_continued(
    address: str, partial_file: Path, size: int, purpose: Purpose, sha256: str, bytes_max: int
) -> bool:
    """Continue a download, and return whether that gave the right file."""
    try:
        _receive(address, partial_file, size, purpose, bytes_max)
    except _TooLong:
        return False
    return file_sha256(partial_file) == sha256


class _TooLong(Exception):  # noqa: N818 (no error of this program)
    """A file is longer than its digest is of, by that many bytes or more."""


def _receive(address: str, partial_file: Path, size: int, purpose: Purpose, bytes_max: int) -> None:
    """Add to a file what a server has after its first `size` bytes. Raises _TooLong."""
    with contextlib.suppress(_NothingLeft), open_address(address, size, purpose) as response:
        if size and response.status != HTTPStatus.PARTIAL_CONTENT:
            size = 0  # the server sends it from the beginning
        with (
            named_write_errors(partial_file, purpose),
            partial_file.open("ab" if size else "wb") as stream,
        ):
            _copy(response, stream, bytes_max - size, address, purpose)


def length_there(address: str, purpose: Purpose) -> int:
    """Return the bytes that a server has at an address, of which one is asked for.

    Raises what `purpose` says when it does not deliver it.
    """
    with open_address(address, 0, purpose, byte_range="bytes=0-0") as response:
        _, slash, total = str(response.headers.get("Content-Range", "")).partition("/")
        length = total if slash else str(response.headers.get("Content-Length", ""))
    return int(length) if length.isdigit() else 0


class _NothingLeft(Exception):  # noqa: N818 (no error)
    """The server has no byte after those that are here."""


@contextlib.contextmanager
def open_address(address: str, start: int, purpose: Purpose, byte_range: str = "") -> Iterator[Any]:
    """Open an address from byte `start` on, or with another `byte_range`.

    Raises what `purpose` says, and _AllHere.
    """
    byte_range = byte_range or (f"bytes={start}-" if start else "")
    reach = AllowedServers(is_user_named=purpose.is_user_named)
    if not reach.allows(address):
        raise purpose.not_served(
            f"{address} is not an https address of a public server",
            "publish the files on such a server, which has a name",
        )
    request = urllib.request.Request(  # noqa: S310 (https, or this machine)
        address, headers={"Range": byte_range} if byte_range else {}
    )
    try:
        response = opener(reach).open(request, timeout=SILENCE_MAX)
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _NothingLeft from error
        raise purpose.not_served(
            f"{address}: the server answered {error.code} {_reason_line(error.reason)}",
            f"check that the file is public; fetch it by hand into {purpose.folder} if it is",
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise delivery_error(address, error, purpose) from error
    with response:
        if response.headers.get_content_type() == "text/html":
            raise purpose.not_served(
                f"{address}: the server sent a web page instead of the file, as for a limit of "
                "downloads or a login",
                f"run the command again tomorrow, or fetch the file by hand into {purpose.folder}",
            )
        yield response


def _copy(
    source: http.client.HTTPResponse, target: IO[bytes], limit: int, address: str, purpose: Purpose
) -> None:
    """Copy a stream. Raises what `purpose` says where it breaks off, _TooLong above `limit`."""
    # Some versions of Python leave `length` as it is in read1: it is asked once.
    expected, copied = source.length or 0, 0
    while chunk := _read(source, expected - copied, address, purpose):
        copied += len(chunk)
        if copied > limit:
            target.truncate(0)  # or the next call would go on from what is too long
            raise _TooLong(copied - limit)
        target.write(chunk)


def _read(source: http.client.HTTPResponse, missing: int, address: str, purpose: Purpose) -> bytes:
    """Return bytes as they come, so that a trickle is seen; none at the end.

    Raises what `purpose` says where the stream breaks off; `missing` bytes are still to come.
    """
    try:
        chunk = source.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise delivery_error(address, error, purpose) from error
    if not chunk and missing > 0:
        raise delivery_error(address, EOFError(f"{missing:,} bytes are missing"), purpose)
    return chunk


def partial_path(path: Path, purpose: Purpose) -> Path:
    """Return the place of an unfinished download, and make its folder."""
    with named_write_errors(path, purpose):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(path.name + PARTIAL)


@contextlib.contextmanager
def named_write_errors(path: Path, purpose: Purpose) -> Iterator[None]:
    """Name the file that cannot be written. Raises UsageProblem or MachineFault."""
    try:
        yield
    except OSError as error:
        raise unwritable(
            str(path), error, f"free the disk, or name another folder: {purpose.folder}"
        ) from error


def _reason_line(reason: object) -> str:
    """Return the reason that a server gave, which may be any text, as part of a line."""
    words = " ".join(str(reason).split())
    return words[:REASON_MAX]


def require_whole(response: object) -> None:
    """Raise EOFError where a server closed early, of which http.client says nothing."""
    missing = getattr(response, "length", None)
    if missing:
        raise EOFError(f"{missing:,} bytes are missing")


def keep_download(
    partial_file: Path, path: Path, sha256: str, address: str, purpose: Purpose
) -> None:
    """Rename a finished download, if its digest is right. Raises what `purpose` says."""
    digest = file_sha256(partial_file)
    if digest != sha256:
        partial_file.unlink()
        raise purpose.wrong_content(
            f"{address}: sha256 {digest}, expected {sha256}", purpose.changed_fix
        )
    with named_write_errors(path, purpose):
        partial_file.replace(path)


def delivery_error(address: str, error: Exception, purpose: Purpose) -> GenebError:
    """Return the error for a download that broke off or never began."""
    reason = str(getattr(error, "reason", "") or error) or type(error).__name__
    return purpose.not_served(
        f"{address} cannot be fetched: {reason}",
        "run the command again: it goes on where the download broke off",
    )
