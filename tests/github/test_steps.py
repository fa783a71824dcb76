"""The scripts of the workflows as a runner runs them, with values that an attacker chose.

Every program they call is one that writes down its arguments: what a shell would have run beside it
leaves a file.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.house.workflow_file import FOLDER, read, steps

HOSTILE = (
    '"; touch ran; "',
    "$(touch ran)",
    "`touch ran`",
    "x\ntouch ran",
    "' ; touch ran #",
    "--output=ran",
    "*",
    "{{7*7}}",
    "::error::x",
    "${{ github.token }}",
)


def step(workflow: str, variable: str) -> dict[str, Any]:
    """Return the step of a workflow that is handed a variable."""
    jobs = read(FOLDER / workflow).jobs.values()
    (step_found,) = (s for job in jobs for s in steps(job) if variable in s.get("env", {}))
    return dict(step_found)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """Make a PATH on which python3 writes down what it is called with."""
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "python3"
    script.write_text(
        "#!/bin/sh\n"
        "{ for argument do printf '%s\\0' \"$argument\"; done; printf '\\001\\0'; } >> \"$CALLS\"\n"
        'exit "${EXIT:-0}"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return tmp_path


def run(folder: Path, script: str, **variables: str) -> tuple[int, list[list[str]]]:
    """Run a step's script as the runner does, and return its exit code and the calls of python3."""
    bash = shutil.which("bash")
    assert bash is not None
    calls = folder / "calls"
    calls.write_text("", encoding="utf-8")
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=variables | {"PATH": path, "CALLS": str(calls), "GITHUB_OUTPUT": "/dev/null"},
        capture_output=True,
        check=False,
    )
    assert not (folder / "ran").exists()
    words = [call.split("\0")[:-1] for call in calls.read_text("utf-8").split("\1\0")[:-1]]
    return done.returncode, words


RECONCILE = ["-I", "-m", "geneb_ci", "reconcile"]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    ("variable", "option"),
    [("HEAD_SHA", "--head-sha"), ("COMMENTED", "--commented"), ("PR", "--pr")],
)
def test_row_3_what_an_event_or_an_input_says_is_one_argument(ran, value, variable, option):
    """Threat 3: neither a head nor a number is ever read by a shell."""
    script = step("verdict.yml", variable)["run"]
    assert run(ran, script, **{variable: value}) == (0, [[*RECONCILE, option, value]])


def test_row_3_without_a_head_and_a_number_it_sweeps(ran):
    """Threat 3: a schedule hands over empty values, which are no arguments."""
    script = step("verdict.yml", "HEAD_SHA")["run"]
    assert run(ran, script, HEAD_SHA="", PR="") == (0, [RECONCILE])


@pytest.mark.parametrize("variable", ["HEAD_SHA", "VERDICT"])
def test_row_6_a_head_that_moved_is_no_failure_of_ours_and_all_else_is(ran, variable):
    """Threat 6: exit 4 ends the job in silence, with no verdict and so no job that writes."""
    next_step = step("verdict.yml", variable)
    ends = {code: run(ran, next_step["run"], EXIT=str(code))[0] for code in (0, 1, 2, 3, 4, 11)}
    assert {code for code, end in ends.items() if end == 0} == {0, 4}
    report = read(FOLDER / "verdict.yml").jobs["report"]
    condition = "always() && needs.parse.outputs.verdict != ''"  # also what a limit ended
    assert (report["needs"], report["if"]) == ("parse", condition)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(("variable", "option"), [("PR", "--pr"), ("ROW", "--row")])
def test_row_3_what_a_person_names_for_an_audit_is_one_argument(ran, value, variable, option):
    """Threat 3: neither a number nor the id of a row is ever read by a shell."""
    script = step("audit.yml", variable)["run"]
    opened = ["-I", "-m", "geneb_ci", "audit", "open", option, value]
    assert run(ran, script, **{variable: value}) == (0, [opened])


@pytest.mark.parametrize("value", HOSTILE)
def test_row_3_a_verdict_is_no_argument_at_all(ran, value):
    """Threat 3: the job that writes hands its one value over as a variable."""
    script = step("verdict.yml", "VERDICT")["run"]
    assert run(ran, script, VERDICT=value) == (0, [["-I", "-m", "geneb_ci", "report"]])
