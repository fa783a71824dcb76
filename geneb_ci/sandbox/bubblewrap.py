"""Levels 2 and 4: the command line of bubblewrap.

All options are passed by descriptor (`--args`): pid 1 of the sandbox is bubblewrap, and what runs
there can read its command line. It can also read its environment, in spite of `--clearenv`, so the
caller starts bubblewrap with an empty one.
"""

import shutil
from pathlib import Path

from geneb_ci.sandbox import mounts
from geneb_ci.sandbox.limits import MIB, Limits
from geneb_ci.sandbox.mounts import SandboxView

PROGRAM = "bwrap"
OUTSIDER = "1000"
"""User and group inside: not 0, since much software behaves differently as root."""


def found() -> str | None:
    """Return the path of bubblewrap, or None."""
    return shutil.which(PROGRAM)


def options(view: SandboxView, limits: Limits, data: dict[str, int], seccomp: int) -> list[str]:
    """Return the command-line options of one run.

    `data` maps the place of each file made from bytes to a descriptor, `seccomp` is the descriptor
    of the filter of system calls.
    """
    parts = [
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *("--uid", OUTSIDER, "--gid", OUTSIDER, "--hostname", "sandbox"),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
    ]
    for name, value in sorted(view.environment.items()):
        parts += ["--setenv", name, value]
    links, folders = mounts.system_links()
    for folder in folders:
        parts += ["--ro-bind", folder, folder]
    for place, target in links.items():
        parts += ["--symlink", target, place]
    for bit in mounts.system_bits():
        parts += ["--ro-bind", bit, bit]
    # Read-only even for root, who could otherwise write the host's /proc/sys/kernel/core_pattern.
    parts += ["--proc", "/proc", "--remount-ro", "/proc"]
    parts += ["--dev", "/dev"]
    for device in view.devices:
        parts += ["--dev-bind-try", device, device]
    size = str(limits.tmp_mib * MIB)
    for place in ("/tmp", "/dev/shm"):  # noqa: S108 (the sandbox's own)
        parts += ["--size", size, "--tmpfs", place]
    for place, source in sorted(view.folders.items()):
        parts += ["--ro-bind", source, place]
    for place, descriptor in sorted(data.items()):
        parts += ["--ro-bind-data", str(descriptor), place]
    # Anything left writable would be memory without a limit.
    parts += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108
    return [*parts, "--seccomp", str(seccomp)]


def version(text: str) -> tuple[int, ...]:
    """Return (0, 8, 0) for `bubblewrap 0.8.0`; () for any other form."""
    words = text.split()
    if not words or not all(part.isdigit() for part in words[-1].split(".")):
        return ()
    return tuple(int(part) for part in words[-1].split("."))


def refusing_settings() -> list[str]:
    """Return the settings of this kernel that may refuse user namespaces, as `name = value`."""
    wanted = {
        "/proc/sys/user/max_user_namespaces": "0",
        "/proc/sys/kernel/unprivileged_userns_clone": "0",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    }
    found_settings = []
    for name, refusing in wanted.items():
        try:
            value = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if value == refusing:
            found_settings.append(f"{name} = {value}")
    return found_settings
