"""Numbers and untrusted values in messages, and who receives lines of progress."""

import json
from collections.abc import Callable

Say = Callable[[str], None]
"""Receives a line for people: what is being done, or was."""
SHOWN_MAX = 80
"""Characters of a value in a message."""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: "1 cell", "2,000 cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def quoted(value: object, limit: int = SHOWN_MAX) -> str:
    """Return untrusted data as one line of JSON in ASCII, cut to `limit` characters."""
    text = json.dumps(value, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def silent(line: str) -> None:
    """Receive a line that nobody reads."""
