"""Recovered confusion matrices as text, CSV or JSON."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from geneb_ci.build.matrices import Recovered
from geneb_ci.report.plain import visible

COLUMNS = (
    *("regime", "task", "seed", "n_test", "small_class", "large_class", "matrices"),
    *("small_right", "small_wrong", "large_right", "large_wrong", "MCC", "Acc", "F1"),
)
# A spreadsheet takes a text that begins so for a formula, and runs it.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def _row(cell: Recovered) -> dict[str, Any]:
    """Give one line: a cell and the table nearest to what was printed, if there is one."""
    small, large = cell.classes
    known = (cell.regime, cell.task, cell.seed, small + large, small, large, cell.matrices)
    found = (*(cell.table or (None,) * 4), *(cell.scores or (None,) * 3))
    return dict(zip(COLUMNS, (*known, *found), strict=True))


def neutral(value: object) -> object:
    """Keep a text from being taken for a formula; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return "" if value is None else value


def as_csv(cells: list[Recovered]) -> str:
    """Write one line a cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([neutral(value) for value in _row(cell).values()] for cell in cells)
    return stream.getvalue()


def as_json(cells: list[Recovered]) -> str:
    """Write all that is known: every table of a cell, where they are few."""
    rows = [_row(cell) | {"tables": [one._asdict() for one in cell.tables]} for cell in cells]
    return json.dumps(rows, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def as_text(cells: list[Recovered]) -> str:
    """Write a table for a terminal: rights over sizes, by class."""
    lines: list[tuple[str, ...]] = [
        ("task", "seed", "matrices", "smaller class", "larger class", "MCC", "Acc", "F1")
    ]
    for cell in cells:
        right = (
            (
                f"{cell.table.small_right}/{cell.classes.small}",
                f"{cell.table.large_right}/{cell.classes.large}",
            )
            if cell.table
            else ("-", "-")
        )
        values = [f"{value:.4f}" for value in cell.printed]
        seed = "" if cell.seed is None else str(cell.seed)
        lines.append((visible(cell.task), seed, str(cell.matrices), *right, *values))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    )
    one = sum(cell.matrices == 1 for cell in cells)
    none = sum(cell.matrices == 0 for cell in cells)
    return (
        "\n".join([*aligned, "", f"{len(cells)} cells: {one} with one matrix, {none} with none"])
        + "\n"
    )


WRITERS: dict[str, Callable[[list[Recovered]], str]] = {
    "text": as_text,
    "csv": as_csv,
    "json": as_json,
}
