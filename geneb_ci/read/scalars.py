"""Numbers and words of a JSON document, held against what a double can say."""

import re
from typing import Any, Final

from geneb_ci.finding import shown
from geneb_ci.read.cursor import UNUSABLE, Cursor
from geneb_ci.read.fault import Path

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
        found = shown(malformed.group()) if malformed else self.peek()
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
        raise self.syntax(f"{shown(word)} is not a JSON value", shown(word), expected, at)

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
