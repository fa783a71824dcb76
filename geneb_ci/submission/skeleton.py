"""Names that look alike: skeletons and scripts, by the data of Unicode Technical Standard 39."""

import functools
import json
import re
import unicodedata
from importlib.resources import files

MARKS_MAX = 2
"""Combining marks on one letter: Vietnamese and pointed Hebrew have two; more only hide text."""
PASSES_MAX = 8
"""More than any character of the table takes: most take one, and one more to see that."""
_MARKS = re.compile(f"m{{{MARKS_MAX + 1}}}")
_ASCII = {
    "0": "O", "1": "l", "I": "l", "m": "rn", "|": "l", "`": "'", '"': "''", "%": "\u00ba/\u2080",
}  # fmt: skip
"""What the table says of ASCII, so that a folder of plain names is compared without reading it."""
_MARK = "\u200e"  # around letters that are written from right to left, in the package's table
_COMMON = frozenset({"COMMON", "INHERITED"})
_EAST_ASIA = frozenset({"HAN", "HIRAGANA", "KATAKANA", "BOPOMOFO", "HANGUL"})
_PACKAGE = "confusable_homoglyphs"


def skeleton(name: str) -> str:
    """Return the form in which two names that look alike are the same text.

    Blanks are one space, as a page shows them; letters of other widths and styles are the usual
    ones. What the standard maps is mapped until nothing changes.
    """
    table = _ASCII if name.isascii() else _prototypes()
    found = unicodedata.normalize("NFKD", name)
    for _ in range(PASSES_MAX):
        shown = "".join(table.get(one, one) for one in " ".join(found.split()))
        before, found = found, unicodedata.normalize("NFKD", shown)
        if found == before:
            break
    return found


def skeletons(name: str) -> frozenset[str]:
    """Return the skeletons of a name as written and in lower case: alike where one is common."""
    return frozenset({skeleton(name), skeleton(name.casefold())})


def has_stacked_marks(name: str) -> bool:
    """Whether more than `MARKS_MAX` combining marks follow each other."""
    shown = unicodedata.normalize("NFD", name)
    return (
        _MARKS.search("".join("m" if unicodedata.combining(c) else "." for c in shown)) is not None
    )


def scripts(name: str) -> set[str]:
    """Return the scripts of a name; those that East Asian names combine with Latin are left out."""
    if name.isascii():
        return set()
    from confusable_homoglyphs import categories  # noqa: PLC0415 (30 ms, and names are mostly ASCII)

    return {categories.alias(one) for one in name} - _COMMON - _EAST_ASIA


@functools.cache
def _prototypes() -> dict[str, str]:
    """Return each character that looks like another text, and that text."""
    raw = json.loads((files(_PACKAGE) / "confusables.json").read_text(encoding="utf-8"))
    alike = {key.strip(_MARK): [one["c"].strip(_MARK) for one in raw[key]] for key in raw}
    return {
        one: others[0]
        for one, others in alike.items()
        if len(one) == 1 and len(others) == 1 and _stands_for(others[0], one, alike)
    }


def _stands_for(text: str, one: str, alike: dict[str, list[str]]) -> bool:
    """Whether `text` is the prototype, and not `one`; the table lists both directions."""
    if len(text) > 1 or len(alike.get(text, ())) > 1:
        return True
    return text < one
