"""Which files are meant by the paths of a command line."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from geneb_ci.common.errors import NothingChecked

_NAME_ONE = "name a submission, or a folder that holds some as *.json"
_GLOB_CHARACTERS = frozenset("*?[")


def submission_files(
    arguments: Iterable[Path], submissions_of: dict[Path, Path]
) -> tuple[list[Path], list[NothingChecked]]:
    """List the submissions that the arguments name, each once, in the order of their names.

    A file stands for itself; a folder for every `*.json` directly in it, or, where `submissions_of`
    knows it as the root of a repository, in its folder of submissions. Beside them stands the
    reason for each argument that names no file.
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
    """Make a path absolute without following its last part, which may be a link that loops."""
    return Path(os.path.realpath(path.parent)) / path.name


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; a path that cannot be looked at is none."""
    mode = _mode(path, follow=True)
    return mode is not None and stat.S_ISDIR(mode)


def _mode(path: Path, *, follow: bool) -> int | None:
    """Return the mode of what lies at a path; None where nothing does or nobody may look."""
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
    """Return every `*.json` directly in a folder.

    Raises NothingChecked when the folder cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            # A broken link or a folder called x.json is somebody's submission, too: reading it
            # will say what is wrong.
            yield from (
                folder / e.name for e in entries if e.name.endswith(".json") and e.name[0] != "."
            )
    except OSError as error:
        raise NothingChecked(
            f"{folder}: cannot be listed: {error.strerror}", "check its permissions"
        ) from error
    except ValueError as error:  # a NUL in it
        raise NothingChecked(f"{folder}: no folder can have this name", "name another") from error


def _reason(path: Path) -> str:
    if is_folder(path):
        return f"{path}: the folder holds no *.json"
    if _GLOB_CHARACTERS & set(str(path)):
        return f"{path}: no file matches"
    try:
        path.lstat()
    except ValueError:
        pass  # a NUL in it: no file has such a name
    except OSError as error:
        if error.errno != errno.ENOENT:
            return f"{path}: cannot be read: {error.strerror}"
    return f"{path}: no such file"
