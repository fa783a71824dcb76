"""Fetches what a rerun needs and the checkout lacks, and reads tar archives of strangers.

This phase has network access and runs no foreign code. A download is continued after a break, and
kept only if its digest is right. Packages are for models that the harness's own do not load, since
no version of transformers loads every model of the board: a lock has those that differ, all others
stay those of the harness.

Archives are read as a stream, each step of bounded memory and size. The standard library's reader
takes the length of an extended header, and of what it skips, from the archive. POSIX.1-2001 (pax)
and GNU archives, plain or gzip.
"""

import gzip
import http.client
import importlib.metadata
import io
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.errors import AuditRefused
from geneb_ci.common.config import cache_folder, policy_bytes
from geneb_ci.common.download import (
    Purpose,
    delivery_error,
    keep_download,
    named_write_errors,
    open_address,
    partial_path,
    require_whole,
)
from geneb_ci.common.download import download as download_file
from geneb_ci.common.errors import BadConfiguration, MachineFault, WeightsRefused
from geneb_ci.models.entry import Environment
from reference_harness.formats import packages
from reference_harness.formats.files import line_ends_differ
from reference_harness.formats.packages import (
    LOCK_BYTES_MAX,
    Lock,
    LockRefused,
    NotInstalled,
    read_lock,
)
from reference_harness.formats.text import Say, silent

BLOCK = 512
HEADER_MAX = 1 << 16
"""Bytes of an extended header: a path has at most 4,096."""
CHUNK = 1 << 20
GZIP = b"\x1f\x8b"
OTHER_KINDS = {b"PK\x03\x04": "a zip archive", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"<": "a page"}
"""How a file begins that people name an archive, and what it is."""
_REGULAR = (b"0", b"\0", b"7")
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"
_EXTENDED = (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK)
_EXTENDED_MAX = 8
"""Extended headers of one member: writers make at most three."""


class BrokenArchiveError(Exception):
    """The bytes are no archive, or one that nobody needs."""


class NotTarError(BrokenArchiveError):
    """The bytes are whole, but of another kind."""


class ArchiveMember(NamedTuple):
    """One entry of an archive; its content has to be read before the next."""

    name: str
    size: int
    is_file: bool
    source: "_CountingReader"

    def chunks(self) -> Iterator[bytes]:
        """Yield the content. Raises BrokenArchiveError where the archive ends before it."""
        bytes_left = self.size
        while bytes_left:
            chunk = self.source.exactly(min(bytes_left, CHUNK))
            bytes_left -= len(chunk)
            yield chunk


class _CountingReader:
    """A stream with a limit, which ends only where it may."""

    def __init__(self, stream: io.BufferedIOBase, limit: int) -> None:
        self._stream = stream
        self._left = limit
        self.read = 0

    def some(self, count: int) -> bytes:
        """Return up to `count` bytes: fewer at the end alone."""
        if count > self._left:
            raise BrokenArchiveError("it is larger than any model")
        parts, bytes_left = [], count
        while bytes_left:
            try:
                part = self._stream.read(bytes_left)
            except (gzip.BadGzipFile, zlib.error) as error:
                raise BrokenArchiveError(f"damaged compression: {error}") from error
            if not part:
                break
            parts.append(part)
            bytes_left -= len(part)
        content = b"".join(parts)
        self._left -= len(content)
        self.read += len(content)
        return content

    def exactly(self, count: int) -> bytes:
        """Return `count` bytes. Raises BrokenArchiveError where there are fewer."""
        content = self.some(count)
        if len(content) < count:
            raise BrokenArchiveError("it ends in the middle of a file")
        return content

    def skip(self, count: int) -> None:
        """Read over `count` bytes."""
        while count:
            count -= len(self.exactly(min(count, CHUNK)))


def tar_members(stream: io.BufferedIOBase, limit: int) -> Iterator[ArchiveMember]:
    """Yield the members of an archive of at most `limit` unpacked bytes.

    Raises BrokenArchiveError for what is no archive, and what reading the stream raises.
    """
    source = _CountingReader(_unpacked(stream), limit)
    header: dict[str, str] = {}
    extended = 0
    while True:
        first = source.read == 0
        block = source.some(BLOCK)
        if not block or not block.strip(b"\0"):
            return
        if len(block) < BLOCK or not _is_header(block):
            if first and len(block) == BLOCK:
                raise NotTarError(_kind_of(block))
            raise BrokenArchiveError("it is damaged")
        size, kind = _number(block[124:136]), block[156:157]
        if kind in _EXTENDED:
            extended += 1
            if size > HEADER_MAX or extended > _EXTENDED_MAX:
                raise BrokenArchiveError("an extended header is larger than any path")
            content = source.exactly(size)
            source.skip(-size % BLOCK)
            if kind != _PAX_GLOBAL:
                header |= _extended(kind, content)
            continue
        if "size" in header:
            size = _decimal(header["size"])
        name = header.get("path") or _name(block)
        before = source.read
        yield ArchiveMember(name.removeprefix("./"), size, kind in _REGULAR, source)
        source.skip(before + size + (-size % BLOCK) - source.read)
        header, extended = {}, 0


def _unpacked(stream: io.BufferedIOBase) -> io.BufferedIOBase:
    """Return the stream, decompressed where it is gzip."""
    buffered = io.BufferedReader(stream)
    return gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == GZIP else buffered


def _extended(kind: bytes, content: bytes) -> dict[str, str]:
    """Return the path and size in an extended header."""
    if kind == _LONG_LINK:
        return {}
    if kind == _LONG_NAME:
        return {"path": content.rstrip(b"\0").decode("utf-8", "replace")}
    values = {}
    while content:
        match = re.match(rb"(\d{1,8}) ([^=\n]{1,200})=", content)
        length = int(match[1]) if match else 0
        if match is None or not match.end() < length <= len(content):
            raise BrokenArchiveError("an extended header is damaged")
        key, value = match[2].decode("ascii", "replace"), content[match.end() : length - 1]
        if key in {"path", "size"}:
            values[key] = value.decode("utf-8", "replace")
        elif key.startswith("GNU.sparse"):
            raise BrokenArchiveError("it contains sparse files")
        content = content[length:]
    return values


def _is_header(block: bytes) -> bool:
    try:
        return _checksum(block) == _number(block[148:156])
    except BrokenArchiveError:
        return False


def _kind_of(block: bytes) -> str:
    """Return the kind of a file that does not begin as a tar archive."""
    kinds = (kind for start, kind in OTHER_KINDS.items() if block.startswith(start))
    return f"it is {next(kinds, 'something else')}, expected a tar archive, plain or gzip"


def _checksum(block: bytes) -> int:
    """Return the sum of a header's bytes, those of the sum itself read as spaces."""
    return sum(block[:148]) + sum(b" " * 8) + sum(block[156:])


def _number(field: bytes) -> int:
    """Return a number of a header: octal text, or base 256 where the first bit is set."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    text = field.strip(b"\0 ") or b"0"
    if not re.fullmatch(rb"[0-7]+", text):
        raise BrokenArchiveError("a number of a header is damaged")
    return int(text, 8)


def _decimal(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise BrokenArchiveError("the size in an extended header is damaged")
    return int(text)


def _name(block: bytes) -> str:
    """Return the path in a header, which has it in two parts."""
    name, prefix = (part.partition(b"\0")[0] for part in (block[:100], block[345:500]))
    is_posix = block[257:263] == b"ustar\0"
    joined = prefix + b"/" + name if is_posix and prefix else name
    return joined.decode("utf-8", "replace")


NOT_TAR = (
    "correct the entry of the model registry, or fetch the files by hand and name their folder: "
    "--weights DIR"
)
ARCHIVE_MAX = 1 << 36
"""Bytes of an unpacked archive: a decompressor can make any number of them from few."""
WEIGHTS = Purpose(
    not_served=WeightsRefused,
    wrong_content=WeightsRefused,
    folder="--weights DIR",
    changed_fix="the file was changed since it was pinned: audit another submission, or "
    "correct the entry of the model registry",
)


def download(address: str, path: Path, sha256: str) -> None:
    """Download one file to `path`, continuing an earlier download of it.

    Raises WeightsRefused when the server does not deliver it, and when its digest is another; the
    file is then not kept.
    """
    download_file(address, path, sha256, WEIGHTS)


def download_members(address: str, members: Mapping[str, Path], sha256: Mapping[str, str]) -> None:
    """Download a tar archive, keeping these members of it: path in the archive to place.

    The archive itself is never stored, and begins again after a break. Raises WeightsRefused for a
    member that is missing, not a regular file, or other than its digest says, and what `download`
    does.
    """
    waiting = dict(members)
    with open_address(address, 0, WEIGHTS) as response:
        try:
            for member in tar_members(response, ARCHIVE_MAX):
                if member.name not in waiting:
                    continue
                if not member.is_file:
                    raise WeightsRefused(
                        f"{address}: {member.name} is a link or a folder, expected a regular file",
                        "correct the entry of the model registry",
                    )
                path = waiting.pop(member.name)
                unfinished = partial_path(path, WEIGHTS)
                with named_write_errors(unfinished, WEIGHTS), unfinished.open("wb") as stream:
                    for chunk in member.chunks():
                        stream.write(chunk)
                keep_download(
                    unfinished, path, sha256[member.name], f"{address}#{member.name}", WEIGHTS
                )
                if not waiting:
                    return
            require_whole(response)
        except NotTarError as error:
            raise WeightsRefused(f"{address}: {error}", NOT_TAR) from error
        except BrokenArchiveError as error:
            raise delivery_error(address, error, WEIGHTS) from error
        except (OSError, EOFError, http.client.HTTPException) as error:
            raise delivery_error(address, error, WEIGHTS) from error
    raise WeightsRefused(
        f"{address}: the archive does not contain {min(waiting)}",
        "correct `archive` or `folder` of the entry in the model registry",
    )


FOLDER = "environments"
"""Folder of the locks in the policy folder, and of their packages in the cache."""


class InstalledPackages(NamedTuple):
    """Packages of one lock on this machine."""

    folder: Path
    lock_sha256: str

    def versions(self) -> dict[str, str]:
        """Return the version of each distribution, by its name in lower case with hyphens."""
        distributions = importlib.metadata.distributions(path=[str(self.folder)])
        return {
            re.sub(r"[-_.]+", "-", distribution.name).lower(): distribution.version
            for distribution in distributions
        }


def install(lock: Lock, say: Say = silent, cache: Path | None = None) -> InstalledPackages:
    """Install the packages of a lock below `cache`, unless they are there; return their folder.

    `say` gets a line of progress. Raises MachineFault where they cannot be installed.
    """
    try:
        folder = packages.install(lock, cache or cache_folder(FOLDER), say)
    except NotInstalled as error:
        raise MachineFault(error.reason, error.fix) from error
    return InstalledPackages(folder, lock.sha256)


def require_python(environment: Environment) -> None:
    """Raise AuditRefused where this Python is another than the entry's."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if environment.python not in {None, version}:
        raise AuditRefused(
            f"the model needs Python {environment.python}, this is {version}",
            f"install geneb-ci under Python {environment.python} and run the command with that",
        )


def entry_lock(environment: Environment, policy: Path) -> Lock:
    """Return the lock that an entry of the registry names; `policy` is the policy folder.

    Raises BadConfiguration for a lock that is missing, not the one of the entry, or not to be
    installed.
    """
    path = policy / FOLDER / environment.lock
    raw = policy_bytes(path, LOCK_BYTES_MAX)
    try:
        lock = read_lock(raw, path.name)
    except LockRefused as error:
        raise BadConfiguration(
            f"{path}:{error.line}: the lock {error.reason}", "write the lock again, by uv"
        ) from error
    if lock.sha256 != environment.sha256:
        raise BadConfiguration(
            f"{path}: sha256 {lock.sha256}, the entry of the model has {environment.sha256}"
            f"{line_ends_differ(raw, environment.sha256)}",
            "restore the lock, or write its digest into the entry",
        )
    return lock
