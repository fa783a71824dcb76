"""Tables of a board as files: CSV, Parquet, and the codebook that says what is in them."""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from geneb_ci.board.columns import Entry, in_board_order
from geneb_ci.board.score_list import score_lines
from geneb_ci.common.parquet import ColumnKind, ParquetColumn, parquet_bytes
from reference_harness.formats.benchmark import Benchmark

FORMULA = re.compile(r"['=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""First letters with which a spreadsheet reads a cell as a formula, also in wide forms."""
MARK = "'"
"""The prefix that marks a text; a text that begins with it gets a second one."""
CODEBOOK = "codebook.json"
VALUES = "values"
VALUES_CSV, VALUES_PARQUET = f"{VALUES}.csv", f"{VALUES}.parquet"
UNKNOWN = '""'
ROWS_AT_ONCE = 1000
"""Lines that are written at once."""
UNKNOWN_DECIMALS = 6
"""Decimals of a score whose error is not known: as many as the page has of it."""
ALL_DECIMALS = 400
"""Decimals of a score without error: `round` leaves a number as it is."""


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    type: ColumnKind
    about: str


class Table(NamedTuple):
    """A table with what each of its columns means."""

    name: str
    about: str
    columns: tuple[TableColumn, ...]
    rows: Callable[[], Iterable[tuple[Any, ...]]]
    """Makes the lines, each with a value or None for every column."""


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
        "Standard error of the value, in its unit, with two digits: how far it would move on other "
        "test sequences, and for few examples on other training draws where the submission has "
        "scores by seed. Known of MCC, where every test set has a known size.",
    ),
    TableColumn(
        "attested",
        "text",
        "Whether the value is claimed or was rerun: what audits show of it, as in the table "
        "`scores` of an export.",
    ),
    TableColumn("evidence", "text", "What others did to confirm the scores of the model."),
    TableColumn(
        "level",
        "text",
        "Trust level: authorship and evidence in one word; self-reported is checked, and verified "
        "audited, of a contributed row.",
    ),
)

_DISPLAYED = TableColumn("display", "text", "Name of the model.")
_ENDS = (
    TableColumn("standard_error", "number", "Standard error, with two digits; empty if unknown."),
    TableColumn("low", "number", "Lower end of the 95 % interval."),
    TableColumn("high", "number", "Upper end of the 95 % interval."),
)
_PAGE_COLUMNS = {
    "choose": (
        "Saved by the view Choose: one line for each model and regime, the highest first.",
        (
            TableColumn("species", "text", "What was asked: a species or kingdom, or `any`."),
            TableColumn("kind", "text", "What was asked: a category of tasks, or `any`."),
            TableColumn("tasks", "count", "How many tasks match, and the mean is over."),
            TableColumn("labelled_examples", "text", "What was asked: a regime, or `hundreds`."),
            TableColumn("gpu_memory", "text", "What was asked, in GB: half of it is for weights."),
            TableColumn("evidence_asked", "text", "What was asked: `any`, or an evidence."),
            TableColumn("accepted_loss", "number", "What was asked: the MCC that may be lost."),
            TableColumn("regime", "text", "The regime of the numbers of the line."),
            _VALUE_COLUMNS[0],
            _DISPLAYED,
            TableColumn("params", "count", "Number of parameters of the encoder."),
            TableColumn("authorship", "text", "Whose file the row is."),
            TableColumn("evidence", "text", "What others did to confirm the scores."),
            TableColumn("defects", "text", "Ids of published defects, separated by spaces."),
            TableColumn("warnings", "text", "Rules that warn about it, separated by spaces."),
            TableColumn("mean", "number", "Mean MCC over the tasks, each counting alike."),
            *_ENDS,
            TableColumn(
                "loses_at_most",
                "number",
                "What it loses at most against the best, with 95 % confidence; empty where it "
                "scores further below the highest than is accepted.",
            ),
            TableColumn("qualifies", "flag", "Whether it is smaller and loses no more than that."),
        ),
    ),
    "scores": (
        (
            "Saved by the view Scores: one line for each model that is shown. Before these columns "
            "stand the facts of the model, as in the table `models` of an export; COLUMN is a "
            "column that is shown, a task by its id."
        ),
        (
            TableColumn("rank by COLUMN", "count", "Rank among all ranked models of the board."),
            TableColumn("ranked models", "count", "How many models are ranked."),
            TableColumn("rank from", "count", "Best rank that the errors allow."),
            TableColumn("rank to", "count", "Worst rank that the errors allow."),
            TableColumn("could be best", "flag", "Whether none scores significantly higher."),
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
            *_ENDS,
            TableColumn("rank", "count", "Rank among all ranked models of the board."),
            TableColumn("rank_from", "count", "Best rank that the errors allow, of a mean."),
            TableColumn("rank_to", "count", "Worst rank that the errors allow, of a mean."),
        ),
    ),
    "findings": (
        (
            "Saved by the view Findings: one line for each figure, and one for each of its parts "
            "that the page has; diagnostics.json has all."
        ),
        (
            TableColumn("figure", "text", "Id of the figure."),
            TableColumn("scope", "text", "`paper`, `board` or `exclusions`."),
            TableColumn("definition", "text", "What the figure is."),
            TableColumn("unit", "text", "Unit of the value."),
            TableColumn("rows", "count", "Number of models that it is computed from."),
            TableColumn("part", "text", "Name of the part; empty for the figure itself."),
            TableColumn("value", "number", "Value of the figure or the part."),
        ),
    ),
}
PAGE_TABLES = tuple(Table(name, *columns, tuple) for name, columns in _PAGE_COLUMNS.items())
"""The tables that a visitor saves from a view; the page makes their lines."""


def values_table(entries: Iterable[Entry], benchmark: Benchmark, *, has_errors: bool) -> Table:
    """Return the long table of every score on the board, a line for each.

    `has_errors` is that of standard errors, which need the extra `build` and known sizes of all
    test sets. A regime in which a model lacks a task has no line, as on the board.
    """
    ordered = in_board_order(entries)

    def rows() -> Iterator[tuple[Any, ...]]:
        lines = score_lines(ordered, benchmark, has_errors=has_errors, ranked_only=True)
        for model, task, category, regime, metric, value, error, *audited in lines:
            decimals = decimals_of(error)
            shown_error = None if error is None else round(error, decimals)
            shown_value = round(value, decimals)
            yield model, task, category, regime, metric, shown_value, shown_error, *audited

    about = "One line for each model, regime, task and metric."
    return Table(VALUES, about, _VALUE_COLUMNS, rows)


def decimals_of(error: float | None) -> int:
    """Return the decimals of a value: those that two digits of its standard error have."""
    if error is None:
        return UNKNOWN_DECIMALS
    return max(0, 1 - math.floor(math.log10(error))) if error > 0 else ALL_DECIMALS


def codebook(tables: Iterable[Table]) -> bytes:
    """Return as JSON what one line of each table is, and the type and meaning of each column."""
    book = {
        table.name: {
            "about": table.about,
            "columns": [column._asdict() for column in table.columns],
        }
        for table in tables
    }
    return (json.dumps(book, ensure_ascii=False, indent=2) + "\n").encode()


def csv_text(table: Table) -> Iterator[bytes]:
    """Yield a table as CSV (RFC 4180, UTF-8): text is quoted, what is unknown is empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it, and so has one
    that begins with an apostrophe: taking one away gives the text back.
    """
    quoted = _Quoted()
    yield _csv_lines([[quoted[column.name] for column in table.columns]])
    lines = iter(table.rows())
    while rows := list(itertools.islice(lines, ROWS_AT_ONCE)):
        columns = zip(table.columns, zip(*rows, strict=True), strict=True)
        cells = [
            map(quoted.__getitem__, values) if column.type == "text" else map(_csv_cell, values)
            for column, values in columns
        ]
        yield _csv_lines(zip(*cells, strict=True))


def _csv_lines(rows: Iterable[Iterable[str]]) -> bytes:
    return "".join(f"{','.join(row)}\r\n" for row in rows).encode()


class _Quoted(dict[str | None, str]):
    """Texts as cells: most stand in many lines."""

    def __missing__(self, text: str | None) -> str:
        if text is None:
            return UNKNOWN
        marked = MARK + text if FORMULA.match(text) else text
        self[text] = '"{}"'.format(marked.replace('"', '""'))
        return self[text]


def _csv_cell(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return '"true"' if value else '"false"'
    if isinstance(value, list):
        return '"{}"'.format(json.dumps(value, allow_nan=False, separators=(",", ":")))
    return repr(value)


def parquet_text(table: Table) -> list[bytes]:
    """Return a table as a Parquet file, whose footer has the codebook: the same bytes always."""
    columns = [ParquetColumn(column.name, column.type) for column in table.columns]
    notes = {"about": table.about} | {
        f"about {column.name}": column.about for column in table.columns
    }
    return [parquet_bytes(columns, table.rows(), notes)]
