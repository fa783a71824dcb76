"""Finds a Python of a given version on this machine."""

import os
import re
import subprocess
from pathlib import Path

from uv import find_uv_bin

VERSION = re.compile(r"3\.\d+")


class NoInterpreter(Exception):  # noqa: N818 (named after what is wrong)
    """This machine has no Python of the version that a workflow requires."""


def find(version: str) -> Path:
    """Return the interpreter of a version such as "3.13".

    Raises NoInterpreter, whose message says how to install one.
    """
    if not VERSION.fullmatch(version):
        raise NoInterpreter(
            f"python-version {version!r}: expected major and minor version, such as '3.13'"
        )
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    tool_cache = Path(os.environ.get("RUNNER_TOOL_CACHE") or "/opt/hostedtoolcache")
    folders = [*pyenv.glob("versions/*/bin"), *tool_cache.glob("Python/*/x64/bin")]
    # A shim of pyenv fails for each version that is not the chosen one.
    on_path = [name for name in os.environ["PATH"].split(os.pathsep) if name != f"{pyenv}/shims"]
    process = subprocess.run(
        [find_uv_bin(), "python", "find", "--system", "--no-python-downloads", version],
        env=os.environ | {"PATH": os.pathsep.join([*map(str, folders), *on_path])},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise NoInterpreter(
            f"Python {version} is not installed, so its jobs cannot be rehearsed; install it with "
            f"`pyenv install {version}`, `uv python install {version}` or "
            f"`apt-get install python{version} python{version}-venv`"
        )
    return Path(process.stdout.strip())
