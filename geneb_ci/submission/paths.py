"""Finds the submission files that paths of a command line name."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from geneb_ci.common.errors import NothingChecked

_NAME_ONE = "pass a submission, or a folder with *.json files"
_GLOB_CHARACTERS = frozenset("*?[")


def submission_files(
    arguments: Iterable[Path], submissions_of: dict[Path, Path]
) -> tuple[list[Path], list[NothingChecked]]:
    """Return the submission files that the arguments name, without duplicates.

    A folder stands for every `*.json` directly in it. `submissions_of` maps the root of a
    repository to its folder of submissions. The second value has an error per argument without
    any file.
    """
    found: dict[Path, None] = {}
    lost: list[NothingChecked] = []
    for argument in arguments:
        try:
            files = sorted(_files(submissions_of.get(argument, argument)))
        except NothingChecked as error:
            lost.append(error)
            continue
        if not files:
            lost.append(NothingChecked(_reason(argument), _NAME_ONE))
        found.update(dict.fromkeys(files))
    return list(found), lost


def located(path: Path) -> Path:
    """Return an absolute path without following the last component, which may be a looping link."""
    return Path(os.path.realpath(path.parent)) / path.name


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False if it cannot be accessed."""
    mode = _mode(path, follow=True)
    return mode is not None and stat.S_ISDIR(mode)


def _mode(path: Path, *, follow: bool) -> int | None:
    """Return the mode of a path; None if it does not exist or cannot be accessed."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except (OSError, ValueError):
        return None


def _files(path: Path) -> Iterator[Path]:
    mode = _mode(path, follow=False)
    if mode is None:
        return
    if stat.S_ISDIR(mode):
        yield from files_in(path)
    else:
        yield path


def files_in(folder: Path) -> Iterator[Path]:
    """Yield every `*.json` directly in a folder, except hidden ones.

    Raises NothingChecked if the folder cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            # Broken links and folders named *.json are included, so that reading reports them.
            yield from (
                folder / e.name for e in entries if e.name.endswith(".json") and e.name[0] != "."
            )
    except OSError as error:
        raise NothingChecked(
            f"{folder}: the folder cannot be listed: {error.strerror}", "check its permissions"
        ) from error
    except ValueError as error:  # a NUL in it
        raise NothingChecked(f"{folder}: invalid folder name", "pass another folder") from error


def _reason(path: Path) -> str:
    if is_folder(path):
        return f"{path}: the folder contains no *.json"
    if _GLOB_CHARACTERS & set(str(path)):
        return f"{path}: no file matches"
    try:
        path.lstat()
    except ValueError:
        pass  # a NUL character: no file has such a name
    except OSError as error:
        if error.errno != errno.ENOENT:
            return f"{path}: cannot be read: {error.strerror}"
    return f"{path}: no such file"
