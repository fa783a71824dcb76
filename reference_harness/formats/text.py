"""Numbers and untrusted values in messages, the command that comes next, and lines of progress."""

import json
import re
from collections.abc import Callable, Iterator

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


NEXT = "next: "
"""Begins the last line of a command that leaves something to do."""
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"[^"]*")+""")
"""A word of a command line, with what is quoted in it."""
_CONTINUED = "    "


def next_line(command: str) -> str:
    """Return the line that ends the output of a command: the one command that comes next."""
    return f"{NEXT}{command}"


def command_lines(line: str, columns: int) -> Iterator[str]:
    """Yield a line with a command as lines of at most `columns`, which a shell reads as one.

    An option and its value stay on one line, and so does a word that is longer than that.
    """
    indent = line[: len(line) - len(line.lstrip())]
    groups: list[str] = []
    for word in _WORD.findall(line):
        is_value = not word.startswith(("-", "&&")) and groups and groups[-1].startswith("--")
        if (is_value and " " not in groups[-1]) or (groups and groups[-1] == "&&"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    text = indent + (groups[0] if groups else "")
    for number, group in enumerate(groups[1:], 2):
        end = "" if number == len(groups) else " \\"
        if len(f"{text} {group}{end}") > columns:
            yield f"{text} \\"
            text = f"{indent}{_CONTINUED}{group}"
        else:
            text += f" {group}"
    yield text


def silent(line: str) -> None:
    """Receive a line that nobody reads."""
