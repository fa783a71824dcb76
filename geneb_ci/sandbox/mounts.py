"""The parts of the host that a sandbox shows, and the command lines of bubblewrap and gVisor.

Folders of the host have fixed names below /mnt, which reveal nothing about the machine.

Levels 2 and 4 use bubblewrap. All its options are passed by a descriptor (`--args`), because
bubblewrap is pid 1 of the sandbox, whose command line the extractor can read. The extractor can
also read the environment of pid 1, in spite of `--clearenv`, so bubblewrap is started with an empty
one.

Level 3 uses gVisor. Tests only check its configuration, which was never run with runsc. As at every
level, an audit starts only if every attempt of the escape suite was refused.
"""

import importlib.util
import json
import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geneb_ci.common.errors import BrokenInstallation
from geneb_ci.sandbox.limits import MIB, Limits
from reference_harness.formats.processes import PASSIVE_WAITING

MOUNT_FOLDER = "/mnt"
"""Folder inside the sandbox with all folders that a run sees, except those of the system."""
PYTHON = f"{MOUNT_FOLDER}/python"
"""Folder inside the sandbox with Python, unless /usr contains it."""
PACKAGES = f"{MOUNT_FOLDER}/packages"
"""Folder inside the sandbox with numbered folders of installed packages."""
HARNESS = f"{MOUNT_FOLDER}/harness"
"""Folder inside the sandbox with the package `reference_harness`."""
EXTRACTORS = f"{MOUNT_FOLDER}/extractors"
"""Folder inside the sandbox with the contributor's module."""
WEIGHTS = f"{MOUNT_FOLDER}/weights"
"""Folder inside the sandbox with the weights of the model."""
INPUT = f"{MOUNT_FOLDER}/input"
"""Folder inside the sandbox with the files that are made for a run."""

SYSTEM_FOLDERS = ("/usr",)
"""Folders of the host's system that the sandbox shows."""
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Paths of the host's system that are links into /usr on most machines, and folders on others."""
SYSTEM_PATHS = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/sys/devices/system/cpu",
)
"""Paths with the locations of libraries (a BLAS may be an alternative) and number of processors."""
GPU_FOLDER = Path("/dev")
GPU_PATTERNS = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""Names of the device files of GPUs in `GPU_FOLDER`."""


@dataclass(frozen=True)
class SandboxView:
    """Everything that one run sees, read-only: folders of the host and files made from bytes."""

    folders: dict[str, str]
    """By path inside the sandbox, the path of the folder or file on the host."""
    data: dict[str, bytes] = field(default_factory=dict)
    """By path inside the sandbox, the content of a file that is not on the host."""
    devices: tuple[str, ...] = ()
    """GPU device files, which may be written, too."""
    python: str = ""
    """Path of the Python interpreter inside the sandbox."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables of the process."""


def sandbox_view(
    extra: Mapping[str, Path],
    data: Mapping[str, bytes],
    devices: tuple[str, ...] = (),
    packages: Path | None = None,
) -> SandboxView:
    """Return what a run sees: Python, its packages, the harness, `extra` and `data`.

    `extra` maps a path inside to a folder or file of the host, `data` to a content. `packages` is a
    folder of installed packages that have priority over those of the harness.
    """
    folders = {HARNESS + "/reference_harness": str(_harness_folder())}
    base = Path(sys.base_prefix).resolve()
    environment = {
        "HF_HUB_OFFLINE": "1",
        "HOME": "/tmp",  # noqa: S108 (the sandbox's own)
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": "/tmp",  # noqa: S108
        "USER": "nobody",
        **PASSIVE_WAITING,
    }
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if base.is_relative_to("/usr"):
        python = str(base / "bin" / version)
    else:
        folders[PYTHON] = str(base)
        python = f"{PYTHON}/bin/{version}"
        # A shared libpython is found by a path that was fixed when it was built.
        environment["LD_LIBRARY_PATH"] = f"{PYTHON}/lib"
    paths = [HARNESS]
    package_folders = (
        _package_folders() if packages is None else [str(packages.resolve()), *_package_folders()]
    )
    for index, folder in enumerate(package_folders):
        folders[f"{PACKAGES}/{index}"] = folder
        paths.append(f"{PACKAGES}/{index}")
    environment["PYTHONPATH"] = ":".join(paths)
    folders |= {path: str(source.resolve()) for path, source in extra.items()}
    return SandboxView(folders, dict(data), devices, python, environment)


def system_links() -> tuple[dict[str, str], list[str]]:
    """Return the links to make (path -> target), and the system's folders to show unchanged."""
    links, folders = {}, [name for name in SYSTEM_FOLDERS if Path(name).is_dir()]
    for folder_name in SYSTEM_LINKS:
        path = Path(folder_name)
        if path.is_symlink():
            links[folder_name] = str(path.readlink())
        elif path.is_dir():
            folders.append(folder_name)
    return links, folders


def system_paths() -> list[str]:
    """Return the files and folders of `SYSTEM_PATHS` that exist on this machine."""
    return [name for name in SYSTEM_PATHS if Path(name).exists()]


def kernel_paths(proc: Path = Path("/proc")) -> list[str]:
    """Return the paths in /proc that are made read-only in a sandbox with a GPU.

    The folders of processes are not among them: `cuInit` of NVIDIA's driver fails with error 304
    unless it can name its threads, by writing to /proc/PID/task/TID/comm. Nor are files that this
    user cannot write anyway.
    """
    paths = [path for path in proc.iterdir() if not path.name.isdigit() and not path.is_symlink()]
    return sorted(str(path) for path in paths if path.is_dir() or os.access(path, os.W_OK))


def gpu_devices() -> tuple[str, ...]:
    """Return the device files of the NVIDIA GPUs of this machine, in order of name."""
    devices = {str(file) for pattern in GPU_PATTERNS for file in GPU_FOLDER.glob(pattern)}
    return tuple(sorted(devices))


def _package_folders() -> list[str]:
    """Return the folders of the host with installed Python packages."""
    package_folders = [
        *site.getsitepackages(),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
    ]
    folders = dict.fromkeys(
        str(Path(name).resolve()) for name in package_folders if Path(name).is_dir()
    )
    return list(folders)


def _harness_folder() -> Path:
    """Return the folder of the package `reference_harness` on the host."""
    spec = importlib.util.find_spec("reference_harness")
    if spec is None or not spec.submodule_search_locations:
        raise BrokenInstallation(
            "the package reference_harness, which comes with geneb-ci, is not installed",
            "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
        )
    return Path(spec.submodule_search_locations[0]).resolve()


BWRAP = "bwrap"
"""The program of bubblewrap."""
BUBBLEWRAP_USER = "1000"
"""User and group inside: not 0, since much software behaves differently as root."""


def bubblewrap_path() -> str | None:
    """Return the path of bubblewrap; None if it is not installed."""
    return shutil.which(BWRAP)


def bubblewrap_options(
    view: SandboxView, limits: Limits, data: dict[str, int], seccomp: int
) -> list[str]:
    """Return the options of bubblewrap for one run.

    `data` is path inside -> descriptor with the content; `seccomp` is the descriptor of the filter
    of system calls.
    """
    options = [
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *("--uid", BUBBLEWRAP_USER, "--gid", BUBBLEWRAP_USER, "--hostname", "sandbox"),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
    ]
    for variable, content in sorted(view.environment.items()):
        options += ["--setenv", variable, content]
    links, folders = system_links()
    options += _read_only_options(folders)
    for path, target in links.items():
        options += ["--symlink", target, path]
    options += _read_only_options(system_paths())
    # Read-only even for root, who could otherwise write the host's /proc/sys/kernel/core_pattern.
    options += ["--proc", "/proc"]
    options += _read_only_options(kernel_paths()) if view.devices else ["--remount-ro", "/proc"]
    options += ["--dev", "/dev"]
    for device in view.devices:
        options += ["--dev-bind-try", device, device]
    tmp_size = str(limits.tmp_mib * MIB)
    for path in ("/tmp", "/dev/shm"):  # noqa: S108 (the sandbox's own)
        options += ["--size", tmp_size, "--tmpfs", path]
    for path, host_path in sorted(view.folders.items()):
        options += ["--ro-bind", host_path, path]
    for path, descriptor in sorted(data.items()):
        options += ["--ro-bind-data", str(descriptor), path]
    # A writable file system would be memory without a limit.
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108
    return [*options, "--seccomp", str(seccomp)]


def _read_only_options(paths: Sequence[str]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind", path, path)]


def bubblewrap_version(printed: str) -> tuple[int, ...]:
    """Return (0, 8, 0) for `bubblewrap 0.8.0`; () for any other form."""
    words = printed.split()
    if not words or not all(part.isdigit() for part in words[-1].split(".")):
        return ()
    return tuple(int(part) for part in words[-1].split("."))


def refusing_settings() -> list[str]:
    """Return the settings of this kernel that may refuse user namespaces, as `name = value`."""
    refusing_values = {
        "/proc/sys/user/max_user_namespaces": "0",
        "/proc/sys/kernel/unprivileged_userns_clone": "0",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    }
    settings = []
    for setting, refusing in refusing_values.items():
        try:
            present = Path(setting).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if present == refusing:
            settings.append(f"{setting} = {present}")
    return settings


RUNSC = "runsc"
"""The program of gVisor."""
GVISOR_USER = 1000
"""Number of the user and of the group inside gVisor."""
GVISOR_NAME = "geneb-audit"
"""Name of the container of gVisor."""


def gvisor_path() -> str | None:
    """Return the path of runsc; None if it is not installed."""
    return shutil.which(RUNSC)


def gvisor_bundle(folder: Path, view: SandboxView, limits: Limits, command: Sequence[str]) -> None:
    """Write an OCI bundle for gVisor: an empty root, the data files, and config.json."""
    (folder / "root").mkdir(parents=True)
    folders = dict(view.folders)
    for index, (path, content) in enumerate(sorted(view.data.items())):
        file = folder / f"data-{index}"
        file.write_bytes(content)
        folders[path] = str(file)
    config = json.dumps(gvisor_config(view, folders, limits, command), indent=1, sort_keys=True)
    (folder / "config.json").write_text(config, encoding="utf-8")


def gvisor_config(
    view: SandboxView, folders: dict[str, str], limits: Limits, command: Sequence[str]
) -> dict[str, Any]:
    """Return the OCI runtime configuration (version 1.0) of one run."""
    links, system = system_links()
    source_by_path = {name: name for name in (*system, *system_paths())}
    # An OCI configuration has no links, so the target of a link is mounted at its path.
    source_by_path |= {path: str((Path("/") / target).resolve()) for path, target in links.items()}
    tmp_size = f"size={limits.tmp_mib * MIB}"
    host_mounts = [
        {"destination": path, "type": "bind", "source": source, "options": ["ro", "rbind"]}
        for path, source in sorted((source_by_path | folders).items())
    ]
    memory_mounts = [
        {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", tmp_size]}
        for path in ("/tmp", "/dev/shm")  # noqa: S108 (the sandbox's own)
    ]
    return {
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": "root", "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": GVISOR_USER, "gid": GVISOR_USER},
            "args": list(command),
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
            *memory_mounts,
            *host_mounts,
        ],
        "linux": {
            "namespaces": [{"type": name} for name in ("pid", "ipc", "uts", "mount", "network")]
        },
    }


def gvisor_command(folder: Path, *, gpu: bool) -> list[str]:
    """Return the command with which gVisor runs the bundle in a folder."""
    return [
        str(gvisor_path() or RUNSC),
        f"--root={folder / 'state'}",
        *("--rootless", "--network=none", "--ignore-cgroups", "--host-uds=none"),
        *(["--nvproxy=true"] if gpu else []),
        *("run", f"--bundle={folder}", GVISOR_NAME),
    ]
