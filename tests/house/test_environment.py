"""Which environment `make` uses: the one that is there, unless another Python is asked for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"
OTHER = "3.12" if THIS != "3.12" else "3.13"


@pytest.fixture
def checkout(tmp_path):
    """Lay what make reads, and two programs that say they are a Python."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("requirements", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for version in (THIS, OTHER):
        program(tmp_path / f"python{version}", f"echo {version}")
    return tmp_path


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def planned(checkout: Path, *arguments: str) -> list[str]:
    """Return what make would run for the environment."""
    return [line.split()[0] for line in dry_run(checkout, ".venv/.ready", *arguments)]


def dry_run(checkout: Path, *arguments: str) -> list[str]:
    """Return what make would run; a make that runs these tests hands its own variables down."""
    passed_on = ("PYTHON", "UPGRADE", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL")
    done = subprocess.run(
        ["make", "-n", *arguments],
        cwd=checkout,
        env={name: value for name, value in os.environ.items() if name not in passed_on},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.replace("\\\n", "").splitlines()


NOTHING = ["make:"]  # "'.venv/.ready' is up to date"
INSTALL = ["tools/system-packages", *["tools/quietly"] * 3, "touch"]
MAKE = ["tools/new-venv", *INSTALL]


def ready(checkout: Path) -> None:
    program(checkout / ".venv/bin/python", f"echo {THIS}")
    (checkout / ".venv/.ready").touch()


def test_without_an_environment_one_is_made(checkout):
    assert planned(checkout) == MAKE


def test_the_one_that_is_there_is_used(checkout):
    ready(checkout)
    assert planned(checkout) == NOTHING
    assert planned(checkout, f"PYTHON=./python{THIS}") == NOTHING


def test_another_python_makes_it_anew(checkout):
    """Else `make test PYTHON=python3.13` would test what was there."""
    ready(checkout)
    assert planned(checkout, f"PYTHON=./python{OTHER}") == MAKE


def test_new_pins_are_installed_into_the_one_that_is_there(checkout):
    ready(checkout)
    os.utime(checkout / ".venv/.ready", (0, 0))
    assert planned(checkout) == INSTALL


@pytest.mark.parametrize("content", ["exit 127", "echo no pip >&2; exit 1"])
def test_one_that_does_not_run_is_made_anew(checkout, content):
    ready(checkout)
    program(checkout / ".venv/bin/python", content)
    assert planned(checkout) == MAKE


def new_venv(python: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "tools/new-venv", python, folder], capture_output=True, text=True, check=False
    )


def test_a_python_that_is_not_there_is_named(tmp_path):
    done = new_venv("python3.99", tmp_path / "venv")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "geneb-ci needs Python 3.11, 3.12 or 3.13, but no program python3.99 runs here: install one"
        " of them, or name it as in `make test PYTHON=python3.12`\n"
    )


def test_a_python_that_is_too_old_is_named(tmp_path):
    old = tmp_path / "python3"
    code = (
        "import sys; sys.version_info = (3, 10); code = sys.argv[2]; del sys.argv[1:3]; exec(code)"
    )
    program(old, f"exec {sys.executable} -c '{code}' \"$@\"")
    done = new_venv(str(old), tmp_path / "venv")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"geneb-ci needs Python 3.11, 3.12 or 3.13, but {old} is 3.10: name another, as in"
        " `make test PYTHON=python3.12`\n"
    )
    assert not (tmp_path / "venv").exists()


@pytest.mark.nightly
def test_what_was_in_the_folder_is_gone(tmp_path):
    """An environment with its own pip takes three seconds."""
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/old").touch()
    done = new_venv(sys.executable, tmp_path / "venv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "venv/bin/old").exists()
    assert (tmp_path / "venv/bin/pip").exists()


def test_make_lock_runs_the_tool_in_the_environment(checkout):
    ready(checkout)
    assert dry_run(checkout, "lock") == [".venv/bin/python -m tools.lock "]
    assert dry_run(checkout, "lock", "UPGRADE=1") == [".venv/bin/python -m tools.lock --upgrade"]


def quietly(log: Path, command: str) -> subprocess.CompletedProcess[str]:
    words = [
        str(ROOT / "tools/quietly"),
        str(log),
        "installing two things (5 MB)",
        "sh",
        "-c",
        command,
    ]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_what_an_installation_prints_goes_to_a_log(tmp_path):
    log = tmp_path / "new" / "install.log"
    done = quietly(log, "echo much; echo more >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "installing two things (5 MB)\n", "")
    assert log.read_text(encoding="utf-8").endswith("\nmuch\nmore\n")


def test_an_installation_that_fails_shows_the_end_of_its_log_and_names_it(tmp_path):
    log = tmp_path / "install.log"
    done = quietly(log, "seq 1 100; echo no such package >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "installing two things (5 MB)\n")
    lines = done.stderr.splitlines()
    assert lines[-3:] == [
        "no such package",
        "this failed: installing two things (5 MB)",
        f"the lines above are the last of what it printed; the rest is in {log}",
    ]
    assert len(lines) < 20


@pytest.fixture
def installers(tmp_path):
    """Lay a uv and a Python that write down what they are called with, and a lock."""
    program(
        tmp_path / "python", f'echo "python $@" >> "{tmp_path}/calls"; cat >> "{tmp_path}/stdin"'
    )
    lock = tmp_path / "lock.txt"
    lock.write_text(
        f"{UV} \\\n    --hash=sha256:{'0' * 64}\nxmod==1.0 \\\n    --hash=sha256:{'1' * 64}\n"
    )
    return tmp_path


UV = "uv==0.9.1"
HASHED = "--require-hashes --no-deps --requirement"


def installed(folder: Path) -> tuple[int, list[str]]:
    """Install the lock, and return the exit code and the calls."""
    words = [ROOT / "tools/install-lock", folder / "uv", folder / "python", folder / "lock.txt"]
    done = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    calls = (folder / "calls").read_text(encoding="utf-8").splitlines()
    return done.returncode, [call.replace(f"{folder}/", "") for call in calls]


BY_UV = f"uv pip install --quiet --python python {HASHED} lock.txt"
BY_PIP = f"python -m pip install --quiet {HASHED}"


def test_a_lock_is_installed_by_uv_alone(installers):
    program(installers / "uv", f'echo "uv $@" >> "{installers}/calls"')
    assert installed(installers) == (0, [BY_UV])


def test_a_lock_is_installed_by_pip_where_uv_fails(installers):
    program(installers / "uv", f'echo "uv $@" >> "{installers}/calls"; exit 2')
    assert installed(installers) == (0, [BY_UV, f"{BY_PIP} lock.txt"])


def test_a_uv_that_is_not_there_is_installed_first_with_its_hashes(installers):
    """The stand-in for pip installs nothing, so that pip does the rest, too."""
    assert installed(installers) == (0, [f"{BY_PIP} /dev/stdin", f"{BY_PIP} lock.txt"])
    assert (installers / "stdin").read_text(encoding="utf-8").split(" ")[0] == UV
