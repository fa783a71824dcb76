"""Reads and decodes a submission file, or explains why it cannot be JSON."""

from pathlib import Path

from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.regular import LINK, Irregular, NotReadable, TooLarge, read_regular
from geneb_ci.submission.fault import Fault

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
    """Return the bytes of a regular file of at most `BYTES_MAX` bytes; links are not followed.

    Returns a Fault if it is not such a file. Raises NothingChecked if it cannot be opened.
    """
    try:
        return read_regular(path, BYTES_MAX, links=False)
    except Irregular as error:
        is_link = error.kind == LINK
        message = f"the file is {LINK}" if is_link else "this is not a regular file"
        return Fault("irregular-file", (), message, error.kind, "a regular file", at=0)
    except TooLarge as error:
        return too_large(error.size)
    except NotReadable as error:
        raise NothingChecked(
            f"{path}: {error.reason}", "check the path and its permissions"
        ) from error


def too_large(size: int) -> Fault:
    """Return the fault for a file of `size` bytes, more than `BYTES_MAX`."""
    message = f"the file has {size:,} bytes; the limit is {BYTES_MAX:,}"
    expected = f"at most {BYTES_MAX} bytes"
    return Fault("file-too-large", (), message, f"{size} bytes", expected, at=0)


def decode(raw: bytes) -> tuple[str, bool, tuple[Fault, ...]]:
    """Decode UTF-8. Return the text, whether it can be parsed, and faults of the encoding."""
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
        # The text is only used to compute line and column.
        text = raw[skipped:].decode("utf-8", "replace")
        return text, False, (*faults, _encoding(f"{byte} is not UTF-8", byte, place))
    return text, True, faults


def _blank(raw: bytes) -> Fault:
    found = f"{len(raw)} bytes, all whitespace"
    return Fault("empty-file", (), "the file is empty", found, "a JSON object", at=0)


def _pointer() -> Fault:
    message = "this is a Git LFS pointer, not the submission"
    return Fault("lfs-pointer", (), message, "a pointer file", "the JSON file itself", at=0)


def _encoding(message: str, found: str, at: int) -> Fault:
    return Fault("wrong-encoding", (), message, found, "UTF-8 without a byte order mark", at=at)
