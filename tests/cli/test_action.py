"""The composite action as a runner runs it: its own steps, in a repository that is not ours."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from geneb_ci.cli.main import COMMANDS
from tests.house.workflow_file import ACTIONS, FOLDER, read, steps
from tests.paths import IMPORTABLE, ROOT, SUBMISSIONS, outside_rows

ACTION = ACTIONS / "check"


def step(identifier: str) -> dict[str, Any]:
    job = read(ACTION / "action.yml").jobs["action"]
    return next(step_found for step_found in steps(job) if step_found.get("id") == identifier)


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the step before leaves: an environment in RUNNER_TEMP, with this checkout in it.

    The packages are those of the tests, so that nothing is fetched.
    """
    folder = tmp_path_factory.mktemp("runner")
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder / "geneb-ci")]
    subprocess.run(command, check=True)
    (packages,) = (folder / "geneb-ci").glob("lib/python*/site-packages")
    paths = f"{IMPORTABLE}\n{sysconfig.get_path('purelib')}\n"
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


def run(
    root: Path, runner: Path, base: Path | None = None, **options: str
) -> tuple[int, str, str, dict[str, str]]:
    """Run the check step, and return its exit code, its log, the step summary and the outputs.

    `base` is the repository that a pull request is for, called owner/name in a folder of its own.
    """
    next_step = step("check")
    defaults = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert next_step["shell"] == "bash"
    base_ref = "${{ github.base_ref || github.event.merge_group.base_ref }}"
    variables = {name: name.upper().replace("-", "_") for name in defaults}
    assert next_step["env"] == {
        variables[name]: f"${{{{ inputs.{name} }}}}" for name in defaults
    } | {"BASE_REF": base_ref}
    values = {
        variable: options.get(variable.lower(), defaults[name]["default"])
        for name, variable in variables.items()
    }
    summary, outputs = root.parent / "summary.md", root.parent / "outputs"
    summary.touch()
    outputs.write_text("", encoding="utf-8")
    environment = values | {
        "PATH": os.environ["PATH"],
        "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
        "RUNNER_TEMP": str(runner),
        "BASE_REF": "main" if base is not None else "",
        "GITHUB_SERVER_URL": base.parent.parent.as_uri() if base is not None else "",
        "GITHUB_REPOSITORY": "owner/name",
    }
    # As the runner starts a step whose shell is bash.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", next_step["run"]]
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


PIP = """\
#!/bin/sh
# A Python whose pip installs nothing and says how it was called.
if [ "$1 $2 $3" = "-I -m pip" ]; then
  printf '%s\\n' "$@" >> {calls}
else
  exec {python} "$@"
fi
"""
PYTHON = """\
#!/bin/sh
# The job's Python: all that is asked of it is an environment.
test "$1 $2 $3" = "-I -m venv" || exit 9
{python} -m venv --without-pip "$4"
mv "$4/bin/python" "$4/bin/real"
cp {pip} "$4/bin/python"
"""


def script(path: Path, text: str, **values: Path | str) -> Path:
    path.write_text(text.format(**values), encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_action_installs_itself_from_where_the_runner_put_it(upstream, tmp_path):
    """GITHUB_ACTION_PATH is far from the workspace, in a copy of our repository at one commit."""
    ours = tmp_path / "_actions/owner/geneb-ci" / ("a" * 40)
    for name in (".github/actions/check", "geneb_ci", "tools/install-locked", "requirements"):
        source, target = outside_rows(name), ours / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    runner, calls = tmp_path / "temp", tmp_path / "calls"
    runner.mkdir()
    pip = script(tmp_path / "pip", PIP, calls=calls, python=runner / "geneb-ci/bin/real")
    python = script(tmp_path / "python", PYTHON, python=sys.executable, pip=pip)
    (install,) = (
        step_found
        for step_found in steps(read(ACTION / "action.yml").jobs["action"])
        if "PYTHON" in step_found.get("env", {})
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHON": str(python),
        "RUNNER_TEMP": str(runner),
        "GITHUB_ACTION_PATH": str(ours / ".github/actions/check"),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", install["run"]]
    done = subprocess.run(
        command, cwd=upstream, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert calls.read_text(encoding="utf-8").splitlines() == [
        *("-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--require-hashes", "--no-deps", "--only-binary", ":all:"),
        *("--requirement", str(ours / "requirements/check.txt")),
    ]
    # What the next step runs is the copy's code, with nothing of the workspace beside it.
    where = "import geneb_ci; print(geneb_ci.__file__)"
    process = subprocess.run(
        [runner / "geneb-ci/bin/python", "-I", "-c", where],
        cwd=upstream,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(process.stdout.strip()) == ours / "geneb_ci/__init__.py"


def test_four_lines_of_the_documentation_are_a_workflow_of_another_repository():
    text = (ROOT / "docs/maintainer/github.md").read_text(encoding="utf-8")
    lines = text.split("```yaml\n", 2)[1].split("```")[0].splitlines()
    used = yaml.safe_load("\n".join(lines))["steps"]
    assert len(lines) == 4
    (checkout,) = steps(read(FOLDER / "pr-validate.yml").jobs["check"], "actions/checkout")
    assert used[0] == {"uses": checkout["uses"], "with": {"persist-credentials": False}}
    assert used[1] == {"uses": "OWNER/geneb-ci/.github/actions/check@COMMIT"}
    assert (ACTION / "action.yml").is_file()


def test_all_submissions_of_a_repository(upstream, interpreter):
    code, log, summary, outputs = run(upstream, interpreter)
    assert (code, outputs) == (0, {})
    assert any(line.startswith("1 submission, ") for line in log.splitlines())
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
    shutil.copytree(SUBMISSIONS / "cards", upstream / "submissions/cards")
    path = upstream / "submissions/cards/splicebert-1024nt.md"
    path.write_text(path.read_text(encoding="utf-8").split("\n## ")[0], encoding="utf-8")
    assert run(upstream, interpreter)[0] == 0
    assert run(upstream, interpreter, strict="true")[0] == 10


@pytest.mark.parametrize(
    ("input_text", "message"),
    [
        ({"strict": "yes"}, "the input strict is neither true nor false\n"),
        ({"format": "xml"}, "the input format is neither sarif nor empty\n"),
    ],
)
def test_an_input_that_is_none(upstream, interpreter, input_text, message):
    assert run(upstream, interpreter, **input_text) == (2, message, "", {})


HOSTILE = [
    "$(touch ran)`touch ran`; touch ran",
    '"; touch ran; "',
    "::error::x ##[error]x \x1b[2J ${{ github.token }}",
    "##[error]x",
    "a\r::set-output name=x::y",
    "--output=ran",
    "--help",
    "-",
    "*",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_row_03_and_20_a_path_is_only_ever_a_path(upstream, interpreter, path):
    code, log, summary, outputs = run(upstream, interpreter, paths=path)
    assert (code, outputs) == (3, {})
    assert summary.startswith("## geneb-ci: not checked\n")
    assert not (upstream / "ran").exists()
    # The only command is our own, once.
    own = "::error title=not checked::"
    assert log.count(own) == 1
    log = log.replace(own, "own: ")
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


def test_the_pre_commit_hook_refuses_a_commit_with_a_fault(upstream):
    """As pre-commit calls it: the entry, then the files of the commit that fit, in their repo."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, *arguments = shlex.split(hook["entry"])
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, function = scripts["scripts"][program].split(":")
    installed = f"import sys; from {module} import {function}; sys.exit({function}())"
    entry = [sys.executable, "-c", installed, *arguments]
    name = "submissions/splicebert-1024nt.json"

    def commit() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*entry, name],
            cwd=upstream,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    assert commit().returncode == 0
    text = (upstream / name).read_text(encoding="utf-8").replace('"Acc":0.', '"Acc":7.', 1)
    (upstream / name).write_text(text, encoding="utf-8")
    done = commit()
    assert done.returncode == 11
    assert "score-out-of-range" in done.stdout
    assert name in done.stdout


def test_the_pre_commit_hook():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["language"], hook["require_serial"]) == ("geneb-check", "python", True)
    program, command = hook["entry"].split()
    assert (program, command in COMMANDS) == ("geneb-ci", True)
    files = re.compile(hook["files"])
    rows = [f"submissions/{path.name}" for path in SUBMISSIONS.glob("*.json")]
    assert len(rows) == 41
    assert all(map(files.search, rows))
    others = ("submissions/cards/x.md", "submissions/extractors/x.json", "schemas/benchmark.json")
    assert not any(map(files.search, others))
