"""A table that can be shown on a terminal, as Markdown and as HTML."""

import bisect
import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from rich.cells import cell_len

from geneb_ci.render.plain import visible
from reference_harness.formats.text import plural

COLUMN_GAP = 2
"""Number of spaces between columns on a terminal."""
INDENT = 4
"""Number of spaces before the part of a row that is moved to the next line."""
HTML_ROWS_MAX = 200
"""Maximum number of rows in HTML; with ten thousand a notebook hardly scrolls."""
WRAPPED_WIDTH_MIN = 24
"""Minimum number of columns of wrapped text; fewer are hard to read."""


def wrapped_text(text: str, width: int) -> str:
    """Return text with longer lines wrapped at `width` columns; continuation lines are indented."""
    lines: list[str] = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + INDENT)
        lines += wrapped_lines(line, width, indent) if cell_len(line) > width else [line]
    return "".join(f"{line}\n" for line in lines)


def first_that_fit(blocks: Sequence[Sequence[str]], lines_max: int) -> Sequence[Sequence[str]]:
    """Return the first blocks of lines that have at most `lines_max` lines together."""
    return blocks[: bisect.bisect_right([*itertools.accumulate(map(len, blocks))], lines_max)]


def left_out_line(count: int, noun: str) -> Iterator[str]:
    """Yield a line that says how many items were not printed and how to print them; none for 0."""
    if count:
        yield f"and {plural(count, f'more {noun}')}: --all prints all"


def wrapped_lines(text: str, width: int, indent: str = "", first_indent: str = "") -> list[str]:
    """Return the lines of a wrapped text; only a line with a longer word exceeds `width`."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first_indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def _word_pieces(word: str, width: int) -> list[str]:
    """Return a word cut into pieces of `width` letters, since a task id can have a hundred."""
    return [word[start : start + width] for start in range(0, len(word), width)] or [""]


@dataclass(frozen=True)
class Table:
    """Rows of cells under column names, which each output escapes as it requires."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    """Texts; for `html` also numbers."""
    right_aligned: frozenset[str] = frozenset()
    """Columns that are aligned on the right, as their cells are numbers."""

    def text_lines(self, *, head: bool = True) -> list[str]:
        """Return one line per row; each column is as wide as its widest cell."""
        lines = [*([self.columns] if head else []), *self.rows]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        return [self._aligned(line, widths) for line in lines]

    def fitted_rows(
        self, width: int, *, head: bool = True, first_cell_alone: bool = False
    ) -> list[list[str]]:
        """Return the lines of each row, in at most `width` columns if its words allow that.

        If a row is too wide, the texts of the last column are wrapped. If that column has numbers,
        or with `first_cell_alone`, the first cell of each row is on a line of its own instead.
        """
        lines = self.text_lines(head=head)
        cells = [*([self.columns] if head else []), *self.rows]
        if max(map(cell_len, lines), default=0) <= width:
            return [[line] for line in lines]
        if first_cell_alone or self.columns[-1] in self.right_aligned:
            other_columns = Table(
                self.columns[1:], [row[1:] for row in self.rows], self.right_aligned
            )
            indent = " " * INDENT
            return [
                [*(_word_pieces(row[0], width) if row[0] else ()), f"{indent}{line}"]
                for row, line in zip(cells, other_columns.text_lines(head=head), strict=True)
            ]
        first_columns = Table(
            self.columns[:-1], [row[:-1] for row in self.rows], self.right_aligned
        )
        starts = first_columns.text_lines(head=head)
        first_width = max(map(cell_len, starts)) + COLUMN_GAP
        if width - first_width < WRAPPED_WIDTH_MIN:
            indent = " " * INDENT
            return [
                [
                    start,
                    *(f"{indent}{line}" for line in wrapped_lines(row[-1], width - INDENT) if line),
                ]
                for row, start in zip(cells, starts, strict=True)
            ]
        return [
            [
                f"{part}{' ' * (first_width - cell_len(part))}{line}"
                for part, line in itertools.zip_longest(
                    [start], wrapped_lines(row[-1], width - first_width), fillvalue=""
                )
            ]
            for row, start in zip(cells, starts, strict=True)
        ]

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> str:
        """Return the cells of a line, filled with spaces to the widths of the columns."""
        cells = []
        for name, text, width in zip(self.columns, line, widths, strict=True):
            space = " " * (width - cell_len(text))
            cells.append(space + text if name in self.right_aligned else text + space)
        return (" " * COLUMN_GAP).join(cells).rstrip()

    def html(self, caption: str = "") -> str:
        """Return the table as HTML; every text is escaped, and hidden characters are shown."""
        joined = Markup("").join
        lines = [
            Markup("<tr>{}</tr>").format(
                joined(Markup("<td>{}</td>").format(_value_text(value)) for value in row)
            )
            for row in self.rows[:HTML_ROWS_MAX]
        ]
        hidden_count = len(self.rows) - HTML_ROWS_MAX
        title = (
            f"{caption}; {hidden_count:,} more rows are not shown" if hidden_count > 0 else caption
        )
        return str(
            Markup(
                "<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
            ).format(
                visible(title),
                joined(Markup("<th>{}</th>").format(name) for name in self.columns),
                joined(lines),
            )
        )

    def markdown_lines(self) -> list[str]:
        """Return the column names, the separator line and one line per row."""
        separator = ["---:" if name in self.right_aligned else "---" for name in self.columns]
        return [f"| {' | '.join(line)} |" for line in (self.columns, separator, *self.rows)]


def _value_text(value: object) -> str:
    """Return a value of a cell as text; numbers have three decimals."""
    return f"{value:.3f}" if isinstance(value, float) else visible(str(value))
