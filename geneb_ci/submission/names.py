"""Comparison of names that look alike, and parsing of model cards.

Skeletons and scripts follow Unicode Technical Standard 39.
"""

import functools
import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Fault, Position
from geneb_ci.submission.reading import disguise_fault, read_bytes
from reference_harness.formats.recognition import CONFLICT, disguise_of
from reference_harness.formats.submission_terms import DISPLAY_MAX, MODEL_ID_MAX

NAME_LENGTH_MAX = max(MODEL_ID_MAX, DISPLAY_MAX)
"""Maximum length of a name that is compared: its skeleton can be 18 times as long."""
MARKS_PER_LETTER_MAX = 2
"""Maximum number of combining marks on a letter, such as accents: Vietnamese has two."""
MAPPING_PASSES_MAX = 8
"""Maximum number of times that look-alike characters of a name are replaced; names need fewer."""
_STACKED_MARKS = re.compile(f"m{{{MARKS_PER_LETTER_MAX + 1}}}")
"""Too many marks on a letter, in a name whose marks are written as `m`."""
_ASCII_LOOKALIKES = {
    "0": "O", "1": "l", "I": "l", "m": "rn", "|": "l", "`": "'", '"': "''", "%": "\u00ba/\u2080",
}  # fmt: skip
"""ASCII characters to the text that they look like; other characters are in the table of
`_CONFUSABLES_PACKAGE`."""
_DIRECTION_MARK = "\u200e"
"""Character that the table has around letters that are written from right to left."""
_COMMON_SCRIPTS = frozenset({"COMMON", "INHERITED"})
"""Scripts of characters that belong to every script, such as digits."""
_EAST_ASIAN_SCRIPTS = frozenset({"HAN", "HIRAGANA", "KATAKANA", "BOPOMOFO", "HANGUL"})
"""Scripts that names combine with each other and with Latin."""
_CONFUSABLES_PACKAGE = "confusable_homoglyphs"
"""Package with a table of characters that look alike."""


def skeleton(name: str) -> str:
    """Return the skeleton of a name, which is the same for names that look alike.

    Runs of blanks become one space, letters of other widths and styles the usual letters, and
    characters that look like a simpler text that text, until nothing changes.
    """
    table = _ASCII_LOOKALIKES if name.isascii() else _lookalike_by_character()
    form = unicodedata.normalize("NFKD", name)
    for _ in range(MAPPING_PASSES_MAX):
        mapped = "".join(table.get(letter, letter) for letter in " ".join(form.split()))
        before, form = form, unicodedata.normalize("NFKD", mapped)
        if form == before:
            break
    return form


def skeletons(name: str) -> frozenset[str]:
    """Return the skeletons of a name as written and case-folded.

    Two names look alike if they share a skeleton. A name longer than NAME_LENGTH_MAX has none.
    """
    if len(name) > NAME_LENGTH_MAX:
        return frozenset()
    return frozenset({skeleton(name), skeleton(name.casefold())})


def has_stacked_marks(name: str) -> bool:
    """Whether a letter has more than `MARKS_PER_LETTER_MAX` combining marks."""
    decomposed = unicodedata.normalize("NFD", name[:NAME_LENGTH_MAX])
    return (
        _STACKED_MARKS.search("".join("m" if unicodedata.combining(c) else "." for c in decomposed))
        is not None
    )


def scripts_of(name: str) -> set[str]:
    """Return the scripts of the first `NAME_LENGTH_MAX` characters of a name; none for ASCII.

    Those that East Asian names combine with Latin are left out, and so are common characters.
    """
    name = name[:NAME_LENGTH_MAX]
    if name.isascii():
        return set()
    from confusable_homoglyphs import categories  # 30 ms, and names are mostly ASCII

    return {categories.alias(letter) for letter in name} - _COMMON_SCRIPTS - _EAST_ASIAN_SCRIPTS


@functools.cache
def _lookalike_by_character() -> dict[str, str]:
    """Return characters that look like another text to that text, from the table of the package."""
    from importlib.resources import files  # names are mostly ASCII

    confusables = json.loads(
        (files(_CONFUSABLES_PACKAGE) / "confusables.json").read_text(encoding="utf-8")
    )
    lookalikes_of = {
        key.strip(_DIRECTION_MARK): [
            lookalike["c"].strip(_DIRECTION_MARK) for lookalike in confusables[key]
        ]
        for key in confusables
    }
    return {
        character: lookalikes[0]
        for character, lookalikes in lookalikes_of.items()
        if len(character) == 1
        and len(lookalikes) == 1
        and _is_simpler_form(lookalikes[0], character, lookalikes_of)
    }


def _is_simpler_form(candidate: str, character: str, lookalikes_of: dict[str, list[str]]) -> bool:
    """Whether a character becomes its look-alike `candidate`, not the other way round.

    The table lists two characters that look alike in both directions.
    """
    if len(candidate) > 1 or len(lookalikes_of.get(candidate, ())) > 1:
        return True
    return candidate < character


CARD_BYTES_MAX = 100_000
"""Maximum size of a model card; the longest public card has 2.6 kB."""
_FIELD_LINE = re.compile(r"^\s*[-*]\s+\*\*(.+?):?\*\*:?[ \t]*(.*)$")
"""First line of a field of a card, such as `- **Pooling:** mean`: its name and its text."""
_OTHER_LINE_END = re.compile(r"\r\n?")
"""Line ends of Windows and of old Macs."""
_SECTION_LINE = re.compile(r"^#{2,}\s+(\S.*)$")
"""Heading of a section of a card, such as `## Training data`."""


@dataclass(frozen=True)
class CardField:
    """One field or section of a card: its name, its text and its line number."""

    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Card:
    """The card of a model, with its fields and sections in order."""

    name: str
    """Name of the file in messages."""
    text: str
    fields: tuple[CardField, ...]
    fault: Fault | None = None
    """Why the card cannot be read; None for a readable card."""

    def field_named(self, *words: str) -> CardField | None:
        """Return the first field whose name contains one of the words; earlier words go first.

        Letter case of the name is ignored. None if no name contains any of the words.
        """
        for word in words:
            for field in self.fields:
                if word in field.name.casefold():
                    return field
        return None

    def position(self, line: int) -> Position:
        """Return the position of the beginning of a line."""
        return Position(line, 1)


def read_card(path: Path, name: str) -> Card | None:
    """Return the card in a file, or None without a file; `fault` is set if it is unreadable."""
    if not path.is_symlink() and not path.exists():
        return None
    try:
        raw = read_bytes(path)
    except NothingChecked as error:
        return Card(name, "", (), _unreadable_fault(error.message, "no access"))
    return parse_card(raw, name)


def parse_card(raw: bytes | Fault, name: str) -> Card:
    """Return the card in `raw`; if `raw` is a Fault, the card is empty and has a fault."""
    if isinstance(raw, Fault):
        return Card(
            name, "", (), _unreadable_fault(f"the card cannot be read: {raw.message}", raw.found)
        )
    if len(raw) > CARD_BYTES_MAX:
        return Card(
            name, "", (), _unreadable_fault(f"the card has {len(raw):,} bytes", f"{len(raw)} bytes")
        )
    if (disguise := disguise_of(raw, markup=True)) is not None:
        fault = disguise_fault(disguise, "the card in Markdown", at=disguise.lines[0], card=True)
        text = raw.decode("utf-8", "replace") if disguise.kind == CONFLICT else ""
        return Card(name, _OTHER_LINE_END.sub("\n", text), (), fault)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Card(
            name,
            "",
            (),
            _unreadable_fault(f"the card is not UTF-8 at byte {error.start}", "not UTF-8"),
        )
    text = _OTHER_LINE_END.sub("\n", text)
    return Card(name, text, tuple(_fields_in(text)))


def _unreadable_fault(message: str, actual: str) -> Fault:
    """Return the fault of a card that cannot be read."""
    expected = f"a regular UTF-8 file of at most {CARD_BYTES_MAX} bytes"
    return Fault("unreadable-card", (), message, actual, expected, at=0, card=True)


def _fields_in(text: str) -> list[CardField]:
    """Return the fields and sections in the text of a card."""
    fields: list[tuple[str, int, list[str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := _FIELD_LINE.match(line):
            fields.append((match.group(1), number, [match.group(2)]))
        elif match := _SECTION_LINE.match(line):
            fields.append((match.group(1).rstrip(), number, []))
        elif fields:
            fields[-1][2].append(line)
    return [
        CardField(name, " ".join(" ".join(lines).split()), number) for name, number, lines in fields
    ]
