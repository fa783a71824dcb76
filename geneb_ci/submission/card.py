"""A model card: Markdown with `- **Field:** value` lines and `## Section` texts, read as text."""

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
    """What a card says under one name, and where."""

    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Card:
    """The card of one model: its entries, fields and sections alike, in order."""

    name: str
    text: str
    entries: tuple[CardField, ...]
    fault: Fault | None = None

    def find(self, *words: str) -> CardField | None:
        """Return the first entry whose name holds one of the words, letter case aside."""
        for word in words:
            for entry in self.entries:
                if word in entry.name.casefold():
                    return entry
        return None

    def position(self, line: int) -> Position:
        """Return the place of an entry."""
        return Position(line, 1)


def read_card(path: Path, name: str) -> Card | None:
    """Read a card; None when there is none. What is wrong with its bytes is in `fault`."""
    if not path.is_symlink() and not path.exists():
        return None
    try:
        raw = read_bytes(path)
    except NothingChecked as error:
        return Card(name, "", (), _unreadable(error.message, "no access"))
    return parse_card(raw, name)


def parse_card(raw: bytes | Fault, name: str) -> Card:
    """Read a card from its bytes, or from the reason why there are none."""
    if isinstance(raw, Fault):
        return Card(name, "", (), _unreadable(f"the card cannot be used: {raw.message}", raw.found))
    if len(raw) > CARD_BYTES_MAX:
        return Card(
            name, "", (), _unreadable(f"the card has {len(raw):,} bytes", f"{len(raw)} bytes")
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return Card(
            name, "", (), _unreadable(f"the card is not UTF-8 at byte {error.start}", "other bytes")
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
