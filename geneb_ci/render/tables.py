"""One table, written for a terminal or as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = 2  # spaces between the columns of a terminal


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
