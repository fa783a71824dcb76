"""The finished tasks of a stopped run, in a folder beside its output, for `--resume`."""

import base64
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from reference_harness.errors import StateError
from reference_harness.formats.files import read_json, write_json
from reference_harness.formats.run_record import LibraryRef, TaskRecord
from reference_harness.formats.scorer import ScorerRef

SUFFIX = ".partial"
"""Appended to the name of the output, for the name of the folder."""


class FinishedTask(NamedTuple):
    """A finished task of a stopped run."""

    task: TaskRecord
    libraries: list[LibraryRef]
    scorer: ScorerRef
    """The scorer of the process that scored the task."""
    predictions: bytes | None
    """The task's part of `predictions.bin`; None for a run without a receipt."""


class StoppedRun:
    """The folder `<output>.partial`: one file per finished task, and one of the run's identity."""

    def __init__(self, output: Path) -> None:
        self.folder = output.with_name(output.name + SUFFIX)

    def begin(self, identity: dict[str, Any], *, resume: bool) -> bool:
        """Make or open the folder; return whether an earlier run is continued.

        `identity` is everything that must be equal in both runs. Raise StateError, which names one
        difference, if it is not. Without `resume`, the state of an earlier run is deleted.
        """
        path = self.folder / "run.json"
        if resume and path.exists():
            stored = self._json(path)
            if changed_keys := sorted(
                k for k in {*stored, *identity} if stored.get(k) != identity.get(k)
            ):
                key = changed_keys[0]
                stored_value, new_value = _differing_values(stored.get(key), identity.get(key))
                msg = (
                    f"{path}: the stopped run had {key} {stored_value!r}, but this run "
                    f"has {new_value!r}: repeat the options of the stopped run, or leave --resume "
                    "out to start over"
                )
                raise StateError(msg)
            return True
        shutil.rmtree(self.folder, ignore_errors=True)
        write_json(path, identity)
        return False

    def save(self, task_id: str, finished: FinishedTask) -> None:
        """Write a finished task to the folder."""
        predictions = finished.predictions
        members = {
            "task": finished.task.model_dump(),
            "libraries": [library.model_dump() for library in finished.libraries],
            "scorer": finished.scorer.model_dump(),
            "predictions": predictions and base64.b64encode(predictions).decode(),
        }
        write_json(self._file(task_id), members)

    def load(self, task_id: str) -> FinishedTask | None:
        """Return a task, None if it is not finished. Raise StateError if its file is damaged."""
        path = self._file(task_id)
        if not path.exists():
            return None
        stored = self._json(path)
        try:
            predictions = stored.get("predictions")
            return FinishedTask(
                TaskRecord.model_validate(stored["task"]),
                [LibraryRef.model_validate(library) for library in stored["libraries"]],
                ScorerRef.model_validate(stored["scorer"]),
                None if predictions is None else base64.b64decode(predictions, validate=True),
            )
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            msg = f"{path}: the file is damaged: delete it and resume again"
            raise StateError(msg) from error

    def finish(self) -> None:
        """Remove the folder, as the record now contains everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, task_id: str) -> Path:
        """Return the path of the file of a finished task."""
        return self.folder / f"task-{task_id}.json"

    def _json(self, path: Path) -> dict[str, Any]:
        """Return the JSON object in a file. Raise StateError if it is damaged."""
        try:
            content = read_json(path.read_bytes(), is_own=True)
        except (OSError, ValueError) as error:
            msg = f"{path}: cannot be read: {error}: delete it and resume again"
            raise StateError(msg) from error
        if not isinstance(content, dict):
            msg = f"{path}: expected a JSON object: delete it and resume again"
            raise StateError(msg)
        return content


def _differing_values(stored_value: object, new_value: object) -> tuple[object, object]:
    """Return two values; of two mappings only the members that differ."""
    if not isinstance(stored_value, dict) or not isinstance(new_value, dict):
        return stored_value, new_value
    keys = [key for key in stored_value | new_value if stored_value.get(key) != new_value.get(key)]
    stored_part, new_part = (
        {k: mapping[k] for k in keys if k in mapping} for mapping in (stored_value, new_value)
    )
    return stored_part, new_part
