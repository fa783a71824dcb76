"""Wheel and source archive, installed in an empty environment of each Python that is supported."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

from geneb_ci import __version__
from tests.packaging.wheel import built
from tests.paths import ROOT, SUBMISSIONS
from tools.lock import PYTHONS
from tools.rehearse.interpreters import find

pytestmark = pytest.mark.nightly  # it asks the package index


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, Path]:
    """Build both from the checkout; kind to file."""
    folder = tmp_path_factory.mktemp("releases")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    return {"wheel": built(folder), "archive": archive}


def run(*words: str | Path, cwd: Path) -> str:
    """Run a command that knows no other environment, and return what it printed."""
    known = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run([*words], cwd=cwd, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["wheel", "archive"])
@pytest.mark.parametrize("version", PYTHONS)
def test_it_installs_and_checks(kind, version, releases, tmp_path):
    """Run the program away from the checkout, with the packages that it asks for alone."""
    uv, path = find_uv_bin(), tmp_path / "environment"
    run(uv, "venv", "--quiet", "--python", find(version), path, cwd=tmp_path)
    python = path / "bin/python"
    run(uv, "pip", "install", "--quiet", "--python", python, releases[kind], cwd=tmp_path)
    (packages,) = path.glob("lib/python*")
    assert packages.name == f"python{version}"
    program = path / "bin/geneb-ci"
    assert run(program, "--version", cwd=tmp_path) == f"geneb-ci {__version__}\n"
    message = run(program, "check", SUBMISSIONS / "GROVER.json", "--format", "github", cwd=tmp_path)
    assert "error" not in message
    assert run(program, "rules", "--all", cwd=tmp_path).count("\n") > 100
    code = "import geneb_ci; print(geneb_ci.check('missing.json').verdict)"
    assert run(python, "-c", code, cwd=tmp_path) == "not-checked\n"


def test_a_wheel_of_the_archive_is_that_of_the_checkout(releases, tmp_path):
    def contents(wheel: Path) -> dict[str, int]:
        return {member.filename: member.CRC for member in zipfile.ZipFile(wheel).infolist()}

    run(sys.executable, "-m", "tarfile", "-e", releases["archive"], tmp_path, cwd=tmp_path)
    (unpacked,) = tmp_path.iterdir()
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "made")
    run(*command, cwd=unpacked)
    (made,) = (tmp_path / "made").glob("*.whl")
    assert contents(made) == contents(releases["wheel"])
