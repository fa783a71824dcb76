"""Texts of a JSON document: escapes, halves of characters, characters that deceive the eye."""

import re
from typing import Final

from geneb_ci.finding import shown
from geneb_ci.read.cursor import Cursor, always
from geneb_ci.read.fault import Path

_PLAIN = re.compile(r'"([^"\\\x00-\x1f]*)"')
_chunk = always(r'[^"\\\x00-\x1f]*')
_UNICODE_ESCAPE = re.compile(r"[0-9A-Fa-f]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Controls other than tab and line ends, and what reorders, hides or breaks a line of text.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_ESCAPES: Final = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


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
        self.at += 1
        while True:
            chunk = _chunk(self.text, self.at)
            parts.append(chunk.group())
            self.at = chunk.end()
            mark = self.text[self.at : self.at + 1]
            if mark == '"':
                self.at += 1
                # Joins the halves of a pair that was written as two escapes.
                joined = "".join(parts).encode("utf-16", "surrogatepass")
                return joined.decode("utf-16", "surrogatepass")
            if mark == "\\":
                parts.append(self._escape())
            elif mark:
                self.fault(
                    "invalid-json",
                    path,
                    f"the control character {_name(mark)} stands bare in a text",
                    _name(mark),
                    f"the escape \\u{ord(mark):04x}, or nothing",
                    self.at,
                )
                self.at += 1
            else:
                message = "the text that begins here never ends"
                raise self.syntax(message, "the end of the file", "'\"'", start)

    def _escape(self) -> str:
        mark = self.text[self.at + 1 : self.at + 2]
        if mark in _ESCAPES:
            self.at += 2
            return _ESCAPES[mark]
        digits = _UNICODE_ESCAPE.match(self.text, self.at + 2) if mark == "u" else None
        if digits is None:
            wrong = shown(self.text[self.at : self.at + 6])
            expected = 'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX'
            raise self.syntax(f"{wrong} is not an escape of JSON", wrong, expected)
        self.at = digits.end()
        return chr(int(digits.group(), 16))


def _name(character: str) -> str:
    return f"U+{ord(character):04X}"
