"""Numbers and lists in messages."""

from collections.abc import Sequence

SHOWN_MAX = 3
"""Names that one message lists; the rest is counted."""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: "1 task", "2,000 tasks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_and_more(names: Sequence[str]) -> str:
    """Return the first names and the number of the others: "a, b, c and 9 more"."""
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more:,} more" if more > 0 else "")
