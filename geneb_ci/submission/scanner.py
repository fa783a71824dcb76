"""A strict JSON parser (RFC 8259) that records positions and continues after errors.

`json.loads` accepts duplicate keys, NaN, infinities, underflow and lone surrogates, and its nesting
limit depends on the Python version. This parser reports each of them with its position.
"""

import re
from typing import Any, NamedTuple, cast

from geneb_ci.common.finding import Fault, KeyPath
from geneb_ci.submission.tokens import UNUSABLE, Matcher, Scalars, StopParsing, Strings, matcher_of
from reference_harness.formats.text import quoted

DEPTH_MAX = 16
"""Maximum number of nested objects and arrays; a submission has up to six levels (results, regime,
task, metric; lists by seed)."""
NAMED_REPEATS_MAX = 20
"""Maximum number of repeated keys of which the fix names the first line: each takes a pass over the
text."""
VALUES_OUTSIDE_LISTS_MAX = 25_000
"""Maximum number of values outside lists. Format 1.1 has about 9,000; 25,000 invalid ones take less
than 1 s and 100 MB."""
NUMBERS_IN_LISTS_MAX = 150_000
"""Maximum number of numbers in lists. Format 1.2 has 98,000 for 100 tasks, most of them in
confusion matrices of two tasks with 20 and 40 classes. 100,000 invalid ones take 2 s and 115 MB."""
KEY_CHARS_MAX = 300
"""Maximum length of a key, which findings repeat; the longest keys are names of weight files."""


class Span(NamedTuple):
    """Where a text has a member of an object or array: offsets in code points."""

    key: int
    """Start of the key; -1 in an array."""
    start: int
    """Start of the value."""
    end: int
    """End of the value."""


class Scan(NamedTuple):
    """Result of parsing a JSON text."""

    value: Any
    """The parsed value; UNUSABLE if there is none."""
    spans: dict[KeyPath, Span]
    """Position of every member, by path."""
    faults: list[Fault]


_KEY_AND_COLON = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')


def after_blank(text: str, at: int) -> int:
    """Return the offset of the first character from `at` on that is not whitespace."""
    return _blanks(text, at).end()


def member_key(text: str, at: int) -> tuple[str, int]:
    """Return the key that begins at `at`, which has no escapes, and the offset of its value."""
    match = _key_and_colon(text, at)
    return match.group(1), match.end()


_blanks = matcher_of(r"[ \t\n\r]*")
_key_and_colon = cast("Matcher", _KEY_AND_COLON.match)
_comma_or_end = matcher_of(r"[ \t\n\r]*([,\]}]?)[ \t\n\r]*")


class _Scanner(Strings, Scalars):
    """The parser of one text: each method parses what is at the offset `at`, and moves past it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.value_count = 0
        self.number_count = 0
        self.spans: dict[KeyPath, Span] = {}
        self.named_repeats = 0

    def scan(self) -> Scan:
        """Parse the whole text."""
        value: Any = UNUSABLE
        try:
            self.skip_blank()
            value = self.value((), -1)
            self.skip_blank()
            if self.at < len(self.text):
                self.refuse_trailing_text()
        except StopParsing:
            pass
        return Scan(value, self.spans, self.faults)

    def refuse_trailing_text(self) -> None:
        """Raise StopParsing for text after the end of the document."""
        excerpt = self.text[self.at : self.at + 20]
        hint = "JSON has no comments" if excerpt[0] in "/#" else "a file must be one JSON object"
        message = f"unexpected text after the end of the document: {hint}"
        raise self.syntax(message, quoted(excerpt), "the end of the file")

    def value(self, path: KeyPath, key_at: int) -> Any:
        """Parse a value and record its position; return UNUSABLE for a value with a fault."""
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
            count, limit, noun = self.number_count, NUMBERS_IN_LISTS_MAX, "numbers in lists"
        else:
            self.value_count += 1
            count, limit, noun = self.value_count, VALUES_OUTSIDE_LISTS_MAX, "values"
        if count > limit:
            message = f"the document has more than {limit:,} {noun}"
            expected = f"at most {limit}"
            raise self.stop(
                Fault("too-many-values", (), message, f"more than {limit}", expected, at=self.at)
            )

    def repeated_key_fix(self, path: KeyPath, value: object) -> str:
        """Return the fix of a repeated key, with the line and the value of its first occurrence."""
        span = self.spans.get(path)
        if span is None or self.named_repeats >= NAMED_REPEATS_MAX:
            return ""
        self.named_repeats += 1
        line = self.text.count("\n", 0, span.key) + 1
        is_shown = value is None or isinstance(value, str | int | float)
        first_value = f"is {quoted(value)}, " if is_shown else "is "
        return f"Delete one of the two; the first {first_value}on line {line}."

    def object(self, path: KeyPath) -> dict[str, Any]:
        """Parse an object."""
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
        """Parse an array."""
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
        match = _comma_or_end(self.text, self.at)
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
        """Parse a key and its colon."""
        match = _KEY_AND_COLON.match(self.text, self.at)
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
        """Record a key that is too long, and return a StopParsing for the caller to raise."""
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
