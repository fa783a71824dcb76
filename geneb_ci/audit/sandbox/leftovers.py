"""Nothing of one audit may wait for the next: an audit begins on a clean machine or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from geneb_ci.audit.sandbox.processes import PROC, Process, read
from geneb_ci.errors import LeftOver

NAMESPACES = "namespaces"
_SHOWN = 5


def scratch_folder() -> Path:
    """Give the one place of audits of this user."""
    return Path(tempfile.gettempdir()) / f"geneb-ci-audit-{os.getuid()}"


@contextlib.contextmanager
def scratch(folder: Path | None = None) -> Iterator[Path]:
    """Make the folder of an audit, and remove it in the end.

    Raises LeftOver when it is there: an audit that ended badly left it, or one is running.
    """
    place = folder or scratch_folder()
    refuse_leftovers(place)
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def refuse_leftovers(place: Path) -> None:
    """Raise LeftOver when a folder or processes of an earlier audit are there."""
    if not os.path.lexists(place):
        return
    alive = living(place)
    if alive:
        shown = ", ".join(str(pid) for pid in alive[:_SHOWN])
        raise LeftOver(
            f"{len(alive)} processes of an earlier audit still run in its sandbox: {shown}",
            "end them, or restart the machine; then remove the folder " + str(place),
        )
    raise LeftOver(
        f"{place} is left from an earlier audit, or another audit is running",
        "see that no audit is running, then remove that folder",
    )


def remember(place: Path, found: list[Process]) -> None:
    """Write down the namespaces of a sandbox's processes, for the look before the next audit."""
    own = namespace(os.getpid())
    names = {namespace(one.pid) for one in found} - {own, None}
    with (place / NAMESPACES).open("a", encoding="ascii") as stream:
        stream.writelines(f"{name}\n" for name in sorted(filter(None, names)))


def living(place: Path) -> list[int]:
    """Give the processes that run in a namespace that was written down."""
    try:
        names = set((place / NAMESPACES).read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):
        return []
    pids = sorted(int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in pids if namespace(pid) in names and not _dead(pid)]


def _dead(pid: int) -> bool:
    """Whether a process is gone, or waits only to be reaped."""
    found = read(pid)
    return found is None or found.zombie


def namespace(pid: int) -> str | None:
    """Give the name of a process' namespace of processes; None when it cannot be read."""
    try:
        return str((PROC / str(pid) / "ns" / "pid").readlink())
    except OSError:
        return None
