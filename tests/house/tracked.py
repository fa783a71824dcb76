"""Files of the repository: those that git tracks, or all that lie here where there is no git."""

import functools
import subprocess
from pathlib import Path

from tests.paths import ROOT

_SKIPPED = {".git", ".venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
_OUTPUTS = {"build", "dist"}  # at the top; further down they are names like any other


@functools.cache
def tracked() -> tuple[Path, ...]:
    """List them, relative to the root."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        names = sorted(set(done.stdout.decode().split("\0")) - {""})
        paths = tuple(Path(name) for name in names if (ROOT / name).is_file())
    else:
        paths = tuple(
            path.relative_to(ROOT)
            for path in sorted(ROOT.rglob("*"))
            if path.is_file()
            and not _SKIPPED & set(path.relative_to(ROOT).parts)
            and path.relative_to(ROOT).parts[0] not in _OUTPUTS
        )
    assert len(paths) > 100, "the repository has more files than that"
    return paths


def ours() -> tuple[Path, ...]:
    """List those that are not in `submissions/`: what contributors write keeps no rule of ours."""
    return tuple(path for path in tracked() if path.parts[0] != "submissions")


def python_files(*folders: str) -> tuple[Path, ...]:
    """List our Python files, of some top-level folders or of all."""
    return tuple(
        path
        for path in ours()
        if path.suffix == ".py" and (not folders or path.parts[0] in folders)
    )
