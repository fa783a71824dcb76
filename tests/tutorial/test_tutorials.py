"""Each tutorial, typed from its page into an empty folder; the page shows what is printed."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from geneb_ci.github import errors
from tests import forked
from tests.audit import unboxed
from tests.each import each
from tests.init.conftest import IMPATIENT, identity, servers
from tests.packaging.wheel import installed
from tests.paths import IMPORTABLE, ROOT, SUBMISSIONS, outside_rows
from tests.tutorial.blocks import (
    PROGRAMS,
    SHELL,
    Block,
    Session,
    blocks,
    in_fork,
    in_shell,
    is_shown,
)

__all__ = ["identity", "servers"]
COMMANDS_MAX = 10
"""What a newcomer types before the files are ready, the installation included."""
SYSTEM = "/usr/local/bin:/usr/bin:/bin"
PLAYED = ("contributor/check.md", "maintainer/models.md")
"""Pages, beside the tutorials, whose commands are typed in a repository of the public rows."""
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *DOCS]
REASON_MIN = 20  # letters: why a block is not run is a sentence


def page(name: str) -> list[Block]:
    return blocks((ROOT / "docs" / name).read_text(encoding="utf-8"))


def clean(home: Path) -> dict[str, str]:
    """Return an environment of nobody in particular, whose git knows who commits."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "GITHUB_", "GH_"))
    }
    environment["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{environment['PATH']}"
    return environment | {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "COLUMNS": "80"}


def public_rows(folder: Path) -> None:
    """Lay out a repository of the 41 public rows."""
    shutil.copytree(SUBMISSIONS, folder / "submissions")
    shutil.copytree(ROOT / "schemas", folder / "schemas")
    shutil.copytree(ROOT / "leaderboard/policy", folder / "leaderboard/policy")


def play(session: Session, name: str) -> None:
    for block in page(name):
        session.play(block)
    assert session.wide == []


@pytest.mark.nightly  # `make tutorials` types the same page, in the rehearsal of the gate as well
def test_from_nothing_to_a_pull_request_that_passes(tmp_path, identity):
    """In an environment that has the wheel, and a shell that knows nothing else."""
    programs = installed(tmp_path)
    environment = {"HOME": str(identity), "PATH": f"{programs}:{SYSTEM}", "COLUMNS": "80"}
    folder = tmp_path / "empty"
    folder.mkdir()
    session = Session(folder, environment, in_shell)
    play(session, "contributor/tutorial.md")
    assert session.typed >= COMMANDS_MAX - 1
    typed = [
        command
        for block in page("contributor/tutorial.md")
        if block.kind == SHELL
        for command in block.typed()
    ]
    assert len(typed) <= COMMANDS_MAX


@pytest.mark.nightly  # in the gate, what the commands of docs print: below, and tests/cli
def test_reading_the_board(tmp_path, identity):
    public_rows(tmp_path)
    play(Session(tmp_path, clean(identity)), "reader/tutorial.md")


@pytest.mark.nightly
def test_running_a_board(tmp_path, identity, servers, monkeypatch):
    folder = tmp_path / "board"
    folder.mkdir()
    environment = clean(identity) | servers.environment(identity) | {"COLUMNS": "80"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)

    def run(words, cwd, env):
        if words[1:3] == ["init", "--apply"]:  # else it waits a second after each request
            monkeypatch.chdir(cwd)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words[1:])
            return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
        if words[1] != "audit":
            return in_fork(words, cwd, {**env, "PYTHONPATH": IMPORTABLE})
        # It wants code that git knows. Whether one leaves the sandbox, tests/audit tries.
        return forked.run(
            PROGRAMS[words[0]], *words[1:], cwd=cwd, env={**env, "PYTHONPATH": str(cwd)},
            before=Path(unboxed.__file__),
        )  # fmt: skip

    play(Session(folder, environment, run), "maintainer/tutorial.md")


@pytest.mark.parametrize("name", PLAYED)
def test_a_page_shows_what_its_commands_print(name, tmp_path, identity):
    public_rows(tmp_path)
    play(Session(tmp_path, clean(identity)), name)


@each("name", PAGES)
def test_each_block_is_run_or_says_why_not(name):
    """A test that a reason names exists; what is no command and no Python is data."""
    for block in blocks(outside_rows(name).read_text(encoding="utf-8")):
        if block.kind in {SHELL, "python"} and block.file is None:
            is_played = block.kind == SHELL and (
                name.removeprefix("docs/") in PLAYED or "tutorial" in name
            )
            where = f"{name}:{block.line}"
            is_run = is_played or block.test is not None
            assert is_run or block.reason is not None, f"{where}: run it, or say why not"
            named = re.findall(r"(?:tests|docs)/[\w/.-]*\w/?", block.reason or block.test or "")
            assert [
                folder_name for folder_name in named if not outside_rows(folder_name).exists()
            ] == [], where
            assert block.reason is None or len(block.reason) >= REASON_MIN, where
            if block.test is not None:  # it reads this page, and so every block of it
                text = outside_rows(block.test).read_text(encoding="utf-8")
                assert name in text, where


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a  \nb\n", True),
        ("a\n", "a\nb\n", False),
        ("...\nb\n", "x\ny\nb\n", True),
        ("...\nb\n", "b\n", True),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("b\n...\n", "a\nb\n", False),
        ("1.5 s\n", "1x5 s\n", False),
    ],
)
def test_what_is_printed_is_compared_with_what_is_shown(shown, printed, same):
    assert is_shown(shown, printed) is same


def test_blocks_of_a_page():
    text = (
        "a\n<!-- file: x.py -->\n```python\nx = 1\n```\n\n```console\n$ a \\\n  b\nout\n$ c\n```\n"
    )
    saved, typed = blocks(text)
    assert (saved.file, saved.text, typed.typed()) == (
        "x.py", "x = 1\n", [("a   b", "out\n"), ("c", "")],
    )  # fmt: skip
    with pytest.raises(ValueError, match="line 0: a block of commands begins with"):
        blocks("```console\na\n```\n")[0].typed()
