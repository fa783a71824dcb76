"""Bytes of a regular file of bounded size: whatever lies at a path, reading it ends."""

import errno
import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotReadable(Exception):  # noqa: N818 (named after what is wrong with the file)
    """There are no bytes to be had.

    `reason` completes a sentence about the file; `missing` says that nothing lies there.
    """

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.missing = missing


class Irregular(NotReadable):
    """Something else than a regular file lies there; `kind` names it, "a folder"."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"is {kind}, not a regular file")
        self.kind = kind


LINK = "a symbolic link"


class TooLarge(NotReadable):
    """The file has more bytes than allowed; `size` is what is known of how many."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"has {size:,} bytes; the limit is {limit:,}")
        self.size = size


def read_regular(path: Path, limit: int, *, links: bool = True) -> bytes:
    """Read a regular file of at most `limit` bytes, without ever waiting for a writer.

    Links are followed unless `links` is false. Raises NotReadable.
    """
    # O_NONBLOCK keeps a FIFO from holding us up, O_NOCTTY a terminal from becoming ours.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        handle = os.open(path, flags if links else flags | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        raise _refusal(path, error, links=links) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Irregular(_kind(status.st_mode))
        # The descriptor stays ours: opening a folder raises without closing it.
        with os.fdopen(handle, "rb", closefd=False) as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        raise NotReadable(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)
    if len(raw) > limit:
        raise TooLarge(max(status.st_size, len(raw)), limit)
    return raw


def lies_there(path: Path) -> bool:
    """Whether anything lies at a path, were it a link that leads nowhere."""
    try:
        path.lstat()
    except (OSError, ValueError):
        return False
    return True


def _refusal(path: Path, error: OSError | ValueError, *, links: bool) -> NotReadable:
    if isinstance(error, ValueError):  # a NUL in the name
        return NotReadable("cannot be read: no file can have this name")
    if error.errno == errno.ELOOP:
        return Irregular("a link that leads to itself" if links else LINK)
    if error.errno == errno.ENXIO:  # sockets cannot be opened at all
        return Irregular("a socket")
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        if os.path.islink(path):  # noqa: PTH114 (never raises, whatever the path)
            return Irregular("a link that leads nowhere")
        return NotReadable(f"cannot be read: {error.strerror}", missing=True)
    return NotReadable(f"cannot be read: {error.strerror}")


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "a special file")
