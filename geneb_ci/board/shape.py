"""The two files that upstream's page reads, in upstream's exact shape."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field, create_model

from geneb_ci.board.columns import BY_TASK, PUBLISHED, Column
from geneb_ci.common.types import Signed, StrictModel

METRICS = ("MCC", "Acc", "F1")


def _row(name: str, about: str, columns: Iterable[Column], part: str) -> type[StrictModel]:
    """Return the type of a row: its columns, then the scores of every metric."""
    fields: dict[str, Any] = {
        column.key: (column.type, Field(description=column.about))
        if column.is_required
        else (column.type, Field(None, description=column.about, json_schema_extra=_left_out))
        for column in columns
    }
    for metric in METRICS:
        fields[f"micro_{metric}"] = Signed, Field(description="Mean over all tasks.")
        fields[f"macro_{metric}"] = Signed, Field(description="Mean of the category means.")
        fields[f"{part}_{metric}"] = dict[str, Signed], Field(description=_PARTS[part])
    return create_model(name, __base__=StrictModel, __doc__=about, **fields)


def _left_out(schema: dict[str, Any]) -> None:
    """Say nothing of a default: a key that a row may lack is never null."""
    del schema["default"]


_PARTS = {
    "cat": "Category to the mean score of its tasks.",
    "task": "Id of a task to its score.",
}
CategoryRow = _row("CategoryRow", "One model in one regime, by category.", PUBLISHED, "cat")
TaskRow = _row("TaskRow", "One model in one regime, by task.", BY_TASK, "task")


class TaskName(StrictModel):
    """A task as the page shows it."""

    id: str
    label: str
    cat: str


class Leaderboard(StrictModel):
    """leaderboard.json: regime to rows, ordered by the lower-case model id."""

    data: dict[str, list[CategoryRow]]  # type: ignore[valid-type]


class TaskLeaderboard(StrictModel):
    """leaderboard_tasks.json: the tasks in board order, and regime to rows."""

    tasks: list[TaskName]
    data: dict[str, list[TaskRow]]  # type: ignore[valid-type]
