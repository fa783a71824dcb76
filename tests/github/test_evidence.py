"""Audit records in a pull request: verified step by step, and never called generated."""

import hashlib
from pathlib import Path

import pytest

from geneb_ci.audit.record.statement import WITHDRAWN_SUFFIX
from tests.audit.linked_place import committed, recorded, signed, started, withdrawn
from tests.audit.recorded import (
    MODEL,
    commitment,
    key,
    outcome_of,
    plan_for,
    repository,
    submission_bytes,
)
from tests.github.conftest import REGULAR, BoardCheckout, sound
from tests.github.history import Files


@pytest.fixture
def board(board_checkout: BoardCheckout, tmp_path: Path) -> BoardCheckout:
    """Return a place whose main has a row that can be audited, a commitment, and keys."""
    root = repository(tmp_path / "audited")
    committed(root, commitment(submission_bytes()))
    board_checkout.files = {
        str(path.relative_to(root)): (REGULAR, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    board_checkout.base = board_checkout.server.default_head = board_checkout.server.commit(
        board_checkout.files
    )
    return board_checkout


FOLDER = f"leaderboard/audits/{MODEL}"


def record(board, tmp_path, shift: float = 0.0) -> Files:
    """Sign a start and a record, whose commitment is a status of main; return the files."""
    raw, root = submission_bytes(), tmp_path / "audited"
    plan = plan_for(raw)
    status = {
        "context": "geneb/audit-commit",
        "state": "success",
        "description": plan.commitment_sha256,
        "created_at": plan.committed_at,
    }
    board.server.statuses[board.base] = [status]
    paths = (
        started(root, plan, shown_on=board.base),
        recorded(root, outcome_of(plan, raw, shift=shift)),
    )
    return {f"{FOLDER}/{path.name}": (REGULAR, path.read_bytes()) for path in paths}


@pytest.mark.parametrize("shift", [0.0, 0.05], ids=["agrees", "differs"])
def test_a_record_that_verifies_passes(board, tmp_path, shift):
    files = record(board, tmp_path, shift)
    verdict = board.verdict(board.pull(files))
    assert (verdict["outcome"], verdict["model"], verdict["places"]) == ("passed", MODEL, {})
    assert [file["path"] for file in verdict["files"]] == sorted(files)


def test_a_record_with_one_bit_changed_names_the_step(board, tmp_path):
    files = record(board, tmp_path)
    path, (_, raw) = list(files.items())[-1]
    middle = len(raw) // 2
    digit = b"B" if raw[middle : middle + 1] == b"A" else b"A"
    changed = raw[:middle] + digit + raw[middle + 1 :]
    verdict = board.verdict(board.pull(files | {path: (REGULAR, changed)}))
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
    verdict = board.verdict(board.pull(sound("other") | record(board, tmp_path)))
    assert verdict["outcome"] == "needs-maintainer"
    assert "foreign-file" in verdict["places"]
    assert "generated-file" not in verdict["places"]


def merge(board, files: Files) -> None:
    """Have main have these files, too."""
    board.files = board.files | files
    board.base = board.server.default_head = board.server.commit(board.files, board.base)


def read(*paths: Path) -> Files:
    """Return statements as a pull request adds them."""
    return {f"{FOLDER}/{path.name}": (REGULAR, path.read_bytes()) for path in paths}


@pytest.mark.parametrize("kind", ["commitment", "record", "withdrawal"])
@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
def test_a_file_of_the_audits_is_never_changed(board, tmp_path, kind, is_deleted):
    root, raw = tmp_path / "audited", submission_bytes()
    files = record(board, tmp_path)
    path = root / list(files)[-1]
    if kind == "commitment":
        (path,) = path.parent.glob("*.committed.json")
        again = signed(root, commitment(raw), {}, key())
        assert again == path
    elif kind == "withdrawal":
        merge(board, files)
        path = withdrawn(path)
    merge(board, files | read(path))
    name = f"{FOLDER}/{path.name}"
    board.files[name] = (REGULAR, board.files[name][1] + b"\n")
    merge(board, {})
    changes = {name: None if is_deleted else (REGULAR, path.read_bytes())}
    verdict = board.verdict(board.pull(changes))
    messages = [f["message"] for f in verdict["findings"] if f["file"] == name]
    assert verdict["outcome"] != "passed"
    assert any("audit files are added, never changed" in text for text in messages), messages


def test_a_withdrawal_verifies_and_without_its_record_is_refused(board, tmp_path):
    files = record(board, tmp_path)
    merge(board, files)
    path = withdrawn(tmp_path / "audited" / list(files)[-1])
    assert board.verdict(board.pull(read(path)))["outcome"] == "passed"
    another = path.rename(path.with_name(f"{'0' * 16}{WITHDRAWN_SUFFIX}"))
    (finding,) = board.verdict(board.pull(read(another)))["findings"]
    assert (finding["rule"], finding["file"]) == (
        "invalid-audit-record",
        f"{FOLDER}/{another.name}",
    )
    assert "the withdrawn record is missing" in finding["message"]


def test_of_two_audits_at_once_both_can_be_merged(board, tmp_path):
    files = record(board, tmp_path)
    (earlier,) = (tmp_path / "audited" / FOLDER).glob("*.committed.json")
    number = board.pull(files)
    heads = {f"{MODEL}/{earlier.name}": hashlib.sha256(earlier.read_bytes()).hexdigest()}
    pin = commitment(submission_bytes()).weights.model_copy(update={"files": {"m": "f" * 64}})
    other = commitment(submission_bytes(" further"), model_id="other", weights=pin)
    path = signed(tmp_path / "audited", other, heads)
    merge(board, {f"leaderboard/audits/other/{path.name}": (REGULAR, path.read_bytes())})
    assert board.verdict(number)["findings"] == []


def test_a_statement_of_another_board_is_refused(board, tmp_path):
    record(board, tmp_path)
    own = signed(tmp_path / "audited", commitment(submission_bytes(" of another board")), {})
    findings = board.verdict(board.pull(read(own)))["findings"]
    assert any("links to none of the 1 statement on main" in f["message"] for f in findings)


def test_an_old_log_is_not_for_pull_requests(board):
    tile = "leaderboard/audits/log/tile/0"
    verdict = board.verdict(board.pull({tile: (REGULAR, b"x")}))
    assert (verdict["outcome"], verdict["places"]) == ("needs-maintainer", {"foreign-file": 1})


def test_triage_says_that_it_can_be_merged(board, tmp_path):
    board.both(board.pull(record(board, tmp_path)))
    out = board.run("triage", "--format", "markdown", "--no-cache")[1]
    assert "`audit record`" in out
    assert "`merge: its records verify`" in out
