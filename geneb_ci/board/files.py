"""Values to bytes to files: canonical, checked against their types, and never half-written."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from geneb_ci.board.shape import Leaderboard, TaskLeaderboard
from geneb_ci.common.errors import GenebError, unwritable
from geneb_ci.common.types import StrictModel, first_error

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
