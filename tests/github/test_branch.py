"""`geneb-ci check` in a clone: which branch it compares with, what it names and leaves out."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from geneb_ci.api import check_branch
from geneb_ci.check.registry import CHANGE_TOPICS, CHANGES
from geneb_ci.cli.main import main
from geneb_ci.common.errors import NothingChecked
from geneb_ci.github.errors import UnexpectedReply
from geneb_ci.github.verdict.checker import PullChecker
from geneb_ci.publish.git import BadRepository, WrongRepository
from geneb_ci.render.formats import pull_request_hint
from tests.check.test_layouts import upstream
from tests.git import git
from tests.github.conftest import PEERS, sound
from tests.github.history import Files
from tests.paths import ROOT, SUBMISSIONS
from tests.small import BENCHMARK_FILE


def write(folder: Path, files: Files) -> None:
    for path, (_, raw) in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(raw)


def commit(folder: Path, text: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", text)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of a board."""
    folder = tmp_path_factory.mktemp("branch") / "board"
    for peer in PEERS:
        write(folder, sound(peer))
    write(folder, {"schemas/benchmark.json": ("", BENCHMARK_FILE.read_bytes())})
    write(folder, {"leaderboard/policy/official.json": ("", b'{"files": {}}\n')})
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, "Begin")
    return folder


@pytest.fixture
def clone(board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a branch that adds a model."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(board), str(folder))
    git(folder, "switch", "--quiet", "--create", "add-model")
    write(folder, sound("model"))
    commit(folder, "Add model")
    monkeypatch.chdir(folder)
    return folder


def facts(base: str | None = None):
    proposal = check_branch(base).proposal
    assert proposal is not None
    return proposal


def test_the_base_is_main_of_the_repository_that_a_fork_was_made_from(clone, board):
    """Else main of `origin`, whatever it is called there; else main of the clone."""
    assert (facts().base, facts().outcome) == ("origin/main", "passed")
    git(clone, "update-ref", "refs/remotes/origin/trunk", "refs/remotes/origin/main")
    git(clone, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert facts().base == "origin/trunk"
    git(clone, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    assert facts().base == "origin/main"
    git(clone, "remote", "add", "upstream", str(board))
    git(clone, "fetch", "--quiet", "upstream")
    assert facts().base == "upstream/main"
    for remote in ("origin", "upstream"):
        git(clone, "remote", "remove", remote)
    assert facts().base == "main"
    git(clone, "branch", "--quiet", "--move", "main", "other")
    with pytest.raises(NothingChecked, match="no main branch to compare with"):
        check_branch()
    assert facts("other").outcome == "passed"
    with pytest.raises(WrongRepository, match="'nothing' is not a commit"):
        check_branch("nothing")


def test_what_is_not_committed_plays_no_part_and_is_named(clone, capsys):
    (clone / ".gitignore").write_text("*.json\n*.pyc\n", encoding="utf-8")
    (clone / "notes.txt").write_text("", encoding="utf-8")
    write(clone, {"submissions/alpha.json": ("", b"{}"), "submissions/new.json": ("", b"{}")})
    write(clone, {"submissions/extractors/new.py": ("", b""), "submissions/a.pyc": ("", b"")})
    write(clone, {"submissions/cards/new.md": ("", b"")})
    git(clone, "add", "submissions/cards/new.md")
    (clone / "submissions/cards/model.md").unlink()
    proposal = facts()
    assert (proposal.outcome, dict(proposal.uncommitted)) == (
        "passed",
        {
            "submissions/alpha.json": "changed",
            "submissions/cards/model.md": "deleted",
            "submissions/cards/new.md": "staged",
            "submissions/extractors/new.py": "untracked",
            "submissions/new.json": "ignored by git",
        },
    )
    assert main(["check"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not committed, so the server does not see: submissions/alpha.json (changed), " in out
    assert "submissions/extractors/new.py (untracked), submissions/new.json (ignored by git)" in out


def test_settings_of_the_branch_do_not_count(clone):
    """What they would leave out is found, and a table that cannot be read stops nothing."""
    (clone / "submissions/cards/model.md").write_text("# A model\n", encoding="utf-8")
    for text in ('ignore = ["card"]\nsubmissions = "rows"', "submissions = 1", "submissions ="):
        (clone / "pyproject.toml").write_text(f"[tool.geneb-ci]\n{text}\n", encoding="utf-8")
        commit(clone, text)
        report = check_branch()
        rules = {finding.rule for finding in report.findings}
        assert rules >= {"incomplete-card", "foreign-file"}
        assert report.proposal is not None
        assert report.proposal.outcome == "needs-maintainer"


def test_without_the_benchmark_the_branch_is_still_judged_by_that_of_main(clone):
    (clone / "schemas/benchmark.json").unlink()
    commit(clone, "Remove the benchmark")
    assert {finding.rule for finding in check_branch().findings} >= {"deleted-file"}


def test_a_head_that_adds_nothing_has_no_verdict(clone, capsys):
    """The rows of the working tree are checked instead, which is said; files are named."""
    git(clone, "switch", "--quiet", "main")
    write(clone, sound("new"))
    write(clone, {"submissions/\x1b[31m.txt": ("", b"")})
    assert main(["check"]) == 0
    out, err = capsys.readouterr()
    assert "5 submissions" in out
    assert "verdict on the pull request" not in out + err
    text = " ".join(err.split())
    assert "\x1b" not in err
    assert text.startswith("note: HEAD has no commit that origin/main lacks")
    assert "submissions/new.json (untracked)" in text
    assert "all submissions of the working tree are checked" in text
    for words in (["check", "submissions"], ["check", "--select", "card"]):
        assert main(words) == 0
        assert "note:" not in capsys.readouterr().err
    assert main(["check", "--base", "origin/main"]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("nothing was checked: no submission was found\n")
    assert "verdict on the pull request: a maintainer decides\n" in out
    git(clone, "remote", "remove", "origin")
    git(clone, "clean", "--quiet", "--force", "submissions")
    assert main(["check"]) == 0
    assert capsys.readouterr().err == ""


def test_a_clone_that_git_refuses_has_no_verdict(clone, tmp_path, monkeypatch):
    Path(clone, ".git/index").write_bytes(b"DIRC")
    with pytest.raises(BadRepository, match="index file"):
        check_branch()
    git(tmp_path, "init", "--quiet", "empty")
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(NothingChecked, match="no main branch to compare with"):
        check_branch()


def test_a_branch_without_a_commit_in_common_is_refused(clone):
    git(clone, "switch", "--quiet", "--orphan", "other")
    write(clone, sound("model"))
    commit(clone, "Begin again")
    with pytest.raises(UnexpectedReply, match="no commit in common"):
        check_branch()


def test_a_branch_of_an_upstream_checkout_is_judged_in_its_folders(tmp_path, monkeypatch):
    upstream(tmp_path)
    (tmp_path / ".gitignore").write_text("*.log\n*.py\n", encoding="utf-8")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    commit(tmp_path, "Begin")
    git(tmp_path, "switch", "--quiet", "--create", "add-space")
    shutil.copy(SUBMISSIONS / "space.json", tmp_path / "submissions")
    (tmp_path / "model_cards/space.md").write_text("# SPACE\n", encoding="utf-8")
    commit(tmp_path, "Add SPACE")
    write(tmp_path, {"model_cards/new.md": ("", b""), "harness/extractors/space.py": ("", b"")})
    monkeypatch.chdir(tmp_path)
    report = check_branch()
    assert {finding.rule for finding in report.findings} >= {
        "row-without-extractor",
        "incomplete-card",
    }
    assert report.proposal is not None
    assert dict(report.proposal.uncommitted) == {
        "harness/extractors/space.py": "ignored by git",
        "model_cards/new.md": "untracked",
    }


def test_a_branch_without_a_row_passes_in_no_format(clone, capsys):
    git(clone, "switch", "--quiet", "--create", "card-alone", "origin/main")
    write(clone, {"submissions/cards/model.md": sound("model")["submissions/cards/model.md"]})
    commit(clone, "Add a card")
    shown = {}
    for name in ("text", "json", "sarif", "junit", "github", "markdown"):
        assert main(["check", "--format", name]) == 3
        shown[name], err = capsys.readouterr()
        assert "verdict on the pull request: a maintainer decides\n" in shown["text"] + err
    document = json.loads(shown["json"])
    assert (document["verdict"], document["pull_request"]["status"]) == ("not-checked", "pending")
    (run,) = json.loads(shown["sarif"])["runs"]
    assert not run["invocations"][0]["executionSuccessful"]
    for name in ("text", "junit", "github", "markdown"):
        assert "nothing was checked: no submission was found" in shown[name]


def test_a_crash_is_a_verdict_that_does_not_pass(clone, capsys, monkeypatch):
    def judge(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(PullChecker, "judge", judge)
    assert clone.is_dir()
    assert main(["check", "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in document["findings"]] == ["check-crashed"]
    assert (document["verdict"], document["pull_request"]["title"]) == (
        "not-checked",
        "not checked",
    )
    assert document["pull_request"]["description"] == "1 failed rule"


def test_text_and_json_say_the_same_on_both_streams(clone, capsys):
    (clone / "submissions/cards/model.md").unlink()
    commit(clone, "Remove the card")
    assert main(["check", "--format", "json"]) == 11
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["verdict"], document["pull_request"]["status"]) == ("errors", "failure")
    assert main(["check"]) == 11
    text, nothing = capsys.readouterr()
    assert nothing == ""
    assert " ".join(err.split()) in " ".join(text.split())
    assert main(["check", "submissions/model.json", "--format", "json"]) == 0
    assert "pull_request" not in json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("clone")
def test_a_file_that_passes_ends_with_what_else_the_server_asks(capsys):
    assert main(["check", "submissions/model.json"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("Not checked here, but required of a pull request: ")
    assert all(topic in " ".join(err.split()) for topic in CHANGE_TOPICS)
    for words in (["submissions"], ["submissions/model.json", "--format", "json"]):
        assert main(["check", *words]) == 0
        assert capsys.readouterr().err == ""
    Path("submissions/model.json").write_text("{}\n", encoding="utf-8")
    assert main(["check", "submissions/model.json"]) == 11
    assert capsys.readouterr().err == f"{pull_request_hint(is_short=True)}\n"
    assert len(pull_request_hint(is_short=True)) <= 80, "the errors come first"


def test_what_the_server_asks_beside_a_file_names_every_rule():
    named = [rule for rules in CHANGE_TOPICS.values() for rule in rules]
    assert sorted(named) == sorted(rule for rules in CHANGES.values() for rule in rules)


@pytest.mark.usefixtures("clone")
def test_a_branch_needs_no_extra():
    """Neither a client of GitHub, nor numpy, nor cryptography, as in an install without extras."""
    extras = ("github", "requests", "numpy", "scipy", "cryptography", "huggingface_hub", "pandas")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({extras!r}));"
        "from geneb_ci.cli.main import main; sys.exit(main(['check']))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verdict on the pull request: passed\n" in done.stdout
