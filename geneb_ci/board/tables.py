"""Tables of a board as CSV and Parquet files, and the codebook that describes their columns."""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from geneb_ci.board.columns import Row, in_board_order
from geneb_ci.board.score_list import score_lines
from geneb_ci.common.parquet import ColumnKind, ParquetColumn, parquet_chunks
from reference_harness.formats.benchmark import Benchmark

FORMULA_START = re.compile(r"['=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""A first character by which a spreadsheet takes a cell for a formula."""
FORMULA_GUARD = "'"
"""Written before a text that a spreadsheet would take for a formula, and before itself."""
CODEBOOK_FILE = "codebook.json"
"""File that describes the columns of all tables."""
VALUES_TABLE = "values"
"""Name of the long table of the board."""
VALUES_CSV, VALUES_PARQUET = f"{VALUES_TABLE}.csv", f"{VALUES_TABLE}.parquet"
UNKNOWN_CELL = '""'
"""Cell of CSV with an empty text, which means not known."""
LINES_AT_ONCE = 1000
"""Number of lines of a table that are formatted at once."""
UNKNOWN_DECIMALS = 6
"""Decimals of a score whose standard error is unknown, the same as in the page's data."""
ALL_DECIMALS = 400
"""Number of decimals that stands for all: `round` then changes nothing."""


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    type: ColumnKind
    about: str


class DescribedTable(NamedTuple):
    """A table with a description of itself and of each column."""

    name: str
    about: str
    columns: tuple[TableColumn, ...]
    rows: Callable[[], Iterable[tuple[Any, ...]]]
    """Returns the lines; a line has a value or None for each column."""


_VALUE_COLUMNS = (
    TableColumn("model", "text", "Id of the model."),
    TableColumn("task", "text", "Id of the task."),
    TableColumn("category", "text", "Category of the task."),
    TableColumn("regime", "text", "How much training data the probe gets."),
    TableColumn("metric", "text", "What the value is of: `MCC`, `Acc` or `F1`."),
    TableColumn(
        "value",
        "number",
        "Mean over the seeds, as a fraction of 1, rounded to two digits of its standard error; "
        f"with {UNKNOWN_DECIMALS} decimals where no error is known.",
    ),
    TableColumn(
        "standard_error",
        "number",
        "Standard error, in the value's unit, two digits: expected variation over other test "
        "sequences and, few-shot with scores by seed, over other training draws. Only for MCC, "
        "if every test size is known.",
    ),
    TableColumn(
        "attested",
        "text",
        "Whether the value is only claimed or was compared by audits, in the words of the table "
        "`scores` of an export.",
    ),
    TableColumn("evidence", "text", "What others did to confirm the scores of the model."),
    TableColumn(
        "level",
        "text",
        "Trust level: authorship and evidence in one word; for a contributed row, self-reported "
        "means checked, and verified means audited.",
    ),
)
"""The columns of the long table."""

_DISPLAY_COLUMN = TableColumn("display", "text", "Name of the model.")
"""The column with the name of the model, in tables that the page saves."""
_INTERVAL_COLUMNS = (
    TableColumn("standard_error", "number", "Standard error, with two digits; empty if unknown."),
    TableColumn("low", "number", "Lower end of the 95 % interval."),
    TableColumn("high", "number", "Upper end of the 95 % interval."),
)
"""The columns with error and interval of a score, in tables that the page saves."""
_PAGE_COLUMNS = {
    "choose": (
        "Saved by the view Choose: one line for each model and regime, the highest first.",
        (
            TableColumn("species", "text", "Requested species or kingdom, or `any`."),
            TableColumn("kind", "text", "Requested category of tasks, or `any`."),
            TableColumn("tasks", "count", "Number of matching tasks in the mean."),
            TableColumn("labelled_examples", "text", "Requested regime, or `hundreds`."),
            TableColumn("gpu_memory", "text", "Memory in GB; weights may fill half of it."),
            TableColumn("evidence_asked", "text", "Requested minimum evidence, or `any`."),
            TableColumn("accepted_loss", "number", "Accepted loss of MCC."),
            TableColumn("regime", "text", "Regime of the line's numbers."),
            _VALUE_COLUMNS[0],
            _DISPLAY_COLUMN,
            TableColumn("params", "count", "Number of parameters of the encoder."),
            TableColumn("authorship", "text", "Whose file the row is."),
            TableColumn("evidence", "text", "What others did to confirm the scores."),
            TableColumn("defects", "text", "Ids of published defects, separated by spaces."),
            TableColumn("warnings", "text", "Rules that warn about the row, separated by spaces."),
            TableColumn("mean", "number", "Mean MCC over the tasks, with equal weights."),
            *_INTERVAL_COLUMNS,
            TableColumn(
                "loses_at_most",
                "number",
                "Upper bound of its loss compared with the best model, with 95 % confidence; empty "
                "if it scores further below the highest than `accepted_loss`.",
            ),
            TableColumn(
                "qualifies", "flag", "Whether it is smaller and loses at most `accepted_loss`."
            ),
        ),
    ),
    "scores": (
        (
            "Saved by the view Scores: one line for each model that is shown. The first columns "
            "are the facts of the model, as in the table `models` of an export; COLUMN is the name "
            "of a column that is shown, or the id of a task."
        ),
        (
            TableColumn("rank by COLUMN", "count", "Rank among all ranked models of the board."),
            TableColumn("ranked models", "count", "Number of ranked models."),
            TableColumn("rank from", "count", "Best rank in the rank range."),
            TableColumn("rank to", "count", "Worst rank in the rank range."),
            TableColumn("could be best", "flag", "Whether no model scores significantly higher."),
            TableColumn("COLUMN", "number", "Score, rounded to two digits of its error."),
            TableColumn("COLUMN low", "number", "Lower end of the 95 % interval."),
            TableColumn("COLUMN high", "number", "Upper end of the 95 % interval."),
        ),
    ),
    "compare": (
        "Saved by the view Compare: one line for each task; MODEL is the id of a compared model.",
        (
            _VALUE_COLUMNS[1],
            _VALUE_COLUMNS[2],
            TableColumn("MODEL", "number", "Score, rounded to two digits of its error."),
            TableColumn("MODEL standard error", "number", "Its standard error, with two digits."),
        ),
    ),
    "model": (
        "Saved by the page of a model: one line for each regime and mean or task.",
        (
            _VALUE_COLUMNS[0],
            _VALUE_COLUMNS[3],
            TableColumn("scope", "text", "`mean` or `task`."),
            TableColumn("name", "text", "Macro, Micro, a category, or the id of a task."),
            _VALUE_COLUMNS[4],
            _VALUE_COLUMNS[5],
            *_INTERVAL_COLUMNS,
            TableColumn("rank", "count", "Rank among all ranked models of the board."),
            TableColumn("rank_from", "count", "Best rank in the rank range; only for a mean."),
            TableColumn("rank_to", "count", "Worst rank in the rank range; only for a mean."),
        ),
    ),
    "findings": (
        (
            "Saved by the view Findings: one line for each figure, and one for each part of it "
            "that the page shows; diagnostics.json has all parts."
        ),
        (
            TableColumn("figure", "text", "Id of the figure."),
            TableColumn("scope", "text", "`paper`, `board` or `exclusions`."),
            TableColumn("definition", "text", "Definition of the figure."),
            TableColumn("unit", "text", "Unit of the value."),
            TableColumn("rows", "count", "Number of models that it is computed from."),
            TableColumn("part", "text", "Name of the part; empty for the figure itself."),
            TableColumn("value", "number", "Value of the figure or the part."),
        ),
    ),
}
"""By name of a table that the page saves: its description and columns."""
PAGE_TABLES = tuple(
    DescribedTable(name, *columns, tuple) for name, columns in _PAGE_COLUMNS.items()
)
"""The tables that a visitor can save from a view; the page itself makes their lines."""


def values_table(rows: Iterable[Row], benchmark: Benchmark, *, has_errors: bool) -> DescribedTable:
    """Return the long table of the board: one line for each score.

    With `has_errors`, lines have standard errors, which need the extra `build` and known sizes of
    all test sets. A model has no lines in a regime in which it lacks a task, as on the board.
    """
    ordered_rows = in_board_order(rows)

    def lines() -> Iterator[tuple[Any, ...]]:
        lines = score_lines(ordered_rows, benchmark, has_errors=has_errors, ranked_only=True)
        for model, task, category, regime, metric, score, standard_error, *audited in lines:
            decimals = shown_decimals(standard_error)
            shown_error = None if standard_error is None else round(standard_error, decimals)
            shown_value = round(score, decimals)
            yield model, task, category, regime, metric, shown_value, shown_error, *audited

    about = "One line for each model, regime, task and metric."
    return DescribedTable(VALUES_TABLE, about, _VALUE_COLUMNS, lines)


def shown_decimals(error: float | None) -> int:
    """Return the number of decimals of a score that shows two digits of its standard error."""
    if error is None:
        return UNKNOWN_DECIMALS
    return max(0, 1 - math.floor(math.log10(error))) if error > 0 else ALL_DECIMALS


def codebook(tables: Iterable[DescribedTable]) -> bytes:
    """Return as JSON the description of each table, and the type and meaning of each column."""
    tables_by_name = {
        table.name: {
            "about": table.about,
            "columns": [column._asdict() for column in table.columns],
        }
        for table in tables
    }
    return (json.dumps(tables_by_name, ensure_ascii=False, indent=2) + "\n").encode()


def csv_text(table: DescribedTable) -> Iterator[bytes]:
    """Yield a table as CSV (RFC 4180, UTF-8): text is quoted, an unknown value is empty.

    A text that a spreadsheet would take for a formula, or that begins with an apostrophe, gets an
    apostrophe before it: removing one from such a cell restores the text.
    """
    quoted_texts = _QuotedTexts()
    yield _csv_lines([[quoted_texts[column.name] for column in table.columns]])
    lines = iter(table.rows())
    while rows := list(itertools.islice(lines, LINES_AT_ONCE)):
        columns = zip(table.columns, zip(*rows, strict=True), strict=True)
        cells = [
            map(quoted_texts.__getitem__, values)
            if column.type == "text"
            else map(_csv_cell, values)
            for column, values in columns
        ]
        yield _csv_lines(zip(*cells, strict=True))


def _csv_lines(rows: Iterable[Iterable[str]]) -> bytes:
    """Return lines of CSV from cells that are quoted already."""
    return "".join(f"{','.join(row)}\r\n" for row in rows).encode()


class _QuotedTexts(dict[str | None, str]):
    """Cache of texts quoted for CSV, since most texts occur in many lines."""

    def __missing__(self, cell_text: str | None) -> str:
        if cell_text is None:
            return UNKNOWN_CELL
        safe_text = FORMULA_GUARD + cell_text if FORMULA_START.match(cell_text) else cell_text
        self[cell_text] = '"{}"'.format(safe_text.replace('"', '""'))
        return self[cell_text]


def _csv_cell(cell: object) -> str:
    """Return a value as a cell of CSV."""
    if cell is None:
        return UNKNOWN_CELL
    if isinstance(cell, bool):
        return '"true"' if cell else '"false"'
    if isinstance(cell, list):
        return '"{}"'.format(json.dumps(cell, allow_nan=False, separators=(",", ":")))
    return repr(cell)


def parquet_text(table: DescribedTable) -> Iterator[bytes]:
    """Yield a table as a reproducible Parquet file, whose footer has the codebook."""
    columns = [ParquetColumn(column.name, column.type) for column in table.columns]
    notes = {"about": table.about} | {
        f"about {column.name}": column.about for column in table.columns
    }
    return parquet_chunks(columns, table.rows(), notes)
