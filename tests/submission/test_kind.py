"""A file or folder given in the place of another is named for what it is."""

import json

import pytest

from geneb_ci.cli.main import main
from geneb_ci.submission.reading import FileKind, other_kind, other_kind_of
from tests.paths import SUBMISSIONS

COMMANDS = {
    "matrices": "a submission",
    "audit commit": "a submission",
    "audit plan": "a commitment",
    "audit run": "a plan",
    "audit withdraw --reason x": "an audit record",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_is_refused(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    assert main([*command.split(), "rows"]) == 3
    error_output = capsys.readouterr().err
    assert (
        f"geneb-ci: rows: this is a folder, expected {COMMANDS[command]}\n  fix: " in error_output
    )


def test_a_file_of_the_folder_is_suggested(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "b.json").write_text("{}")
    (tmp_path / "rows" / "a.json").write_text("{}")
    assert main(["matrices", "rows"]) == 3
    assert (
        "fix: name a file in this folder: geneb-ci matrices rows/a.json\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("command", ["audit plan", "audit run"])
def test_a_submission_is_named(command, capsys):
    path = min(SUBMISSIONS.glob("*.json"))
    assert main([*command.split(), str(path)]) == 3
    expected = COMMANDS[command]
    assert f"{path}: this is a submission, not {expected}\n" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["matrices", "audit commit"])
def test_a_run_record_is_no_submission(command, tmp_path, capsys):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"probe": {}, "tasks": {}}))
    assert main([*command.split(), str(path)]) == 3
    assert "this is a run record, not a submission\n" in capsys.readouterr().err


def test_verify_says_that_a_submission_is_no_record(capsys):
    path = min(SUBMISSIONS.glob("*.json"))
    assert main(["audit", "verify", str(path)]) == 11
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  ✗ envelope    this is a submission, not an audit record",
        "      fix: name a record: leaderboard/audits/MODEL/ID.json",
        "  ? 16 steps not checked, because the step above failed",
        "",
        "1 record: 0 verified",
    ]


@pytest.mark.parametrize("kind", FileKind, ids=lambda kind: kind.name)
def test_every_kind_is_recognised(kind):
    value = dict.fromkeys(kind.members)
    assert other_kind(value, kind) is None
    expected = next(other for other in FileKind if not other.fits(value))
    refusal = other_kind(value, expected)
    assert refusal == (f"this is {kind.title}, not {expected.title}", expected.fix)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"{", b"[" * 100_000])
def test_what_is_of_no_kind_has_no_name(raw):
    assert other_kind_of(raw, FileKind.PLAN) is None
