"""The wheel of the checkout, and an environment that has it in the place of the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.paths import ROOT


def built(folder: Path) -> Path:
    """Build the wheel into a folder, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def installed(folder: Path) -> Path:
    """Make an environment with the wheel, by pip; return its folder of programs.

    What the wheel needs is seen where it is installed already, so that nothing is downloaded: the
    packages of the checkout's own environment, behind those of this one, and ruff, a program.
    """
    path = folder / "environment"
    venv.create(path, symlinks=True)
    python = path / "bin/python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    command += ["--no-deps", "--no-index", str(built(folder))]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    subprocess.run(command, check=True, env=plain | {"PIP_CONFIG_FILE": os.devnull})
    (packages,) = path.glob("lib/python*/site-packages")
    (packages / "needs.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    (path / "bin/ruff").symlink_to(Path(sysconfig.get_path("scripts"), "ruff"))
    code = "import geneb_ci, reference_harness as h; print(geneb_ci.__file__, h.__file__)"
    output = subprocess.run(
        [python, "-E", "-c", code], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    assert all(word.startswith(str(path)) for word in output.split()), output
    return path / "bin"
