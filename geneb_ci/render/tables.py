"""One table, written for a terminal or as Markdown."""

import itertools
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = 2  # spaces between the columns of a terminal
INDENT = 4  # spaces before the part of a row that is on a line of its own
ROOM_MIN = 24  # columns; text that is wrapped in fewer is hard to read


def fitted(text: str, width: int) -> str:
    """Return text with each longer line wrapped at `width` columns, indented below its first."""
    lines: list[str] = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + INDENT)
        lines += _wrapped(line, width, indent) if cell_len(line) > width else [line]
    return "".join(f"{line}\n" for line in lines)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]


@dataclass(frozen=True)
class Table:
    """Cells under the names of their columns; they are escaped for where they are shown."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    right: frozenset[str] = frozenset()
    """Columns whose cells are numbers, aligned on the right."""

    def text_lines(self, *, head: bool = True) -> list[str]:
        """Return one line a row, each column as wide on a terminal as its widest cell."""
        lines = [*([self.columns] if head else []), *self.rows]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        return [self._aligned(line, widths) for line in lines]

    def fitted_rows(self, width: int, *, head: bool = True) -> list[list[str]]:
        """Return the lines of each row, in at most `width` columns if its words allow it.

        Text in the last column is wrapped. If that column has numbers, a row that is too wide has
        its first cell on a line of its own.
        """
        lines = self.text_lines(head=head)
        cells = [*([self.columns] if head else []), *self.rows]
        if max(map(cell_len, lines), default=0) <= width:
            return [[line] for line in lines]
        if self.columns[-1] in self.right:
            rest = Table(self.columns[1:], [row[1:] for row in self.rows], self.right)
            indent = " " * INDENT
            return [
                [row[0], f"{indent}{line}"]
                for row, line in zip(cells, rest.text_lines(head=head), strict=True)
            ]
        others = Table(self.columns[:-1], [row[:-1] for row in self.rows], self.right)
        starts = others.text_lines(head=head)
        left = max(map(cell_len, starts)) + GAP
        if width - left < ROOM_MIN:
            indent = " " * INDENT
            return [
                [start, *(f"{indent}{line}" for line in _wrapped(row[-1], width - INDENT))]
                for row, start in zip(cells, starts, strict=True)
            ]
        return [
            [
                f"{part}{' ' * (left - cell_len(part))}{line}"
                for part, line in itertools.zip_longest(
                    [start], _wrapped(row[-1], width - left), fillvalue=""
                )
            ]
            for row, start in zip(cells, starts, strict=True)
        ]

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> str:
        cells = []
        for name, text, width in zip(self.columns, line, widths, strict=True):
            space = " " * (width - cell_len(text))
            cells.append(space + text if name in self.right else text + space)
        return (" " * GAP).join(cells).rstrip()

    def markdown_lines(self) -> list[str]:
        """Return head, rule and one line a row."""
        rule = ["---:" if name in self.right else "---" for name in self.columns]
        return [f"| {' | '.join(line)} |" for line in (self.columns, rule, *self.rows)]
