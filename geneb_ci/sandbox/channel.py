"""Output of a sandbox: a checked matrix of numbers, and printed text made safe to show."""

import re
import struct
from typing import TYPE_CHECKING

from geneb_ci.common.errors import ResultRefused
from geneb_ci.sandbox.limits import MIB, Limits

if TYPE_CHECKING:
    import numpy as np


ATTEMPT = "attempt: "
"""Start of the worker's lines about what foreign code attempted; any code inside can print one."""
EVENT = re.compile(r"[A-Za-z_]{1,20}(\.[A-Za-z_]{1,20}){0,3}", re.ASCII)
"""Form of an event's name, so that a forged line cannot put other text into a record."""
EVENTS_MAX = 40
LINE_MAX = 400  # characters of a line shown
LINES_MAX = 200  # last lines kept


def visible_log(raw: bytes) -> str:
    """Return the last lines of a log, each after a bar, with every character visible.

    The bar keeps a line from being read as a command by the runner of GitHub Actions, which looks
    for `::` at its start; `##[`, which it looks for anywhere, is broken up.
    """
    lines = raw.decode("utf-8", "backslashreplace").splitlines()[-LINES_MAX:]
    return "\n".join(f"| {_visible(line)}" for line in lines)


def last_line(raw: bytes) -> str:
    """Return the last line that is not empty and not about an attempt."""
    lines = [line for line in raw.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(ATTEMPT)]
    return _visible(said[-1]) if said else ""


def attempts(raw: bytes) -> list[str]:
    """Return the attempts that were noted, sorted, each once."""
    lines = raw.decode("utf-8", "backslashreplace").splitlines()
    found = {line.removeprefix(ATTEMPT) for line in lines if line.startswith(ATTEMPT)}
    return sorted(one for one in found if EVENT.fullmatch(one))[:EVENTS_MAX]


def _visible(line: str) -> str:
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line[:LINE_MAX])
    return printable.replace("##[", r"\x23#[")


MAGIC = b"GENEBEMB"
VERSION = 1
HEADER = struct.Struct("<8sHHIQQ")
DTYPES = {2: "<f2", 4: "<f4", 8: "<f8"}

_FAMILIAR = {
    b"\x80": "a pickle, which is never opened",
    b"\x93NUMPY": "a .npy file, which is never opened",
    b"PK": "a zip archive, which is never opened",
}
_ADVICE = "an extractor returns its embeddings, and writes to no descriptor"


class Receiver:
    """Takes the bytes of one result; `feed` raises as soon as they cannot become one."""

    def __init__(self, rows: int, limits: Limits) -> None:
        self._rows = rows
        self._limits = limits
        self._data = bytearray()
        self._expected = HEADER.size
        self._shape: tuple[int, int, int] | None = None

    def feed(self, piece: bytes) -> None:
        """Take some bytes. Raises ResultRefused."""
        self._data += piece
        if self._shape is None and len(self._data) >= HEADER.size:
            self._shape = self._read_header()
            rows, width, size = self._shape
            self._expected = HEADER.size + rows * width * size
        if self._shape is not None and len(self._data) > self._expected:
            raise _refused(
                f"the result has more than the {self._expected:,} bytes that its header announces"
            )

    def finish(self) -> "np.ndarray":
        """Return the (n, d) matrix once the stream has ended. Raises ResultRefused."""
        import numpy as np  # noqa: PLC0415 (slow to import, and only needed here)

        if self._shape is None or len(self._data) < self._expected:
            what = _what(bytes(self._data[:8]))
            raise _refused(
                f"the result ended after {len(self._data):,} of {self._expected:,} bytes{what}"
            )
        rows, width, size = self._shape
        values = np.frombuffer(self._data, dtype=DTYPES[size], offset=HEADER.size)
        values = values.reshape(rows, width)
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            first = int(np.flatnonzero(~finite)[0])
            raise _refused(
                f"row {first} and {int((~finite).sum()) - 1} others contain NaN or infinity"
            )
        return values

    def _read_header(self) -> tuple[int, int, int]:
        magic, version, size, reserved, rows, width = HEADER.unpack_from(self._data)
        if magic != MAGIC:
            raise _refused(f"the result begins with {magic!r}, not {MAGIC!r}{_what(magic)}")
        if version != VERSION or reserved != 0 or size not in DTYPES:
            raise _refused(
                f"header of version {version} with numbers of {size} bytes, "
                f"expected version {VERSION} with 2, 4 or 8"
            )
        if rows != self._rows:
            raise _refused(f"{rows:,} rows, expected {self._rows:,}: one a sequence")
        if not 1 <= width <= self._limits.width:
            raise _refused(f"rows of width {width:,}, expected 1 to {self._limits.width:,}")
        most = self._limits.result_mib * MIB
        if rows * width * size > most:
            raise _refused(
                f"a matrix of {rows * width * size:,} bytes, more than the {most:,} allowed"
            )
        return rows, width, size


def _what(start: bytes) -> str:
    for magic, what in _FAMILIAR.items():
        if start.startswith(magic):
            return f" ({what})"
    return ""


def _refused(message: str) -> ResultRefused:
    return ResultRefused(message, _ADVICE)
