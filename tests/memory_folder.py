"""A folder in memory for temporary files: on a disk, the suite takes a fifth longer."""

import os
import tempfile

FOLDER = "/dev/shm"  # noqa: S108 (as on every Linux; a run makes folders of its own in it)
ROOM = 2 * 1024**3
"""Bytes that have to be free there; the tests of the gate fill a quarter of a gigabyte."""


def has_room(folder: str = FOLDER) -> bool:
    """Return whether tests can write there, run programs from there, and have room."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    runs = not disk.f_flag & os.ST_NOEXEC
    return runs and os.access(folder, os.W_OK) and disk.f_bavail * disk.f_frsize >= ROOM


def use() -> None:
    """Write temporary files in memory, here and in the processes of the tests.

    Not where TMPDIR names a folder, and not where memory has no such folder.
    """
    if "TMPDIR" not in os.environ and has_room():
        os.environ["TMPDIR"] = FOLDER
        tempfile.tempdir = None
