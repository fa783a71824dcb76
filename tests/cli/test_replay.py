"""`geneb-ci replay`: rules of another commit, on the rows of this one."""

import json
import os
import shutil
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from tests.cli.repository import commit, real_repository, small_repository
from tests.git import git

ROWS = ("space", "GROVER", "splicebert-1024nt")
NOTE = "geneb_ci/check/rules/provenance.py"
SEVERITY = 'id="no-run-details",\n    severity=Severity.'


def run(root: Path, monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.chdir(root)
    code = main(["replay", *arguments])
    captured_output = capsys.readouterr()
    return code, captured_output.out, captured_output.err


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """Make the repository that each test alters a copy of."""
    return real_repository(tmp_path_factory.mktemp("board"), *ROWS, code=True)


@pytest.fixture
def rows(board, tmp_path):
    return shutil.copytree(board, tmp_path / "board")


def on_a_branch(root: Path, path: str, old: str, new: str) -> str:
    """Change the rules on a branch, and come back."""
    git(root, "checkout", "--quiet", "-b", "rules")
    edit(root / path, old, new)
    made = commit(root, "other rules")
    git(root, "checkout", "--quiet", "main")
    return made


def test_the_same_rules_fail_nothing_new(rows, monkeypatch, capsys):
    head = git(rows, "rev-parse", "HEAD")
    assert run(rows, monkeypatch, capsys, "--rules", "main") == (
        0,
        f"rules of main ({head[:12]}) on 3 rows: no row would newly fail\n",
        "",
    )


TEXT = """\
rules of rules (COMMIT) on 3 rows: 1 would newly fail

would newly fail
  splicebert-1024nt  no-run-details  1 place
    format 1.0 has no run details: this row can only be audited manually
"""


def test_a_rule_that_becomes_an_error(rows, monkeypatch, capsys):
    """An error that the row has already is no new failure."""
    made = on_a_branch(rows, NOTE, f"{SEVERITY}NOTE", f"{SEVERITY}ERROR")
    row = "submissions/splicebert-1024nt.json"
    edit(rows / row, '"Acc":0.', '"Acc":7.')
    code, out, err = run(rows, monkeypatch, capsys, "--rules", "rules")
    assert (code, out.replace(made[:12], "COMMIT"), err) == (11, TEXT, "")
    assert git(rows, "status", "--porcelain").split() == ["M", row]


@pytest.mark.nightly  # of the gate is the text of the same
def test_json_says_what_would_fail_and_what_would_heal(rows, monkeypatch, capsys):
    """The rows of the working tree count, with what nobody has committed."""
    made = on_a_branch(rows, NOTE, f"{SEVERITY}NOTE", f"{SEVERITY}WARNING")
    edit(rows / "submissions/space.json", '"Acc":0.', '"Acc":7.')  # official no longer
    code, out, _ = run(rows, monkeypatch, capsys, "--rules", "rules", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert (document["commit"], document["rows"], document["fails"], document["heals"]) == (
        made,
        3,
        [],
        [],
    )
    assert {
        (warned_finding["row"], warned_finding["rule"]) for warned_finding in document["warns"]
    } == {(row, "no-run-details") for row in ("space", "splicebert-1024nt")}


@pytest.mark.nightly  # in the gate, of its text: test_a_rule_that_becomes_an_error
def test_a_rule_that_is_dropped_heals(rows, monkeypatch, capsys):
    on_a_branch(
        rows,
        "geneb_ci/check/rules/ranges.py",
        "def score_out_of_range(context: Context) -> Iterator[Fault]:",
        "def score_out_of_range(_):\n    return ()\n\n\ndef f(context):",
    )
    edit(rows / "submissions/splicebert-1024nt.json", '"Acc":0.', '"Acc":7.')
    code, out, _ = run(rows, monkeypatch, capsys, "--rules", "rules", "--format", "markdown")
    assert code == 0
    assert "### Would no longer fail\n\n- `splicebert-1024nt` `score-out-of-range`, 1 place" in out


@pytest.mark.nightly
def test_policy_and_benchmark_of_the_commit_count(rows, monkeypatch, capsys):
    on_a_branch(rows, "leaderboard/policy/official.json", '"space": "ea', '"space": "00')
    code, out, _ = run(rows, monkeypatch, capsys, "--rules", "rules", "--format", "json")
    fails = {
        (failed_finding["row"], failed_finding["rule"])
        for failed_finding in json.loads(out)["fails"]
    }
    assert code == 11
    assert fails >= {("space", "changed-official-file")}


@pytest.mark.nightly
def test_rules_that_crash_are_new_failures(rows, monkeypatch, capsys):
    on_a_branch(
        rows,
        NOTE,
        "def no_run_details(",
        "def no_run_details(_):\n    raise RuntimeError\n\n\ndef f(",
    )
    code, out, _ = run(rows, monkeypatch, capsys, "--rules", "rules")
    assert code == 11
    assert "check-crashed" in out


def test_a_checker_that_does_not_start(rows, monkeypatch, capsys):
    on_a_branch(rows, "geneb_ci/__main__.py", "import sys", "raise RuntimeError('##[error]::x')")
    code, out, err = run(rows, monkeypatch, capsys, "--rules", "rules")
    assert (code, out) == (1, "")
    assert err == (
        "geneb-ci: `geneb-ci check` of commit 'rules' wrote no report that this version reads, and "
        "ended with exit code 1: RuntimeError: \\x23#[error]::x\n"
        "  fix: run `geneb-ci check` in a checkout of that commit to see the whole error\n"
    )


@pytest.mark.nightly
def test_a_checker_that_says_something_else(rows, monkeypatch, capsys):
    on_a_branch(rows, "geneb_ci/__main__.py", "import sys", "print('{}')\nraise SystemExit")
    code, _, err = run(rows, monkeypatch, capsys, "--rules", "rules")
    assert (code, "ended with exit code 0" in err) == (1, True)


def test_the_other_rules_see_nothing_of_our_environment(rows, monkeypatch, capsys):
    show = "import os, sys\nsys.exit(str(sorted(os.environ)))"
    on_a_branch(rows, "geneb_ci/__main__.py", "import sys", show)
    monkeypatch.setenv("GH_TOKEN", "secret")
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    code, _, err = run(rows, monkeypatch, capsys, "--rules", "rules")
    assert code == 1
    assert (
        "ended with exit code 1: ['LC_ALL', 'PATH', 'PYTHONDONTWRITEBYTECODE', 'PYTHONPATH']" in err
    )


@pytest.mark.nightly  # in the gate, `check` of a pipe
def test_a_pipe_among_the_submissions_does_not_hold_us_up(rows, monkeypatch, capsys):
    os.mkfifo(rows / "submissions/pipe.json")
    code, out, _ = run(rows, monkeypatch, capsys, "--rules", "main", "--format", "json")
    document = json.loads(out)
    assert (code, document["rows"]) == (0, 4)
    assert [
        (healed_finding["row"], healed_finding["rule"]) for healed_finding in document["heals"]
    ] == [("pipe", "irregular-file")]


def test_a_repository_without_rules(tmp_path, monkeypatch, capsys):
    root = small_repository(tmp_path, "a")
    code, out, err = run(root, monkeypatch, capsys, "--rules", "HEAD")
    assert (code, out) == (2, "")
    assert "has no geneb_ci/__main__.py, so it has no rules" in err


@pytest.mark.parametrize("name", ["nope", "--version", "-x"])
def test_a_name_that_is_no_commit(rows, monkeypatch, capsys, name):
    code, _, err = run(rows, monkeypatch, capsys, "--rules", name)
    assert (code, "is not a commit of this repository" in err) == (2, True)
