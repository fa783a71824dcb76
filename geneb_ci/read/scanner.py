"""A strict JSON scanner (RFC 8259) that keeps the place of every value and goes on after a fault.

`json.loads` lets duplicate keys, NaN, infinities, underflow and lone surrogates through, and its
verdict on deep nesting depends on the Python version; this one names each of them with its place.
"""

import re
from typing import Any, Final, NamedTuple

from geneb_ci.finding import shown
from geneb_ci.read.fault import Fault, Path

# A submission is four levels deep (results, regime, task, metric); per-seed lists make it five.
DEPTH_MAX = 16
# Format 1.1 has about 8,000 values; 50,000 keep the memory of one file below 100 MB.
VALUES_MAX = 50_000
# The longest shortest-form double has 24 characters ("-1.7976931348623157e+308").
NUMBER_CHARS_MAX = 32
# A file with more faults than this is not the work of a slip; the rest would hide the first.
FAULTS_MAX = 200


class _Unusable:
    """Stands where a value was refused, so that no later rule reports it again."""

    def __repr__(self) -> str:
        return "<refused>"


UNUSABLE: Final = _Unusable()


class Span(NamedTuple):
    """Offsets of a member in code points: its key (-1 in an array), its value, the value's end."""

    key: int
    start: int
    end: int


class Scan(NamedTuple):
    """What a text says: its value (UNUSABLE when it says nothing), places and faults."""

    value: Any
    spans: dict[Path, Span]
    faults: list[Fault]


class _Stop(Exception):  # noqa: N818 (not an error: the end of what can be read)
    """The rest of the text cannot be read."""


_BLANK = re.compile(r"[ \t\n\r]*")
_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_PLAIN = re.compile(r'"([^"\\\x00-\x1f]*)"')
_CHUNK = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_AFTER = re.compile(r"[ \t\n\r]*([,\]}]?)[ \t\n\r]*")
_WORD = re.compile(r"[+-]?[A-Za-z_][A-Za-z0-9_]*")
_MALFORMED_NUMBER = re.compile(r"[+-]?[0-9.][0-9A-Za-z_.+-]*")
_UNICODE_ESCAPE = re.compile(r"[0-9A-Fa-f]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Controls other than tab and line ends, and what reorders, hides or breaks a line of text.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS = {"true": True, "false": False, "null": None}
_NON_FINITE = {"nan", "inf", "infinity"}
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


class _Scanner:
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.values = 0
        self.spans: dict[Path, Span] = {}
        self.faults: list[Fault] = []

    def scan(self) -> Scan:
        value: Any = UNUSABLE
        try:
            self.skip_blank()
            value = self.value((), -1)
            self.skip_blank()
            if self.at < len(self.text):
                rest = self.text[self.at : self.at + 20]
                hint = (
                    "comments are not JSON" if rest[0] in "/#" else "one file holds one JSON object"
                )
                self.syntax(
                    f"text follows the end of the document: {hint}",
                    shown(rest),
                    "the end of the file",
                )
        except _Stop:
            pass
        return Scan(value, self.spans, self.faults)

    # Faults

    def fault(
        self, rule: str, path: Path, message: str, found: str, expected: str, at: int
    ) -> None:
        """Note a fault and go on; stop when there are too many."""
        self.faults.append(Fault(rule, path, message, found, expected, at=at))
        if len(self.faults) >= FAULTS_MAX:
            raise _Stop

    def syntax(self, message: str, found: str, expected: str, at: int | None = None) -> None:
        """Note a fault after which the rest cannot be read."""
        place = self.at if at is None else at
        self.fault("invalid-json", (), message, found, expected, place)
        raise _Stop

    # Values

    def value(self, path: Path, key_at: int) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        self.values += 1
        if self.values > VALUES_MAX:
            self.fault(
                "too-many-values",
                (),
                f"the document has more than {VALUES_MAX:,} values",
                f"more than {VALUES_MAX}",
                f"at most {VALUES_MAX}",
                self.at,
            )
            raise _Stop
        start = self.at
        first = self.text[start : start + 1]
        if first in "{[" and first:
            if len(path) >= DEPTH_MAX:
                self.fault(
                    "too-deep",
                    path,
                    f"values are nested deeper than {DEPTH_MAX} levels",
                    f"more than {DEPTH_MAX} levels",
                    f"at most {DEPTH_MAX} levels",
                    start,
                )
                raise _Stop
            value = self.object(path) if first == "{" else self.array(path)
        elif first == '"':
            value = self.string(path)
        else:
            value = self.scalar(path)
        self.spans[path] = Span(key_at, start, self.at)
        return value

    def object(self, path: Path) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.at += 1
        self.skip_blank()
        if self.text[self.at : self.at + 1] == "}":
            self.at += 1
            return members
        while True:
            key_at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr] (matches always)
            key = self.key(path)
            inner = (*path, key)
            if key in members:
                self.fault(
                    "duplicate-key",
                    inner,
                    f"the key {shown(key)} stands twice in one object",
                    shown(key),
                    "each key once",
                    key_at,
                )
                span = self.spans[inner]
                self.value(inner, key_at)
                self.spans[inner] = span
            else:
                members[key] = self.value(inner, key_at)
            if self.after("}"):
                return members

    def array(self, path: Path) -> list[Any]:
        items: list[Any] = []
        self.at += 1
        self.skip_blank()
        if self.text[self.at : self.at + 1] == "]":
            self.at += 1
            return items
        while True:
            self.skip_blank()
            items.append(self.value((*path, len(items)), -1))
            if self.after("]"):
                return items

    def after(self, closing: str) -> bool:
        """Read what follows a member: False at a comma, True at the closing bracket."""
        match = _AFTER.match(self.text, self.at)
        assert match is not None  # noqa: S101 (the pattern matches the empty text)
        mark = match.group(1)
        if mark == closing:
            self.at = match.end(1)
            return True
        if mark == ",":
            if self.text[match.end() : match.end() + 1] == closing:
                self.syntax(
                    f"a comma stands before the closing {closing!r}",
                    f"',{closing}'",
                    f"no comma before {closing!r}",
                    match.start(1),
                )
            self.at = match.end()
            return False
        self.at = match.end() if not mark else match.start(1)
        found = self.peek()
        self.syntax(f"{found} stands where a member ends", found, f"',' or {closing!r}")
        raise AssertionError  # pragma: no cover

    def key(self, path: Path) -> str:
        match = _KEY.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            key = match.group(1)
            if not key.isascii() or "\x7f" in key:
                self.check_characters(key, path, match.start(1))
            return key
        self.skip_blank()
        if self.text[self.at : self.at + 1] != '"':
            found = self.peek()
            self.syntax(f"{found} stands where a key should", found, "a key in double quotes")
        key = self.string(path)
        self.skip_blank()
        if self.text[self.at : self.at + 1] != ":":
            found = self.peek()
            self.syntax(f"{found} follows the key {shown(key)}", found, "':'")
        self.at += 1
        self.skip_blank()
        return key

    def string(self, path: Path) -> str:
        start = self.at
        match = _PLAIN.match(self.text, start)
        if match is not None:
            self.at = match.end()
            text = match.group(1)
        else:
            text = self.escaped_string(path)
        if not text.isascii() or not text.isprintable():
            text = self.check_characters(text, path, start)
        return text

    def escaped_string(self, path: Path) -> str:
        start = self.at
        parts: list[str] = []
        self.at += 1
        while True:
            chunk = _CHUNK.match(self.text, self.at)
            assert chunk is not None  # noqa: S101 (the pattern matches the empty text)
            parts.append(chunk.group())
            self.at = chunk.end()
            mark = self.text[self.at : self.at + 1]
            if mark == '"':
                self.at += 1
                # Joins the halves of a pair that was written as two escapes.
                return (
                    "".join(parts)
                    .encode("utf-16", "surrogatepass")
                    .decode("utf-16", "surrogatepass")
                )
            if mark == "\\":
                parts.append(self.escape())
            elif mark:
                name = f"U+{ord(mark):04X}"
                self.fault(
                    "invalid-json",
                    path,
                    f"the control character {name} stands bare in a text",
                    name,
                    f"the escape \\u{ord(mark):04x}, or nothing",
                    self.at,
                )
                self.at += 1
            else:
                self.syntax(
                    "the text that begins here never ends", "the end of the file", "'\"'", start
                )

    def escape(self) -> str:
        mark = self.text[self.at + 1 : self.at + 2]
        if mark in _ESCAPES:
            self.at += 2
            return _ESCAPES[mark]
        digits = _UNICODE_ESCAPE.match(self.text, self.at + 2) if mark == "u" else None
        if digits is None:
            wrong = shown(self.text[self.at : self.at + 6])
            self.syntax(
                f"{wrong} is not an escape of JSON",
                wrong,
                'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX',
            )
            raise AssertionError  # pragma: no cover
        self.at = digits.end()
        return chr(int(digits.group(), 16))

    def check_characters(self, text: str, path: Path, at: int) -> str:
        if (lone := _SURROGATE.search(text)) is not None:
            name = f"U+{ord(lone.group()):04X}"
            self.fault(
                "lone-surrogate",
                path,
                f"the text holds {name}, half of a pair: it is no character",
                name,
                "whole characters",
                at,
            )
            text = _SURROGATE.sub("\ufffd", text)
        if (bad := _FORBIDDEN.search(text)) is not None:
            name = f"U+{ord(bad.group()):04X}"
            self.fault(
                "forbidden-character",
                path,
                f"the text holds {name}, which hides or reorders what people see",
                name,
                "visible characters",
                at,
            )
        return text

    def scalar(self, path: Path) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        match = _NUMBER.match(self.text, self.at)
        if match is not None and self.text[match.end() : match.end() + 1] in _NUMBER_ENDS:
            self.at = match.end()
            return self.number(match, path)
        word = _WORD.match(self.text, self.at)
        if word is not None:
            return self.word(word.group(), path)
        malformed = _MALFORMED_NUMBER.match(self.text, self.at)
        found = shown(malformed.group()) if malformed else self.peek()
        self.syntax(
            f"{found} is not a JSON value",
            found,
            "an object, array, text, number, true, false or null",
        )
        raise AssertionError  # pragma: no cover

    def word(self, word: str, path: Path) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        at = self.at
        self.at += len(word)
        if word in _LITERALS:
            return _LITERALS[word]
        if word.lstrip("+-").lower() in _NON_FINITE:
            self.fault(
                "non-finite-number",
                path,
                f"{word} is not a number of JSON",
                word,
                "a finite number",
                at,
            )
            return UNUSABLE
        expected = (
            f"{_PYTHON_WORDS[word]}"
            if word in _PYTHON_WORDS
            else "a value, or a text in double quotes"
        )
        self.syntax(f"{shown(word)} is not a JSON value", shown(word), expected, at)
        raise AssertionError  # pragma: no cover

    def number(self, match: re.Match[str], path: Path) -> Any:  # noqa: ANN401 (int, float or UNUSABLE)
        token = match.group()
        if len(token) > NUMBER_CHARS_MAX:
            self.fault(
                "unrepresentable-number",
                path,
                f"a number of {len(token):,} characters",
                f"{token[:12]}... ({len(token)} characters)",
                f"at most {NUMBER_CHARS_MAX} characters",
                match.start(),
            )
            return UNUSABLE
        if match.group(1) is None and match.group(2) is None:
            return int(token)
        value = float(token)
        if value in (float("inf"), float("-inf")):
            self.fault(
                "non-finite-number",
                path,
                f"{token} is too large: it would be read as infinity",
                token,
                "a finite number",
                match.start(),
            )
            return UNUSABLE
        if value == 0 and any(digit in "123456789" for digit in re.split("[eE]", token)[0]):
            self.fault(
                "unrepresentable-number",
                path,
                f"{token} is too small: it would be read as 0",
                token,
                "0, or a number a double can hold",
                match.start(),
            )
            return UNUSABLE
        return value

    # Text

    def skip_blank(self) -> None:
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr] (matches always)

    def peek(self) -> str:
        """Name what stands at the present place."""
        if self.at >= len(self.text):
            return "the end of the file"
        return shown(self.text[self.at])


_NUMBER_ENDS = frozenset(["", ",", "]", "}", " ", "\t", "\n", "\r"])


def scan(text: str) -> Scan:
    """Read a JSON text; faults are in the result, and nothing is raised."""
    return _Scanner(text).scan()
