"""Numbers, lists and lines in messages."""

import shutil
import textwrap
from collections.abc import Sequence

import click

UNLIMITED = 10_000
"""Columns where no terminal has a width: in a pipe, a line stays one line."""
INDENT = "    "
"""Before what continues a line."""
SHOWN_MAX = 3
"""Names that one message lists; the rest is counted."""


def first_and_more(names: Sequence[str]) -> str:
    """Return the first names and the number of the others: "a, b, c and 9 more"."""
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more:,} more" if more > 0 else "")


def wrapped(text: str) -> str:
    """Return text; where a terminal is narrower, each line is wrapped between words."""
    columns = shutil.get_terminal_size((UNLIMITED, 24)).columns
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
