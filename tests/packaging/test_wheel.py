"""The wheel that a stranger installs: whole, and working away from the checkout."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from geneb_ci.board.page import FIXED_FILES
from geneb_ci.common.shipped import toolkit_files
from geneb_ci.init import new_repository
from tests.packaging.wheel import built
from tests.paths import ROOT, SUBMISSIONS


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """Return a folder with what the wheel installs."""
    folder: Path = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def test_it_carries_schemas_policy_and_page(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        f"geneb_ci/_shipped/{folder}/{path.name}"
        for folder, repository_folder in (("schemas", "schemas"), ("policy", "leaderboard/policy"))
        for path in (ROOT / repository_folder).glob("*.json")
    }
    shipped |= {
        f"geneb_ci/_shipped/page/{path.relative_to(ROOT / 'leaderboard').as_posix()}"
        for path in (
            *(ROOT / "leaderboard/src").rglob("*.*"),
            *(ROOT / "leaderboard" / name for name in FIXED_FILES),
        )
    }
    shipped |= {f"geneb_ci/_shipped/repository/{path}" for path in new_repository.copied_files()}
    shipped |= set(toolkit_files())
    assert shipped <= names
    assert not {name for name in names if name.startswith(("tests/", "submissions/", "tools/"))}


def test_it_checks_a_lone_file_away_from_the_checkout(installed, tmp_path):
    shutil.copy(SUBMISSIONS / "space.json", tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); import geneb_ci.cli.main as m;"
        f"assert m.__file__ == '{installed}/geneb_ci/cli/main.py', m.__file__;"
        "sys.exit(m.main(['check', 'space.json', '--format', 'json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["findings"] == []


@pytest.mark.nightly  # in the gate: a lone file is checked, and all that a board copies is there
def test_it_writes_the_same_board_as_a_checkout(installed, tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); import hashlib, json;"
        "from geneb_ci.init import new_repository as n;"
        f"assert n.__file__ == '{installed}/geneb_ci/init/new_repository.py', n.__file__;"
        "g = n.BoardAnswers('org/board', 'org/board', '@org/team');"
        "print(json.dumps({p: hashlib.sha256(r).hexdigest() for p, r in"
        " n.repository_files(g, n.benchmark_bytes(None)).items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(new_repository.__file__).is_relative_to(ROOT)
    answers = new_repository.BoardAnswers("org/board", "org/board", "@org/team")
    files = new_repository.repository_files(answers, new_repository.benchmark_bytes(None))
    assert json.loads(done.stdout) == {
        path: hashlib.sha256(raw).hexdigest() for path, raw in files.items()
    }


def test_every_requirement_but_torch_is_locked_with_hashes():
    lines = (ROOT / "requirements/dev.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if re.match(r"[a-z]", line)]
    assert len(pins) > 20
    for index, line in enumerate(lines):
        if line in pins:
            assert re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+ .*\\$", line), line
            assert lines[index + 1].strip().startswith("--hash=sha256:")
    assert not [line for line in pins if line.startswith(("torch==", "nvidia-", "triton"))]
    assert (ROOT / "requirements/torch.txt").read_text(encoding="utf-8").splitlines()[
        -1
    ] == "torch==2.13.0"
