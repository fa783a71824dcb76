"""Write files of a folder atomically."""

import contextlib
import filecmp
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from geneb_ci.common.errors import unwritable
from geneb_ci.common.parallel import in_processes

ChunkedText = Callable[[], Iterable[bytes]]
"""A function that returns the text of a file in pieces, in order."""
PUBLISHED_FILE_MODE = 0o644
"""Permissions of published files: all may read, the owner may write."""


def write_files(folder: Path, files: Mapping[str, bytes | ChunkedText], jobs: int = 1) -> None:
    """Write files (name -> content) to a folder, by `jobs` processes.

    Every file is first written under a temporary name; then each replaces the old one atomically. A
    file that already has the same bytes is not touched. A `ChunkedText` is written chunk by chunk,
    which needs little memory. Raises UsageProblem for a folder that cannot be written, MachineFault
    for a full or broken disk.
    """
    contents, token = list(files.values()), os.urandom(4).hex()
    temporary_paths = [folder / f".{name}.{token}" for name in files]

    def write_temporary(number: int) -> None:
        content = contents[number]
        with temporary_paths[number].open("wb") as stream:
            stream.writelines([content] if isinstance(content, bytes) else content())
        temporary_paths[number].chmod(PUBLISHED_FILE_MODE)

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for _ in in_processes(write_temporary, range(len(temporary_paths)), jobs, 1):
            pass
        final_paths = {
            temporary: folder / name
            for name, temporary in zip(files, temporary_paths, strict=True)
            if not _is_unchanged(folder / name, temporary)
        }
        for temporary in final_paths:  # only now, so that the disk writes them together
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
        for temporary, final_path in final_paths.items():
            temporary.replace(final_path)
    except OSError as error:
        raise unwritable(str(folder), error, "name a folder that you may write to") from error
    finally:
        for temporary in temporary_paths:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _is_unchanged(path: Path, temporary: Path) -> bool:
    """Whether `path` is a regular file with the bytes and the mode of the file `temporary`."""
    return (
        path.is_file()
        and not path.is_symlink()
        and path.stat().st_mode == temporary.stat().st_mode
        and filecmp.cmp(path, temporary, shallow=False)
    )
