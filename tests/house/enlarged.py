"""The suite in a copy of this checkout whose `submissions/` has more rows.

python -m tests.house.enlarged 100 [what pytest takes]
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.git import git
from tests.house.tracked import tracked
from tests.paths import REAL_TASKS, ROOT
from tests.rows import grow


def enlarged(folder: Path, count: int) -> Path:
    """Copy the checkout, add rows until it has `count`, and commit it all."""
    for path in tracked():
        (folder / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path, follow_symlinks=False)
    assert grow(folder / "submissions", count), f"there are {count} rows already"
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", f"{count} rows")
    return folder


def run(folder: Path, *arguments: str, show: bool = False) -> tuple[int, str]:
    """Run pytest in such a copy; return its exit code and what it printed, or show that at once."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(folder), "GENEB_REAL_TASKS": str(REAL_TASKS)},
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout or ""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="geneb-ci-rows-") as folder:
        sys.exit(run(enlarged(Path(folder), int(sys.argv[1])), *sys.argv[2:], show=True)[0])
