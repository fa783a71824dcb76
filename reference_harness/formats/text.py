"""Text for messages: numbers with nouns, quoted values, and the command to run next."""

import json
import re
from collections.abc import Callable, Iterator

Say = Callable[[str], None]
"""Function that receives a line of progress for the user."""
SHOWN_MAX = 80
"""Maximum number of characters of a value in a message."""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: "1 cell", "2,000 cells", "13 categories"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {_FINAL_Y.sub('ie', noun)}s"


def quoted(value: object, limit: int = SHOWN_MAX) -> str:
    """Return untrusted data as one line of ASCII JSON of at most `limit` characters."""
    text = json.dumps(value, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


_FINAL_Y = re.compile(r"(?<![aeiou])y$")
"""The end of a noun whose plural ends in "ies"."""
NEXT_PREFIX = "next: "
"""Beginning of the last line of output, if another command should be run next."""
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"[^"]*")+""")
"""A word of a command line, including quoted parts."""
_INDENT, _CONTINUATION = "    ", " \\"
AND = "&&"
"""Separates two commands; the second runs only if the first succeeds."""


def next_line(command: str) -> str:
    """Return the last line of a command's output, which names the next command."""
    return f"{NEXT_PREFIX}{command}"


def command_lines(line: str, columns: int) -> Iterator[str]:
    """Yield a command line as lines of at most `columns` characters, joined by a shell.

    It is broken before each `&&`, then between words. An option and its value stay on one line,
    even if that is longer.
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
    for chain_index, words in enumerate(chain):
        line_start = f"{indent}{_INDENT}{AND} " if chain_index else indent
        for group in _option_groups(words):
            if (
                line_start.strip() not in {"", AND}
                and len(f"{line_start} {group}{_CONTINUATION}") > columns
            ):
                lines.append(line_start)
                line_start = f"{indent}{_INDENT}{group}"
            else:
                line_start += group if line_start.endswith(" ") or not line_start else f" {group}"
        lines.append(line_start)
    yield from (f"{text}{_CONTINUATION}" for text in lines[:-1])
    yield lines[-1]


def _option_groups(arguments: list[str]) -> list[str]:
    """Return the words of a command, each option joined with its possible value."""
    groups: list[str] = []
    for word in arguments:
        option = groups[-1] if groups else ""
        if option.startswith("-") and option != "--" and " " not in option and word[0] != "-":
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    return groups


def silent(line: str) -> None:
    """Ignore a line of progress."""


def well_formed(text: str) -> str:
    """Return a text with lone surrogates escaped, as some JSON parsers reject them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
