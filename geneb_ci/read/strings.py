"""Texts of a JSON document: escapes, halves of characters, characters that deceive the eye."""

import json
import re

from geneb_ci.finding import shown
from geneb_ci.read.cursor import Cursor, always
from geneb_ci.read.fault import Path

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
                wrong = shown(self.text[self.at : self.at + 6])
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
