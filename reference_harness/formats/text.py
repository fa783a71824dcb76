"""Numbers and untrusted values in messages."""

import json

SHOWN_MAX = 80
"""Characters of a value in a message."""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: "1 cell", "2,000 cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def quoted(value: object, limit: int = SHOWN_MAX) -> str:
    """Return untrusted data as one line of JSON in ASCII, cut to `limit` characters."""
    text = json.dumps(value, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
