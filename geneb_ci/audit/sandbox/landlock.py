"""Level 1, from outside: what `confine.py` is told. For machines without bubblewrap."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from geneb_ci.audit.sandbox import confine, mounts
from geneb_ci.audit.sandbox.limits import MIB, Limits
from geneb_ci.audit.sandbox.mounts import View

SCRATCH = ("/tmp", "/dev/shm")  # noqa: S108 (the sandbox's own)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
READABLE = ("/proc/cpuinfo", "/proc/meminfo")
"""What array libraries ask of the machine. The rest of /proc stays closed: it is the host's."""


def command() -> list[str]:
    """Give the command, less the descriptor of the plan."""
    return [sys.executable, "-I", "-S", "-B", str(Path(confine.__file__).resolve())]


def plan(
    view: View, limits: Limits, data: dict[str, int], program: bytes, inner: Sequence[str]
) -> bytes:
    """Give the plan, as JSON."""
    links, folders = mounts.system_links()
    return json.dumps({
        "inside": mounts.INSIDE,
        "folders": view.folders,
        "data": data,
        "scratch": SCRATCH,
        "readable": [*folders, *links, *mounts.system_bits(), *READABLE, mounts.INSIDE],
        "devices": [*DEVICES, *view.devices],
        "tmp_bytes": limits.tmp_mib * MIB,
        "open_files": limits.open_files,
        "folder": SCRATCH[0],
        "program": program.hex(),
        "environment": view.environment,
        "command": list(inner),
    }).encode()  # fmt: skip
