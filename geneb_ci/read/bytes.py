"""Bytes of a file, or the reason why they cannot be a JSON text."""

import errno
import os
import stat
from pathlib import Path

from geneb_ci.errors import NothingChecked
from geneb_ci.read.fault import Fault

# 300 cells with five seeds, digests and canonical scores take about 250 kB in format 1.1.
BYTES_MAX = 1_000_000

_LFS = b"version https://git-lfs.github.com/spec/"
_BOM = b"\xef\xbb\xbf"
_OTHER_FORMATS = (
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\xff\xfe", "UTF-16 or UTF-32 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"\x00\x00\xfe\xff", "UTF-32 text"),
)


def read_bytes(path: Path) -> bytes | Fault:
    """Read a regular file of at most `BYTES_MAX` bytes, never through a link and never waiting.

    Gives a Fault where the file itself is unfit; raises NothingChecked where it cannot be opened.
    """
    try:
        # O_NOFOLLOW refuses a link as the last part of the path; O_NONBLOCK keeps a FIFO from
        # holding us up.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return _irregular("the file is a symbolic link", "a link")
        raise _unreadable(path, error) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            kind = stat.filemode(status.st_mode)[0]
            return _irregular("this is not a regular file", f"type {kind!r}")
        # The descriptor stays ours: opening a folder raises without closing it.
        with os.fdopen(handle, "rb", closefd=False) as stream:
            raw = stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(handle)
    if len(raw) > BYTES_MAX:
        return too_large(max(status.st_size, len(raw)))
    return raw


def too_large(size: int) -> Fault:
    """Give the fault of a file of this many bytes, more than `BYTES_MAX`."""
    message = f"the file has {size:,} bytes; the limit is {BYTES_MAX:,}"
    expected = f"at most {BYTES_MAX} bytes"
    return Fault("file-too-large", (), message, f"{size} bytes", expected, at=0)


def _irregular(message: str, found: str) -> Fault:
    return Fault("irregular-file", (), message, found, "a regular file", at=0)


def _unreadable(path: Path, error: OSError) -> NothingChecked:
    return NothingChecked(
        f"{path}: cannot be read: {error.strerror}", "check the path and its permissions"
    )


def decode(raw: bytes) -> tuple[str, bool, tuple[Fault, ...]]:
    """Decode UTF-8: the text, whether it can be read further, and what was wrong with the bytes."""
    if not raw.strip():
        return "", False, (_blank(raw),)
    if raw.startswith(_LFS):
        return "", False, (_pointer(),)
    for magic, what in _OTHER_FORMATS:
        if raw.startswith(magic):
            return "", False, (_encoding(f"the file is {what}", what, 0),)
    if b"\x00" in raw[:4]:
        what = "UTF-16 or UTF-32 text"
        return "", False, (_encoding(f"the file is {what}", what, 0),)
    faults: tuple[Fault, ...] = ()
    skipped = 0
    if raw.startswith(_BOM):
        faults = (_encoding("the file begins with a byte order mark", "EF BB BF", 0),)
        skipped = len(_BOM)
    try:
        text = raw[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + skipped
        byte = f"byte 0x{raw[at]:02X} at offset {at}"
        place = len(raw[skipped:at].decode("utf-8"))
        # The text serves to tell line and column; what it says cannot be trusted.
        text = raw[skipped:].decode("utf-8", "replace")
        return text, False, (*faults, _encoding(f"{byte} is not UTF-8", byte, place))
    return text, True, faults


def _blank(raw: bytes) -> Fault:
    found = f"{len(raw)} bytes, all blank"
    return Fault("empty-file", (), "the file is empty", found, "a JSON object", at=0)


def _pointer() -> Fault:
    message = "this is a Git LFS pointer, not the submission"
    return Fault("lfs-pointer", (), message, "a pointer file", "the JSON text itself", at=0)


def _encoding(message: str, found: str, at: int) -> Fault:
    return Fault("wrong-encoding", (), message, found, "UTF-8 without a byte order mark", at=at)
