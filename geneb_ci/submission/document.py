"""A parsed submission file: digest, value, position of every member, faults.

`quick_value` parses texts without faults 50 times as fast as the scanner, which reads all others.
"""

import bisect
import functools
import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from geneb_ci.common.finding import HIDING, Fault, KeyPath, Position
from geneb_ci.submission.reading import decode, located, read_bytes
from geneb_ci.submission.scanner import (
    DEPTH_MAX,
    KEY_CHARS_MAX,
    NUMBERS_MAX,
    VALUES_MAX,
    Span,
    after_blank,
    member_key,
    scan,
)
from geneb_ci.submission.tokens import NUMBER_CHARS_MAX, UNUSABLE
from reference_harness.formats.files import text_at
from reference_harness.formats.submission_terms import ENTRY_MEMBER

_INFINITE = (math.inf, -math.inf)
_NONZERO = re.compile(r"[^eE]*[1-9]")


class _Doubtful(Exception):  # noqa: N818 (leaves the text to the scanner, not an error)
    """The text may have a fault, which only the scanner can report."""


def quick_value(text: str) -> Any:
    """Return the value of a JSON text without faults, else UNUSABLE.

    It is also UNUSABLE for a text with escapes, or with characters that may hide text.
    """
    classes = text.encode("utf-8", "surrogatepass").translate(_CHARACTER_CLASSES, _BLANKS)
    if "\\" in text or (_CONTROL in classes if text.isascii() else HIDING.search(text)):
        return UNUSABLE
    try:
        value = _PLAIN.decode(text)
        if not _is_plain(classes, members := _Members.of(value)):
            value = _DECODER.decode(text)
    except (ValueError, RecursionError, _Doubtful):
        return UNUSABLE
    return value if members.is_within_limits else UNUSABLE


def _checked_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises _Doubtful for a repeated or a long key."""
    members = dict(pairs)
    if len(members) != len(pairs) or any(len(key) > KEY_CHARS_MAX for key in members):
        raise _Doubtful
    return members


def _checked_float(token: str) -> float:
    """Return a number. Raises _Doubtful if it is long or no double represents it."""
    number = float(token)
    if len(token) > NUMBER_CHARS_MAX or number in _INFINITE:
        raise _Doubtful
    if not number:
        if _NONZERO.match(token):
            raise _Doubtful
        return 0.0  # also for -0.0, as the scanner reads it
    return number


def _checked_int(token: str) -> int:
    """Return an integer. Raises _Doubtful for a long one."""
    if len(token) > NUMBER_CHARS_MAX:
        raise _Doubtful
    return int(token)


def _refuse_constant(_: str) -> NoReturn:
    """Raise _Doubtful for NaN or an infinity."""
    raise _Doubtful


_DECODER = json.JSONDecoder(
    object_pairs_hook=_checked_members,
    parse_float=_checked_float,
    parse_int=_checked_int,
    parse_constant=_refuse_constant,
)
"""Checks each object and each number, which makes it three times as slow as `_PLAIN`."""
_PLAIN = json.JSONDecoder(parse_constant=_refuse_constant)
"""Decodes without checks; `_is_plain` finds out whether `_DECODER` is needed."""
_BLANKS = b" \t\n\r"
_CONTROL = b"c"
_LONG_NUMBER = b"0" * (NUMBER_CHARS_MAX + 1)
_NAME_END = b'":'


def _character_class(byte: int) -> str:
    character = chr(byte)
    if character in "+-.0123456789Ee":
        return "0"
    if character.isascii() and HIDING.match(character):
        return "c"
    return character if character in '":' else " "


_CHARACTER_CLASSES = "".join(map(_character_class, range(256))).encode()
"""Table for bytes.translate: characters of numbers become 0, control ones c, most others blank."""


class _Members(NamedTuple):
    """The member names and the floats of a value and of everything nested in it."""

    names: list[str]
    """Names of the members of all objects."""
    floats: list[float]
    is_within_limits: bool
    """Whether depth and number of values are within the scanner's limits."""

    @classmethod
    def of(cls, value: Any) -> "_Members":
        """Return the names and floats of a value; incomplete above the limits."""
        level, value_count, number_count = [value], 1, 0
        names: list[str] = []
        floats = [value] if type(value) is float else []
        for _ in range(DEPTH_MAX):
            inner: list[Any] = []
            for parent in level:
                if type(parent) is dict:
                    names += parent
                    inner += parent.values()
                elif type(parent) is list:
                    inner += parent
                    number_count += sum(type(item) in _NUMBER_TYPES for item in parent)
            value_count += len(inner)
            if value_count - number_count > VALUES_MAX or number_count > NUMBERS_MAX:
                return cls(names, floats, is_within_limits=False)
            types = set(map(type, inner))
            floats += (
                inner
                if types == _ONLY_FLOATS
                else [member for member in inner if type(member) is float]
            )
            if types.isdisjoint(_NESTING_TYPES):
                return cls(names, floats, is_within_limits=True)
            level = [member for member in inner if type(member) in _NESTING_TYPES]
        return cls(names, floats, is_within_limits=False)


_NESTING_TYPES, _ONLY_FLOATS = frozenset({dict, list}), {float}
_NUMBER_TYPES = (int, float)


def _is_plain(classes: bytes, members: _Members) -> bool:
    """Whether the objects and numbers of a text without escapes certainly have no fault.

    `classes` is the text translated by _CHARACTER_CLASSES, without blanks. The name of each member
    is followed by a quotation mark and a colon: if these occur more often than there are members, a
    name occurs twice, or a string begins with a colon.
    """
    return (
        members.is_within_limits
        and classes.count(_NAME_END) == len(members.names)
        and max(map(len, members.names), default=0) <= KEY_CHARS_MAX
        and not any(number in members.floats for number in (0.0, *_INFINITE))
        and _LONG_NUMBER not in classes
    )


_value_and_end = json.JSONDecoder().raw_decode
"""Function that parses the value at an offset, and returns it with the offset of its end."""


def locate(text: str, path: KeyPath) -> Span | None:
    """Return the position of a member as in `Scan.spans`; None if there is no such member.

    `quick_value` must have accepted the text, so that it has neither faults nor escapes.
    """
    start = after_blank(text, 0)
    if not path:
        return Span(-1, start, _value_and_end(text, start)[1])
    span = Span(-1, start, len(text))
    for step in path:
        member = _member_span(text, span.start, step)
        if member is None:
            return None
        span = member
    return span


def _member_span(text: str, start: int, step: str | int) -> Span | None:
    """Return the position of a member of the object or array that begins at `start`, or None."""
    closing = {"{": "}", "[": "]"}.get(text[start])
    if closing is None or (closing == "}") != isinstance(step, str):
        return None
    offset, number = after_blank(text, start + 1), 0
    while text[offset] != closing:
        key_at, key = -1, ""
        if closing == "}":
            key_at = offset
            key, offset = member_key(text, offset)
        end = _value_and_end(text, offset)[1]
        if step == (key if closing == "}" else number):
            return Span(key_at, offset, end)
        number += 1
        offset = after_blank(text, end)
        offset = after_blank(text, offset + 1) if text[offset] == "," else offset
    return None


LOCATED_MAX = 5
"""Number of members located one by one; for more, a scan that locates all is faster."""
WINDOW = 60  # characters of an excerpt on either side of a position


@dataclass(frozen=True)
class Document:
    """One submission file, whose positions may be computed only when they are needed.

    `name` is the file name in messages, `path` the absolute path. `value` is UNUSABLE if the file
    is not JSON; `sha256` is "" if it could not be read.
    """

    name: str
    path: Path
    sha256: str
    text: str
    value: Any
    known_spans: dict[KeyPath, Span] | None
    """Path of every member to its position; None if the text was parsed without positions."""
    faults: tuple[Fault, ...]

    def span(self, path: KeyPath) -> Span | None:
        """Return the position of a member; None if there is no such member."""
        if self.known_spans is not None:
            return self.known_spans.get(path)
        if len(self._located_paths) < LOCATED_MAX:
            self._located_paths.append(path)
            return locate(self.text, path)
        return self._scanned_spans.get(path)

    @functools.cached_property
    def _located_paths(self) -> list[KeyPath]:
        return []

    @functools.cached_property
    def _scanned_spans(self) -> dict[KeyPath, Span]:
        return scan(self.text).spans

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def offset(self, fault: Fault) -> int:
        """Return the offset of a fault: its own, or that of the closest existing parent member."""
        if fault.at is not None:
            return fault.at
        path = fault.path
        on_key = fault.on_key
        span = self.span(path)
        while path and span is None:
            path, on_key = path[:-1], False
            span = self.span(path)
        if span is None:
            return 0
        return span.key if on_key and span.key >= 0 else span.start

    @functools.cached_property
    def origin(self) -> str:
        """SHA-256 of the file of format 1.0 that was upgraded to this one, or else of this file."""
        original = downgraded(self)
        return self.sha256 if original is None else hashlib.sha256(original.encode()).hexdigest()

    @property
    def scorer(self) -> str:
        """Digest of the scorer in the run's description; "" if it names none."""
        return text_at(self.value, "run", "scorer", "digest")

    def position(self, offset: int) -> Position:
        """Return the line and column, from 1, of an offset in code points."""
        line = bisect.bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def excerpt(self, line: int, column: int) -> tuple[str, int]:
        """Return the text around a position, and the position's index in that text, from 0."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        at = min(start + column - 1, end)
        left, right = max(start, at - WINDOW), min(end, at + WINDOW)
        return self.text[left:right], at - left


def read_document(
    path: Path,
    name: str | None = None,
    *,
    spans: bool = False,
) -> Document:
    """Return the document in a file; errors of encoding and JSON are in its `faults`.

    `name` is its name in messages, by default `path`; `spans` is as in `parse_document`. Raises
    NothingChecked if the file cannot be opened.
    """
    display_name = str(path) if name is None else name
    return parse_document(read_bytes(path), located(path), display_name, spans=spans)


def parse_document(
    raw: bytes | Fault,
    path: Path,
    name: str,
    *,
    spans: bool = False,
) -> Document:
    """Return the document in `raw`; if `raw` is a Fault, the document has no value.

    A document without faults is parsed fast, and positions are computed on demand, since most
    documents have few findings. With `spans`, all positions are computed at once.
    """
    if isinstance(raw, Fault):
        return Document(name, path, "", "", UNUSABLE, {}, (raw,))
    digest = hashlib.sha256(raw).hexdigest()
    text, is_readable, faults = decode(raw)
    if not is_readable:
        return Document(name, path, digest, text, UNUSABLE, {}, faults)
    value = UNUSABLE if spans else quick_value(text)
    if value is not UNUSABLE:
        return Document(name, path, digest, text, value, None, faults)
    parsed = scan(text)
    return Document(name, path, digest, text, parsed.value, parsed.spans, (*faults, *parsed.faults))


_VERSION = ("schema_version",)


def upgraded(document: Document, entry: dict[str, Any]) -> str | None:
    """Return the text of a valid file of format 1.0 as format 1.1, with `entry` as a member.

    All other characters are kept. Return None if the version is not written as `"1.0"`.
    """
    text, version = document.text, document.span(_VERSION)
    if version is None or text[version.start : version.end] != '"1.0"':
        return None
    end = text.rindex("}")
    content_end = len(text[:end].rstrip(" \t\r\n"))
    member = f',"{ENTRY_MEMBER}":{json.dumps(entry, separators=(",", ":"), ensure_ascii=False)}'
    return (
        f'{text[: version.start]}"1.1"{text[version.end : content_end]}{member}{text[content_end:]}'
    )


def downgraded(document: Document) -> str | None:
    """Return the text from which `upgraded` made this document; None for any other document."""
    value, text = document.value, document.text
    if not isinstance(value, dict) or ENTRY_MEMBER not in value or document.faults:
        return None
    version, entry_span = document.span(_VERSION), document.span((ENTRY_MEMBER,))
    if version is None or entry_span is None or version.start > entry_span.start:
        return None
    before = entry_span.key - 1
    is_upgraded = text[version.start : version.end] == '"1.1"' and text.startswith(
        f',"{ENTRY_MEMBER}":{{', before
    )
    if not is_upgraded:
        return None
    return f'{text[: version.start]}"1.0"{text[version.end : before]}{text[entry_span.end :]}'
