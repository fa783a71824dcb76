"""The bytes that a key signs: one form for one statement, whatever its text."""

from geneb_ci.audit.outcome import StatementSubject
from geneb_ci.audit.record import audit_id_of, payload_of
from geneb_ci.common.types import Scores
from tests.audit.examples import hexes


def test_the_payload_has_sorted_keys_no_spaces_and_the_text_itself() -> None:
    sha256 = hexes("a submission")
    subject = StatementSubject(name="modèle \u2603.json", digest={"sha256": sha256})
    expected = f'{{"digest":{{"sha256":"{sha256}"}},"name":"modèle \u2603.json"}}'.encode()
    assert payload_of(subject) == expected
    assert payload_of(Scores(MCC=0.1, Acc=1.0, F1=1e-7)) == b'{"Acc":1.0,"F1":1e-07,"MCC":0.1}'


def test_the_id_of_an_audit_is_the_beginning_of_its_digest() -> None:
    assert audit_id_of(b"an outcome") == hexes("an outcome")[:16]
