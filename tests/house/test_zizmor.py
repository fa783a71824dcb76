"""zizmor, offline, in both personas: no finding, and it sees what it should."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.workflow_file import FOLDER as WORKFLOWS
from tests.house.workflow_file import read
from tests.paths import ROOT


def zizmor() -> str:
    beside = Path(sys.executable).with_name("zizmor")
    program = str(beside) if beside.exists() else shutil.which("zizmor")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("zizmor is missing: make installs it")
        pytest.skip("zizmor is not installed")
    return program


@pytest.mark.parametrize(
    ("persona", "left_out"),
    # One for each comment that says why; the runner of audits only the auditor looks at.
    # What `verdict` starts on is two, the doorbell and comments; `audit` starts on `verdict`.
    [("regular", "3 ignored, 1 suppressed"), ("auditor", "4 ignored")],
)
def test_zizmor_finds_nothing(persona: str, left_out: str):
    command = [
        zizmor(),
        "--offline",
        "--no-progress",
        "--color=never",
        "--persona",
        persona,
        ".github",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (
        0,
        f"No findings to report. Good job! ({left_out})\n",
    ), done.stderr


def test_zizmor_sees_what_it_should(tmp_path: Path):
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    text = read(WORKFLOWS / "verdict.yml").text.replace(" zizmor: ignore[dangerous-triggers]", "")
    (folder / "verdict.yml").write_text(text, encoding="utf-8")
    command = [
        zizmor(),
        "--offline",
        "--no-progress",
        "--color=never",
        str(folder / "verdict.yml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 14
    assert "dangerous-triggers" in done.stdout
