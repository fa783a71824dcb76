"""The state of a stopped run, next to its output, for `--resume`."""

import base64
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from reference_harness.formats.files import read_json, write_json

from .errors import StateError
from .formats.run_record import LibraryRef, TaskRecord
from .formats.scorer import ScorerRef

SUFFIX = ".partial"


class FinishedTask(NamedTuple):
    """A finished task of a stopped run."""

    task: TaskRecord
    libraries: list[LibraryRef]
    scorer: ScorerRef
    """The scorer."""
    predictions: bytes | None
    """Its part of `predictions.bin`; None for a run without a receipt."""


class State:
    """The folder `<output>.partial`: one file a finished task, and what they all depend on."""

    def __init__(self, output: Path) -> None:
        self.folder = output.with_name(output.name + SUFFIX)

    def begin(self, identity: dict[str, Any], *, resume: bool) -> bool:
        """Open the folder; return whether an earlier run is continued.

        `identity` is all that may not change between the two. Raises StateError, which names what
        did; without `resume`, what is left of an earlier run is dropped.
        """
        path = self.folder / "run.json"
        if resume and path.exists():
            stored = self._json(path)
            if changed := sorted(
                k for k in {*stored, *identity} if stored.get(k) != identity.get(k)
            ):
                key = changed[0]
                before, now = _where_they_differ(stored.get(key), identity.get(key))
                msg = (
                    f"{path}: the stopped run had {key} {before!r}, this one has {now!r}: run "
                    "without --resume to start over"
                )
                raise StateError(msg)
            return True
        shutil.rmtree(self.folder, ignore_errors=True)
        write_json(path, identity)
        return False

    def save(self, task_id: str, finished: FinishedTask) -> None:
        """Keep a finished task."""
        predictions = finished.predictions
        value = {
            "task": finished.task.model_dump(),
            "libraries": [library.model_dump() for library in finished.libraries],
            "scorer": finished.scorer.model_dump(),
            "predictions": predictions and base64.b64encode(predictions).decode(),
        }
        write_json(self._file(task_id), value)

    def load(self, task_id: str) -> FinishedTask | None:
        """Return a finished task, or None. Raises StateError when its file is damaged."""
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
            msg = f"{path}: not a finished task: delete it and resume again"
            raise StateError(msg) from error

    def finish(self) -> None:
        """Remove the folder: the record holds all of it now."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, task_id: str) -> Path:
        return self.folder / f"task-{task_id}.json"

    def _json(self, path: Path) -> dict[str, Any]:
        try:
            value = read_json(path.read_bytes(), is_own=True)
        except (OSError, ValueError) as error:
            msg = f"{path}: cannot be read: {error}"
            raise StateError(msg) from error
        if not isinstance(value, dict):
            msg = f"{path}: not an object"
            raise StateError(msg)
        return value


def _where_they_differ(before: object, now: object) -> tuple[object, object]:
    """Return two values, or of two mappings what one has and the other has not."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return before, now
    keys = [key for key in before | now if before.get(key) != now.get(key)]
    first, second = ({k: mapping[k] for k in keys if k in mapping} for mapping in (before, now))
    return first, second
