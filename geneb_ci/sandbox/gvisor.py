"""Level 3: the bundle and the command line for gVisor, where `runsc` is installed.

The tests check only the configuration: it was never run with runsc. As at every level, an audit
begins only after the probe suite was refused inside it.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from geneb_ci.sandbox import mounts
from geneb_ci.sandbox.limits import MIB, Limits
from geneb_ci.sandbox.mounts import SandboxView

PROGRAM = "runsc"
OUTSIDER = 1000
NAME = "geneb-audit"


def found() -> str | None:
    """Return the path of runsc, or None."""
    return shutil.which(PROGRAM)


def bundle(folder: Path, view: SandboxView, limits: Limits, inner: Sequence[str]) -> None:
    """Write an OCI bundle: an empty root, the data files, and config.json."""
    (folder / "root").mkdir(parents=True)
    folders = dict(view.folders)
    for index, (place, content) in enumerate(sorted(view.data.items())):
        file = folder / f"data-{index}"
        file.write_bytes(content)
        folders[place] = str(file)
    text = json.dumps(config(view, folders, limits, inner), indent=1, sort_keys=True)
    (folder / "config.json").write_text(text, encoding="utf-8")


def config(
    view: SandboxView, folders: dict[str, str], limits: Limits, inner: Sequence[str]
) -> dict[str, Any]:
    """Return the OCI runtime configuration (version 1.0) of one run."""
    links, system = mounts.system_links()
    shown = {name: name for name in (*system, *mounts.system_bits())}
    # An OCI configuration has no links: what a link names is shown in its place.
    shown |= {place: str((Path("/") / target).resolve()) for place, target in links.items()}
    size = f"size={limits.tmp_mib * MIB}"
    bound = [
        {"destination": place, "type": "bind", "source": source, "options": ["ro", "rbind"]}
        for place, source in sorted((shown | folders).items())
    ]
    memory = [
        {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", size]}
        for place in ("/tmp", "/dev/shm")  # noqa: S108 (the sandbox's own)
    ]
    return {
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": "root", "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": OUTSIDER, "gid": OUTSIDER},
            "args": list(inner),
            "env": [f"{name}={value}" for name, value in sorted(view.environment.items())],
            "cwd": "/tmp",  # noqa: S108
            "noNewPrivileges": True,
            "capabilities": {},
            "rlimits": [
                {"type": "RLIMIT_NOFILE", "hard": limits.open_files, "soft": limits.open_files},
                {"type": "RLIMIT_CORE", "hard": 0, "soft": 0},
            ],
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            *memory,
            *bound,
        ],
        "linux": {
            "namespaces": [{"type": name} for name in ("pid", "ipc", "uts", "mount", "network")]
        },
    }


def command(folder: Path, *, gpu: bool) -> list[str]:
    """Return the command that runs a bundle."""
    return [
        str(found() or PROGRAM),
        f"--root={folder / 'state'}",
        *("--rootless", "--network=none", "--ignore-cgroups", "--host-uds=none"),
        *(["--nvproxy=true"] if gpu else []),
        *("run", f"--bundle={folder}", NAME),
    ]
