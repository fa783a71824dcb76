"""Writes the files of a board: types of the two that upstream reads, encoding, whole writes."""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, create_model

from geneb_ci.board.columns import BY_TASK, PUBLISHED, Column
from geneb_ci.common.errors import GenebError, unwritable
from geneb_ci.common.types import Signed, StrictModel, first_error

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

    data: dict[str, list[CategoryRow]]  # type: ignore[valid-type]  # made by create_model


class TaskLeaderboard(StrictModel):
    """leaderboard_tasks.json: the tasks in board order, and regime to rows."""

    tasks: list[TaskName]
    data: dict[str, list[TaskRow]]  # type: ignore[valid-type]  # made by create_model


TYPES: dict[str, type[StrictModel]] = {
    "leaderboard.json": Leaderboard,
    "leaderboard_tasks.json": TaskLeaderboard,
}
"""Types of the files that are built as plain values; the others come from a type already."""


class InvalidBoard(GenebError):
    """What was built does not fit its own schema: an error of ours, and nothing is written."""


def encode(name: str, value: dict[str, Any]) -> bytes:
    """Return the bytes of a board file: compact, UTF-8, keys in order of the rows, no NaN.

    Raises InvalidBoard when the value does not fit the type of its name.
    """
    raw = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if name in TYPES:
        try:
            TYPES[name].model_validate_json(raw)
        except ValidationError as error:
            raise InvalidBoard(
                f"{name}: {first_error(error)}", "report this to the maintainers"
            ) from error
    return raw


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, each whole or not at all: under a temporary name, then renamed.

    Raises UsageProblem where another folder helps, MachineFault where the disk is full or fails.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            staged.append((Path(temporary), folder / name))
            with open(handle, "wb") as stream:  # noqa: PTH123 (a descriptor has no Path)
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o644)
        for temporary_path, path in staged:
            temporary_path.replace(path)
    except OSError as error:
        raise unwritable(str(folder), error, "name a folder that you may write to") from error
    finally:
        for temporary_path, _ in staged:
            temporary_path.unlink(missing_ok=True)
