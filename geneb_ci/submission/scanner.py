"""A strict JSON scanner (RFC 8259) that keeps the place of every value and goes on after a fault.

`json.loads` lets duplicate keys, NaN, infinities, underflow and lone surrogates through, and its
verdict on deep nesting depends on the Python version; this one names each of them with its place.
"""

import re
from typing import Any, NamedTuple

from geneb_ci.common.finding import quoted
from geneb_ci.submission.fault import Fault, Path
from geneb_ci.submission.tokens import UNUSABLE, Scalars, Stop, Strings, always

__all__ = ["UNUSABLE", "Scan", "Span", "scan"]

# A submission is four levels deep (results, regime, task, metric); per-seed lists make it six.
DEPTH_MAX = 16
# Format 1.1 has about 9,000 values; with 25,000, a file in which each is a fault is judged in less
# than a second and 100 MB.
VALUES_MAX = 25_000
# Task ids, field names and names of weight files; every finding repeats the keys that lead to it.
KEY_CHARS_MAX = 300


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


_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_after = always(r"[ \t\n\r]*([,\]}]?)[ \t\n\r]*")


class _Scanner(Strings, Scalars):
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.values = 0
        self.spans: dict[Path, Span] = {}

    def scan(self) -> Scan:
        value: Any = UNUSABLE
        try:
            self.skip_blank()
            value = self.value((), -1)
            self.skip_blank()
            if self.at < len(self.text):
                self.trailing()
        except Stop:
            pass
        return Scan(value, self.spans, self.faults)

    def trailing(self) -> None:
        rest = self.text[self.at : self.at + 20]
        hint = "comments are not JSON" if rest[0] in "/#" else "one file holds one JSON object"
        message = f"text follows the end of the document: {hint}"
        raise self.syntax(message, quoted(rest), "the end of the file")

    def value(self, path: Path, key_at: int) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        self.values += 1
        if self.values > VALUES_MAX:
            raise self.stop(
                Fault(
                    "too-many-values",
                    (),
                    f"the document has more than {VALUES_MAX:,} values",
                    f"more than {VALUES_MAX}",
                    f"at most {VALUES_MAX}",
                    at=self.at,
                )
            )
        start = self.at
        first = self.text[start : start + 1]
        value: Any
        if first in {"{", "["}:
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
            self.skip_blank()
            key_at = self.at
            key = self.key(path)
            inner = (*path, key)
            if key in members:
                self.fault(
                    "duplicate-key",
                    inner,
                    f"the key {quoted(key)} stands twice in one object",
                    quoted(key),
                    "each key once",
                    key_at,
                )
                # The first of the two is the value; the places of the second would belie it.
                spans, self.spans = self.spans, {}
                self.value(inner, key_at)
                self.spans = spans
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
        match = _after(self.text, self.at)
        mark = match.group(1)
        if mark == closing:
            self.at = match.end(1)
            return True
        if mark == ",":
            if self.text[match.end() : match.end() + 1] == closing:
                raise self.syntax(
                    f"a comma stands before the closing {closing!r}",
                    f"',{closing}'",
                    f"no comma before {closing!r}",
                    match.start(1),
                )
            self.at = match.end()
            return False
        self.at = match.start(1) if mark else match.end()
        found = self.peek()
        raise self.syntax(f"{found} stands where a member ends", found, f"',' or {closing!r}")

    def key(self, path: Path) -> str:
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
            found = self.peek()
            raise self.syntax(f"{found} stands where a key should", found, "a key in double quotes")
        key_at = self.at
        key = self.string(path)
        if len(key) > KEY_CHARS_MAX:
            raise self.long_key(key, path, key_at)
        self.skip_blank()
        if self.text[self.at : self.at + 1] != ":":
            found = self.peek()
            raise self.syntax(f"{found} follows the key {quoted(key)}", found, "':'")
        self.at += 1
        self.skip_blank()
        return key

    def long_key(self, key: str, path: Path, at: int) -> Stop:
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
    """Read a JSON text; faults are in the result, and nothing is raised."""
    return _Scanner(text).scan()
