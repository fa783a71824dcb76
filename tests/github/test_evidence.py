"""Audit records in a pull request: verified step by step, and never called generated."""

from pathlib import Path

import pytest

from tests.audit.recorded import (
    MODEL,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
)
from tests.github.conftest import REGULAR, Place, sound


@pytest.fixture
def board(place: Place, tmp_path: Path) -> Place:
    """Return a place whose main has a row that can be audited, and the keys of maintainers."""
    root = repository(tmp_path / "audited")
    place.files = {
        str(path.relative_to(root)): (REGULAR, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    place.base = place.server.default_head = place.server.commit(place.files)
    return place


def record(tmp_path, shift: float = 0.0) -> tuple[str, bytes]:
    raw = submission_bytes()
    path = put(tmp_path / "audited", outcome_of(plan_for(raw), raw, shift=shift))
    return f"leaderboard/audits/{MODEL}/{path.name}", path.read_bytes()


@pytest.mark.parametrize("shift", [0.0, 0.05], ids=["agrees", "differs"])
def test_a_record_that_verifies_passes(board, tmp_path, shift):
    path, raw = record(tmp_path, shift)
    verdict = board.verdict(board.pull({path: (REGULAR, raw)}))
    assert (verdict["outcome"], verdict["model"], verdict["places"]) == ("passed", MODEL, {})
    assert [file["path"] for file in verdict["files"]] == [path]


def test_a_record_with_one_bit_changed_names_the_step(board, tmp_path):
    path, raw = record(tmp_path)
    middle = len(raw) // 2
    digit = b"B" if raw[middle : middle + 1] == b"A" else b"A"
    changed = raw[:middle] + digit + raw[middle + 1 :]
    verdict = board.verdict(board.pull({path: (REGULAR, changed)}))
    assert verdict["outcome"] == "changes-needed"
    (finding,) = verdict["findings"]
    assert (finding["rule"], finding["file"]) == ("invalid-audit-record", path)
    assert "does not verify" in finding["message"]
    assert "/tmp" not in finding["message"]  # noqa: S108 (no folder of ours)


def test_what_is_no_record_is_refused(board):
    path = f"leaderboard/audits/{MODEL}/0123.json"
    verdict = board.verdict(board.pull({path: (REGULAR, b"{}")}))
    assert verdict["places"] == {"invalid-audit-record": 1}


def test_a_record_beside_a_row_is_another_pull_request(board, tmp_path):
    path, raw = record(tmp_path)
    verdict = board.verdict(board.pull(sound("other") | {path: (REGULAR, raw)}))
    assert verdict["outcome"] == "needs-maintainer"
    assert "foreign-file" in verdict["places"]
    assert "generated-file" not in verdict["places"]


def test_the_log_is_appended_on_main(board):
    tile = "leaderboard/audits/log/tile/0"
    verdict = board.verdict(board.pull({tile: (REGULAR, b"x")}))
    assert (verdict["outcome"], verdict["places"]) == ("needs-maintainer", {"foreign-file": 1})


def test_triage_says_that_it_can_be_merged(board, tmp_path):
    path, raw = record(tmp_path)
    board.both(board.pull({path: (REGULAR, raw)}))
    out = board.run("triage", "--markdown", "--no-cache")[1]
    assert "`audit record`" in out
    assert "`merge: its records verify`" in out
