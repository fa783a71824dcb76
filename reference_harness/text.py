"""Format lists and lines of messages."""

import shutil
import textwrap
from collections.abc import Sequence

import click

UNLIMITED_COLUMNS = 10_000
"""Columns without a terminal: in a pipe, lines are not wrapped."""
INDENT = "    "
"""Indent of the further lines of a wrapped line."""
SHOWN_MAX = 3
"""Maximum number of names that a message lists; the number of others is added."""


def first_and_more(names: Sequence[str]) -> str:
    """Return the first names and the number of the others: "a, b, c and 9 more"."""
    hidden_count = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (
        f" and {hidden_count:,} more" if hidden_count > 0 else ""
    )


def wrapped(text: str) -> str:
    """Return text whose lines are wrapped between words if the terminal is narrower."""
    columns = shutil.get_terminal_size((UNLIMITED_COLUMNS, 24)).columns
    lines = [
        line
        if len(line) <= columns
        else textwrap.fill(
            line,
            columns,
            subsequent_indent=INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def echo(text: str, *, err: bool = False) -> None:
    """Print text, wrapped."""
    click.echo(wrapped(text), err=err)
