"""What surrounds a run: harness commit, packages, processor, time."""

import importlib.metadata
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from .record import HarnessRef

DISTRIBUTION = "geneb-ci"
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "threadpoolctl", "torch", "transformers", "tokenizers",
    "safetensors", "huggingface-hub",
)  # fmt: skip
"""Packages whose version can move an embedding or a score."""
GIT_SECONDS = 10  # a status of this repository takes well under one


def packages() -> dict[str, str]:
    """Return Python's version and that of each of `PACKAGES` that is installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def harness() -> HarnessRef:
    """Return version and, from a checkout, commit and whether the working tree differs from it."""
    folder = Path(__file__).resolve().parent
    commit = _git(folder, "rev-parse", "HEAD") if _tracked(folder) else None
    changed = _git(folder, "status", "--porcelain", "--", ".", "../schemas") if commit else ""
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    return HarnessRef(version=version, commit=commit, dirty=changed != "")


def _tracked(folder: Path) -> bool:
    """Whether git tracks this very file: an installation below someone's repository is not it."""
    return bool(_git(folder, "ls-files", "--", Path(__file__).name))


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, no shell
            ["git", "-C", str(folder), *words],  # noqa: S607 - git is where the user has it
            capture_output=True, text=True, timeout=GIT_SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def hardware(device: str) -> str:
    """Return the model of the accelerator of a torch device, else of the processor."""
    if device.startswith("cuda") and "torch" in sys.modules:
        return str(sys.modules["torch"].cuda.get_device_name(device))
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def now() -> str:
    """Return the time in UTC, to the second, as records write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
