"""Format 1.1 of a row and its entry: every number as it was, back byte for byte, no new finding."""

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.audit.commit import commit, read_submission, subject_of
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.common.finding import Severity
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.document import Document, downgraded, parse_document, upgraded
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.submission import SubmissionByEntry
from tests.each import each
from tests.paths import PUBLIC, ROOT, SUBMISSIONS
from tests.submission.schema_engine import check_by_schema

ROWS = sorted(SUBMISSIONS.glob("*.json"))
LAYOUT = find_layout(SUBMISSIONS)


def by_entry(path: Path) -> tuple[Document, bytes]:
    """Return a public row, and its bytes in format 1.1."""
    document = parse_document(path.read_bytes(), path, path.name)
    registry = ModelRegistry(LAYOUT)
    text = upgraded(document, registry.entry_member(path.stem, document.sha256))
    assert text is not None
    return document, text.encode()


def without(value: Any) -> Any:
    """Return a document without what upgrading adds."""
    members = {key: member for key, member in value.items() if key != "registry_entry"}
    return members | {"schema_version": "1.0"}


@each("path", ROWS, ids=lambda path: path.stem)
def test_a_public_row_is_upgraded_losslessly(path: Path) -> None:
    old, raw = by_entry(path)
    new = parse_document(raw, path, path.name)
    assert downgraded(new) == old.text
    assert (new.origin, old.origin) == (old.sha256, old.sha256)
    numbers = [json.loads(document.text, parse_float=str, parse_int=str) for document in (old, new)]
    assert without(numbers[1]) == numbers[0]
    assert list(numbers[1])[:-1] == list(numbers[0])
    submission, faults = check_structure(new.value)
    assert (faults, type(submission)) == ([], SubmissionByEntry)
    if path in ROWS[::20]:  # an engine of schemas takes most of the time; every row, by night
        assert check_by_schema(new.value) == (submission, [])


@pytest.mark.nightly  # in the gate, each row is upgraded losslessly
def test_every_public_row_has_the_findings_that_it_had() -> None:
    checker = Checker(RULES)
    for path in ROWS:
        old, raw = by_entry(path)
        value = parse_document(raw, path, path.name).value
        assert check_by_schema(value) == check_structure(value)
        folder = checker._folder_context(path.parent)
        check_results = [
            checker.run_rules(checker.context_in(parse_document(raw_text, path, path.name), folder))
            for raw_text in (old.text.encode(), raw)
        ]
        rules = [
            [(finding.rule, finding.severity) for finding in each.findings]
            for each in check_results
        ]
        assert rules[1] == rules[0], path.stem
        assert not {Severity.ERROR} & {severity for _, severity in rules[1]}
        assert check_results[1].is_official == check_results[0].is_official


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Lay out a board with three rows, and the policy with their entries."""
    shutil.copytree(ROOT / "leaderboard/policy", tmp_path / "leaderboard/policy")
    (tmp_path / "schemas").mkdir()
    shutil.copy(ROOT / "schemas/benchmark.json", tmp_path / "schemas")
    (tmp_path / "submissions").mkdir()
    for name in ("space", "GROVER", "splicebert-1024nt"):
        shutil.copy(SUBMISSIONS / f"{name}.json", tmp_path / "submissions")
    return tmp_path


def entry_of(board: Path, model_id: str = "GROVER") -> Path:
    return board / f"leaderboard/policy/models/{model_id}.toml"


def test_an_upgraded_row_is_committed_to_as_the_old_one_was(board: Path) -> None:
    """Only the digest of the file differs: code, weights, claims and entry are the same."""
    path = board / "submissions/GROVER.json"
    before = commit(read_submission(path))
    assert main(["upgrade", str(path), "--output", str(path), "--quiet"]) == 0
    after = commit(read_submission(path))
    assert after.submission_sha256 != before.submission_sha256
    same = {"submission_sha256": before.submission_sha256}
    assert after.model_copy(update=same) == before
    subject = subject_of(after, find_layout(board))
    read = ModelRegistry(LAYOUT).entry(path.stem)
    assert read is not None
    assert (after.entry, subject.entry) == (read.sha256, read.entry)


def test_its_evidence_and_level_are_those_of_the_old_one(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = []
    for _ in range(2):
        assert main(["trust", str(board), "--format", "json"]) == 0
        messages.append(json.loads(capsys.readouterr().out))
        for path in (board / "submissions").glob("*.json"):
            assert main(["upgrade", str(path), "--output", str(path), "--quiet"]) == 0
    assert messages[0] == messages[1]
    levels = {row["model_id"]: row["level"] for row in messages[0]["rows"]}
    assert levels == {
        "GROVER": "official", "space": "official", "splicebert-1024nt": "self-reported",
    }  # fmt: skip


def test_an_entry_that_changes_is_said_and_refused(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = board / "submissions/GROVER.json"
    assert main(["upgrade", str(path), "--output", str(path)]) == 0
    assert capsys.readouterr().err == (
        f"wrote {path}: format 1.1, by the entry of GROVER in the model registry\n"
        f"next: geneb-ci check {path}\n"
    )
    entry = entry_of(board)
    entry.write_text(entry.read_text() + "# later\n")
    assert main(["check", str(path), "--select", "provenance"]) == 0
    assert 'the model registry now has another entry for "GROVER"' in capsys.readouterr().out
    assert main(["audit", "commit", str(path), "--output", str(board / "c.json")]) == 11
    error_output = capsys.readouterr().err
    assert "is not the one that the submission names: its sha256 is " in error_output
    assert "fix: let the submission name the present entry of the registry (`" in error_output
    assert main(["upgrade", str(path), "--output", str(path)]) == 0
    assert main(["audit", "commit", str(path), "--output", str(board / "c.json")]) == 0
    entry.unlink()
    capsys.readouterr()
    assert main(["check", str(path), "--select", "provenance"]) == 0
    assert 'the model registry has no entry for "GROVER"' in capsys.readouterr().out


def test_undo_and_the_streams_give_the_same_bytes(
    board: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = board / "submissions/space.json"
    old = path.read_bytes()
    monkeypatch.chdir(board)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(old)))
    assert main(["upgrade", "-", "--output", "-"]) == 0
    new = capsysbinary.readouterr().out
    assert new == by_entry(SUBMISSIONS / "space.json")[1]
    path.write_bytes(new)
    assert main(["upgrade", str(path), "--undo", "--output", str(path)]) == 0
    assert path.read_bytes() == old
    assert path.stat().st_mode & 0o777 == 0o644
    assert main(["upgrade", str(path), "--undo", "--output", str(path)]) == 2
    assert b"the file has format 1.0 already" in capsysbinary.readouterr().err


WHOLE = '[weights]\nkind = "none"\n[run]\nextractor = "builtin:kmer"\n'
INCOMPLETE = {
    "missing": (
        '[weights]\nkind = "none"\n[run]\nmissing = "its tokenizer"',
        2,
        "the entry of GROVER in the model registry is incomplete: its tokenizer",
    ),
    "bare": ("", 2, "GROVER in the model registry is incomplete: no weights; no extractor"),
    "unpinned": (
        '[weights]\nkind = "zenodo"\nlocation = "1"\n[run]\nextractor = "builtin:kmer"',
        2,
        "is incomplete: no file is pinned",
    ),
    "no TOML": ("[weights", 1, "the file is not valid TOML: "),
    "control character": (
        WHOLE + '[run.options]\nx = "\\u001b[2J"',
        2,
        "makes the submission invalid: the string contains U+001B, which hides or reorders text",
    ),
    "long option": (
        WHOLE + f'[run.options]\nx = "{"y" * 5000}"',
        2,
        "makes the submission invalid: x has 5000 characters",
    ),
    "unknown key": ('evil = "\\u202e"', 1, "evil: "),
    "deep": (f"x = {'[' * 9999}", 1, "the TOML is nested too deeply"),
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_an_entry_that_does_not_suffice_is_refused(
    board: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, code, message = INCOMPLETE[name]
    entry_of(board).write_text(f'schema_version = "1.0"\n{text}\n')
    path, new = board / "submissions/GROVER.json", board / "new.json"
    assert main(["upgrade", str(path), "--output", str(new)]) == code
    error_output = capsys.readouterr().err
    assert message in error_output
    assert "\n  fix: " in error_output
    assert not new.exists()


def renamed(name: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        document["model_id"] = name

    return change


WRONG = {
    "unknown id": (renamed("GROVR"), 3, 'has no entry for "GROVR"; did you mean "GROVER"?'),
    "confusable id": (renamed("GR\u041eVER"), 2, "not a valid submission: model_id is "),
    "path as id": (renamed("../GROVER"), 2, "not a valid submission: model_id is "),
    "no scores": (lambda d: d.pop("results"), 2, "not a valid submission: "),
    "1.3": (lambda d: d.update(schema_version="1.3"), 2, "not a valid submission: schema_version "),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_no_row_of_format_1_0_is_refused(
    board: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, code, message = WRONG[name]
    path, new = board / "submissions/GROVER.json", board / "new.json"
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))
    assert main(["upgrade", str(path), "--output", str(new)]) == code
    assert message in capsys.readouterr().err
    assert not new.exists()


def test_a_file_that_was_reformatted_has_lost_the_old_one(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = board / "submissions/GROVER.json"
    assert main(["upgrade", str(path), "--output", str(path), "--quiet"]) == 0
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1))
    assert main(["upgrade", str(path), "--undo", "--output", str(path)]) == 2
    assert "registry_entry was moved or reformatted, so format 1.0 cannot be restored" in (
        capsys.readouterr().err
    )
    assert main(["check", str(path), "--select", "provenance"]) == 11
    output = capsys.readouterr().out
    assert "wrong-upgrade" in output
    assert "changed-official-file" in output


def test_a_folder_and_no_file_are_refused(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, message in (("submissions", "is a folder"), ("none.json", "No such file")):
        assert main(["upgrade", str(board / name), "--output", str(board / "new.json")]) == 3
        assert message in capsys.readouterr().err


def test_the_shipped_entries_serve_a_file_outside_a_repository(tmp_path: Path) -> None:
    path = tmp_path / "GROVER.json"
    shutil.copy(PUBLIC / "submissions/GROVER.json", path)
    assert main(["upgrade", str(path), "--output", str(path), "--quiet"]) == 0
    assert path.read_bytes() == by_entry(SUBMISSIONS / "GROVER.json")[1]
