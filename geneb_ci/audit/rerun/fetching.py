"""Downloads weights, unpacks untrusted tar archives, and installs the packages of a lock.

This phase has network access and runs no untrusted code. A download continues after an interruption
and is kept only if its digest is right. A model whose code needs other versions of packages than
the harness has a lock of these packages; all others are those of the harness.

Archives in POSIX.1-2001 (pax) or GNU format, plain or gzip, are read as a stream, and each step has
bounded memory and size. The reader of the standard library has no such bounds: it trusts the
lengths in the archive.
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
    DownloadKind,
    delivery_error,
    file_in_write_errors,
    finish_download,
    open_address,
    partial_path,
    require_complete_response,
)
from geneb_ci.common.errors import BadConfiguration, MachineFault, WeightsRefused
from geneb_ci.models.entry import Environment
from reference_harness.formats import package_lock
from reference_harness.formats.files import line_ends_clause
from reference_harness.formats.package_lock import (
    LOCK_BYTES_MAX,
    Lock,
    LockRefused,
    NotInstalled,
    read_lock,
)
from reference_harness.formats.text import Say, silent

TAR_BLOCK_BYTES = 512
"""Size of a block of a tar archive, in bytes: a header is one block, a content fills whole
blocks."""
EXTENDED_HEADER_BYTES_MAX = 1 << 16
"""Largest size of an extended header, in bytes: a path has at most 4,096."""
CHUNK_BYTES = 1 << 20
"""Number of bytes of a file that are read at once."""
GZIP_START = b"\x1f\x8b"
"""First bytes of a gzip file."""
FORMAT_BY_START = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"<": "a page",
}
"""Names of formats other than tar, by the first bytes of a file."""
_REGULAR_FILE_FLAGS = (b"0", b"\0", b"7")
"""Type flags of regular files in a tar header."""
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"
_EXTENDED_HEADER_FLAGS = (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK)
"""Type flags of extended headers, which describe the next header."""
_EXTENDED_HEADERS_MAX = 8
"""Largest number of extended headers of one file: programs write at most three."""


class BrokenArchiveError(Exception):
    """The bytes are not an archive, are damaged, or exceed a limit."""


class NotTarError(BrokenArchiveError):
    """The file is not a tar archive."""


class ArchiveMember(NamedTuple):
    """One member of an archive; its content has to be read before that of the next."""

    name: str
    size: int
    """Size of the content, in bytes."""
    is_file: bool
    source: "_LimitedReader"
    """Reader of the archive, at the start of the content."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces. Raises BrokenArchiveError if the archive ends too early."""
        bytes_left = self.size
        while bytes_left:
            chunk = self.source.read_exactly(min(bytes_left, CHUNK_BYTES))
            bytes_left -= len(chunk)
            yield chunk


class _LimitedReader:
    """Reader of a stream that raises BrokenArchiveError beyond a limit, or if bytes are missing."""

    def __init__(self, stream: io.BufferedIOBase, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self.bytes_read = 0

    def read_at_most(self, count: int) -> bytes:
        """Return `count` bytes, or fewer at the end of the stream."""
        if self.bytes_read + count > self._limit:
            raise BrokenArchiveError(f"the archive unpacks to more than {self._limit:,} bytes")
        chunks, bytes_left = [], count
        while bytes_left:
            try:
                chunk = self._stream.read(bytes_left)
            except (gzip.BadGzipFile, zlib.error) as error:
                raise BrokenArchiveError(f"the compression is damaged: {error}") from error
            if not chunk:
                break
            chunks.append(chunk)
            bytes_left -= len(chunk)
        content = b"".join(chunks)
        self.bytes_read += len(content)
        return content

    def read_exactly(self, count: int) -> bytes:
        """Return `count` bytes. Raises BrokenArchiveError if there are fewer."""
        content = self.read_at_most(count)
        if len(content) < count:
            raise BrokenArchiveError("the archive ends in the middle of a file")
        return content

    def skip(self, count: int) -> None:
        """Skip `count` bytes."""
        while count:
            count -= len(self.read_exactly(min(count, CHUNK_BYTES)))


def tar_members(stream: io.BufferedIOBase, limit: int) -> Iterator[ArchiveMember]:
    """Yield the members of an archive of at most `limit` unpacked bytes.

    Raises BrokenArchiveError if it is not a valid archive, and what reading the stream raises.
    """
    reader = _LimitedReader(_decompressed(stream), limit)
    header: dict[str, str] = {}
    header_count = 0
    while True:
        is_first = reader.bytes_read == 0
        block = reader.read_at_most(TAR_BLOCK_BYTES)
        if not block or not block.strip(b"\0"):
            return
        if len(block) < TAR_BLOCK_BYTES or not _is_tar_header(block):
            if is_first and len(block) == TAR_BLOCK_BYTES:
                raise NotTarError(_other_format_text(block))
            raise BrokenArchiveError("the archive is damaged")
        size, type_flag = _header_number(block[124:136]), block[156:157]
        if type_flag in _EXTENDED_HEADER_FLAGS:
            header_count += 1
            if size > EXTENDED_HEADER_BYTES_MAX or header_count > _EXTENDED_HEADERS_MAX:
                raise BrokenArchiveError(
                    "the extended headers of a file are longer than any path, or too many"
                )
            content = reader.read_exactly(size)
            reader.skip(-size % TAR_BLOCK_BYTES)
            if type_flag != _PAX_GLOBAL:
                header |= _extended_fields(type_flag, content)
            continue
        if "size" in header:
            size = _size_in_extended_header(header["size"])
        path = header.get("path") or _header_path(block)
        content_start = reader.bytes_read
        yield ArchiveMember(path.removeprefix("./"), size, type_flag in _REGULAR_FILE_FLAGS, reader)
        reader.skip(content_start + size + (-size % TAR_BLOCK_BYTES) - reader.bytes_read)
        header, header_count = {}, 0


def _decompressed(stream: io.BufferedIOBase) -> io.BufferedIOBase:
    """Return the stream of an archive, decompressed if the archive is gzip."""
    buffered = io.BufferedReader(stream)
    return gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == GZIP_START else buffered


def _extended_fields(type_flag: bytes, content: bytes) -> dict[str, str]:
    """Return the path and the size of a file that an extended header states, by name."""
    if type_flag == _LONG_LINK:
        return {}
    if type_flag == _LONG_NAME:
        return {"path": content.rstrip(b"\0").decode("utf-8", "replace")}
    fields = {}
    while content:
        match = re.match(rb"(\d{1,8}) ([^=\n]{1,200})=", content)
        length = int(match[1]) if match else 0
        if match is None or not match.end() < length <= len(content):
            raise BrokenArchiveError("an extended header is damaged")
        field, text = match[2].decode("ascii", "replace"), content[match.end() : length - 1]
        if field in {"path", "size"}:
            fields[field] = text.decode("utf-8", "replace")
        elif field.startswith("GNU.sparse"):
            raise BrokenArchiveError("the archive contains sparse files")
        content = content[length:]
    return fields


def _is_tar_header(block: bytes) -> bool:
    """Whether a block contains the checksum of a tar header."""
    try:
        return _header_checksum(block) == _header_number(block[148:156])
    except BrokenArchiveError:
        return False


def _other_format_text(block: bytes) -> str:
    """Return the type of a file that is no tar archive, as a sentence."""
    formats = (name for start, name in FORMAT_BY_START.items() if block.startswith(start))
    return f"the file is {next(formats, 'of another type')}, expected a tar archive, plain or gzip"


def _header_checksum(block: bytes) -> int:
    """Return the sum of a header's bytes, with the bytes of the checksum itself read as spaces."""
    return sum(block[:148]) + sum(b" " * 8) + sum(block[156:])


def _header_number(field: bytes) -> int:
    """Return a number in a tar header, written as octal digits or binary after the byte 0x80."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ") or b"0"
    if not re.fullmatch(rb"[0-7]+", digits):
        raise BrokenArchiveError("a number in a header is damaged")
    return int(digits, 8)


def _size_in_extended_header(digits: str) -> int:
    """Return the size of a file, in bytes, from the decimal digits in an extended header."""
    if not re.fullmatch(r"[0-9]{1,20}", digits):
        raise BrokenArchiveError("the size in an extended header is damaged")
    return int(digits)


def _header_path(block: bytes) -> str:
    """Return the path in a tar header, which has folder and name in separate fields."""
    path, folder = (part.partition(b"\0")[0] for part in (block[:100], block[345:500]))
    is_posix = block[257:263] == b"ustar\0"
    return (folder + b"/" + path if is_posix and folder else path).decode("utf-8", "replace")


ARCHIVE_FIX = (
    "correct the entry of the model registry, or fetch the files by hand and name their folder: "
    "--weights DIR"
)
UNPACKED_BYTES_MAX = 1 << 36
"""Largest size of an unpacked archive, in bytes, since a few bytes can unpack to any number."""
WEIGHTS_DOWNLOAD = DownloadKind(
    not_served=WeightsRefused,
    wrong_content=WeightsRefused,
    folder_option="--weights DIR",
    changed_fix="the file was changed since it was pinned: audit another submission, or "
    "correct the entry of the model registry",
)


def download_members(address: str, members: Mapping[str, Path], sha256: Mapping[str, str]) -> None:
    """Download a tar archive, and write some of its files.

    `members` maps the path of a member in the archive to that on the disk, `sha256` to its digest.
    The archive itself is not stored, so its download restarts after an interruption. Raises
    WeightsRefused for a member that is missing, not a regular file, or has another digest, and for
    an archive that the server does not deliver.
    """
    missing_members = dict(members)
    with open_address(address, 0, WEIGHTS_DOWNLOAD) as response:
        try:
            for member in tar_members(response, UNPACKED_BYTES_MAX):
                if member.name not in missing_members:
                    continue
                if not member.is_file:
                    raise WeightsRefused(
                        f"{address}: {member.name} is a link or a folder, expected a regular file",
                        "correct the entry of the model registry",
                    )
                path = missing_members.pop(member.name)
                partial_file = partial_path(path, WEIGHTS_DOWNLOAD)
                with (
                    file_in_write_errors(partial_file, WEIGHTS_DOWNLOAD),
                    partial_file.open("wb") as stream,
                ):
                    for chunk in member.chunks():
                        stream.write(chunk)
                finish_download(
                    partial_file,
                    path,
                    sha256[member.name],
                    f"{address}#{member.name}",
                    WEIGHTS_DOWNLOAD,
                )
                if not missing_members:
                    return
            require_complete_response(response)
        except NotTarError as error:
            raise WeightsRefused(f"{address}: {error}", ARCHIVE_FIX) from error
        except BrokenArchiveError as error:
            raise delivery_error(address, error, WEIGHTS_DOWNLOAD) from error
        except (OSError, EOFError, http.client.HTTPException) as error:
            raise delivery_error(address, error, WEIGHTS_DOWNLOAD) from error
    raise WeightsRefused(
        f"{address}: the archive does not contain {min(missing_members)}",
        "correct `archive` or `folder` of the entry in the model registry",
    )


ENVIRONMENTS_FOLDER = "environments"
"""Name of the folder of locks in the policy folder, and of installed packages in the cache."""


class InstalledPackages(NamedTuple):
    """The installed packages of one lock."""

    folder: Path
    lock_sha256: str
    """Digest of the lock that names the packages and their versions."""

    def versions(self) -> dict[str, str]:
        """Return the version of each distribution, by its name in lower case with hyphens."""
        distributions = importlib.metadata.distributions(path=[str(self.folder)])
        return {
            re.sub(r"[-_.]+", "-", distribution.name).lower(): distribution.version
            for distribution in distributions
        }


def install_lock(lock: Lock, say: Say = silent, cache: Path | None = None) -> InstalledPackages:
    """Install the packages of a lock below `cache`, unless this was done before; return them.

    `say` gets a line of progress. Raises MachineFault if they cannot be installed.
    """
    try:
        folder = package_lock.install(lock, cache or cache_folder(ENVIRONMENTS_FOLDER), say)
    except NotInstalled as error:
        raise MachineFault(error.reason, error.fix) from error
    return InstalledPackages(folder, lock.sha256)


def require_python(environment: Environment) -> None:
    """Raise AuditRefused if an entry of the model registry needs another version of Python."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if environment.python not in {None, version}:
        raise AuditRefused(
            f"the model needs Python {environment.python}, but geneb-ci runs in Python {version}",
            f"install geneb-ci for Python {environment.python} and run the command again",
        )


def entry_lock(environment: Environment, policy_folder: Path) -> Lock:
    """Return the lock that an entry of the model registry names.

    Raises BadConfiguration for a lock that is missing, malformed, or not the lock of the entry.
    """
    path = policy_folder / ENVIRONMENTS_FOLDER / environment.lock
    raw = policy_bytes(path, LOCK_BYTES_MAX)
    try:
        lock = read_lock(raw, path.name)
    except LockRefused as error:
        raise BadConfiguration(
            f"{path}:{error.line}: the lock {error.reason}", "write the lock again with uv"
        ) from error
    if lock.sha256 != environment.sha256:
        raise BadConfiguration(
            f"{path}: sha256 {lock.sha256}, expected {environment.sha256} by the model's entry"
            f"{line_ends_clause(raw, environment.sha256)}",
            "restore the lock, or write its digest into the model's entry",
        )
    return lock
