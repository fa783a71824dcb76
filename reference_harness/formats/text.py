"""Numbers and untrusted values in messages, the command that comes next, and lines of progress."""

import json
import re
from collections.abc import Callable, Iterator

Say = Callable[[str], None]
"""Receives a line for people: what is being done, or was."""
SHOWN_MAX = 80
"""Characters of a value in a message."""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: "1 cell", "2,000 cells", "13 categories"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {_FINAL_Y.sub('ie', noun)}s"


def quoted(value: object, limit: int = SHOWN_MAX) -> str:
    """Return untrusted data as one line of JSON in ASCII, cut to `limit` characters."""
    text = json.dumps(value, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


_FINAL_Y = re.compile(r"(?<![aeiou])y$")
"""The end of a noun whose plural ends in "ies"."""
NEXT = "next: "
"""Begins the last line of a command that leaves something to do."""
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"[^"]*")+""")
"""A word of a command line, with what is quoted in it."""
_CONTINUED, _MORE = "    ", " \\"
AND = "&&"
"""Between two commands of which the second one follows a success."""


def next_line(command: str) -> str:
    """Return the line that ends the output of a command: the one command that comes next."""
    return f"{NEXT}{command}"


def command_lines(line: str, columns: int) -> Iterator[str]:
    """Yield a line with a command as lines of at most `columns`, which a shell reads as one.

    It is broken before each `&&`, then between words: an option and its value stay on one line, and
    so does a word that is longer than that.
    """
    if len(line) <= columns:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    chain: list[list[str]] = [[]]
    for word in _WORD.findall(line):
        if word == AND:
            chain.append([])
        else:
            chain[-1].append(word)
    lines: list[str] = []
    for number, words in enumerate(chain):
        begin = f"{indent}{_CONTINUED}{AND} " if number else indent
        for group in _groups(words):
            if begin.strip() not in {"", AND} and len(f"{begin} {group}{_MORE}") > columns:
                lines.append(begin)
                begin = f"{indent}{_CONTINUED}{group}"
            else:
                begin += group if begin.endswith(" ") or not begin else f" {group}"
        lines.append(begin)
    yield from (f"{text}{_MORE}" for text in lines[:-1])
    yield lines[-1]


def _groups(arguments: list[str]) -> list[str]:
    """Return the words of a command, each option with what may be its value."""
    groups: list[str] = []
    for word in arguments:
        option = groups[-1] if groups else ""
        if option.startswith("-") and option != "--" and " " not in option and word[0] != "-":
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    return groups


def silent(line: str) -> None:
    """Receive a line that nobody reads."""


def well_formed(text: str) -> str:
    """Return a text with lone surrogates escaped, which not every JSON parser accepts."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
