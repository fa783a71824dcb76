"""Tokens of a JSON text: places, numbers, words and strings, and faults noted on the way."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, cast

from geneb_ci.common.finding import quoted
from geneb_ci.submission.fault import Fault, Path

# Three regimes of 100 tasks with three metrics over five seeds are 4,500 numbers: a file in which
# each is NaN is still read to its end. More is not the work of a slip, and costs memory.
FAULTS_MAX = 5_000


class _Unusable:
    """Stands where a value was refused, so that no later rule reports it again."""

    def __repr__(self) -> str:
        return "<refused>"


UNUSABLE: Final = _Unusable()


class Stop(Exception):  # noqa: N818 (not an error: the end of what can be read)
    """The rest of the text cannot be read."""


Matcher = Callable[[str, int], re.Match[str]]


def always(pattern: str) -> Matcher:
    """Compile a pattern that matches the empty text, so that it always matches."""
    return cast("Matcher", re.compile(pattern).match)


_blank = always(r"[ \t\n\r]*")


class Cursor:
    """What every part of the scanner shares."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.faults: list[Fault] = []

    def fault(
        self, rule: str, path: Path, message: str, found: str, expected: str, at: int
    ) -> None:
        """Note a fault and go on; stop when there are too many."""
        self.faults.append(Fault(rule, path, message, found, expected, at=at))
        if len(self.faults) >= FAULTS_MAX:
            raise Stop

    def stop(self, fault: Fault) -> Stop:
        """Note a fault after which the rest cannot be read; the caller raises what this gives."""
        self.faults.append(fault)
        return Stop()

    def syntax(self, message: str, found: str, expected: str, at: int | None = None) -> Stop:
        """Note a fault of the grammar; the caller raises what this gives."""
        place = self.at if at is None else at
        return self.stop(Fault("invalid-json", (), message, found, expected, at=place))

    def skip_blank(self) -> None:
        """Go to the next character that is not blank."""
        self.at = _blank(self.text, self.at).end()

    def peek(self) -> str:
        """Name what stands at the present place."""
        if self.at >= len(self.text):
            return "the end of the file"
        return quoted(self.text[self.at])


# The longest shortest-form double has 24 characters ("-1.7976931348623157e+308").
NUMBER_CHARS_MAX = 32

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_ENDS: Final = frozenset(["", ",", "]", "}", " ", "\t", "\n", "\r"])
_WORD = re.compile(r"[+-]?[A-Za-z_][A-Za-z0-9_]*")
_MALFORMED_NUMBER = re.compile(r"[+-]?[0-9.][0-9A-Za-z_.+-]*")
_LITERALS: Final = {"true": True, "false": False, "null": None}
_NON_FINITE: Final = {"nan", "inf", "infinity"}
_PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}


class Scalars(Cursor):
    """Reads one number or word at a time."""

    def scalar(self, path: Path) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        """Read the value that begins here and is neither a container nor a text."""
        match = _NUMBER.match(self.text, self.at)
        if match is not None and self.text[match.end() : match.end() + 1] in _NUMBER_ENDS:
            self.at = match.end()
            return self._number(match, path)
        word = _WORD.match(self.text, self.at)
        if word is not None:
            return self._word(word.group(), path)
        malformed = _MALFORMED_NUMBER.match(self.text, self.at)
        found = quoted(malformed.group()) if malformed else self.peek()
        expected = "an object, array, text, number, true, false or null"
        raise self.syntax(f"{found} is not a JSON value", found, expected)

    def _word(self, word: str, path: Path) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        at = self.at
        self.at += len(word)
        if word in _LITERALS:
            return _LITERALS[word]
        if word.lstrip("+-").lower() in _NON_FINITE:
            message = f"{word} is not a number of JSON"
            self.fault("non-finite-number", path, message, word, "a finite number", at)
            return UNUSABLE
        expected = _PYTHON_WORDS.get(word, "a value, or a text in double quotes")
        raise self.syntax(f"{quoted(word)} is not a JSON value", quoted(word), expected, at)

    def _number(self, match: re.Match[str], path: Path) -> Any:  # noqa: ANN401 (int, float or none)
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
        return value + 0.0  # -0.0 becomes 0.0, which is what a mean over it would be


_PLAIN = re.compile(r'"([^"\\\x00-\x1f]*)"')
# What stands in a text without fault; possessive, so that a megabyte of escapes needs no memory.
_run = always(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+')
_controls = always(r"[\x00-\x1f]*+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FORBIDDEN = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u2028\u2029"  # line ends that only some readers know
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reorder what is shown
    "\u00ad\u034f\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"  # are not shown
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # neither are marks and tags
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters that are blank
    "]"
)


class Strings(Cursor):
    """Reads one text at a time."""

    def string(self, path: Path) -> str:
        """Read the text that begins here with a quotation mark."""
        start = self.at
        match = _PLAIN.match(self.text, start)
        if match is not None:
            self.at = match.end()
            text = match.group(1)
        else:
            text = self._escaped(path)
        if not text.isascii() or not text.isprintable():
            text = self.check_characters(text, path, start)
        return text

    def check_characters(self, text: str, path: Path, at: int) -> str:
        """Note characters that are none or that deceive; give the text with whole characters."""
        if (lone := _SURROGATE.search(text)) is not None:
            name = _name(lone.group())
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
            name = _name(bad.group())
            self.fault(
                "forbidden-character",
                path,
                f"the text holds {name}, which hides or reorders what people see",
                name,
                "visible characters",
                at,
            )
        return text

    def _escaped(self, path: Path) -> str:
        start = self.at
        parts: list[str] = []
        bare = False
        self.at += 1
        while True:
            run = _run(self.text, self.at)
            parts.append(json.loads(f'"{run.group()}"'))
            self.at = run.end()
            mark = self.text[self.at : self.at + 1]
            if mark == '"':
                self.at += 1
                return "".join(parts)
            if mark == "\\":
                wrong = quoted(self.text[self.at : self.at + 6])
                expected = 'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX'
                raise self.syntax(f"{wrong} is not an escape of JSON", wrong, expected)
            if not mark:
                message = "the text that begins here never ends"
                raise self.syntax(message, "the end of the file", "'\"'", start)
            if not bare:
                self._bare_control(mark, path)
            bare = True
            self.at = _controls(self.text, self.at).end()

    def _bare_control(self, mark: str, path: Path) -> None:
        """Note the first of a text; a megabyte of them would be a million faults."""
        self.fault(
            "invalid-json",
            path,
            f"the control character {_name(mark)} stands bare in a text",
            _name(mark),
            f"the escape \\u{ord(mark):04x}, or nothing",
            self.at,
        )


def _name(character: str) -> str:
    return f"U+{ord(character):04X}"
