"""A private copy of the repository, and of its virtual environment, for one worker.

Tests start processes of their own, with and without `-I`. In a copy whose environment points at
itself, all of them import the mutant. Packages are hard links, so a copy takes no room.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".mutants"
TRACE = ".trace"
"""File in a clone that names the test that runs; with it, child processes note their marks."""

_HOOK = (
    "import os; os.path.exists({trace!r}) "
    "and __import__('tools.mutants.hits', fromlist=['child']).child()\n"
)


def make(name: str) -> Path:
    """Make a clone of the working tree, as it is now, anew; return its folder."""
    # Some tests read material beside the repository.
    WORK.mkdir(exist_ok=True)
    for old in WORK.glob(f"{name}-*"):
        shutil.rmtree(old, ignore_errors=True)  # a process of a killed run may still write there
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=WORK))
    clone = folder / "main"
    subprocess.run(["git", "clone", "-q", "--local", str(ROOT), str(clone)], check=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for path in filter(None, names.split("\0")):
        if not (ROOT / path).exists() and not (ROOT / path).is_symlink():
            (clone / path).unlink(missing_ok=True)
            continue
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, clone / path, follow_symlinks=False)
    if (ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
    _environment(clone)
    return clone


def _environment(clone: Path) -> None:
    subprocess.run(["cp", "-al", sys.prefix, str(clone / ".venv")], check=True)
    packages = clone / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    for path in packages.glob("_geneb_ci.pth"):
        path.unlink()  # a link: writing to it would change the original
    (packages / "_geneb_ci.pth").write_text(f"{clone}\n", encoding="utf-8")
    hook = _HOOK.format(trace=str(clone / TRACE))
    (packages / "_geneb_trace.pth").write_text(hook, encoding="utf-8")


def python(clone: Path) -> str:
    """Return the interpreter of a clone."""
    return str(clone / ".venv" / "bin" / "python")


def environment() -> dict[str, str]:
    """Return the environment of `make test` on a hosted runner, one thread a process."""
    return os.environ | {"CI": "true", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
