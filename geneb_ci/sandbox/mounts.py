"""What a sandbox shows of the host, read-only: the system, Python, the harness, and what is named.

Folders of the host have fixed names below /mnt, which say nothing about the machine.
"""

import importlib.util
import site
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geneb_ci.common.errors import BrokenInstallation

INSIDE = "/mnt"
PYTHON = f"{INSIDE}/python"
PACKAGES = f"{INSIDE}/packages"
HARNESS = f"{INSIDE}/harness"
EXTRACTORS = f"{INSIDE}/extractors"
WEIGHTS = f"{INSIDE}/weights"
INPUT = f"{INSIDE}/input"

SYSTEM = ("/usr",)
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr on a merged system; folders of their own on others."""
SYSTEM_BITS = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/sys/devices/system/cpu",
)
"""Where libraries are (a BLAS may be an alternative), and the number of processors."""
GPU_FOLDER = Path("/dev")
GPU_PATTERNS = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")


@dataclass(frozen=True)
class SandboxView:
    """Everything that one run sees, read-only: folders of the host and files made from bytes."""

    folders: dict[str, str]
    """Place inside to folder or file of the host."""
    data: dict[str, bytes] = field(default_factory=dict)
    """Place inside to the content of a file that is not on the host."""
    devices: tuple[str, ...] = ()
    python: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def view(
    extra: Mapping[str, Path],
    data: Mapping[str, bytes],
    devices: tuple[str, ...] = (),
    packages: Path | None = None,
) -> SandboxView:
    """Return the view of a run: Python, the harness, and the folders and data that were named.

    `packages` is a folder of installed packages that come before those of the harness.
    """
    folders = {HARNESS + "/reference_harness": str(_harness())}
    base = Path(sys.base_prefix).resolve()
    environment = {
        "HF_HUB_OFFLINE": "1",
        "HOME": "/tmp",  # noqa: S108 (the sandbox's own)
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": "/tmp",  # noqa: S108
        "USER": "nobody",
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
    own = _packages() if packages is None else [str(packages.resolve()), *_packages()]
    for index, folder in enumerate(own):
        folders[f"{PACKAGES}/{index}"] = folder
        paths.append(f"{PACKAGES}/{index}")
    environment["PYTHONPATH"] = ":".join(paths)
    folders |= {place: str(source.resolve()) for place, source in extra.items()}
    return SandboxView(folders, dict(data), devices, python, environment)


def system_links() -> tuple[dict[str, str], list[str]]:
    """Return the links to make (place to target), and the folders to show as they are."""
    links, folders = {}, [name for name in SYSTEM if Path(name).is_dir()]
    for name in LINKS:
        path = Path(name)
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_dir():
            folders.append(name)
    return links, folders


def system_bits() -> list[str]:
    """Return the files and folders of `SYSTEM_BITS` that exist here."""
    return [name for name in SYSTEM_BITS if Path(name).exists()]


def gpu_devices() -> tuple[str, ...]:
    """Return the device files of the NVIDIA GPUs of this machine, in order of name."""
    found = {str(file) for pattern in GPU_PATTERNS for file in GPU_FOLDER.glob(pattern)}
    return tuple(sorted(found))


def _packages() -> list[str]:
    """Return the folders of installed packages that no other mount shows."""
    named = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    found = dict.fromkeys(str(Path(name).resolve()) for name in named if Path(name).is_dir())
    return list(found)


def _harness() -> Path:
    spec = importlib.util.find_spec("reference_harness")
    if spec is None or not spec.submodule_search_locations:
        raise BrokenInstallation(
            "the reference harness is not installed beside geneb-ci",
            "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
        )
    return Path(spec.submodule_search_locations[0]).resolve()
