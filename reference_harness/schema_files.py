"""Find files of `schemas/`, in an installed wheel or a checkout."""

from pathlib import Path

from .errors import StateError

_PACKAGE = Path(__file__).resolve().parent
SCHEMA_FOLDERS = (_PACKAGE / "_shipped" / "schemas", _PACKAGE.parent / "schemas")
"""Folders that may contain the files: the one in an installed wheel, the one in a checkout."""


def schema_path(name: str) -> Path:
    """Return the path of a file of `schemas/`. Raise StateError if the installation lacks it."""
    for folder in SCHEMA_FOLDERS:
        if (folder / name).is_file():
            return folder / name
    msg = f"the installation lacks schemas/{name}: install geneb-ci again"
    raise StateError(msg)
