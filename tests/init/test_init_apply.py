"""From an empty folder to a published board, by the commands that a person types."""

import json
import shutil

import pytest

from geneb_ci.cli.main import main
from geneb_ci.github import errors
from geneb_ci.github.settings.diagnosis import SettingState
from tests.git import git
from tests.github.server import REPOSITORY, TOKEN
from tests.init.conftest import FIRST, IMPATIENT, SECOND, SPACE, THIRD, contents
from tests.publish.command import geneb_ci
from tests.publish.hub import READER


def test_three_commands_lead_from_an_empty_folder_to_a_published_board(
    board, identity, servers, monkeypatch, capsys
):
    """The first of them wrote the board."""
    root, env = board.root, servers.environment(identity)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)  # no pause between two writes
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    code = main(list(SECOND))
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert f"created the Space {SPACE}\n" in out
    assert "pushed the first commit to file://" in out
    assert " 0 wrong, 1 not seen\n" in out
    assert "unseen: trusted-publisher" in out
    assert TOKEN not in out

    code, out, err = geneb_ci(*THIRD, cwd=root, env=env)
    assert (code, err) == (0, "")
    assert out.startswith(f"spaces/{SPACE}: published generation ")
    tree = servers.hub.shelf.repos[f"spaces/{SPACE}"].head.tree
    rows = json.loads(tree["leaderboard.json"])["data"]["full"]
    assert [row["model"] for row in rows] == ["kmer-baseline"]
    assert {"index.html", "board.js", "manifest.json", "README.md"} <= set(tree)

    assert (
        sum(len(("geneb-ci", *command)) for command in (FIRST, SECOND, THIRD)) == 13
    )  # words in all

    # Again: no request that writes, no other byte.
    writes, before = len(servers.forge.writes()), contents(root)
    assert (main(["init"]), main(list(SECOND))) == (0, 0)
    out = capsys.readouterr().out
    assert "no setting had to be changed\n" in out
    assert (len(servers.forge.writes()), contents(root)) == (writes, before)
    servers.forge.published_runs = 1
    assert main(["doctor", "--github", REPOSITORY]) == 0
    assert main(["doctor", "--github", REPOSITORY, "--space", SPACE, "--format", "json"]) == 0
    _, brace, report = capsys.readouterr().out.partition("{")
    assert {setting["state"] for setting in json.loads(brace + report)["settings"]} == {
        SettingState.FINE
    }


@pytest.mark.usefixtures("board")
def test_a_dry_run_of_the_settings_sends_nothing(servers, identity, monkeypatch, capsys):
    for name, value in servers.environment(identity).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    assert main([*SECOND, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"would create the Space {SPACE}\n" in out
    assert f"would push the first commit to {REPOSITORY}\n" in out
    assert "would set: fork-approval (PUT" in out
    assert out.endswith("nothing was changed: this was a dry run\n")
    assert servers.forge.writes() == []
    assert git(servers.forge.folder, "for-each-ref") == ""
    assert servers.hub.shelf.repos == {}


@pytest.mark.usefixtures("board")
def test_a_token_that_may_only_read_leaves_a_checklist(servers, identity, monkeypatch, capsys):
    for name, value in servers.environment(identity).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    servers.forge.permissions = frozenset(
        permission for permission in servers.forge.permissions if permission.endswith(":read")
    )
    assert main(list(SECOND)) == 11
    out = " ".join(capsys.readouterr().out.split())
    assert "not set: fork-approval: the token lacks a permission" in out
    assert "wrong: fork-approval" in out
    assert (
        "fix: Settings > Actions > General: require approval for all external contributors" in out
    )
    assert servers.forge.snapshot()["rulesets"] == {}


REFUSED = {
    "no right to push": ({"permissions": {"admin": False, "push": False}}, {}, "no right to push"),
    "no administrator": ({"permissions": {"admin": False, "push": True}}, {}, "no right to admin"),
    "read token": ({}, {"HF_TOKEN": READER}, "HF_TOKEN may only read"),
    "no token of the Hub": (
        {},
        {"HF_TOKEN": "hf_none"},
        "HF_TOKEN is not a valid token of the Hub (401)",
    ),
    "no token of GitHub": ({}, {"GH_TOKEN": ""}, "GH_TOKEN is not set"),
    "no repository": (None, {}, "GitHub finds no such repository"),
    "another remote": ({}, {"remote": "https://example.org/a.git"}, f"expected {REPOSITORY}"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_refused_is_refused_before_anything_is_written(
    board, servers, identity, monkeypatch, capsys, case
):
    message, arguments, due = REFUSED[case]
    for name, value in (servers.environment(identity) | arguments).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    if "remote" in arguments:
        git(board.root, "remote", "add", "origin", arguments["remote"])
    if message is None:
        monkeypatch.setattr(servers.forge, "repository", None)
    else:
        servers.forge.repository |= message
    before = contents(board.root)
    for more in ([], ["--dry-run"]):
        assert main([*SECOND, *more]) in {2, 3}
        assert due in capsys.readouterr().err
    assert servers.forge.writes() == []
    assert git(servers.forge.folder, "for-each-ref") == ""
    assert servers.hub.shelf.repos == {}
    assert contents(board.root) == before


@pytest.mark.usefixtures("board")
def test_a_push_that_is_refused_says_how_to_push(servers, identity, monkeypatch, capsys):
    for name, value in servers.environment(identity).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    shutil.rmtree(servers.forge.folder)
    monkeypatch.setattr(servers.forge, "main_of", lambda: None)
    assert main(list(SECOND)) == 2
    err = capsys.readouterr().err
    assert "git push failed" in err
    assert "fix: push the commit yourself (git push origin HEAD:main)" in err
    assert TOKEN not in err


def test_another_remote_is_not_pushed_to(board, servers, identity, monkeypatch, capsys):
    for name, value in servers.environment(identity).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    git(board.root, "remote", "add", "origin", "https://example.org/elsewhere.git")
    assert main(list(SECOND)) == 2
    assert f"expected {REPOSITORY}" in capsys.readouterr().err
