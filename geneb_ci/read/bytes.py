"""Bytes of a file, or the reason why they cannot be a JSON text."""

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
        if path.is_symlink():
            return Fault(
                "irregular-file",
                (),
                "the file is a symbolic link",
                "a link",
                "a regular file",
                at=0,
            )
        raise NothingChecked(
            f"{path}: cannot be read: {error.strerror}", "check the path and its permissions"
        ) from error
    with open(handle, "rb", closefd=True) as stream:  # noqa: PTH123 (a descriptor has no Path)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            kind = stat.filemode(status.st_mode)[0]
            return Fault(
                "irregular-file",
                (),
                "this is not a regular file",
                f"type {kind!r}",
                "a regular file",
                at=0,
            )
        raw = stream.read(BYTES_MAX + 1)
    if len(raw) > BYTES_MAX:
        return Fault(
            "file-too-large",
            (),
            f"the file has {max(status.st_size, len(raw)):,} bytes; the limit is {BYTES_MAX:,}",
            f"{max(status.st_size, len(raw))} bytes",
            f"at most {BYTES_MAX} bytes",
            at=0,
        )
    return raw


def decode(raw: bytes) -> tuple[str, Fault | None]:
    """Decode UTF-8, giving the text that can be read further and what was wrong with the bytes.

    The text is empty when nothing after the fault can be trusted.
    """
    if not raw.strip():
        return "", Fault(
            "empty-file",
            (),
            "the file is empty",
            f"{len(raw)} bytes, all blank",
            "a JSON object",
            at=0,
        )
    if raw.startswith(_LFS):
        return "", Fault(
            "lfs-pointer",
            (),
            "this is a Git LFS pointer, not the submission",
            "a pointer file",
            "the JSON text itself",
            at=0,
        )
    for magic, what in _OTHER_FORMATS:
        if raw.startswith(magic):
            return "", _encoding(f"the file is {what}", what, 0)
    if b"\x00" in raw[:4]:
        return "", _encoding("the file is UTF-16 or UTF-32 text", "UTF-16 or UTF-32 text", 0)
    fault = None
    if raw.startswith(_BOM):
        fault = _encoding("the file begins with a byte order mark", "EF BB BF", 0)
        raw = raw[len(_BOM) :]
    try:
        return raw.decode("utf-8"), fault
    except UnicodeDecodeError as error:
        byte = f"byte 0x{raw[error.start]:02X} at offset {error.start}"
        place = len(raw[: error.start].decode("utf-8"))
        return "", _encoding(f"{byte} is not UTF-8", byte, place)


def _encoding(message: str, found: str, at: int) -> Fault:
    return Fault("wrong-encoding", (), message, found, "UTF-8 without a byte order mark", at=at)
