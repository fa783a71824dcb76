"""Fetches what a rerun needs and the checkout lacks: files and packages, each by its digest.

This phase has network access and runs no foreign code. A download is continued after a break, and
kept only if its digest is right. Packages are for models that the harness's own do not load, since
no version of transformers loads every model of the board: a lock has those that differ, each with
its hashes, all others stay those of the harness; they are unpacked, never built from source.
"""

import contextlib
import hashlib
import http.client
import platform
import shutil
import subprocess
import sys
import tempfile
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.request import HTTPRedirectHandler, Request, build_opener

from geneb_ci.audit import tar
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.common.config import cache_folder, policy_bytes
from geneb_ci.common.errors import BadConfiguration, MachineFault, WeightsRefused, unwritable
from geneb_ci.models.entry import LOOPBACK, Environment

SILENCE_MAX = 60
"""Seconds without a byte after which a server counts as gone."""
CHUNK = 1 << 20
BYTES_MAX = 1 << 38
"""Bytes of one file or archive: ten times the largest model of the board in float32."""
ARCHIVE_MAX = 1 << 36
"""Bytes of an unpacked archive: a decompressor can make any number of them from few."""
PARTIAL = ".part"
"""Ending of a file whose download has not finished."""


class _SafeRedirects(HTTPRedirectHandler):
    """Follows redirects to https alone, or, on this machine, from this machine."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request of a redirect. Raises URLError for another scheme."""
        if not _is_safe(newurl, req.full_url):
            fp.close()
            raise urllib.error.URLError(f"redirected to {newurl!r}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_safe(address: str, before: str = "") -> bool:
    """Whether an address is https, or on this machine as the one before it."""
    return address.startswith("https://") or (
        address.startswith(LOOPBACK) and (not before or before.startswith(LOOPBACK))
    )


def download(address: str, path: Path, sha256: str) -> None:
    """Download one file to `path`, continuing an earlier download of it.

    Raises WeightsRefused when the server does not deliver it, and when its digest is another; the
    file is then not kept.
    """
    partial = _partial(path)
    have = partial.stat().st_size if partial.exists() else 0
    with contextlib.suppress(_AllHere), _opened(address, have) as response:
        if have and response.status != HTTPStatus.PARTIAL_CONTENT:
            have = 0  # the server sends it from the beginning
        with _writing(partial), partial.open("ab" if have else "wb") as stream:
            _copy(response, stream, BYTES_MAX - have, address)
    _keep(partial, path, sha256, address)


def extract(address: str, members: Mapping[str, Path], sha256: Mapping[str, str]) -> None:
    """Download a tar archive, keeping these members of it: path in the archive to place.

    The archive itself is never stored, and begins again after a break. Raises WeightsRefused for a
    member that is missing, not a regular file, or other than its digest says, and what `download`
    does.
    """
    waiting = dict(members)
    with _opened(address, 0) as response:
        try:
            for member in tar.members(response, ARCHIVE_MAX):
                if member.name not in waiting:
                    continue
                if not member.is_file:
                    raise WeightsRefused(
                        f"{address}: {member.name} is a link or a folder, expected a regular file",
                        "correct the entry of the model registry",
                    )
                path = waiting.pop(member.name)
                partial = _partial(path)
                with _writing(partial), partial.open("wb") as stream:
                    for chunk in member.chunks():
                        stream.write(chunk)
                _keep(partial, path, sha256[member.name], f"{address}#{member.name}")
                if not waiting:
                    return
            _require_whole(response)
        except tar.BrokenArchiveError as error:
            raise _undelivered(address, error) from error
        except (OSError, EOFError, http.client.HTTPException) as error:
            raise _undelivered(address, error) from error
    raise WeightsRefused(
        f"{address}: the archive does not contain {min(waiting)}",
        "correct `archive` or `folder` of the entry in the model registry",
    )


class _AllHere(Exception):  # noqa: N818 (no error)
    """The server has no byte after those that are here."""


@contextlib.contextmanager
def _opened(address: str, start: int) -> Iterator[Any]:
    """Open an address from byte `start` on. Raises WeightsRefused, and _AllHere."""
    if not _is_safe(address):
        raise WeightsRefused(f"{address} is not https", "publish the files on a server with https")
    request = Request(  # noqa: S310 (https, or this machine)
        address, headers={"Range": f"bytes={start}-"} if start else {}
    )
    try:
        response = build_opener(_SafeRedirects).open(request, timeout=SILENCE_MAX)
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _AllHere from error
        raise WeightsRefused(
            f"{address}: the server answered {error.code} {error.reason}",
            "check that the file is public; fetch it by hand into --weights DIR if it is",
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _undelivered(address, error) from error
    with response:
        if response.headers.get_content_type() == "text/html":
            raise WeightsRefused(
                f"{address}: the server sent a web page instead of the file, as for a limit of "
                "downloads or a login",
                "run the command again tomorrow, or fetch the file by hand into --weights DIR",
            )
        yield response


def _copy(source: IO[bytes], target: IO[bytes], limit: int, address: str) -> None:
    """Copy a stream. Raises WeightsRefused where it breaks off or is longer than `limit`."""
    copied = 0
    while chunk := _read(source, address):
        copied += len(chunk)
        if copied > limit:
            raise WeightsRefused(
                f"{address}: more than {BYTES_MAX:,} bytes", "check the address of the file"
            )
        target.write(chunk)


def _read(source: IO[bytes], address: str) -> bytes:
    """Return the next bytes; none at the end. Raises WeightsRefused where it breaks off."""
    try:
        chunk = source.read(CHUNK)
        if not chunk:
            _require_whole(source)
    except (OSError, EOFError, http.client.HTTPException) as error:
        raise _undelivered(address, error) from error
    return chunk


def _partial(path: Path) -> Path:
    """Return the place of an unfinished download, and make its folder."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(path.name + PARTIAL)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Name the file that cannot be written. Raises UsageProblem or MachineFault."""
    try:
        yield
    except OSError as error:
        raise unwritable(
            str(path), error, "free the disk, or name another folder: --weights DIR"
        ) from error


def _require_whole(response: object) -> None:
    """Raise EOFError where a server closed early, of which http.client says nothing."""
    left = getattr(response, "length", None)
    if left:
        raise EOFError(f"{left:,} bytes are missing")


def _keep(partial: Path, path: Path, sha256: str, address: str) -> None:
    """Rename a finished download, if its digest is right. Raises WeightsRefused."""
    with partial.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        partial.unlink()
        raise WeightsRefused(
            f"{address}: sha256 {found}, expected {sha256}",
            "the file was changed since it was pinned: audit another submission, or correct the "
            "entry of the model registry",
        )
    with _writing(path):
        partial.replace(path)


def _undelivered(address: str, error: Exception) -> WeightsRefused:
    reason = str(getattr(error, "reason", "") or error) or type(error).__name__
    return WeightsRefused(
        f"{address} cannot be fetched: {reason}",
        "run the command again: it goes on where the download broke off",
    )


FOLDER = "environments"
"""Folder of the locks in the policy folder."""
LOCK_BYTES_MAX = 2_000_000
"""A lock of 90 packages for every platform has 400 kB."""
UV = (
    *("pip", "install", "--quiet", "--no-config", "--no-deps", "--require-hashes"),
    *("--only-binary", ":all:"),
)
"""No building: a source distribution runs its author's code outside the sandbox."""
SAID = 2000
"""Characters of the installer's message that are shown."""


class Installed(NamedTuple):
    """Packages of one lock on this machine."""

    folder: Path
    lock_sha256: str


def install(
    wanted: Environment,
    policy: Path,
    say: Callable[[str], None] = lambda _: None,
    cache: Path | None = None,
) -> Installed:
    """Install the packages of a lock below `cache`, unless they are there; return their folder.

    `policy` is the policy folder, in which the lock lies; `say` gets a line of progress.
    Raises BadConfiguration for a lock that is missing or not the one that the entry names,
    AuditRefused where this Python is another than the entry's, MachineFault where the packages
    cannot be installed.
    """
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if wanted.python not in {None, here}:
        raise AuditRefused(
            f"the model needs Python {wanted.python}, this is {here}",
            f"install geneb-ci under Python {wanted.python} and run the command with that",
        )
    lock = policy / FOLDER / wanted.lock
    raw = lock_bytes(policy, wanted)
    kind = f"{wanted.sha256}-{platform.python_implementation()}{here}-{platform.machine()}"
    folder = (cache or cache_folder("environments")) / kind
    if not folder.is_dir():
        say(f"installing the packages of {wanted.lock}")
        _install(raw, folder, lock)
    return Installed(folder, wanted.sha256)


def lock_bytes(policy: Path, wanted: Environment) -> bytes:
    """Return a lock of the policy folder. Raises BadConfiguration for another than the entry's."""
    lock = policy / FOLDER / wanted.lock
    raw = policy_bytes(lock, LOCK_BYTES_MAX)
    found = hashlib.sha256(raw).hexdigest()
    if found != wanted.sha256:
        raise BadConfiguration(
            f"{lock}: sha256 {found}, the entry of the model has {wanted.sha256}",
            "restore the lock, or write its digest into the entry",
        )
    return raw


def _install(raw: bytes, folder: Path, lock: Path) -> None:
    """Install into a folder beside it that gets its name when it is complete."""
    program = shutil.which("uv") or _packaged()
    if program is None:
        raise MachineFault(
            f"{lock.name} has to be installed, and uv is not", "pip install uv, then repeat"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as made:
        copy, target = Path(made) / "lock.txt", Path(made) / "packages"
        copy.write_bytes(raw)
        done = subprocess.run(  # noqa: S603 (our own words, no shell)
            [program, *UV, "--python", sys.executable, "--target", str(target), "-r", str(copy)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise MachineFault(
                f"{lock.name} cannot be installed: {done.stderr.strip()[-SAID:]}",
                "check the connection to the package index, and that the lock has the hashes of "
                "this platform",
            )
        try:
            target.rename(folder)
        except OSError:
            # Another process was faster: the same packages, by their hashes.
            if not folder.is_dir():
                raise


def _packaged() -> str | None:
    """Return the program of the package uv, where that is installed."""
    try:
        from uv import find_uv_bin  # noqa: PLC0415 (seldom needed)

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return None
