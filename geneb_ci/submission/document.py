"""A parsed submission file: digest, value, position of every member, faults."""

import bisect
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb_ci.common.finding import Position
from geneb_ci.submission.bytes import decode, read_bytes
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.fault import Path as Pointer
from geneb_ci.submission.paths import located
from geneb_ci.submission.quick import quick_value
from geneb_ci.submission.scanner import UNUSABLE, Span, scan

WINDOW = 60  # characters of a code frame on either side of a place


@dataclass(frozen=True)
class Document:
    """One submission file, as far as it could be parsed.

    `name` is the file name in messages, `path` the absolute path. `value` is UNUSABLE if the file
    is not JSON; `sha256` is "" if it could not be read.
    """

    name: str
    path: Path
    sha256: str
    text: str
    value: Any
    spans: dict[Pointer, Span]
    faults: tuple[Fault, ...]

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def offset(self, fault: Fault) -> int:
        """Return the offset of a fault: its own, or that of the nearest existing ancestor."""
        if fault.at is not None:
            return fault.at
        path = fault.path
        on_key = fault.on_key
        while path and path not in self.spans:
            path, on_key = path[:-1], False
        if path not in self.spans:
            return 0
        span = self.spans[path]
        return span.key if on_key and span.key >= 0 else span.start

    def position(self, offset: int) -> Position:
        """Return the line and column, from 1, of an offset in code points."""
        line = bisect.bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def excerpt(self, line: int, column: int) -> tuple[str, int]:
        """Return the text around a position, and the column of the position in it, from 0."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        at = min(start + column - 1, end)
        left, right = max(start, at - WINDOW), min(end, at + WINDOW)
        return self.text[left:right], at - left


def read_document(path: Path, name: str | None = None, *, spans: bool = True) -> Document:
    """Return the document in a file; errors of encoding and JSON are in its `faults`.

    Raises NothingChecked when the file cannot be opened.
    """
    shown_name = str(path) if name is None else name
    return parse_document(read_bytes(path), located(path), shown_name, spans=spans)


def parse_document(raw: bytes | Fault, path: Path, name: str, *, spans: bool = True) -> Document:
    """Return the document in `raw`; if `raw` is a Fault, the document has no value.

    Without `spans` a document that has no fault is read quickly, and has no positions.
    """
    if isinstance(raw, Fault):
        return Document(name, path, "", "", UNUSABLE, {}, (raw,))
    digest = hashlib.sha256(raw).hexdigest()
    text, readable, faults = decode(raw)
    if not readable:
        return Document(name, path, digest, text, UNUSABLE, {}, faults)
    value = UNUSABLE if spans else quick_value(text)
    if value is not UNUSABLE:
        return Document(name, path, digest, text, value, {}, faults)
    result = scan(text)
    return Document(name, path, digest, text, result.value, result.spans, (*faults, *result.faults))
