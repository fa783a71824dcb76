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

from geneb_ci.common.finding import HIDING_CHARACTERS, Fault, KeyPath, Position
from geneb_ci.submission.reading import decode, located, read_bytes
from geneb_ci.submission.scanner import (
    DEPTH_MAX,
    KEY_CHARS_MAX,
    NUMBERS_IN_LISTS_MAX,
    VALUES_OUTSIDE_LISTS_MAX,
    Span,
    after_blank,
    member_key,
    scan,
)
from geneb_ci.submission.tokens import NUMBER_CHARS_MAX, UNUSABLE
from reference_harness.formats.files import text_at
from reference_harness.formats.submission_terms import ENTRY_MEMBER

_INFINITIES = (math.inf, -math.inf)
_NONZERO_DIGITS = re.compile(r"[^eE]*[1-9]")
"""Beginning of a number that is not zero."""


class _NeedsScanner(Exception):  # noqa: N818 (leaves the text to the scanner, not an error)
    """The text may have a fault, so that the scanner has to read it."""


def quick_value(text: str) -> Any:
    """Return the value of a JSON text without faults, else UNUSABLE.

    It is also UNUSABLE for a text with escapes, or with characters that may hide text.
    """
    classes = text.encode("utf-8", "surrogatepass").translate(_CHARACTER_CLASSES, _WHITESPACE)
    if "\\" in text or (
        _CONTROL_CLASS in classes if text.isascii() else HIDING_CHARACTERS.search(text)
    ):
        return UNUSABLE
    try:
        value = _FAST_DECODER.decode(text)
        if not _is_faultless(classes, members := _NestedMembers.of(value)):
            value = _CHECKING_DECODER.decode(text)
    except (ValueError, RecursionError, _NeedsScanner):
        return UNUSABLE
    return value if members.is_within_limits else UNUSABLE


def _checked_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises _NeedsScanner for a repeated or a long key."""
    members = dict(pairs)
    if len(members) != len(pairs) or any(len(key) > KEY_CHARS_MAX for key in members):
        raise _NeedsScanner
    return members


def _checked_float(token: str) -> float:
    """Return a number. Raises _NeedsScanner if it is long or no double represents it."""
    number = float(token)
    if len(token) > NUMBER_CHARS_MAX or number in _INFINITIES:
        raise _NeedsScanner
    if not number:
        if _NONZERO_DIGITS.match(token):
            raise _NeedsScanner
        return 0.0  # also for -0.0, as the scanner reads it
    return number


def _checked_int(token: str) -> int:
    """Return an integer. Raises _NeedsScanner if it is too long."""
    if len(token) > NUMBER_CHARS_MAX:
        raise _NeedsScanner
    return int(token)


def _refuse_constant(_: str) -> NoReturn:
    """Raise _NeedsScanner for NaN or an infinity."""
    raise _NeedsScanner


_CHECKING_DECODER = json.JSONDecoder(
    object_pairs_hook=_checked_members,
    parse_float=_checked_float,
    parse_int=_checked_int,
    parse_constant=_refuse_constant,
)
"""A decoder that checks each object and number; it is three times as slow as `_FAST_DECODER`."""
_FAST_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
"""A decoder without checks; `_is_faultless` judges whether `_CHECKING_DECODER` is needed."""
_WHITESPACE = b" \t\n\r"
_CONTROL_CLASS = b"c"
"""Character by which `_CHARACTER_CLASSES` replaces a control character."""
_TOO_LONG_NUMBER = b"0" * (NUMBER_CHARS_MAX + 1)
"""Beginning of a number that is too long, after `_CHARACTER_CLASSES`."""
_NAME_END_CLASSES = b'":'
"""End of a member's name and the colon, after `_CHARACTER_CLASSES`."""


def _character_class(byte: int) -> str:
    """Return the character that stands for a byte in `_CHARACTER_CLASSES`."""
    character = chr(byte)
    if character in "+-.0123456789Ee":
        return "0"
    if character.isascii() and HIDING_CHARACTERS.match(character):
        return "c"
    return character if character in '":' else " "


_CHARACTER_CLASSES = "".join(map(_character_class, range(256))).encode()
"""Table of bytes.translate: characters of numbers become 0, control characters c, quotation marks
and colons stay, and others become spaces."""


class _NestedMembers(NamedTuple):
    """The names of members, and the floats, in a JSON value and in everything nested in it."""

    names: list[str]
    """Names of the members of all objects."""
    floats: list[float]
    """All numbers that are written with a fraction or an exponent."""
    is_within_limits: bool
    """Whether depth and number of values are within the scanner's limits."""

    @classmethod
    def of(cls, value: Any) -> "_NestedMembers":
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
            if (
                value_count - number_count > VALUES_OUTSIDE_LISTS_MAX
                or number_count > NUMBERS_IN_LISTS_MAX
            ):
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


def _is_faultless(classes: bytes, members: _NestedMembers) -> bool:
    """Whether the objects and numbers of a text without escapes certainly have no fault.

    `classes` is the text translated by _CHARACTER_CLASSES, without blanks. The name of each member
    is followed by a quotation mark and a colon: if these occur more often than there are members, a
    name occurs twice, or a string begins with a colon.
    """
    return (
        members.is_within_limits
        and classes.count(_NAME_END_CLASSES) == len(members.names)
        and max(map(len, members.names), default=0) <= KEY_CHARS_MAX
        and not any(number in members.floats for number in (0.0, *_INFINITIES))
        and _TOO_LONG_NUMBER not in classes
    )


_value_and_end = json.JSONDecoder().raw_decode
"""Function that parses the value at an offset, and returns it with the offset of its end."""


def locate(text: str, path: KeyPath) -> Span | None:
    """Return where a text has the member at a path; None if there is no such member.

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
    """Return where a text has the member `step` of the object or array that begins at `start`."""
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


LOCATED_MEMBERS_MAX = 5
"""Maximum number of members that are searched one by one; for more, a scan of all is faster."""
EXCERPT_SIDE_CHARACTERS = 60
"""Maximum characters of an excerpt on either side of a position."""


@dataclass(frozen=True)
class Document:
    """A parsed submission file. The positions of members are computed when they are needed."""

    name: str
    """Name of the file in messages."""
    path: Path
    """Absolute path of the file."""
    sha256: str
    """SHA-256 of the file; "" if it could not be read."""
    text: str
    """Decoded text of the file."""
    value: Any
    """The parsed JSON; UNUSABLE if the file is not JSON."""
    known_spans: dict[KeyPath, Span] | None
    """Path of every member to its position; None if the text was parsed without positions."""
    faults: tuple[Fault, ...]
    """Errors of the encoding and of the JSON."""

    def span(self, path: KeyPath) -> Span | None:
        """Return where the text has the member at a path; None if there is no such member."""
        if self.known_spans is not None:
            return self.known_spans.get(path)
        if len(self._searched_paths) < LOCATED_MEMBERS_MAX:
            self._searched_paths.append(path)
            return locate(self.text, path)
        return self._scanned_spans.get(path)

    @functools.cached_property
    def _searched_paths(self) -> list[KeyPath]:
        """Paths of the members that were searched one by one so far."""
        return []

    @functools.cached_property
    def _scanned_spans(self) -> dict[KeyPath, Span]:
        """Path of every member to its position, from a scan of the text."""
        return scan(self.text).spans

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        """Offsets of the first characters of all lines."""
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def offset(self, fault: Fault) -> int:
        """Return the offset at which a fault is shown: its own, or that of the faulty member."""
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
        """SHA-256 of this file, or of the file of format 1.0 from which it was upgraded."""
        original = downgraded(self)
        return self.sha256 if original is None else hashlib.sha256(original.encode()).hexdigest()

    @property
    def scorer(self) -> str:
        """Digest of the scorer that the run names; "" if it names none."""
        return text_at(self.value, "run", "scorer", "digest")

    def position(self, offset: int) -> Position:
        """Return the line and column of an offset."""
        line = bisect.bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def excerpt(self, line: int, column: int) -> tuple[str, int]:
        """Return the text around a position, and the position's index in that text, from 0."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        at = min(start + column - 1, end)
        left, right = (
            max(start, at - EXCERPT_SIDE_CHARACTERS),
            min(end, at + EXCERPT_SIDE_CHARACTERS),
        )
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


_VERSION_PATH = ("schema_version",)
"""Path of the member with the version of the format."""


def upgraded(document: Document, entry: dict[str, Any]) -> str | None:
    """Return the text of a valid file of format 1.0 as format 1.1, with `entry` as a member.

    All other characters are kept. Return None if the version is not written as `"1.0"`.
    """
    text, version = document.text, document.span(_VERSION_PATH)
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
    version, entry_span = document.span(_VERSION_PATH), document.span((ENTRY_MEMBER,))
    if version is None or entry_span is None or version.start > entry_span.start:
        return None
    before = entry_span.key - 1
    is_upgraded = text[version.start : version.end] == '"1.1"' and text.startswith(
        f',"{ENTRY_MEMBER}":{{', before
    )
    if not is_upgraded:
        return None
    return f'{text[: version.start]}"1.0"{text[version.end : before]}{text[entry_span.end :]}'
