"""What git refuses is passed on in git's own words, with what to do, by every command."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from geneb_ci.publish.git import refusal_in
from tests.git import board_of_rows, git
from tests.paths import ROOT

ROWS = ("DNABERT-S", "GROVER")
BENCHMARK = str(ROOT / "schemas/benchmark.json")
HEAD = "0123456789abcdef0123456789abcdef01234567"


def none(root: Path) -> None:
    """Leave no repository."""
    shutil.rmtree(root / ".git")


def a_file(root: Path) -> None:
    """Name a repository that is not there, as a worktree whose main clone was deleted does."""
    none(root)
    (root / ".git").write_text("gitdir: /nowhere/at/all\n", encoding="utf-8")


def bad_setting(root: Path) -> None:
    with (root / ".git/config").open("a", encoding="utf-8") as file:
        file.write("[core\nx\n")


def newer_format(root: Path) -> None:
    git(root, "config", "core.repositoryFormatVersion", "99")


def newer_extension(root: Path) -> None:
    git(root, "config", "core.repositoryFormatVersion", "1")
    git(root, "config", "extensions.unknownToEveryGit", "true")


def corrupt_index(root: Path) -> None:
    (root / ".git/index").write_bytes(b"garbage" * 20)


def corrupt_objects(root: Path) -> None:
    for path in (root / ".git/objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(b"garbage")


def empty_objects(root: Path) -> None:
    for path in (root / ".git/objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(b"")


def no_git(_: Path) -> None:
    """Take git from the path: the test does."""


def owned_by_another(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        os.chown(path, 65_534, 65_534)


CASES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "no repository": (none, "this is not in a git repository", "run this in a full clone"),
    "a lost worktree": (a_file, "this is not in a git repository", "run this in a full clone"),
    "another owner": (owned_by_another, "fatal: detected dubious ownership", "safe.directory"),
    "a bad setting": (bad_setting, "bad config line", "correct the setting that git names"),
    "a newer format": (newer_format, "git repo version", "install a newer git"),
    "a newer extension": (newer_extension, "extension", "install a newer git"),
    "corrupt objects": (corrupt_objects, "corrupt", "clone the repository again"),
    "empty objects": (empty_objects, "is empty", "clone the repository again"),
    "no git": (no_git, "git cannot be run: No such file or directory", "install git"),
}
EXITS = {"no repository": 2, "a lost worktree": 2}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the board that each test damages a copy of."""
    root = tmp_path_factory.mktemp("template") / "board"
    root.mkdir()
    board_of_rows(root, *ROWS)
    return root


@pytest.fixture
def board(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root: Path = shutil.copytree(template, tmp_path / "board")
    monkeypatch.chdir(root)
    return root


def words(capsys: pytest.CaptureFixture[str]) -> str:
    streams = capsys.readouterr()
    return " ".join((streams.out + streams.err).split())


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_of_git_is_passed_on(name, board, monkeypatch, capsys):
    change, message, fix = CASES[name]
    if change is owned_by_another and os.geteuid():
        pytest.skip("only root can give a folder away")
    change(board)
    if change is no_git:
        monkeypatch.setenv("PATH", "/nowhere")
    assert main(["check", "--base", "main"]) == EXITS.get(name, 1)
    text = words(capsys)
    assert message in text
    assert fix in text


def test_a_corrupt_index_is_named(board, capsys):
    """Only what compares the folder with the index reads it."""
    corrupt_index(board)
    assert main(["check", "--base", "main"]) == 1
    text = words(capsys)
    assert "git status failed: error: bad signature" in text
    assert '--git-path index)"`, then `git reset`' in text


@pytest.mark.usefixtures("board")
def test_a_name_that_is_no_commit_is_no_refusal(capsys):
    assert main(["check", "--base", "nothing"]) == 2
    assert "'nothing' is not a commit of this repository" in words(capsys)


def test_a_shallow_clone_says_so(board, tmp_path, monkeypatch, capsys):
    """The history that both branches come from is not there."""
    git(board, "switch", "--quiet", "--create", "mine", "main~1")
    (board / "submissions/note.json").write_text("{}", encoding="utf-8")
    git(board, "add", "--all")
    git(board, "commit", "--quiet", "--message", "mine")
    shallow = tmp_path / "shallow"
    source = board.as_uri()
    command = ["git", "clone", "--quiet", "--depth=1", "--no-single-branch", source, str(shallow)]
    subprocess.run(command, check=True)
    monkeypatch.chdir(shallow)
    assert main(["check", "--base", "origin/main"]) == 1
    text = words(capsys)
    assert "the clone is shallow" in text
    assert "git fetch --unshallow" in text


@pytest.mark.parametrize(
    "command",
    [
        "explain GROVER",
        "diff --base main",
        "publish --dry-run --space a/b",
        "export --format csv --output x",
    ],
)
def test_other_commands_pass_it_on_too(command, board, capsys):
    bad_setting(board)
    main(command.split())
    assert "bad config line" in words(capsys)


def test_a_new_repository_waits_for_another_git(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "--quiet", "b")
    (tmp_path / "b/.git/index.lock").touch()
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "Ada")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "ada@example.org")
    assert (
        main(
            [
                "init",
                "b",
                "--repo",
                "ada/board",
                "--maintainers",
                "@org/team",
                "--benchmark",
                BENCHMARK,
            ]
        )
        == 2
    )
    text = words(capsys)
    assert "index.lock': File exists" in text
    assert "delete the file that git names" in text


SAID = {
    "fatal: detected dubious ownership in repository at '/x'\nTo add an exception, call:\n\n\tgit "
    "config --global --add safe.directory /x\n": (
        "fatal: detected dubious ownership in repository at '/x'",
        True,
    ),
    "warning: a\nerror: b\nfatal: c\n": ("error: b; fatal: c", False),
    "hook said no\n": ("hook said no", False),
    "": ("it printed no reason", False),
    "remote: denied to x\n ! [rejected] main -> main (fetch first)\nerror: failed to push\n": (
        "remote: denied to x; ! [rejected] main -> main (fetch first); error: failed to push",
        False,
    ),
    f"fatal: bad object {HEAD}\n": (f"fatal: bad object {HEAD}", False),
    f"fatal: unable to read tree ({HEAD})\n": (f"fatal: unable to read tree ({HEAD})", True),
}


@pytest.mark.parametrize("text", SAID)
def test_the_words_of_git_are_its_errors(text):
    refusal = refusal_in(text)
    assert (refusal.message, refusal.is_known) == SAID[text]
