"""Write files of a folder atomically."""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from geneb_ci.common.errors import unwritable
from reference_harness.formats.files import NotReadable, read_regular

WRITERS = 8
"""Number of files written at the same time: eight take a disk little more time than one."""
MODE = 0o644
"""Mode of published files."""


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files under temporary names, then rename them, so that each is replaced atomically.

    A file that already has these bytes is not written.
    Raises UsageProblem for a folder that cannot be written, MachineFault for a full or broken disk.
    """
    temporary_paths: dict[str, str] = {}

    def stage(name: str) -> None:
        handle, temporary_paths[name] = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        with open(handle, "wb") as stream:  # noqa: PTH123 (a descriptor has no Path)
            os.fchmod(handle, MODE)
            stream.write(files[name])
            stream.flush()
            os.fsync(handle)

    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed_names = [
            name for name, content in files.items() if not _is_written(f"{folder}/{name}", content)
        ]
        if len(changed_names) < WRITERS:
            for name in changed_names:
                stage(name)
        else:
            from concurrent.futures import ThreadPoolExecutor  # 10 ms that few files do not need

            with ThreadPoolExecutor(WRITERS) as pool:
                for _ in pool.map(stage, changed_names):
                    pass
        for name in changed_names:
            os.replace(temporary_paths[name], f"{folder}/{name}")  # noqa: PTH105 (paths of many files)
            del temporary_paths[name]
    except OSError as error:
        raise unwritable(str(folder), error, "name a folder that you may write to") from error
    finally:
        for temporary in temporary_paths.values():
            Path(temporary).unlink(missing_ok=True)


def _is_written(path: str, content: bytes) -> bool:
    """Whether a regular file, not a link, has these bytes and the mode of published files."""
    try:
        status = os.lstat(path)
        is_published_file = stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == MODE
        if not is_published_file or status.st_size != len(content):
            return False
        return read_regular(Path(path), len(content), links=False) == content
    except (OSError, NotReadable):
        return False
