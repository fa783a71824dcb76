"""The bytes that a key signs: one form for one statement, whatever its text."""

import json
from pathlib import Path

import pytest

from geneb_ci.audit.compare.outcome import StatementSubject
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import ENVELOPE_STEP, strict_json
from geneb_ci.audit.record.statement import audit_id_of, check_can_record, payload_of
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from reference_harness.formats.base import Scores
from tests.audit.examples import hexes
from tests.audit.place import repository
from tests.audit.recorded import entry, key


def test_the_payload_has_sorted_keys_no_spaces_and_the_text_itself() -> None:
    sha256 = hexes("a submission")
    subject = StatementSubject(name="modèle \u2603.json", digest={"sha256": sha256})
    expected = f'{{"digest":{{"sha256":"{sha256}"}},"name":"modèle \u2603.json"}}'.encode()
    assert payload_of(subject) == expected
    assert payload_of(Scores(MCC=0.1, Acc=1.0, F1=1e-7)) == b'{"Acc":1.0,"F1":1e-07,"MCC":0.1}'


def test_the_id_of_an_audit_is_the_beginning_of_its_digest() -> None:
    assert audit_id_of(b"an outcome") == hexes("an outcome")[:16]


def test_a_record_can_go_into_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / "leaderboard/policy/keys.json").write_text(json.dumps({"keys": [entry()]}))
    folder = tmp_path / "leaderboard/audits/model"
    check_can_record(key(), find_layout(tmp_path), folder)
    assert list(folder.iterdir()) == []
    with pytest.raises(UsageProblem, match="is not trusted"):
        check_can_record(key("a stranger"), find_layout(tmp_path), folder)
    (tmp_path / "file").touch()
    with pytest.raises(UsageProblem, match="file: no record can be written to this folder"):
        check_can_record(key(), find_layout(tmp_path), tmp_path / "file")


@pytest.mark.parametrize(
    ("raw", "step", "message"),
    [
        (b"no JSON", ENVELOPE_STEP, "this is not an audit record: "),
        (b'{"payload": ', ENVELOPE_STEP, ""),
        (b"no JSON", "plan", ""),
    ],
)
def test_a_file_that_is_no_json_object_is_no_record(raw: bytes, step: str, message: str) -> None:
    with pytest.raises(StepMismatch) as caught:
        strict_json(raw, step)
    refusal_text = caught.value.message.removeprefix(f"{step}: ")
    assert refusal_text.startswith("this is not an audit record: ") is bool(message)
