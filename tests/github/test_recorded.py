"""What was recorded on GitHub is replayed as it was, and what it shows of GitHub is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.github.api import connect
from geneb_ci.github.connection import LOG_VARIABLE
from tests.github.conftest import sound
from tests.github.server import REPOSITORY, TOKEN
from tools import replay


@pytest.fixture
def recording(board_checkout, tmp_path, monkeypatch):
    """Record the verdict on one pull request; return the file and what was printed."""
    number = board_checkout.pull(sound())
    path = tmp_path / "exchange.jsonl"
    monkeypatch.setenv(LOG_VARIABLE, str(path))
    code, out, _ = board_checkout.run("reconcile", "--pr", str(number))
    monkeypatch.delenv(LOG_VARIABLE)
    assert code == 0
    return path, out


def replayed(path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    for name in ("GITHUB_API_URL", "GH_TOKEN"):
        monkeypatch.setenv(name, "")  # taken back after the test
    capsys.readouterr()
    code = replay.main([str(path), "reconcile", "--pr", "1"])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_recording_gives_the_same_verdict_and_has_no_token(recording, capsys, monkeypatch):
    path, out = recording
    code, again, err = replayed(path, capsys, monkeypatch)
    assert (code, again) == (0, out)
    assert "not recorded" not in err
    assert "deviates from GitHub's published API" not in err
    assert TOKEN not in path.read_text(encoding="utf-8")


def test_what_github_answers_otherwise_than_published_is_named(recording, capsys, monkeypatch):
    path, _ = recording
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    (pull,) = [line for line in lines if line["target"].endswith("/pulls/1")]
    pull["answer"]["mergeable_state"] = None
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    code, _, err = replayed(path, capsys, monkeypatch)
    assert code == 1
    assert (
        "deviates from GitHub's published API: GET /repos/{owner}/{repo}/pulls/{pull_number}: "
        "/mergeable_state" in err
    )


def test_a_request_that_was_not_recorded_is_named(recording, capsys, monkeypatch):
    path, _ = recording
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    remaining_lines = [line for line in lines if "/comments" not in json.loads(line)["target"]]
    recorded_lines = [
        line for line in remaining_lines if "/git/trees/" not in json.loads(line)["target"]
    ]
    path.write_text("".join(recorded_lines), encoding="utf-8")
    code, _, err = replayed(path, capsys, monkeypatch)
    assert code == 1
    assert "not recorded: GET /repos/org/board/git/trees/" in err


@pytest.mark.usefixtures("board_checkout")
def test_a_recording_has_what_an_earlier_run_knew(tmp_path, monkeypatch):
    path = tmp_path / "exchange.jsonl"
    monkeypatch.setenv(LOG_VARIABLE, str(path))
    with connect(None) as github:
        for _ in range(2):
            assert github.connection.get("").body["full_name"] == REPOSITORY
    statuses = [json.loads(line)["status"] for line in path.read_text("utf-8").splitlines()]
    assert statuses == [200, 200]
