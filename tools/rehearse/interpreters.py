"""Finds a Python of a given version on this machine."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

VERSION = re.compile(r"3\.\d+")
_LIMIT_S = 30  # for an interpreter to print its version on a busy machine


class NoInterpreter(Exception):  # noqa: N818 (named after what is wrong)
    """This machine has no Python of the version that a workflow names."""


def find(version: str) -> Path:
    """Return the interpreter of a version such as "3.13".

    Raises NoInterpreter, whose message says how to install one.
    """
    if not VERSION.fullmatch(version):
        raise NoInterpreter(
            f"python-version {version!r}: expected major and minor version, such as '3.13'"
        )
    for candidate in _candidates(version):
        if candidate.is_file() and _is(candidate, version):
            return candidate
    raise NoInterpreter(
        f"Python {version} is not installed, so its jobs cannot be rehearsed; install it with "
        f"`pyenv install {version}`, `uv python install {version}` or "
        f"`apt-get install python{version} python{version}-venv`"
    )


def _candidates(version: str) -> Iterator[Path]:
    """Yield possible paths; folders of one version come first, as they surely have venv and pip."""
    home = Path.home()
    folders = [
        Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions",
        Path(os.environ.get("RUNNER_TOOL_CACHE") or "/opt/hostedtoolcache") / "Python",
        home / ".local/share/uv/python",
    ]
    for folder in folders:
        for version_folder in sorted(folder.glob(f"*{version}.*"), reverse=True):
            yield from (
                version_folder / "bin" / f"python{version}",
                version_folder / "x64/bin" / f"python{version}",
            )
    places = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for folder in [*places, Path("/usr/bin"), Path("/usr/local/bin")]:
        yield folder / f"python{version}"


def _is(candidate: Path, version: str) -> bool:
    """Whether an interpreter runs, has that version, and can create environments."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        process = subprocess.run(
            [candidate, "-I", "-c", code],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0 and process.stdout.strip() == version
