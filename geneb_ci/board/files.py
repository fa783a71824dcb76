"""Values to bytes to files: canonical, checked against their schemas, and never half-written."""

import functools
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from geneb_ci.common.errors import GenebError, unwritable
from geneb_ci.common.shipped import shipped

SCHEMAS = {
    "leaderboard.json": "leaderboard.schema.json",
    "leaderboard_tasks.json": "leaderboard-tasks.schema.json",
    "diagnostics.json": "diagnostics-1.0.schema.json",
    "recommendations.json": "recommendations-1.0.schema.json",
    "ledger.json": "ledger.schema.json",
}


class InvalidBoard(GenebError):
    """What was built does not fit its own schema: an error of ours, and nothing is written."""


def encode(name: str, value: dict[str, Any]) -> bytes:
    """Return the bytes of a board file: compact, UTF-8, keys in order of the rows, no NaN.

    Raises InvalidBoard when the value does not fit the schema of its name.
    """
    error = next(iter(_validator(SCHEMAS[name]).iter_errors(value)), None)
    if error is not None:
        raise InvalidBoard(
            f"{name}: {error.json_path}: {error.message}", "report this to the maintainers"
        )
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


@functools.cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(shipped("schemas", schema).read_bytes()))


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
