"""Files: bounded reads that never block, atomic writes, strict JSON, digests."""

import errno
import hashlib
import io
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from .recognition import BOM, TEXT_WITH_BOM, disguise_of

_KIND_BY_FILE_TYPE = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Names of what is not a regular file, by the file type that `os.stat` reports."""


class NotReadable(Exception):  # noqa: N818 (named after what is wrong with the file)
    """The file cannot be read.

    `reason` is the predicate of a sentence about the file; `missing` is true if it does not exist.
    """

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        """Store the reason, and whether the file does not exist."""
        super().__init__(reason)
        self.reason = reason
        self.missing = missing


class Irregular(NotReadable):
    """The file is not a regular file; `kind` is what it is instead, such as "a folder"."""

    def __init__(self, kind: str) -> None:
        """Store what the path is instead of a file."""
        super().__init__(f"is {kind}, not a regular file")
        self.kind = kind


LINK = "a symbolic link"
"""The `kind` of Irregular for a symbolic link that must not be followed."""


class TooLarge(NotReadable):
    """The file is larger than the limit; `size` is a lower bound of its size in bytes."""

    def __init__(self, size: int, limit: int) -> None:
        """Store the size, and make the reason from size and limit."""
        super().__init__(f"has {size:,} bytes; the limit is {limit:,}")
        self.size = size


_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags of opening: neither wait for the writer of a FIFO (O_NONBLOCK), nor acquire a terminal."""


def read_regular(path: Path, limit: int, *, links: bool = True) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes, without blocking.

    Links are followed unless `links` is false. Raise NotReadable.
    """
    try:
        handle = os.open(path, _OPEN_FLAGS if links else _OPEN_FLAGS | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        raise _not_readable_error(path, error, links=links) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Irregular(_file_kind(status.st_mode))
        raw = _descriptor_content(handle, status.st_size, limit)
    except OSError as error:
        raise NotReadable(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)
    if len(raw) > limit:
        raise TooLarge(max(status.st_size, len(raw)), limit)
    return raw


class Disguised(NotReadable):
    """The file is something else than the expected text file, such as a Git LFS pointer."""


def read_text(path: Path, limit: int, *, links: bool = True) -> bytes:
    """Return the bytes of a text file, such as JSON or TOML, as `read_regular` does.

    Raise NotReadable; its subclass Disguised, with what was found and what to do, if the bytes are
    recognised as something else, or begin with a byte order mark.
    """
    raw = read_regular(path, limit, links=links)
    disguise = disguise_of(raw) or (TEXT_WITH_BOM if raw.startswith(BOM) else None)
    if disguise is not None:
        raise Disguised(f"{disguise.predicate}: {disguise.fix}")
    return raw


def _descriptor_content(handle: int, size: int, limit: int) -> bytes:
    """Return the content of a file descriptor, at most one byte more than `limit`.

    `size` is the size that the system reports, which may be wrong. Allocating `limit` bytes would
    take longer than reading a submission.
    """
    pieces, byte_count = [], min(size, limit) + 1
    while byte_count and (piece := os.read(handle, byte_count)):
        pieces.append(piece)
        byte_count = min(max(size, io.DEFAULT_BUFFER_SIZE), limit + 1 - sum(map(len, pieces)))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def path_exists(path: Path | str) -> bool:
    """Whether anything exists at a path, including a broken link."""
    return os.path.lexists(path)


def _not_readable_error(path: Path, error: OSError | ValueError, *, links: bool) -> NotReadable:
    """Return the error to raise for an error of opening or reading a file."""
    if isinstance(error, ValueError):  # a NUL in the name
        return NotReadable("cannot be read: the name contains a NUL character")
    if error.errno == errno.ELOOP:
        return Irregular("a link to itself" if links else LINK)
    if error.errno == errno.ENXIO:  # sockets cannot be opened at all
        return Irregular("a socket")
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        if os.path.islink(path):  # noqa: PTH114 (never raises, whatever the path)
            return Irregular("a broken link")
        return NotReadable(f"cannot be read: {error.strerror}", missing=True)
    return NotReadable(f"cannot be read: {error.strerror}")


def _file_kind(mode: int) -> str:
    """Return what a path is by its mode, such as "a folder"."""
    return _KIND_BY_FILE_TYPE.get(stat.S_IFMT(mode), "a special file")


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, private: bool = True) -> None:
    """Write a file completely or not at all: under a temporary name, flushed to disk, then renamed.

    `write` is called with the open file. A file that is not private gets the permissions that the
    umask allows. Raise OSError.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123 (a descriptor has no Path)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def write_bytes(path: Path, *pieces: bytes | memoryview) -> None:
    """Write a file completely or not at all, from consecutive pieces, which are not copied.

    The parent folder is created. Raise OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda stream: stream.writelines(pieces), private=False)


DEPTH_MAX = 50
"""Nesting from which a JSON value is parsed again by pydantic, which has a limit; ours have six
levels."""
RECURSION_MAX = 1000
"""Python's default recursion limit. Under a higher one, json.loads could crash Python 3.11."""


def read_json(raw: bytes, *, values_max: int | None = None, is_own: bool = False) -> Any:
    """Return the value of a JSON text, the same as `pydantic_core.from_json` returns.

    The standard library parses it if both parsers agree, as importing pydantic takes 20 ms. They
    differ in escapes, which can be lone surrogates, and in deep values. With `is_own`, for texts
    written by this program, escapes may occur. Raise ValueError, also for a text of more than
    `values_max` values, which is not parsed.
    """
    # Each value but the first follows a comma, or begins a list or an object.
    if values_max is not None and sum(map(raw.count, (b",", b"[", b"{"))) >= values_max:
        raise ValueError(f"it may have more than {values_max:,} values, the limit")
    if (is_own or b"\\" not in raw) and sys.getrecursionlimit() <= RECURSION_MAX:
        try:
            value = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            pass
        else:
            if _is_flat(value):
                return value
    import pydantic_core

    return pydantic_core.from_json(raw)


_CONTAINER_TYPES = frozenset({dict, list})
"""Types of JSON values that contain others."""


def _is_flat(value: Any) -> bool:
    """Whether the depth of a value of `json.loads` is less than `DEPTH_MAX`."""
    level = [value] if type(value) in _CONTAINER_TYPES else []
    for _ in range(DEPTH_MAX):
        inner: list[Any] = []
        for parent in level:
            members = parent.values() if type(parent) is dict else parent
            inner += [member for member in members if type(member) in _CONTAINER_TYPES]
        if not inner:
            return True
        level = inner
    return False


def dumps(value: Any) -> bytes:
    """Return the bytes of a JSON document: members in their order, indented by one, no NaN."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def dumps_tables(value: Any) -> bytes:
    """Return the bytes of a JSON document as `dumps` does, but with a list of numbers on one line.

    Nested lists of numbers, such as confusion matrices, are on one line too. This makes a
    submission with all matrices a third as large, and small enough for `geneb-ci check`.
    """
    return f"{_table_json(value, 0)}\n".encode()


def _table_json(value: Any, depth: int) -> str:
    """Return a JSON value as text, with each list of numbers on one line."""
    if _is_table(value) or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if isinstance(value, dict):
        start, end = "{", "}"
        lines = [
            f"{json.dumps(key, ensure_ascii=False)}: {_table_json(member, depth + 1)}"
            for key, member in value.items()
        ]
    else:
        start, end = "[", "]"
        lines = [_table_json(member, depth + 1) for member in value]
    inner = "\n" + " " * (depth + 1)
    return f"{start}{inner}{f',{inner}'.join(lines)}\n{' ' * depth}{end}"


def _is_table(value: Any) -> bool:
    """Whether a value is a list of numbers, or of such lists."""
    return isinstance(value, list) and all(
        type(item) in {int, float} or _is_table(item) for item in value
    )


def member_at(value: object, *path: str) -> Any:
    """Return a member of a JSON value by its path of keys; None if it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def table_at(value: object, *path: str) -> dict[str, Any]:
    """Return an object in a JSON value by its path of keys; {} if missing or not an object."""
    table = member_at(value, *path)
    return table if isinstance(table, dict) else {}


def text_at(value: object, *path: str) -> str:
    """Return a string in a JSON value by its path of keys; "" if missing or not a string."""
    text = member_at(value, *path)
    return text if isinstance(text, str) else ""


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document completely or not at all."""
    write_bytes(path, dumps(value))


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, which is read in pieces to save memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def line_ends_of(raw: bytes, digest: str) -> str:
    """Return the line ends, "LF" or "CRLF", with which the bytes would have a SHA-256, else "".

    Git for Windows may write CRLF into files that have LF in the commit.
    """
    with_lf = raw.replace(b"\r\n", b"\n")
    bytes_by_line_ends = {"LF": with_lf, "CRLF": with_lf.replace(b"\n", b"\r\n")}
    return next(
        (ends for ends, converted in bytes_by_line_ends.items() if has_sha256(converted, digest)),
        "",
    )


def line_ends_clause(raw: bytes, digest: str) -> str:
    """Return a clause for a message if the bytes have the digest with other line ends, else ""."""
    ends = line_ends_of(raw, digest)
    return f"; only the line ends differ, expected {ends}: {LINE_ENDS_FIX}" if ends else ""


def file_line_ends_clause(path: Path, digest: str) -> str:
    """Return the clause of `line_ends_clause` for a file; "" for one too large to be text."""
    return line_ends_clause(path.read_bytes(), digest) if path.stat().st_size < TEXT_MAX else ""


TEXT_MAX = 20_000_000
"""Size in bytes from which a file is taken for weights, not text: a tokenizer.json has some MB."""
LINE_ENDS_FIX = (
    "git converts them in this clone: run `git config core.autocrlf false` and check the file out "
    "again, or write the file with those line ends"
)
"""Advice for a file whose digest differs because git changed its line ends."""


def has_sha256(raw: bytes, digest: str) -> bool:
    """Whether the SHA-256 of the bytes is `digest`, in hex."""
    return hashlib.sha256(raw).hexdigest() == digest


def blob_id(raw: bytes) -> str:
    """Return git's object id of these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def file_blob_id(path: Path) -> str:
    """Return git's object id of the bytes of a file, which is read in pieces."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
