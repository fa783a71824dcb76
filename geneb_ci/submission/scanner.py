"""A strict JSON parser (RFC 8259) that records positions and continues after errors.

`json.loads` accepts duplicate keys, NaN, infinities, underflow and lone surrogates, and its nesting
limit depends on the Python version. This parser reports each of them with its position.
"""

import re
from typing import Any, NamedTuple, cast

from geneb_ci.common.finding import Fault, KeyPath
from geneb_ci.submission.tokens import UNUSABLE, Matcher, Scalars, StopParsing, Strings, matcher_of
from reference_harness.formats.text import quoted

# Maximum depth; a submission has up to six levels (results, regime, task, metric; lists by seed).
DEPTH_MAX = 16
# Maximum number of repeated keys whose first line is reported: finding each line takes a pass.
FIRSTS_MAX = 20
# Maximum number of values outside lists. Format 1.1 has about 9,000; 25,000 invalid ones take less
# than 1 s and 100 MB.
VALUES_MAX = 25_000
# Maximum number of numbers in lists. Format 1.2 has 98,000 for 100 tasks, most of them in confusion
# matrices of two tasks with 20 and 40 classes. 100,000 invalid ones take 2 s and 115 MB.
NUMBERS_MAX = 150_000
# Maximum length of a key; the longest are names of weight files. Findings repeat keys of a path.
KEY_CHARS_MAX = 300


class Span(NamedTuple):
    """Offsets in code points of a member: its key (-1 in an array), start and end of its value."""

    key: int
    start: int
    end: int


class Scan(NamedTuple):
    """Result of parsing: the value or UNUSABLE, positions by path, and faults."""

    value: Any
    spans: dict[KeyPath, Span]
    faults: list[Fault]


_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')


def after_blank(text: str, at: int) -> int:
    """Return the offset after the whitespace that begins at an offset."""
    return _blank(text, at).end()


def member_key(text: str, at: int) -> tuple[str, int]:
    """Return the key at an offset and the offset of its value. The key must contain no escapes."""
    match = _member(text, at)
    return match.group(1), match.end()


_blank = matcher_of(r"[ \t\n\r]*")
_member = cast("Matcher", _KEY.match)
_after = matcher_of(r"[ \t\n\r]*([,\]}]?)[ \t\n\r]*")


class _Scanner(Strings, Scalars):
    """The parser of one text; its methods parse what begins at the current offset."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.value_count = 0
        self.number_count = 0
        self.spans: dict[KeyPath, Span] = {}
        self.repeated_count = 0

    def scan(self) -> Scan:
        value: Any = UNUSABLE
        try:
            self.skip_blank()
            value = self.value((), -1)
            self.skip_blank()
            if self.at < len(self.text):
                self.trailing()
        except StopParsing:
            pass
        return Scan(value, self.spans, self.faults)

    def trailing(self) -> None:
        """Raise StopParsing for text after the end of the document."""
        excerpt = self.text[self.at : self.at + 20]
        hint = "JSON has no comments" if excerpt[0] in "/#" else "a file must be one JSON object"
        message = f"unexpected text after the end of the document: {hint}"
        raise self.syntax(message, quoted(excerpt), "the end of the file")

    def value(self, path: KeyPath, key_at: int) -> Any:
        start = self.at
        character = self.text[start : start + 1]
        is_number = key_at < 0 and character != "" and character in "-0123456789"
        self.count(is_in_list=is_number)
        value: Any
        if character in {"{", "["}:
            if len(path) >= DEPTH_MAX:
                raise self.stop(
                    Fault(
                        "too-deep",
                        path,
                        f"values are nested deeper than {DEPTH_MAX} levels",
                        f"more than {DEPTH_MAX} levels",
                        f"at most {DEPTH_MAX} levels",
                        at=start,
                    )
                )
            value = self.object(path) if character == "{" else self.array(path)
        elif character == '"':
            value = self.string(path)
        else:
            value = self.scalar(path)
        self.spans[path] = Span(key_at, start, self.at)
        return value

    def count(self, *, is_in_list: bool) -> None:
        """Count a value, or a number in a list; raise StopParsing if there are too many."""
        if is_in_list:
            self.number_count += 1
            count, limit, noun = self.number_count, NUMBERS_MAX, "numbers in lists"
        else:
            self.value_count += 1
            count, limit, noun = self.value_count, VALUES_MAX, "values"
        if count > limit:
            message = f"the document has more than {limit:,} {noun}"
            expected = f"at most {limit}"
            raise self.stop(
                Fault("too-many-values", (), message, f"more than {limit}", expected, at=self.at)
            )

    def repeated_key_fix(self, path: KeyPath, value: object) -> str:
        """Return the fix of a repeated key, which names the line and value of the first one."""
        span = self.spans.get(path)
        if span is None or self.repeated_count >= FIRSTS_MAX:
            return ""
        self.repeated_count += 1
        line = self.text.count("\n", 0, span.key) + 1
        is_shown = value is None or isinstance(value, str | int | float)
        first_value = f"is {quoted(value)}, " if is_shown else "is "
        return f"Delete one of the two; the first {first_value}on line {line}."

    def object(self, path: KeyPath) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.at += 1
        self.skip_blank()
        if self.text[self.at : self.at + 1] == "}":
            self.at += 1
            return members
        while True:
            self.skip_blank()
            key_at = self.at
            key = self.key(path)
            member_path = (*path, key)
            if key in members:
                self.fault(
                    "duplicate-key",
                    member_path,
                    f"the key {quoted(key)} occurs twice in one object",
                    quoted(key),
                    "each key once",
                    key_at,
                    fix=self.repeated_key_fix(member_path, members[key]),
                )
                # The first value counts; positions of the second are discarded.
                spans, self.spans = self.spans, {}
                self.value(member_path, key_at)
                self.spans = spans
            else:
                members[key] = self.value(member_path, key_at)
            if self.after("}"):
                return members

    def array(self, path: KeyPath) -> list[Any]:
        elements: list[Any] = []
        self.at += 1
        self.skip_blank()
        if self.text[self.at : self.at + 1] == "]":
            self.at += 1
            return elements
        while True:
            self.skip_blank()
            elements.append(self.value((*path, len(elements)), -1))
            if self.after("]"):
                return elements

    def after(self, closing: str) -> bool:
        """Parse the text after a member; return False for a comma, True for the closing bracket."""
        match = _after(self.text, self.at)
        mark = match.group(1)
        if mark == closing:
            self.at = match.end(1)
            return True
        if mark == ",":
            if self.text[match.end() : match.end() + 1] == closing:
                raise self.syntax(
                    f"trailing comma before the closing {closing!r}",
                    f"',{closing}'",
                    f"no comma before {closing!r}",
                    match.start(1),
                )
            self.at = match.end()
            return False
        self.at = match.start(1) if mark else match.end()
        token = self.peek()
        raise self.syntax(f"unexpected {token} after a value", token, f"',' or {closing!r}")

    def key(self, path: KeyPath) -> str:
        match = _KEY.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            key = match.group(1)
            if len(key) > KEY_CHARS_MAX:
                raise self.long_key(key, path, match.start(1) - 1)
            if not key.isascii() or "\x7f" in key:
                self.check_characters(key, path, match.start(1) - 1)
            return key
        self.skip_blank()
        if self.text[self.at : self.at + 1] != '"':
            token = self.peek()
            raise self.syntax(f"expected a key, found {token}", token, "a key in double quotes")
        key_at = self.at
        key = self.string(path)
        if len(key) > KEY_CHARS_MAX:
            raise self.long_key(key, path, key_at)
        self.skip_blank()
        if self.text[self.at : self.at + 1] != ":":
            token = self.peek()
            raise self.syntax(f"{token} follows the key {quoted(key)}", token, "':'")
        self.at += 1
        self.skip_blank()
        return key

    def long_key(self, key: str, path: KeyPath, at: int) -> StopParsing:
        return self.stop(
            Fault(
                "wrong-length",
                path,
                f"a key has {len(key):,} characters: {quoted(key)}",
                f"{len(key)} characters",
                f"at most {KEY_CHARS_MAX} characters",
                at=at,
            )
        )


def scan(text: str) -> Scan:
    """Parse a JSON text. Faults are in the result; nothing is raised."""
    return _Scanner(text).scan()
