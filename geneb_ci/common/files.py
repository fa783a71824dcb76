"""Reads bounded regular files, never blocking on pipes; sound JSON; writes whole files.

Where there are many, `in_processes` divides the work.
"""

import array
import bisect
import errno
import io
import json
import math
import operator
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from geneb_ci.common.errors import unwritable

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotReadable(Exception):  # noqa: N818 (named after what is wrong with the file)
    """The file cannot be read.

    `reason` is the predicate of a sentence about the file; `missing` is true if it does not exist.
    """

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.missing = missing


class Irregular(NotReadable):
    """It is not a regular file; `kind` says what it is, such as "a folder"."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"is {kind}, not a regular file")
        self.kind = kind


LINK = "a symbolic link"


class TooLarge(NotReadable):
    """The file is larger than the limit; `size` is a lower bound of its size in bytes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"has {size:,} bytes; the limit is {limit:,}")
        self.size = size


# O_NONBLOCK: do not wait for the writer of a FIFO. O_NOCTTY: do not acquire a terminal.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_regular(path: Path, limit: int, *, links: bool = True) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes, without blocking.

    Links are followed unless `links` is false. Raises NotReadable.
    """
    try:
        handle = os.open(path, _FLAGS if links else _FLAGS | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        raise _refusal(path, error, links=links) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Irregular(_kind(status.st_mode))
        raw = _content(handle, status.st_size, limit)
    except OSError as error:
        raise NotReadable(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)
    if len(raw) > limit:
        raise TooLarge(max(status.st_size, len(raw)), limit)
    return raw


def _content(handle: int, size: int, limit: int) -> bytes:
    """Return what a descriptor has, at most a byte more than `limit`.

    `size` is what the system says, which may be wrong. A buffer for `limit` would take twice as
    long to make as a submission takes to read.
    """
    found, want = [], min(size, limit) + 1
    while want and (part := os.read(handle, want)):
        found.append(part)
        want = min(max(size, io.DEFAULT_BUFFER_SIZE), limit + 1 - sum(map(len, found)))
    return found[0] if len(found) == 1 else b"".join(found)


def lies_there(path: Path | str) -> bool:
    """Whether anything exists at a path, including a broken link."""
    return os.path.lexists(path)


def _refusal(path: Path, error: OSError | ValueError, *, links: bool) -> NotReadable:
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


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file, whole or not at all: under a temporary name, flushed to disk, then renamed.

    `write` gets the open file. Raises OSError.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123 (a descriptor has no Path)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, each whole or not at all: under a temporary name, then renamed.

    A file that has these bytes already is left as it is.
    Raises UsageProblem where another folder helps, MachineFault where the disk is full or fails.
    """
    staged: dict[str, str] = {}

    def stage(name: str) -> None:
        handle, staged[name] = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        with open(handle, "wb") as stream:  # noqa: PTH123 (a descriptor has no Path)
            os.fchmod(handle, MODE)
            stream.write(files[name])
            stream.flush()
            os.fsync(handle)

    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = [name for name, content in files.items() if not _has(f"{folder}/{name}", content)]
        if len(changed) < WRITERS:
            for name in changed:
                stage(name)
        else:
            from concurrent.futures import ThreadPoolExecutor  # 10 ms that few files do not need

            with ThreadPoolExecutor(WRITERS) as pool:
                for _ in pool.map(stage, changed):
                    pass
        for name in changed:
            os.replace(staged[name], f"{folder}/{name}")  # noqa: PTH105 (paths of many files)
            del staged[name]
    except OSError as error:
        raise unwritable(str(folder), error, "name a folder that you may write to") from error
    finally:
        for temporary in staged.values():
            Path(temporary).unlink(missing_ok=True)


WRITERS = 8
"""Files that are flushed at once: a disk takes eight in little more time than one."""


def _has(path: str, content: bytes) -> bool:
    """Whether a regular file, no link, has these bytes and may be read by everybody."""
    try:
        status = os.lstat(path)
        is_like = stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == MODE
        if not is_like or status.st_size != len(content):
            return False
        return read_regular(Path(path), len(content), links=False) == content
    except (OSError, NotReadable):
        return False


MODE = 0o644
"""Of files that are published."""


DEPTH_MAX = 50
"""Deeper values are left to the stricter parser, which has a limit of its own; ours have six."""
RECURSION_MAX = 1000
"""The interpreter's own limit. Where a library has raised it, the standard library's parser has no
limit of depth, and ends the process of Python 3.11."""


def read_json(raw: bytes, *, values_max: int | None = None, own: bool = False) -> Any:
    """Return the value of a JSON text, as `pydantic_core.from_json` does.

    That parser, which takes 20 ms to import, reads what the standard library refuses, and what the
    two read differently: escapes, which can be lone surrogates, and deep values. Where this program
    wrote the text, `own`, escapes are read by either.
    Raises ValueError, for a text of more than `values_max` values before it is parsed.
    """
    # Each value but the first follows a comma, or is the first of a list or an object.
    if values_max is not None and sum(map(raw.count, (b",", b"[", b"{"))) >= values_max:
        raise ValueError(f"it may have more than {values_max:,} values")
    if (own or b"\\" not in raw) and sys.getrecursionlimit() <= RECURSION_MAX:
        try:
            value = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            pass
        else:
            if _is_flat(value):
                return value
    import pydantic_core

    return pydantic_core.from_json(raw)


One = TypeVar("One")
Made = TypeVar("Made")
_forked: list[Callable[[Any], Any]] = []
"""In a process that was forked, what it does: last of all, where that one forked, too."""


def in_processes(
    work: Callable[[One], Made], items: Sequence[One], jobs: int, chunk: int
) -> Iterator[Made]:
    """Yield what `work` makes of each item, in their order, by `jobs` processes.

    Items and results are pickled, `chunk` at once; `work` is not. With one job, without fork, or
    where a process is killed, this process goes on alone.
    """
    done = 0
    if jobs > 1:
        import multiprocessing  # 30 ms that one process does not need
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        if "fork" in multiprocessing.get_all_start_methods():
            fork = multiprocessing.get_context("fork")
            try:
                with ProcessPoolExecutor(jobs, fork, _begin, (work, os.getpid())) as pool:
                    for made in pool.map(_work, items, chunksize=chunk):
                        yield made
                        done += 1
            except BrokenProcessPool:
                pass
    yield from map(work, items[done:])


MANY_FILES = 100
"""Files from which several processes are quicker than one: less than a second of work."""
JOBS_MAX = 16


def jobs_for(files: int) -> int:
    """Return how many processes work on so many files."""
    if files < MANY_FILES:
        return 1
    known = hasattr(os, "sched_getaffinity")
    return min(JOBS_MAX, len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1)


PARENT_SECONDS = 1.0
"""How long a process goes on after the one that started it was killed."""


def _begin(work: Callable[[Any], Any], parent: int) -> None:
    """Make this process work, and end soon after its parent: one that is killed cannot tell it."""
    import threading

    _forked.append(work)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(item: Any) -> Any:
    return _forked[-1](item)


_NESTING = frozenset({dict, list})


def _is_flat(value: Any) -> bool:
    """Whether a value of `json.loads`, which has no subclasses, is less deep than `DEPTH_MAX`."""
    level = [value] if type(value) in _NESTING else []
    for _ in range(DEPTH_MAX):
        inner: list[Any] = []
        for one in level:
            members = one.values() if type(one) is dict else one
            inner += [each for each in members if type(each) in _NESTING]
        if not inner:
            return True
        level = inner
    return False


_JSON = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    separators=(",", ":"),
    default=operator.methodcaller("plain"),
)


def json_text(value: Any) -> bytes:
    """Return a value as compact JSON in UTF-8, without NaN.

    What has a method `plain` is written as the value that it gives. Raises ValueError.
    """
    return _JSON.encode(value).encode()


def object_text(members: Iterable[tuple[str, Iterable[Any]]]) -> Iterator[Any]:
    """Yield the text of an object piece by piece: the whole is joined once."""
    comma = b"{"
    for key, pieces in members:
        yield comma + json_text(key) + b":"
        yield from pieces
        comma = b","
    yield b"}" if comma == b"," else b"{}"


SMALL, LARGE = 1e-4, 1e15
"""Nearer to 0, numbers are written otherwise by Python and by pydantic, which is far quicker; from
the other on, both write exponents."""


def is_simple(numbers: Iterable[float], most: float = 1.0) -> bool:
    """Whether none is farther from 0 than `most`, and Python and pydantic write the same of each.

    `most` is at most `LARGE`. An array is looked at as a whole where numpy is at work anyway.
    """
    if isinstance(numbers, array.array) and sys.modules.get("numpy") is not None:
        import numpy as np

        sizes = np.abs(np.array(numbers))
        return bool(((sizes <= most) & ((sizes >= SMALL) | (sizes == 0))).all())
    ordered = sorted(numbers)
    if not ordered:
        return True
    near = ordered[bisect.bisect_right(ordered, -SMALL) : bisect.bisect_left(ordered, SMALL)]
    is_within = ordered[0] >= -most and ordered[-1] <= most and math.isfinite(sum(ordered))
    return is_within and not any(near)


def numbers_text(values: Sequence[float | None]) -> bytes:
    """Return the text of a list of numbers, truth values or None, as `json_text` does.

    It takes a tenth of the time where all are simple. Raises ValueError.
    """
    if not is_simple(filter(None, values), LARGE):
        return json_text(values)
    import pydantic_core

    return pydantic_core.to_json(values)
