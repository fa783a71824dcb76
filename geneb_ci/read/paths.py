"""Which files are meant by the paths of a command line."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from geneb_ci.errors import NothingChecked

_GLOB_CHARACTERS = frozenset("*?[")


def submission_files(arguments: Iterable[Path], submissions_of: dict[Path, Path]) -> list[Path]:
    """List the submissions that the arguments name, each once, in the order of their names.

    A file stands for itself; a folder for every `*.json` directly in it, or, where `submissions_of`
    knows it as the root of a repository, in its folder of submissions.
    Raises NothingChecked, with one line for each argument that names no file.
    """
    found: dict[Path, None] = {}
    lost: list[str] = []
    for argument in arguments:
        files = sorted(_files(submissions_of.get(argument, argument)))
        if not files:
            lost.append(_reason(argument))
        found.update(dict.fromkeys(files))
    if lost:
        raise NothingChecked(
            "; ".join(lost), "name a submission, or a folder that holds some as *.json"
        )
    return list(found)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir() and not path.is_symlink():
        try:
            with os.scandir(path) as entries:
                # A broken link or a folder called x.json is somebody's submission, too: reading it
                # will say what is wrong.
                yield from (
                    path / e.name for e in entries if e.name.endswith(".json") and e.name[0] != "."
                )
        except OSError as error:
            raise NothingChecked(
                f"{path}: cannot be listed: {error.strerror}", "check its permissions"
            ) from error
    elif path.is_symlink() or path.exists():
        yield path


def _reason(path: Path) -> str:
    if path.is_dir():
        return f"{path}: the folder holds no *.json"
    if _GLOB_CHARACTERS & set(str(path)):
        return f"{path}: no file matches"
    return f"{path}: no such file"
