"""Which processes a sandbox has, and what they hold, as the host sees it."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
KIB = 1024


class Process(NamedTuple):
    """One process; `started` tells it from a later one of the same number."""

    pid: int
    parent: int
    threads: int
    started: int
    resident: int
    """Bytes."""
    zombie: bool = False


def read(pid: int) -> Process | None:
    """Read one process; None when it is gone. proc_pid_stat(5) has the fields."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return Process(
        pid,
        int(fields[1]),
        int(fields[17]),
        int(fields[19]),
        max(0, int(fields[21])) * PAGE,
        fields[0] in "ZX",
    )


def descendants(root: int) -> list[Process]:
    """Give all processes below one, children of children included, parents first.

    Orphans of a sandbox go to its pid 1, never to the host's, so none is lost.
    """
    children: dict[int, list[Process]] = {}
    for name in os.listdir(PROC):  # noqa: PTH208 (a tenth of the cost, twenty times a second)
        if name.isdigit() and (found := read(int(name))) is not None:
            children.setdefault(found.parent, []).append(found)
    below: list[Process] = []
    waiting = [root]
    while waiting:
        mine = children.get(waiting.pop(), [])
        below += mine
        waiting += [one.pid for one in mine]
    return below


def held(processes: list[Process], limit: int) -> int:
    """Give the bytes that processes hold.

    Resident sizes count shared pages once a process; only where their sum is above the limit are
    proportional sizes read, which count them once but cost more.
    """
    total = sum(one.resident for one in processes)
    return total if total <= limit else sum(_proportional(one) for one in processes)


def memory_files(processes: list[Process]) -> int:
    """Give the bytes in files of anonymous memory: held by an open descriptor, resident nowhere."""
    sizes: dict[tuple[int, int], int] = {}
    for one in processes:
        folder = PROC / str(one.pid) / "fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    if str((folder / name).readlink()).startswith("/memfd:"):
                        found = (folder / name).stat()
                        sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())


def available() -> int:
    """Give the bytes of memory the host still has."""
    for line in (PROC / "meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return 0


def alive(one: Process) -> bool:
    """Whether this very process still runs."""
    now = read(one.pid)
    return now is not None and now.started == one.started and not now.zombie


def kill(processes: list[Process], patience: float) -> list[Process]:
    """Kill processes and wait for their end; gives those that are still there in the end.

    SIGKILL from outside ends a process in any state, stopped by a tracer too; that of a sandbox's
    pid 1 ends all of its namespace.
    """
    for one in processes:
        if alive(one):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one.pid, signal.SIGKILL)
    deadline = time.monotonic() + patience
    left = [one for one in processes if alive(one)]
    while left and time.monotonic() < deadline:
        time.sleep(0.005)
        left = [one for one in left if alive(one)]
    return left


def _proportional(one: Process) -> int:
    with contextlib.suppress(OSError):
        text = (PROC / str(one.pid) / "smaps_rollup").read_text(encoding="ascii")
        for line in text.splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * KIB
    return one.resident
