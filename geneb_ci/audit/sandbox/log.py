"""What an extractor printed, made fit to be shown: it is hostile text."""

import re

ATTEMPT = "attempt: "
"""Lines of the worker that name what foreign code tried; anybody inside can print such a line."""
EVENT = re.compile(r"[A-Za-z_]{1,20}(\.[A-Za-z_]{1,20}){0,3}", re.ASCII)
"""Form of an event's name: what is forged cannot speak to the reader of a record."""
EVENTS_MAX = 40
LINE_MAX = 400  # characters of a line shown
LINES_MAX = 200  # last lines kept


def shown(raw: bytes) -> str:
    """Give the last lines, each behind a bar, with every character visible.

    The bar keeps a line from being read as a command by the runner of GitHub Actions, which looks
    for `::` at its start; `##[`, which it looks for anywhere, is broken up.
    """
    lines = raw.decode("utf-8", "backslashreplace").splitlines()[-LINES_MAX:]
    return "\n".join(f"| {_visible(line)}" for line in lines)


def last_line(raw: bytes) -> str:
    """Give the last line that says something."""
    lines = [line for line in raw.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(ATTEMPT)]
    return _visible(said[-1]) if said else ""


def attempts(raw: bytes) -> list[str]:
    """Give the attempts that were noted, sorted, each once."""
    lines = raw.decode("utf-8", "backslashreplace").splitlines()
    found = {line.removeprefix(ATTEMPT) for line in lines if line.startswith(ATTEMPT)}
    return sorted(one for one in found if EVENT.fullmatch(one))[:EVENTS_MAX]


def _visible(line: str) -> str:
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line[:LINE_MAX])
    return printable.replace("##[", r"\x23#[")
