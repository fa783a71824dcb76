"""Parse the tokens of JSON: numbers, literals and strings; record their faults."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, cast

from geneb_ci.common.finding import HIDING_CHARACTERS, Fault, KeyPath
from reference_harness.formats.text import quoted

RECORDED_FAULTS_MAX = 5_000
"""Maximum number of recorded faults, which bounds the memory. A file with NaN in all 4,500 scores
by seed (3 regimes, 100 tasks, 3 metrics, 5 seeds) is still read to its end."""


class _Unusable:
    """Placeholder of a rejected value, so that no other rule reports it again."""

    def __repr__(self) -> str:
        return "<rejected>"


UNUSABLE: Final = _Unusable()
"""Value of a JSON text, or of a part of it, that has a fault."""


class StopParsing(Exception):  # noqa: N818 (ends the parsing, not an error)
    """Ends the parsing: the rest of the text cannot be read."""


Matcher = Callable[[str, int], re.Match[str]]
"""A function that returns the match of a pattern in a text at an offset."""


def matcher_of(pattern: str) -> Matcher:
    """Return the match function of a pattern that always matches, possibly the empty string."""
    return cast("Matcher", re.compile(pattern).match)


_blanks = matcher_of(r"[ \t\n\r]*")


class Cursor:
    """Base class of the scanner's parts: the text, the current offset and the faults."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.faults: list[Fault] = []

    def fault(  # an argument for each field of the fault
        self,
        rule: str,
        path: KeyPath,
        message: str,
        actual: str,
        expected: str,
        at: int,
        fix: str = "",
    ) -> None:
        """Record a fault and continue; raise StopParsing if there are too many."""
        self.faults.append(Fault(rule, path, message, actual, expected, at=at, fix=fix))
        if len(self.faults) >= RECORDED_FAULTS_MAX:
            raise StopParsing

    def stop(self, fault: Fault) -> StopParsing:
        """Record a fault and return a StopParsing for the caller to raise."""
        self.faults.append(fault)
        return StopParsing()

    def syntax(
        self, message: str, actual: str, expected: str, at: int | None = None, fix: str = ""
    ) -> StopParsing:
        """Record a syntax error and return a StopParsing for the caller to raise."""
        position = self.at if at is None else at
        return self.stop(Fault("invalid-json", (), message, actual, expected, at=position, fix=fix))

    def skip_blank(self) -> None:
        """Skip whitespace."""
        self.at = _blanks(self.text, self.at).end()

    def peek(self) -> str:
        """Return the current character, quoted, or "the end of the file"."""
        if self.at >= len(self.text):
            return "the end of the file"
        return quoted(self.text[self.at])


NUMBER_CHARS_MAX = 32
"""Maximum length of a number: the shortest form of a double has at most 24 characters."""
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_ENDS: Final = frozenset(["", ",", "]", "}", " ", "\t", "\n", "\r"])
"""Characters that may follow a number; "" is the end of the text."""
_WORD = re.compile(r"[+-]?[A-Za-z_][A-Za-z0-9_]*")
_MALFORMED_NUMBER = re.compile(r"[+-]?[0-9.][0-9A-Za-z_.+-]*")
_VALUE_OF_LITERAL: Final = {"true": True, "false": False, "null": None}
_NON_FINITE_WORDS: Final = {"nan", "inf", "infinity"}
_JSON_WORD_OF_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}

NOT_JSON_FIX = (
    "Pass a submission, which is a JSON object, or remove what is before the first brace of this "
    "file."
)
"""Fix for a file that does not begin as JSON."""


class Scalars(Cursor):
    """The part of the scanner that parses numbers and literals."""

    def scalar(self, path: KeyPath) -> Any:
        """Return the number or literal at the current offset; UNUSABLE if it cannot be a double."""
        match = _JSON_NUMBER.match(self.text, self.at)
        if match is not None and self.text[match.end() : match.end() + 1] in _NUMBER_ENDS:
            self.at = match.end()
            return self._number(match, path)
        word = _WORD.match(self.text, self.at)
        if word is not None:
            return self._word(word.group(), path)
        malformed = _MALFORMED_NUMBER.match(self.text, self.at)
        actual = quoted(malformed.group()) if malformed else self.peek()
        expected = "an object, array, string, number, true, false or null"
        fix = "" if path else NOT_JSON_FIX
        raise self.syntax(f"{actual} is not a JSON value", actual, expected, fix=fix)

    def _word(self, word: str, path: KeyPath) -> Any:
        """Return the literal that a word is; UNUSABLE for NaN or an infinity."""
        at = self.at
        self.at += len(word)
        if word in _VALUE_OF_LITERAL:
            return _VALUE_OF_LITERAL[word]
        if word.lstrip("+-").lower() in _NON_FINITE_WORDS:
            message = f"{word} is not a JSON number"
            self.fault("non-finite-number", path, message, word, "a finite number", at)
            return UNUSABLE
        expected = _JSON_WORD_OF_PYTHON.get(word, "a value, or a string in double quotes")
        fix = "" if path else NOT_JSON_FIX
        raise self.syntax(f"{quoted(word)} is not a JSON value", quoted(word), expected, at, fix)

    def _number(self, match: re.Match[str], path: KeyPath) -> Any:  # int, float or none
        """Return a number; UNUSABLE if it is too long, or if no double represents it."""
        token = match.group()
        if len(token) > NUMBER_CHARS_MAX:
            self.fault(
                "unrepresentable-number",
                path,
                f"the number has {len(token):,} characters",
                f"{token[:12]}... ({len(token)} characters)",
                f"at most {NUMBER_CHARS_MAX} characters",
                match.start(),
            )
            return UNUSABLE
        if match.group(1) is None and match.group(2) is None:
            return int(token)
        number = float(token)
        if number in (float("inf"), float("-inf")):
            self.fault(
                "non-finite-number",
                path,
                f"{token} is too large for a double: it would become infinity",
                token,
                "a finite number",
                match.start(),
            )
            return UNUSABLE
        if number == 0 and any(digit in "123456789" for digit in re.split("[eE]", token)[0]):
            self.fault(
                "unrepresentable-number",
                path,
                f"{token} is too small for a double: it would become 0",
                token,
                "0, or a number that a double can represent",
                match.start(),
            )
            return UNUSABLE
        return number + 0.0  # -0.0 becomes 0.0, as in a mean


_STRING_WITHOUT_ESCAPES = re.compile(r'"([^"\\\x00-\x1f]*)"')
_string_content = matcher_of(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+')
"""Matches valid characters and escapes; possessive quantifiers keep the memory constant."""
_control_characters = matcher_of(r"[\x00-\x1f]*+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Strings(Cursor):
    """The part of the scanner that parses strings."""

    def string(self, path: KeyPath) -> str:
        """Return the string at the current offset, without lone surrogates."""
        start = self.at
        match = _STRING_WITHOUT_ESCAPES.match(self.text, start)
        if match is not None:
            self.at = match.end()
            text = match.group(1)
        else:
            text = self._escaped(path)
        if not text.isascii() or not text.isprintable():
            text = self.check_characters(text, path, start)
        return text

    def check_characters(self, text: str, path: KeyPath, at: int) -> str:
        """Record lone surrogates and forbidden characters; return the string without surrogates."""
        if (surrogate := _SURROGATE.search(text)) is not None:
            code_point = _code_point(surrogate.group())
            self.fault(
                "lone-surrogate",
                path,
                f"the string contains {code_point}, half of a surrogate pair",
                code_point,
                "whole characters",
                at,
            )
            text = _SURROGATE.sub("\ufffd", text)
        if (hiding_character := HIDING_CHARACTERS.search(text)) is not None:
            code_point = _code_point(hiding_character.group())
            self.fault(
                "forbidden-character",
                path,
                f"the string contains {code_point}, which hides or reorders text",
                code_point,
                "visible characters",
                at,
            )
        return text

    def _escaped(self, path: KeyPath) -> str:
        """Return the string at the current offset, which may have escapes."""
        start = self.at
        runs: list[str] = []
        has_control_character = False
        self.at += 1
        while True:
            run = _string_content(self.text, self.at)
            runs.append(json.loads(f'"{run.group()}"'))
            self.at = run.end()
            mark = self.text[self.at : self.at + 1]
            if mark == '"':
                self.at += 1
                return "".join(runs)
            if mark == "\\":
                escape = quoted(self.text[self.at : self.at + 6])
                expected = 'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX'
                raise self.syntax(f"{escape} is not a JSON escape", escape, expected)
            if not mark:
                message = "the string that begins here is not terminated"
                raise self.syntax(message, "the end of the file", "'\"'", start)
            if not has_control_character:
                self._record_control_character(mark, path)
            has_control_character = True
            self.at = _control_characters(self.text, self.at).end()

    def _record_control_character(self, mark: str, path: KeyPath) -> None:
        """Record an unescaped control character; the caller reports only the first of a string."""
        self.fault(
            "invalid-json",
            path,
            f"unescaped control character {_code_point(mark)} in a string",
            _code_point(mark),
            f"the escape \\u{ord(mark):04x}, or nothing",
            self.at,
        )


def _code_point(character: str) -> str:
    """Return the number of a character as in U+0041."""
    return f"U+{ord(character):04X}"
