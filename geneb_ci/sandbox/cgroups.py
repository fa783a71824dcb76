"""Limits of processes and memory that the kernel enforces, where we may set them.

The first of three that works: a control group of our own (root), a scope of the user's service
manager, RLIMIT_NPROC set by the worker. The last does not limit root (measured: 300 forks under a
limit of 64; an ordinary user is stopped at 62), so root without control groups is only watched.
"""

import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from geneb_ci.sandbox.limits import Limits

Holder = Literal["control group", "service manager", "RLIMIT_NPROC", "watched only"]

ROOT = Path("/sys/fs/cgroup")
# Where each controller is in version 1 (a tree each) and in version 2 (one tree).
PLACES = {"pids": ("pids", "."), "memory": ("memory", ".")}
FILES = {
    "pids": ("pids.max",),
    "memory": ("memory.max", "memory.limit_in_bytes"),
}
JOIN = 'for f do [ "$f" = -- ] && break; echo $$ > "$f" || exit 125; shift; done; shift; exec "$@"'
"""Enters each group named, then executes the command in the same process."""
TRIAL_SECONDS = 5
REMOVE_SECONDS = 2


def holder() -> Holder:
    """Return what limits the number of processes on this machine."""
    with contextlib.ExitStack() as stack:
        if _made(Limits(), stack):
            return "control group"
    if _manager() is not None:
        return "service manager"
    return "RLIMIT_NPROC" if os.getuid() != 0 else "watched only"


@contextlib.contextmanager
def prefix(limits: Limits) -> Iterator[list[str]]:
    """Yield the words to put before a command; the groups they use are removed at the end."""
    with contextlib.ExitStack() as stack:
        groups = _made(limits, stack)
        if groups:
            entries = [str(group / "cgroup.procs") for group in groups]
            yield ["/bin/sh", "-c", JOIN, "join", *entries, "--"]
        else:
            yield _scope(limits)


def _made(limits: Limits, stack: contextlib.ExitStack) -> list[Path]:
    """Make one group for each controller, or one for both; return none unless `pids` is limited."""
    values = {"pids": limits.processes_held, "memory": limits.memory_held}
    made: dict[Path, None] = {}
    for controller, value in values.items():
        for place in PLACES[controller]:
            group = ROOT / place / f"geneb-audit-{os.getpid()}"
            with contextlib.suppress(OSError):
                if group not in made:
                    group.mkdir()
                    stack.callback(_remove, group)
                file = next((group / f for f in FILES[controller] if (group / f).exists()), None)
                if file is not None:
                    file.write_text(str(value), encoding="ascii")
                    made[group] = None
                    break
    return list(made) if any((group / "pids.max").exists() for group in made) else []


def _remove(group: Path) -> None:
    """Remove a group; it is busy until the last of its killed processes is reaped."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError as error:
            if error.errno == errno.EBUSY:
                time.sleep(0.01)
                continue
        return


def _manager() -> str | None:
    """Return the path of systemd-run when the user's service manager runs."""
    program, control = shutil.which("systemd-run"), shutil.which("systemctl")
    if program is None or control is None or "XDG_RUNTIME_DIR" not in os.environ:
        return None
    try:
        said = subprocess.run(  # noqa: S603 (a program that was found, no shell)
            [control, "--user", "is-system-running"],
            capture_output=True, text=True, check=False, timeout=TRIAL_SECONDS,
        ).stdout.strip()  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return program if said in {"running", "degraded"} else None


def _scope(limits: Limits) -> list[str]:
    """Return the words that start a command in a scope; it needs the address of the manager."""
    program = _manager()
    if program is None:
        return []
    return [
        "/usr/bin/env",
        f"XDG_RUNTIME_DIR={os.environ['XDG_RUNTIME_DIR']}",
        program,
        *("--user", "--scope", "--quiet", "--collect"),
        f"--property=MemoryMax={limits.memory_held}",
        f"--property=TasksMax={limits.processes_held}",
        # The sandbox can read the environment that pid 1 was started with: an empty one.
        *("/usr/bin/env", "-i"),
    ]
