"""Make rows from submissions, and the two files of a board that upstream's page reads.

Numpy comes with the extra `build` alone, and is imported where it is needed.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field, ValidationError, create_model

from geneb_ci.board.columns import (
    PUBLISHED_COLUMNS,
    TASK_COLUMNS,
    Column,
    Row,
    facts_of,
    in_board_order,
)
from geneb_ci.board.means import row_statistics
from geneb_ci.check.claims import results_of
from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.common.json_text import json_pieces, json_text, object_pieces
from geneb_ci.common.types import Authorship
from geneb_ci.models.tasks import NO_NOTES, TaskNotes
from geneb_ci.statistics.metrics import PackedNumbers
from reference_harness.formats.base import MinusOneToOne, StrictModel, first_error
from reference_harness.formats.benchmark import Benchmark

EXTRA_BY_PACKAGE = {"numpy": ("build", "analyses need"), "pandas": ("tables", "table needs")}
"""By package: the extra that installs it, and the words of a message for what needs it."""
LEADERBOARD, TASKS = "leaderboard.json", "leaderboard_tasks.json"
DIAGNOSTICS = "diagnostics.json"
"""File with intervals, ranks and figures."""
DIAGNOSTICS_DEPTH = 4
"""Depth in diagnostics.json at which each member is a column, with one number for each model."""
METRICS = ("MCC", "Acc", "F1")
"""Names of the metrics in the board's files."""
_SCORE_DESCRIPTIONS = {
    "cat": "Mean score of the tasks of each category.",
    "task": "Score by id of the task.",
}
"""By beginning of a key of scores: its description in the schema."""


@contextlib.contextmanager
def extra_required(remedy: str = "") -> Iterator[None]:
    """Raise UsageProblem in this context if a package is missing that an extra installs.

    Raises UsageProblem if such a package is not installed; its fix ends with `remedy`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_BY_PACKAGE:
            raise
        extra, need = EXTRA_BY_PACKAGE[error.name]
        raise UsageProblem(
            f"{error.name} is not installed, and the board's {need} it",
            f'pip install "geneb-ci[{extra}]"{remedy}',
        ) from error


def _row_type(
    type_name: str, about: str, columns: Iterable[Column], scores: str
) -> type[StrictModel]:
    """Return the type of a row: a field for each column, then the scores by every metric.

    `scores` is a key of _SCORE_DESCRIPTIONS: the row has scores of categories, or of tasks.
    """
    fields: dict[str, Any] = {
        column.key: (column.type, Field(description=column.about))
        if column.is_required
        else (column.type, _optional_fact(column.about))
        for column in columns
    }
    for metric in METRICS:
        fields[f"micro_{metric}"] = MinusOneToOne, Field(description="Mean over all tasks.")
        fields[f"macro_{metric}"] = MinusOneToOne, Field(description="Mean of the category means.")
        fields[f"{scores}_{metric}"] = (
            dict[str, MinusOneToOne],
            Field(description=_SCORE_DESCRIPTIONS[scores]),
        )
    return create_model(type_name, __base__=StrictModel, __doc__=about, **fields)


def _remove_default(schema: dict[str, Any]) -> None:
    """Remove the default from a schema: a key that a row may lack is never null."""
    del schema["default"]


def _optional_fact(about: str) -> Any:
    """Return the field of a fact that a row may lack."""
    return Field(None, description=about, json_schema_extra=_remove_default)


CategoryRow = _row_type(
    "CategoryRow", "One model in one regime, by category.", PUBLISHED_COLUMNS, "cat"
)
"""Type of a row of leaderboard.json."""
TaskRow = _row_type("TaskRow", "One model in one regime, by task.", TASK_COLUMNS, "task")
"""Type of a row of leaderboard_tasks.json."""


class PublishedTask(StrictModel):
    """A task as the page shows it; an unknown fact is left out."""

    id: str
    label: str
    cat: str
    kingdom: str = _optional_fact("Group of species, such as plants.")
    species: str = _optional_fact("The species, if all sequences are of a single one.")
    assay: str = _optional_fact("Method by which the labels were measured.")
    length: str = _optional_fact("Length of the sequences, in words.")
    classes: int = _optional_fact("Number of classes.")
    source: str = _optional_fact("Suite that published the task.")
    near_duplicates: list[str] = _optional_fact(
        "Tasks of other suites whose labels are from the same data."
    )


class Leaderboard(StrictModel):
    """leaderboard.json: the rows by regime, ordered by the lower-case model id."""

    data: dict[str, list[CategoryRow]]  # type: ignore[valid-type]  # made by create_model


class TaskLeaderboard(StrictModel):
    """leaderboard_tasks.json: the tasks in board order, and the rows by regime."""

    tasks: list[PublishedTask]
    data: dict[str, list[TaskRow]]  # type: ignore[valid-type]  # made by create_model


TYPE_BY_FILE: dict[str, type[StrictModel]] = {LEADERBOARD: Leaderboard, TASKS: TaskLeaderboard}
"""Types of the files that are built as plain values; other files are made from typed models."""


class InvalidBoard(GenebError):
    """The built board does not fit its schema: an error of geneb-ci; nothing is written."""


def board_file_bytes(file_name: str, content: dict[str, Any]) -> bytes:
    """Return a file of the board as compact JSON in UTF-8; keys are in the order of `content`.

    Raises InvalidBoard if a row does not fit its type.
    """
    return b"".join(board_file_chunks(file_name, content))


def board_file_chunks(file_name: str, content: dict[str, Any]) -> Iterable[bytes]:
    """Return the bytes of `board_file_bytes` in chunks, one for each row or column.

    Iterating raises InvalidBoard if a row does not fit its type.
    """
    if file_name not in TYPE_BY_FILE:
        return json_pieces(content, DIAGNOSTICS_DEPTH)
    return object_pieces(
        (key, _rows_text(file_name, member) if key == "data" else [json_text(member)])
        for key, member in content.items()
    )


def _rows_text(
    file_name: str, rows_by_regime: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[bytes]:
    """Yield the JSON text of the rows of one of upstream's files, in chunks."""
    type_ = CategoryRow if file_name == LEADERBOARD else TaskRow

    def row_texts(regime: str) -> Iterator[bytes]:
        yield b"["
        for number, row in enumerate(rows_by_regime[regime]):
            row_text = json_text(row)
            try:
                type_.model_validate_json(row_text)
            except ValidationError as error:
                raise InvalidBoard(
                    f"{file_name}: data/{regime}/{number}/{first_error(error)}",
                    "report this to the maintainers",
                ) from error
            yield (b"," if number else b"") + row_text
        yield b"]"

    return object_pieces((regime, row_texts(regime)) for regime in rows_by_regime)


def leaderboards(
    rows: Iterable[Row], benchmark: Benchmark, notes: TaskNotes = NO_NOTES
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the contents of leaderboard.json and of leaderboard_tasks.json.

    `notes` has the policy's facts about the tasks. A model has no row in a regime in which it has
    missing cells, since its means would not be comparable.
    """
    by_category: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    by_task: dict[str, list[dict[str, Any]]] = {regime: [] for regime in benchmark.regimes}
    position_by_task = {task: index for index, task in enumerate(benchmark.task_ids)}
    categories, task_count = tuple(benchmark.categories), len(position_by_task)
    keys_by_metric = [
        [f"{part}_{metric}" for part in ("micro", "macro", "cat", "task")]
        for metric in benchmark.metrics
    ]
    for row in in_board_order(rows):
        submission = row.submission
        numbers = row.numbers or row_statistics(submission, results_of(submission), benchmark)
        facts = facts_of(row, PUBLISHED_COLUMNS)
        task_facts = {
            column.key: facts[column.key] for column in TASK_COLUMNS if column.key in facts
        }
        for regime, scores in numbers.scores.items():
            category_row, task_row = dict(facts), dict(task_facts)
            means = iter(numbers.means[regime])
            for number, (micro, macro, category, task) in enumerate(keys_by_metric):
                category_row[micro] = task_row[micro] = next(means)
                category_row[macro] = task_row[macro] = next(means)
                category_row[category] = dict(zip(categories, means, strict=False))
                task_scores = scores[number * task_count : (number + 1) * task_count]
                task_row[task] = PackedNumbers(position_by_task, task_scores)
            by_category[regime].append(category_row)
            by_task[regime].append(task_row)
    return {"data": by_category}, {"tasks": published_tasks(benchmark, notes), "data": by_task}


def published_tasks(benchmark: Benchmark, notes: TaskNotes) -> list[dict[str, Any]]:
    """Return the published facts of each task, in board order."""
    facts = notes.facts(benchmark.tasks)
    return [
        {"id": task.id, "label": task.label, "cat": task.category} | facts[task.id]
        for task in benchmark.tasks
    ]


def figure_inputs(
    rows: Iterable[Row],
    benchmark: Benchmark,
    boards: tuple[dict[str, Any], dict[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the contents of the board's files, by name, from which figures are computed.

    `boards` is the result of `leaderboards` for these rows; by default it is computed.
    """
    rows = list(rows)
    categories, tasks = leaderboards(rows, benchmark) if boards is None else boards
    counts = [
        {"model": row.submission.model_id, "params_in_paper": params_in_paper(row)} for row in rows
    ]
    return {LEADERBOARD: categories, TASKS: tasks, DIAGNOSTICS: {"models": counts}}


def params_in_paper(row: Row) -> int | None:
    """Return the parameter count in the paper; None for a row that the authors did not submit."""
    attributes = row.attributes if row.authorship is Authorship.OFFICIAL else {}
    count: int | None = attributes.get("params_in_paper", attributes.get("params"))
    return count
