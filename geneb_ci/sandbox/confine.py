"""Confine a process at level 1 by namespaces, Landlock and a filter of system calls.

This is a script (`python -I -S confine.py FD`) that imports nothing of this package and calls the
kernel by ctypes. FD is a descriptor of a JSON object that `launch.py` writes. The numbers are those
of linux/sched.h, linux/mount.h, linux/prctl.h and linux/landlock.h.
"""

import ctypes
import json
import os
import signal
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

NEW_NAMESPACES = 0x7E020000
"""Flags of new user, pid, network, IPC, UTS, mount and cgroup namespaces."""
MS_REC_PRIVATE, MS_BIND_REC, MS_NOSUID_NODEV = 0x44000, 0x5000, 0x6
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECCOMP = 1, 38, 24, 22
SECCOMP_MODE_FILTER = 2
"""Mode of PR_SET_SECCOMP that installs a filter of system calls."""
CAPABILITY_VERSION = 0x20080522
"""Version 3 of the kernel's interface to capabilities."""
LAST_CAPABILITY = 63
"""Largest number of a capability: kernels have fewer."""
LANDLOCK_CREATE, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT = 444, 445, 446
LANDLOCK_RULE_PATH_BENEATH = 1
"""Type of a Landlock rule about a file, or everything in a folder."""
LANDLOCK_RIGHTS_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 5: 0xFFFF}
"""By version of Landlock's interface, the bits of all rights to files."""
ABI_NETWORK, ABI_SCOPES = 4, 6
"""First versions that restrict TCP, and abstract sockets and signals to other processes."""
READ_AND_RUN, READ_FOLDER_AND_RUN, READ_WRITE, IOCTL, MAKE_DEVICES = 0x5, 0xD, 0x6, 0x8000, 0x840
INNER_USER_ID = 1000
"""Number of the user and of the group inside the sandbox."""
SETUP_FAILED_CODE = 125
"""Exit code if the confinement could not be set up, so that the command was not run."""

_libc = ctypes.CDLL(None, use_errno=True)
"""The C library."""


class KernelRefused(Exception):  # noqa: N818 (named after what happened, as in errors.py)
    """The kernel refused a step of the confinement."""


def checked_call(operation: str, return_code: int) -> int:
    """Return the result of a call of the C library. Raises KernelRefused if it is negative."""
    if return_code < 0:
        raise KernelRefused(f"{operation}: {os.strerror(ctypes.get_errno())}")
    return return_code


def prctl(operation: str, *arguments: int) -> int:
    """Return the result of prctl; its option is the first of up to five arguments.

    Raises KernelRefused, whose message begins with `operation`, if the call fails.
    """
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:5]]
    return checked_call(operation, _libc.prctl(*padded))


def mount(
    source: str, target: str, file_system: str | None, flags: int, options: str | None = None
) -> None:
    """Mount `source` at the folder `target`. Raises KernelRefused if that fails."""
    encoded = [None if word is None else word.encode() for word in (source, target, file_system)]
    encoded_options = None if options is None else options.encode()
    code = _libc.mount(*encoded, ctypes.c_ulong(flags), encoded_options)
    checked_call(f"mount on {target}", code)


def enter_namespaces() -> None:
    """Enter new namespaces as their only user, who has all capabilities in them until dropped."""
    user, group = os.getuid(), os.getgid()
    checked_call("unshare", _libc.unshare(NEW_NAMESPACES))
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{INNER_USER_ID} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{INNER_USER_ID} {group} 1", encoding="ascii")


def mount_folders(plan: dict[str, Any]) -> None:
    """Mount the plan's folders and files below /mnt, and memory at /tmp and /dev/shm."""
    mount("none", "/", None, MS_REC_PRIVATE)
    tmpfs_options = f"size={plan['tmp_bytes']},mode=0755"
    # Landlock later makes this read-only, so that it cannot grow.
    mount("tmpfs", plan["inside"], "tmpfs", MS_NOSUID_NODEV, "mode=0755")
    for path, host_path in plan["folders"].items():
        inside_path = Path(path)
        if Path(host_path).is_dir():
            inside_path.mkdir(parents=True)
        else:
            inside_path.parent.mkdir(parents=True, exist_ok=True)
            inside_path.touch()
        mount(host_path, path, None, MS_BIND_REC)
    for path, descriptor in plan["data"].items():
        inside_path = Path(path)
        inside_path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(descriptor, "rb") as stream:
            inside_path.write_bytes(stream.read())
    for path in plan["scratch"]:
        mount("tmpfs", path, "tmpfs", MS_NOSUID_NODEV, tmpfs_options)


def drop_capabilities() -> None:
    """Give up every capability permanently."""
    for capability in range(LAST_CAPABILITY + 1):
        _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    header = struct.pack("<Ii", CAPABILITY_VERSION, 0)
    checked_call("capset", _libc.capset(header, bytes(24)))
    prctl("no new privileges", PR_SET_NO_NEW_PRIVS, 1)


def restrict_files(plan: dict[str, Any]) -> None:
    """Allow only the plan's files, by Landlock.

    Newer kernels then also refuse TCP, abstract sockets and signals to other processes.
    """
    abi = checked_call("landlock", _libc.syscall(LANDLOCK_CREATE, None, 0, 1))
    rights = LANDLOCK_RIGHTS_BY_ABI[
        max(version for version in LANDLOCK_RIGHTS_BY_ABI if version <= abi)
    ]
    network = 0x3 if abi >= ABI_NETWORK else 0
    scopes = 0x3 if abi >= ABI_SCOPES else 0
    attributes = struct.pack("<QQQ", rights, network, scopes)
    attribute_size = 24 if scopes else 16 if network else 8
    ruleset = checked_call(
        "landlock", _libc.syscall(LANDLOCK_CREATE, attributes, attribute_size, 0)
    )
    for path in plan["readable"]:
        allow_path(ruleset, path, READ_FOLDER_AND_RUN if Path(path).is_dir() else READ_AND_RUN)
    for path in plan["scratch"]:
        allow_path(ruleset, path, rights & ~MAKE_DEVICES)
    for path in plan["devices"]:
        allow_path(ruleset, path, (READ_WRITE | IOCTL) & rights)
    checked_call("landlock", _libc.syscall(LANDLOCK_RESTRICT, ruleset, 0))
    os.close(ruleset)


def allow_path(ruleset: int, path: str, rights: int) -> None:
    """Add a rule to a Landlock ruleset: `rights` to a file, or to everything in a folder.

    A path that does not exist is ignored.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    rule = struct.pack("<Qi", rights, descriptor)
    checked_call(
        f"landlock {path}",
        _libc.syscall(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0),
    )
    os.close(descriptor)


def filter_calls(program: bytes) -> None:
    """Install the filter of system calls, passed as struct sock_fprog: a length and a pointer."""
    program_buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(program_buffer))
    buffer = ctypes.create_string_buffer(fprog, len(fprog))
    prctl("seccomp", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(buffer))


def main(descriptor: int) -> NoReturn:
    """Confine this process, run the plan's command as pid 1, and exit with its status."""
    with os.fdopen(descriptor, "rb") as stream:
        plan = json.load(stream)
    try:
        prctl("die with parent", PR_SET_PDEATHSIG, signal.SIGKILL)
        enter_namespaces()
        mount_folders(plan)
        child = os.fork()
        if child == 0:
            prctl("die with parent", PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()
            os.chdir(plan["folder"])
            os.closerange(3, plan["open_files"])
            drop_capabilities()
            restrict_files(plan)
            filter_calls(bytes.fromhex(plan["program"]))
            os.execve(plan["command"][0], plan["command"], plan["environment"])  # noqa: S606
    except (KernelRefused, OSError) as error:
        os.write(2, f"confine: {error}\n".encode())
        os._exit(SETUP_FAILED_CODE)
    # Only the child keeps the pipes open, so they close when it ends.
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream_number in (1, 2):
        os.dup2(null_device, stream_number)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
