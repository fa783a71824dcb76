"""Files that are either the old ones or the new ones, never half of each."""

import errno
import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


def write_bytes(path: Path, *pieces: bytes | memoryview) -> None:
    """Replace a file in one step: a reader, or a run killed at any moment, sees no half of it.

    The pieces follow each other in the file; none is copied.

    Raises OSError when the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            for piece in pieces:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)  # mkstemp gives 0600, which a shared folder cannot use
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_bounded(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes: a pipe or a device never holds the run up.

    Raises OSError for anything else.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            raw = stream.read(limit + 1)
    finally:
        os.close(handle)
    if len(raw) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes")
    return raw


def dumps(value: Any) -> bytes:
    """Return the bytes of a JSON document: sorted by nothing, indented by one, no NaN."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def dumps_tables(value: Any) -> bytes:
    """Return the bytes of a JSON document as `dumps` does, with each list of numbers on one line.

    So are lists of such lists, as confusion matrices are: a submission with all of them is a third
    as large, and stays within what `geneb-ci check` reads.
    """
    return f"{_with_tables(value, 0)}\n".encode()


def _with_tables(value: Any, depth: int) -> str:
    if _is_table(value) or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if isinstance(value, dict):
        start, end = "{", "}"
        lines = [
            f"{json.dumps(key, ensure_ascii=False)}: {_with_tables(one, depth + 1)}"
            for key, one in value.items()
        ]
    else:
        start, end = "[", "]"
        lines = [_with_tables(one, depth + 1) for one in value]
    inner = "\n" + " " * (depth + 1)
    return f"{start}{inner}{f',{inner}'.join(lines)}\n{' ' * depth}{end}"


def _is_table(value: Any) -> bool:
    """Whether a value is a list of numbers, or of such lists."""
    return isinstance(value, list) and all(
        type(one) in {int, float} or _is_table(one) for one in value
    )


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document in one step."""
    write_bytes(path, dumps(value))


def sha256(path: Path) -> str:
    """Return the sha256 of a file, read piece by piece."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def git_blob(path: Path) -> str:
    """Return git's name of a file's bytes, read piece by piece."""
    named = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            named.update(piece)
    return named.hexdigest()
