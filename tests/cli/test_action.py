"""The composite action as a runner runs it: its own steps, in a repository that is not ours."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from geneb_ci.cli.main import COMMANDS
from tests.house.workflow_file import ACTIONS, read, steps
from tests.paths import ROOT, SUBMISSIONS

ACTION = ACTIONS / "check"


def step(identifier: str) -> dict[str, Any]:
    job = read(ACTION / "action.yml").jobs["action"]
    return next(found for found in steps(job) if found.get("id") == identifier)


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give what the step before leaves: an environment in RUNNER_TEMP, with this checkout in it.

    The packages are those of the tests, so that nothing is fetched.
    """
    folder = tmp_path_factory.mktemp("runner")
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder / "geneb-ci")]
    subprocess.run(command, check=True)
    (packages,) = (folder / "geneb-ci").glob("lib/python*/site-packages")
    paths = f"{ROOT}\n{sysconfig.get_path('purelib')}\n"
    (packages / "geneb-ci.pth").write_text(paths, encoding="utf-8")
    return folder


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Make a repository as upstream has it, of one row."""
    root = tmp_path / "upstream"
    (root / "submissions").mkdir(parents=True)
    shutil.copy(SUBMISSIONS / "splicebert-1024nt.json", root / "submissions")
    (root / "pyproject.toml").write_text("[tool.geneb-ci]\nignore = ['card']\n", encoding="utf-8")
    return root


def run(root: Path, runner: Path, **given: str) -> tuple[int, str, str, dict[str, str]]:
    """Run the check step; gives its exit code, its log, the step summary and the outputs."""
    found = step("check")
    defaults = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert found["shell"] == "bash"
    assert found["env"] == {name.upper(): f"${{{{ inputs.{name} }}}}" for name in defaults}
    values = {name.upper(): given.get(name, entry["default"]) for name, entry in defaults.items()}
    summary, outputs = root.parent / "summary.md", root.parent / "outputs"
    summary.touch()
    outputs.write_text("", encoding="utf-8")
    environment = values | {
        "PATH": os.environ["PATH"],
        "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
        "RUNNER_TEMP": str(runner),
    }
    # As the runner starts a step whose shell is bash.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    lines = outputs.read_text(encoding="utf-8").splitlines()
    return (
        done.returncode,
        done.stdout + done.stderr,
        summary.read_text(encoding="utf-8"),
        dict(line.split("=", 1) for line in lines),
    )


def test_all_submissions_of_a_repository(upstream, interpreter):
    code, log, summary, outputs = run(upstream, interpreter)
    assert (code, outputs) == (0, {})
    assert log.splitlines()[-1].startswith("1 submission, ")
    assert summary.startswith("## geneb-ci: passed\n")


def test_a_fault_is_annotated_and_listed(upstream, interpreter):
    path = upstream / "submissions/splicebert-1024nt.json"
    text = path.read_text(encoding="utf-8").replace('"Acc":0.', '"Acc":7.', 1)
    path.write_text(text, encoding="utf-8")
    code, log, summary, outputs = run(upstream, interpreter, format="sarif")
    assert code == 11
    assert "::error file=submissions/splicebert-1024nt.json," in log
    assert "score-out-of-range" in summary
    sarif = json.loads(Path(outputs["sarif"]).read_bytes())
    assert sarif["version"] == "2.1.0"
    assert {result["ruleId"] for result in sarif["runs"][0]["results"]} >= {"score-out-of-range"}


def test_strict_fails_on_warnings(upstream, interpreter):
    (upstream / "pyproject.toml").write_text("[tool.geneb-ci]\n", encoding="utf-8")
    shutil.copytree(ROOT / "submissions/cards", upstream / "submissions/cards")
    path = upstream / "submissions/cards/splicebert-1024nt.md"
    path.write_text(path.read_text(encoding="utf-8").split("\n## ")[0], encoding="utf-8")
    assert run(upstream, interpreter)[0] == 0
    assert run(upstream, interpreter, strict="true")[0] == 10


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strict": "yes"}, "the input strict is neither true nor false\n"),
        ({"format": "xml"}, "the input format is neither sarif nor empty\n"),
    ],
)
def test_an_input_that_is_none(upstream, interpreter, given, said):
    assert run(upstream, interpreter, **given) == (2, said, "", {})


HOSTILE = [
    "$(touch ran)",
    "`touch ran`",
    "; touch ran",
    '"; touch ran; "',
    "::error::x",
    "##[error]x",
    "a\r::set-output name=x::y",
    "\x1b[2J",
    "--output=ran",
    "--help",
    "-",
    "${{ github.token }}",
    "*",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_row_03_and_20_a_path_is_only_ever_a_path(upstream, interpreter, path):
    code, log, summary, outputs = run(upstream, interpreter, paths=path)
    assert (code, summary, outputs) == (3, "", {})
    assert not (upstream / "ran").exists()
    assert not re.search(r"^\s*::|##\[|[\x00-\x09\x0b-\x1f\x7f-\x9f]", log, re.MULTILINE)


def test_several_paths_one_a_line(upstream, interpreter):
    (upstream / "a folder").mkdir()
    shutil.copy(SUBMISSIONS / "space.json", upstream / "a folder")
    paths = "submissions/splicebert-1024nt.json\n\na folder/space.json\n"
    code, log, _, _ = run(upstream, interpreter, paths=paths)
    assert (code, "2 submissions" in log) == (0, True), log


def test_row_01_code_of_the_checked_repository_is_not_imported(upstream, interpreter):
    for name in ("geneb_ci", "click", "json"):
        (upstream / name).mkdir()
        (upstream / name / "__init__.py").write_text("open('ran', 'w')\n", encoding="utf-8")
    assert run(upstream, interpreter)[0] == 0
    assert not (upstream / "ran").exists()


def test_the_pre_commit_hook():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["language"], hook["require_serial"]) == ("geneb-check", "python", True)
    program, command = hook["entry"].split()
    assert (program, command in COMMANDS) == ("geneb-ci", True)
    files = re.compile(hook["files"])
    rows = [path.relative_to(ROOT).as_posix() for path in SUBMISSIONS.glob("*.json")]
    assert len(rows) == 41
    assert all(map(files.search, rows))
    others = ("submissions/cards/x.md", "submissions/extractors/x.json", "schemas/benchmark.json")
    assert not any(map(files.search, others))
