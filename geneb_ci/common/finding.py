"""Findings: what a check reports about a submission, where, and how to fix it."""

import enum
import json
import math
import re
from dataclasses import dataclass
from typing import NamedTuple

SHOWN_MAX = 80  # characters of contributor text in one message


class Severity(enum.StrEnum):
    """Severity of a finding; only errors fail a submission."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Position(NamedTuple):
    """Position in a text: line and column, both from 1; the column counts code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, with the content that every output format shows.

    `pointer` is a JSON Pointer (RFC 6901), "" for the whole document. `found` and `expected` are
    short texts, safe to print: contributor text in them is JSON-escaped ASCII.
    """

    rule: str
    severity: Severity
    message: str
    file: str
    pointer: str
    line: int
    column: int
    found: str
    expected: str
    fix: str
    score: float = 0.0
    """How unusual it is, from 1 at the rule's threshold to 10; 0 if the rule has no measure."""

    def sort_key(self) -> tuple[str, int, int, str, str, str]:
        """Sort key of reports: by position, then by rule, so that output is deterministic."""
        return (self.file, self.line, self.column, self.pointer, self.rule, self.message)


HIDING = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u2028\u2029"  # line ends that only some programs recognise
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reorder what is shown
    "\u00ad\u034f\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"  # are not shown
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # neither are marks and tags
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters that are blank
    "]"
)
"""Characters that hide or reorder text: refused in a submission, escaped in what is printed."""


def quoted(value: object) -> str:
    """Return untrusted data as one line of JSON in ASCII, cut to SHOWN_MAX characters."""
    text = json.dumps(value, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    if len(text) <= SHOWN_MAX:
        return text
    return f"{text[: SHOWN_MAX - 3]}..."


def first_and_more(items: list[str], limit: int = 5) -> str:
    """Return the first items and the number of the others: "a, b and 3 more"."""
    if len(items) <= limit:
        return ", ".join(items)
    return f"{', '.join(items[:limit])} and {len(items) - limit} more"


def percent(share: float) -> str:
    """Return a share as "12 %"; only all is "100 %", and only none "0 %"."""
    shown = f"{100 * share:.0f}"
    if shown == "100" and share < 1:
        return f"{math.floor(1000 * share) / 10} %"
    if shown == "0" and share > 0:
        return f"{math.ceil(1000 * share) / 10} %"
    return f"{shown} %"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: "1 cell", "2,000 cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
