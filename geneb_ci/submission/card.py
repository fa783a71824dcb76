"""Parses model cards: Markdown with `- **Field:** value` lines and `## Section` paragraphs."""

import re
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Position
from geneb_ci.submission.bytes import read_bytes
from geneb_ci.submission.fault import Fault

CARD_BYTES_MAX = 100_000  # the longest public card has 2.6 kB

_FIELD = re.compile(r"^\s*[-*]\s+\*\*(.+?):?\*\*:?[ \t]*(.*)$")
_SECTION = re.compile(r"^#{2,}\s+(\S.*)$")


@dataclass(frozen=True)
class CardField:
    """One field or section of a card: name, text, line."""

    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Card:
    """The card of one model: its fields and sections, in order."""

    name: str
    text: str
    entries: tuple[CardField, ...]
    fault: Fault | None = None

    def find(self, *words: str) -> CardField | None:
        """Return the first entry whose name contains one of the words, ignoring letter case."""
        for word in words:
            for entry in self.entries:
                if word in entry.name.casefold():
                    return entry
        return None

    def position(self, line: int) -> Position:
        """Return the position of an entry."""
        return Position(line, 1)


def read_card(path: Path, name: str) -> Card | None:
    """Return the card in a file, or None without a file; `fault` is set if it is unreadable."""
    if not path.is_symlink() and not path.exists():
        return None
    try:
        raw = read_bytes(path)
    except NothingChecked as error:
        return Card(name, "", (), _unreadable(error.message, "no access"))
    return parse_card(raw, name)


def parse_card(raw: bytes | Fault, name: str) -> Card:
    """Return the card in `raw`; if `raw` is a Fault, the card is empty and has a fault."""
    if isinstance(raw, Fault):
        return Card(name, "", (), _unreadable(f"the card cannot be read: {raw.message}", raw.found))
    if len(raw) > CARD_BYTES_MAX:
        return Card(
            name, "", (), _unreadable(f"the card has {len(raw):,} bytes", f"{len(raw)} bytes")
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return Card(
            name, "", (), _unreadable(f"the card is not UTF-8 at byte {error.start}", "not UTF-8")
        )
    return Card(name, text, tuple(_entries(text)))


def _unreadable(message: str, found: str) -> Fault:
    expected = f"a regular UTF-8 file of at most {CARD_BYTES_MAX} bytes"
    return Fault("unreadable-card", (), message, found, expected, at=0, card=True)


def _entries(text: str) -> list[CardField]:
    found: list[tuple[str, int, list[str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := _FIELD.match(line):
            found.append((match.group(1), number, [match.group(2)]))
        elif match := _SECTION.match(line):
            found.append((match.group(1).rstrip(), number, []))
        elif found:
            found[-1][2].append(line)
    return [
        CardField(name, " ".join(" ".join(lines).split()), number) for name, number, lines in found
    ]
