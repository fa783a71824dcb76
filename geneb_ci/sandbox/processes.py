"""List the processes of a sandbox, measure their memory, and make the kernel limit both.

The kernel limits processes and memory by the first of three means that works: a control group made
by root, a scope of the user's service manager, or RLIMIT_NPROC set by the worker. RLIMIT_NPROC does
not limit root (root could make 300 forks with a limit of 64, an ordinary user 62), so root without
control groups is only watched.
"""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from geneb_ci.common.errors import LeftOver
from geneb_ci.common.finding import first_and_more
from geneb_ci.sandbox.limits import Limits

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
KIB = 1024


class Process(NamedTuple):
    """One process; `started` distinguishes it from a later one with the same pid."""

    pid: int
    parent: int
    """Pid of the parent."""
    threads: int
    """Number of threads."""
    started: int
    """Start of the process, in clock ticks since the machine started."""
    resident: int
    """Resident memory, in bytes."""
    zombie: bool = False
    """Whether the process has ended, and only its exit code is left."""


def read_process(pid: int) -> Process | None:
    """Return one process, from its fields as in proc_pid_stat(5); None if it has ended."""
    fields = _stat_fields(pid)
    if not fields:
        return None
    return Process(
        pid,
        int(fields[1]),
        int(fields[17]),
        int(fields[19]),
        max(0, int(fields[21])) * PAGE_BYTES,
        fields[0] in b"ZX",
    )


def _stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the process name, state first; [] if it ended."""
    try:
        # Not by pathlib, which takes three times as long: all processes are read 20 times a second.
        with open(f"{PROC}/{pid}/stat", "rb", buffering=0) as stream:  # noqa: PTH123
            return stream.read().rpartition(b")")[2].split()
    except OSError:
        return []


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds that a process and its ended children used."""
    return sum(map(int, _stat_fields(pid)[11:15])) / CLOCK_TICKS_PER_SECOND


def descendants(root: int) -> list[Process]:
    """Return all descendants of a process, parents first.

    Orphans of a sandbox become children of its own pid 1, so all of them are found.
    """
    children: dict[int, list[Process]] = {}
    for file_name in os.listdir(PROC):  # noqa: PTH208 (a tenth of the cost, twenty times a second)
        if file_name.isdigit() and (process := read_process(int(file_name))) is not None:
            children.setdefault(process.parent, []).append(process)
    found_processes: list[Process] = []
    parent_pids = [root]
    while parent_pids:
        child_processes = children.get(parent_pids.pop(), [])
        found_processes += child_processes
        parent_pids += [child.pid for child in child_processes]
    return found_processes


def used_memory(processes: list[Process], limit: int) -> int:
    """Return the memory of processes, in bytes; exact where it exceeds `limit`.

    The sum of resident sizes counts shared pages once per process. Only if it is above `limit`,
    proportional sizes are read, which count shared pages once and are slower to read.
    """
    total = sum(process.resident for process in processes)
    return total if total <= limit else sum(_proportional_memory(process) for process in processes)


def memory_file_bytes(processes: list[Process]) -> int:
    """Return the bytes in anonymous memory files, which resident sizes do not include."""
    bytes_by_file: dict[tuple[int, int], int] = {}
    for process in processes:
        folder = PROC / str(process.pid) / "fd"
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(folder):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    if str((folder / descriptor).readlink()).startswith("/memfd:"):
                        status = (folder / descriptor).stat()
                        bytes_by_file[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(bytes_by_file.values())


def available_memory() -> int:
    """Return the memory that is available on the host, in bytes."""
    for line in (PROC / "meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return 0


def is_alive(process: Process) -> bool:
    """Whether this very process still runs, and not a later one with the same pid."""
    current = read_process(process.pid)
    return current is not None and current.started == process.started and not current.zombie


def kill(processes: list[Process], timeout: float) -> list[Process]:
    """Kill processes and wait up to `timeout` seconds; return those that still run.

    SIGKILL from outside ends a process in any state, even if a tracer has stopped it. The end of a
    sandbox's pid 1 ends all processes of its namespace.
    """
    for process in processes:
        if is_alive(process):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + timeout
    survivors = [process for process in processes if is_alive(process)]
    while survivors and time.monotonic() < deadline:
        time.sleep(0.005)
        survivors = [process for process in survivors if is_alive(process)]
    return survivors


def _proportional_memory(process: Process) -> int:
    """Return the memory of a process in bytes, with its share of shared pages.

    Return its resident size if the share cannot be read.
    """
    with contextlib.suppress(OSError):
        smaps = (PROC / str(process.pid) / "smaps_rollup").read_text(encoding="ascii")
        for line in smaps.splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * KIB
    return process.resident


NAMESPACES_FILE = "namespaces"
"""File of the scratch folder with the namespaces of the sandbox's processes."""
_LISTED_PIDS_MAX = 5
"""Largest number of pids in a message."""


def scratch_folder() -> Path:
    """Return the scratch folder of this user's audits."""
    return Path(tempfile.gettempdir()) / f"geneb-ci-audit-{os.getuid()}"


@contextlib.contextmanager
def scratch(folder: Path | None = None) -> Iterator[Path]:
    """Make the scratch folder of an audit, and remove it at the end.

    Raises LeftOver if it exists: an audit was killed and left it, or is running.
    """
    own_folder = folder or scratch_folder()
    refuse_leftovers(own_folder)
    own_folder.mkdir(mode=0o700)
    try:
        yield own_folder
    finally:
        shutil.rmtree(own_folder)


def refuse_leftovers(folder: Path) -> None:
    """Raise LeftOver if the folder or processes of an earlier audit exist."""
    if not os.path.lexists(folder):
        return
    pids_alive = surviving_pids(folder)
    if pids_alive:
        pids = first_and_more([str(pid) for pid in pids_alive], _LISTED_PIDS_MAX)
        raise LeftOver(
            f"processes of another audit run in its sandbox: {pids}",
            "wait until that audit ends; if nobody runs it any more, end these processes and "
            f"remove the folder {folder}",
        )
    raise LeftOver(
        f"{folder} is left from an earlier audit, or another audit is running",
        "check that no audit is running, then remove that folder",
    )


def save_namespaces(folder: Path, sandboxed: list[Process]) -> None:
    """Save the namespaces of a sandbox's processes, for the check before the next audit."""
    own_namespace = pid_namespace(os.getpid())
    namespaces = {pid_namespace(process.pid) for process in sandboxed} - {own_namespace, None}
    with (folder / NAMESPACES_FILE).open("a", encoding="ascii") as stream:
        stream.writelines(f"{name}\n" for name in sorted(filter(None, namespaces)))


def surviving_pids(folder: Path) -> list[int]:
    """Return the pids of processes that run in a saved namespace."""
    try:
        namespaces = set((folder / NAMESPACES_FILE).read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):
        return []
    pids = sorted(int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in pids if pid_namespace(pid) in namespaces and not _has_ended(pid)]


def _has_ended(pid: int) -> bool:
    """Whether a process has ended, even if its parent has not yet read the exit code."""
    process = read_process(pid)
    return process is None or process.zombie


def pid_namespace(pid: int) -> str | None:
    """Return the name of the pid namespace of a process; None if it cannot be read."""
    try:
        return str((PROC / str(pid) / "ns" / "pid").readlink())
    except OSError:
        return None


ProcessLimiter = Literal["control group", "service manager", "RLIMIT_NPROC", "watched only"]
"""How the number of processes of a sandbox is limited."""

CGROUPS = Path("/sys/fs/cgroup")
"""Folder of the kernel with the control groups."""
CONTROLLER_FOLDERS = {"pids": ("pids", "."), "memory": ("memory", ".")}
"""By controller of control groups, its folder in version 1, which has one for each, and in
version 2."""
CONTROLLER_LIMIT_FILES = {
    "pids": ("pids.max",),
    "memory": ("memory.max", "memory.limit_in_bytes"),
}
"""By controller of control groups, possible names of the file that has the limit."""
JOIN_SCRIPT = (
    'for f do [ "$f" = -- ] && break; echo $$ > "$f" || exit 125; shift; done; shift; exec "$@"'
)
"""Shell script that enters each named group, then executes the command in the same process."""
TRIAL_SECONDS = 5
"""Time limit of the question whether the service manager runs."""
REMOVE_GROUP_SECONDS = 2
"""Time limit for removing a control group whose processes were killed."""


def process_limiter() -> ProcessLimiter:
    """Return how the kernel of this machine limits the number of processes of a sandbox."""
    with contextlib.ExitStack() as stack:
        if _make_groups(Limits(), stack):
            return "control group"
    if _service_manager() is not None:
        return "service manager"
    return "RLIMIT_NPROC" if os.getuid() != 0 else "watched only"


@contextlib.contextmanager
def kernel_prefix(limits: Limits) -> Iterator[list[str]]:
    """Yield the words before a command with which the kernel limits its processes and memory.

    Control groups that they need are removed at the end.
    """
    with contextlib.ExitStack() as stack:
        groups = _make_groups(limits, stack)
        if groups:
            process_files = [str(group / "cgroup.procs") for group in groups]
            yield ["/bin/sh", "-c", JOIN_SCRIPT, "join", *process_files, "--"]
        else:
            yield _scope_prefix(limits)


def _make_groups(limits: Limits, stack: contextlib.ExitStack) -> list[Path]:
    """Make control groups with the limits, and return their folders.

    Returns [] if the number of processes cannot be limited so.

    Version 1 has a group for each controller, version 2 one for both.
    """
    limit_by_controller = {"pids": limits.kernel_processes, "memory": limits.kernel_memory_bytes}
    groups: dict[Path, None] = {}
    for controller, limit in limit_by_controller.items():
        for folder in CONTROLLER_FOLDERS[controller]:
            group = CGROUPS / folder / f"geneb-audit-{os.getpid()}"
            with contextlib.suppress(OSError):
                if group not in groups:
                    group.mkdir()
                    stack.callback(_remove_group, group)
                file = next(
                    (group / f for f in CONTROLLER_LIMIT_FILES[controller] if (group / f).exists()),
                    None,
                )
                if file is not None:
                    file.write_text(str(limit), encoding="ascii")
                    groups[group] = None
                    break
    return list(groups) if any((group / "pids.max").exists() for group in groups) else []


def _remove_group(group: Path) -> None:
    """Remove a control group, as soon as the last of its killed processes has ended."""
    deadline = time.monotonic() + REMOVE_GROUP_SECONDS
    while time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError as error:
            if error.errno == errno.EBUSY:
                time.sleep(0.01)
                continue
        return


def _service_manager() -> str | None:
    """Return the path of systemd-run if the user's service manager runs, else None."""
    program, control = shutil.which("systemd-run"), shutil.which("systemctl")
    if program is None or control is None or "XDG_RUNTIME_DIR" not in os.environ:
        return None
    try:
        manager_state = subprocess.run(  # noqa: S603 (a program that was found, no shell)
            [control, "--user", "is-system-running"],
            capture_output=True, text=True, check=False, timeout=TRIAL_SECONDS,
        ).stdout.strip()  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return program if manager_state in {"running", "degraded"} else None


def _scope_prefix(limits: Limits) -> list[str]:
    """Return the words before a command with which the service manager limits its processes.

    Return [] if no service manager runs.
    """
    program = _service_manager()
    if program is None:
        return []
    return [
        "/usr/bin/env",
        f"XDG_RUNTIME_DIR={os.environ['XDG_RUNTIME_DIR']}",
        program,
        *("--user", "--scope", "--quiet", "--collect"),
        f"--property=MemoryMax={limits.kernel_memory_bytes}",
        f"--property=TasksMax={limits.kernel_processes}",
        # The sandbox can read the environment with which pid 1 was started, so it is empty.
        *("/usr/bin/env", "-i"),
    ]
