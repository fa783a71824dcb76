"""Makes contributor text printable, and makes JSON harmless in a log of GitHub Actions."""

import json
from collections.abc import Mapping
from typing import Any

from geneb_ci.common.finding import HIDING_CHARACTERS
from reference_harness.formats.text import well_formed

VISIBLE_TEXT_MAX = 1000
"""Maximum characters shown of one text, since a key can be as long as its file."""
_CUT_MARK = "..."
"""Written where a text was cut off."""


def printable_pieces(text: str) -> list[str]:
    r"""Return one printable piece per character, so that a caret can be placed under it.

    Control characters, bidirectional overrides, zero-width and blank characters, and lone
    surrogates become backslash escapes. So does the first # of "##[", which the runner of GitHub
    Actions interprets as a command anywhere in a line.
    """
    if _is_plain(text):
        return list(text)
    characters = [
        c
        if c.isprintable() and not HIDING_CHARACTERS.match(c)
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    ]
    start = text.find("##[")
    while start >= 0:
        characters[start] = r"\x23"
        start = text.find("##[", start + 1)
    return characters


def _is_plain(text: str) -> bool:
    """Whether a text can be printed as it is."""
    return text.isascii() and text.isprintable() and "##[" not in text


def visible(text: str, limit: int = VISIBLE_TEXT_MAX) -> str:
    """Return text as one line of printable characters, cut at `limit`."""
    text = text[: limit + 1]
    printable = text if _is_plain(text) else "".join(printable_pieces(text))
    return (
        printable
        if len(printable) <= limit
        else f"{printable[: limit - len(_CUT_MARK)]}{_CUT_MARK}"
    )


def audit_words(audit: Mapping[str, Any]) -> str:
    """Return what `leaderboard.json` says about the audit of a row, as one line."""
    return "audited {tasks}/{of}, sandbox level {sandbox}, {date}, {verdict}".format_map(audit)


def log_safe_json(document: Mapping[str, Any]) -> str:
    """Return a document as JSON that is harmless in a log: lone surrogates and "##[" are escaped.

    GitHub's runner treats "##[" as a command; in JSON it can occur only in strings.
    """
    json_text = json.dumps(_well_formed(document), indent=2, ensure_ascii=True, allow_nan=False)
    return json_text.replace("##[", r"#\u0023[") + "\n"


def _well_formed(value: Any) -> Any:
    """Return a value of JSON in which lone surrogates are replaced."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {key: _well_formed(member) for key, member in value.items()}
    return [_well_formed(item) for item in value] if isinstance(value, list) else value
