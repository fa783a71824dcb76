"""A record that a workflow signed: its bundle is verified offline, each lie of it refused."""

import base64
import copy
import datetime as dt
import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.events import AuditStart, signed_event
from geneb_ci.audit.record.keys import signer_of, trusted_keys
from geneb_ci.audit.record.signing import heads_for_record
from geneb_ci.audit.record.statement import parse_record, record_of
from geneb_ci.audit.sampling.plan import commitment_text, json_text_of
from geneb_ci.audit.sampling.task_draw import draw_tasks
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from tests.audit.linked_place import begun, committed, read, recorded, started
from tests.audit.recorded import (
    FIRST,
    SECOND,
    entry,
    key,
    outcome_of,
    plan_for,
    repository,
    statement_of,
    submission_bytes,
)
from tests.audit.small_sigstore import ISSUER, REPOSITORY, WORKFLOW, SmallSigstore
from tests.audit.test_embedding_verify import sound
from tests.audit.test_link_trust import decision

RAW = submission_bytes()
COMMIT = "0123456789abcdef" * 2 + "01234567"
TRUSTED = {
    "owner": "another maintainer",
    "valid_from": "2023-01-01T00:00:00Z",
    "issuer": ISSUER,
    "workflow": WORKFLOW,
    "repository": REPOSITORY,
}
PUBLIC, STRANGE = SmallSigstore(), SmallSigstore()


@functools.cache
def payload() -> bytes:
    return parse_envelope(record_of(outcome_of(plan_for(RAW), RAW), key()).content).payload


def policy(root, **changes: Any) -> None:
    """Trust a key, the workflow and this test's root."""
    path = root / "leaderboard/policy/keys.json"
    value = json.loads(path.read_bytes()) | {"workflows": [TRUSTED | changes]}
    path.write_text(json.dumps(value), encoding="utf-8")
    path.with_name("trusted_root.json").write_bytes(PUBLIC.trusted_root())
    find_layout.cache_clear()


@pytest.fixture
def keys(tmp_path):
    policy(repository(tmp_path))
    return trusted_keys(find_layout(tmp_path))


def refused(bundle: Any, keys) -> StepMismatch:
    with pytest.raises(StepMismatch) as caught:
        signer_of(parse_envelope(json.dumps(bundle).encode()), keys)
    return caught.value


def test_a_key_and_a_workflow_reproduce_a_row_and_one_owner_of_both_does_not(tmp_path):
    root = repository(tmp_path)
    policy(root)
    plan = begun(root, plan_for(RAW))
    own = record_of(outcome_of(plan, RAW), key(), heads_for_record(plan, read(root)))
    path = root / "leaderboard/audits" / own.path
    bundle = PUBLIC.sign(parse_envelope(own.content).payload)
    path.write_text(json.dumps(bundle, indent=1), encoding="utf-8")
    verification = read(root).verification(path)
    assert verification.holds
    assert verification.record is not None
    assert (verification.record.audit_id, verification.record.signer.owner) == (
        own.audit_id,
        TRUSTED["owner"],
    )
    assert decision(root).level == "verified"
    # The second record is a key's: of two people, or of one who also answers for the workflow.
    whole = draw_tasks(plan.commitment, plan.committed_at, plan.beacon, drawn=3)
    started(root, whole)
    recorded(root, outcome_of(whole, RAW))
    assert decision(root).level == "reproduced"
    policy(root, owner=entry()["owner"])
    assert decision(root).level == "verified"
    policy(root, revoked_at="2024-06-01T00:00:00Z")
    assert read(root).verification(path).is_revoked
    # Signed again by a key, the record of the workflow is not the one that others name.
    policy(root)
    path.write_bytes(own.content)
    assert " was changed: " in read(root).verification(path).differs[0].message


@pytest.mark.parametrize(("number", "holds"), [(FIRST, False), (SECOND, True)])
def test_a_commitment_that_is_dated_back_before_the_bundle_was_signed_is_refused(
    tmp_path, number, holds
):
    """Who has a key may name any time: one whose draw is known."""
    root = repository(tmp_path)
    policy(root)
    plan = plan_for(RAW, number)
    path = committed(root, plan.commitment)
    bundle = PUBLIC.sign(parse_envelope(path.read_bytes()).payload)
    path.write_text(json.dumps(bundle), encoding="utf-8")
    started(root, plan)
    record = recorded(root, outcome_of(plan, RAW))
    verification = read(root).verification(record)
    assert verification.holds is holds
    if not holds:
        reason = "the workflow that signed it is valid only from 2024-01-01T00:00:00Z on"
        assert [
            (difference.name, reason in difference.message) for difference in verification.differs
        ] == [("links", True)]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (
            {"workflow": WORKFLOW.replace("audit.yml", "other.yml")},
            "this workflow is not among the 1 trusted",
        ),
        (
            {"workflow": WORKFLOW.replace("main", "fork")},
            "this workflow is not among the 1 trusted",
        ),
        (
            {"repository": "https://github.com/stranger/board"},
            "this workflow is not among the 1 trusted",
        ),
        ({"issuer": "https://accounts.example"}, "this workflow is not among the 1 trusted"),
    ],
)
def test_another_workflow_repository_or_issuer_is_named(keys, names, reason):
    error = refused(PUBLIC.sign(payload(), **names), keys)
    assert (error.step, reason in error.message) == ("signer", True)
    assert next(iter(names.values())) in error.message


def _entry(bundle: Any) -> Any:
    return bundle["verificationMaterial"]["tlogEntries"][0]


def _payload(bundle: Any) -> None:
    other = statement_of(outcome_of(plan_for(RAW), RAW, 0.01))
    content = json.dumps(other).encode()
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(content).decode()


def _log(bundle: Any) -> None:
    _entry(bundle).update(_entry(STRANGE.sign(payload())))


def _checkpoint(bundle: Any) -> None:
    proof = _entry(STRANGE.sign(payload()))["inclusionProof"]["checkpoint"]
    _entry(bundle)["inclusionProof"]["checkpoint"] = proof


def _neighbour(bundle: Any) -> None:
    """Return the log entry and the certificate of another signature by the workflow."""
    bundle["verificationMaterial"] = PUBLIC.sign(payload())["verificationMaterial"]


LIES = {
    "payload": (_payload, "invalid signature"),
    "no proof of inclusion": (
        lambda document: _entry(document).pop("inclusionProof"),
        "inclusionProof",
    ),
    "no checkpoint": (
        lambda document: _entry(document)["inclusionProof"].pop("checkpoint"),
        "must contain inclusion proof, with checkpoint",
    ),
    "no entry": (
        lambda document: document["verificationMaterial"].pop("tlogEntries"),
        "tlogEntries",
    ),
    "no time": (
        lambda document: _entry(document).pop("inclusionPromise"),
        "must contain an inclusion promise or signed timestamp",
    ),
    "another time": (
        lambda document: _entry(document).update(integratedTime="1704067300"),
        "invalid inclusion promise",
    ),
    "another place": (
        lambda document: _entry(document)["inclusionProof"].update(logIndex="1"),
        "invalid log entry",
    ),
    "another log": (_log, "signature"),
    "another checkpoint": (_checkpoint, "checkpoint"),
    "another signature's entry": (_neighbour, "invalid"),
}


@pytest.mark.parametrize("lie", LIES)
def test_each_lie_of_a_bundle_is_refused_with_its_reason(keys, lie):
    change, reason = LIES[lie]
    bundle = PUBLIC.sign(payload())
    change(bundle)
    error = refused(bundle, keys)
    assert error.step == "signer"
    assert reason.casefold() in error.message.casefold()


def test_certificates_of_another_authority_and_expired_ones_are_refused(keys):
    assert "certificate chain" in refused(STRANGE.sign(payload()), keys).message
    late = PUBLIC.sign(payload(), late=dt.timedelta(minutes=11))
    assert "certificate chain" in refused(late, keys).message
    other = SmallSigstore()
    other.ca, other.authority, other.rekor = PUBLIC.ca, PUBLIC.authority, PUBLIC.rekor
    assert "SCT" in refused(other.sign(payload()), keys).message


def test_a_workflow_counts_only_while_the_policy_says_so(tmp_path):
    policy(repository(tmp_path), valid_until="2023-12-31T00:00:00Z")
    error = refused(PUBLIC.sign(payload()), trusted_keys(find_layout(tmp_path)))
    assert "this bundle was signed at 2024-01-01T00:00:00Z" in error.message


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [index for name, member in items for index in _places(member, (*path, name))]


def test_a_changed_bundle_is_refused_or_says_the_same_and_never_crashes(keys):
    whole = PUBLIC.sign(payload())
    random_ = random.Random(16)
    odd: list[Any] = [
        "",
        "x",
        "0",
        "-1",
        "9" * 30,
        None,
        7,
        [],
        {},
        "\N{EM DASH} \n\n",
        "é",
    ]
    for member_path in _places(whole):
        for new in ["AAAA", *random_.sample(odd, 3)]:  # base64 of what is nothing, always
            bundle = copy.deepcopy(whole)
            *parents, last = member_path
            functools.reduce(lambda at, name: at[name], parents, bundle)[last] = new
            assert _read(bundle, keys) in {payload(), "envelope", "signer"}


def _read(bundle: Any, keys) -> bytes | str:
    """Return what a bundle says, or the step at which it is refused."""
    try:
        envelope = parse_envelope(json.dumps(bundle).encode())
        signer_of(envelope, keys)
    except StepMismatch as error:
        return error.step if error.message.isprintable() else "not printable"
    return envelope.payload


def test_what_a_workflow_signs_is_what_a_key_signs(tmp_path, monkeypatch, capfdbinary):
    path = tmp_path / "outcome.json"
    outcome = outcome_of(plan_for(RAW), RAW)
    path.write_text(json_text_of(outcome), encoding="utf-8")
    assert main(["audit", "statement", str(path)]) == 0
    out, err = capfdbinary.readouterr()
    made = record_of(outcome, key(), {})
    assert (out, err.decode()) == (
        parse_envelope(made.content).payload,
        f"sign these bytes into leaderboard/audits/{made.path}\n",
    )
    # What comes before it: the commitment and the start.
    start = AuditStart(schema_version="1.0", plan=outcome.plan, shown_on=COMMIT)
    monkeypatch.chdir(repository(tmp_path / "board"))
    find_layout.cache_clear()
    commitment = outcome.plan.commitment
    for content, predicate, words in (
        (commitment_text(commitment), commitment, []),
        (json_text_of(outcome.plan), start, ["--shown-on", COMMIT]),
    ):
        (tmp_path / "f.json").write_text(content, encoding="utf-8")
        assert main(["audit", "statement", str(tmp_path / "f.json"), *words]) == 0
        out, err = capfdbinary.readouterr()
        made = signed_event(predicate, key(), {})
        assert out == parse_envelope(made.content).payload
        assert err.decode() == f"sign these bytes into leaderboard/audits/{made.path}\n"
    path.write_bytes(RAW)
    assert main(["audit", "statement", str(path)]) == 3
    assert b"this is a submission, not an unsigned outcome" in capfdbinary.readouterr().err


@pytest.mark.parametrize("altered", [False, True])
def test_a_workflow_signs_an_audit_by_receipt(tmp_path, capfdbinary, keys, altered):
    path = tmp_path / "outcome.json"
    outcome = sound(altered=altered)
    path.write_text(json_text_of(outcome), encoding="utf-8")
    assert main(["audit", "statement", str(path)]) == 0
    out, err = capfdbinary.readouterr()
    record_path = Path("leaderboard/audits") / record_of(outcome, key(), {}).path
    assert err.decode() == (
        f"sign these bytes into {record_path}\n"
        "  and copy rerun.npz of the work folder, which has the rerun embeddings, to "
        f"{record_path.with_suffix('')}.rows.npz; its sha256 is {outcome.rerun_sha256}\n"
    )
    record = parse_record(json.dumps(PUBLIC.sign(out)).encode(), keys)
    assert record.outcome == outcome
    assert (record.audit_id, record.signer.owner) == (record_path.stem, TRUSTED["owner"])
    path.write_text(json_text_of(outcome).replace('"tf32"', '"tf64"'), encoding="utf-8")
    assert main(["audit", "statement", str(path)]) == 3
    assert b"outcome.json: receipt/tf32: Field required" in capfdbinary.readouterr().err


def test_a_root_that_cannot_be_used_is_named(tmp_path, monkeypatch, capsys):
    root = repository(tmp_path)
    policy(root)
    trusted_root_path = root / "leaderboard/policy/trusted_root.json"
    trusted_root_path.write_text("{}")
    path = root / "record.json"
    path.write_text(json.dumps(PUBLIC.sign(payload())))
    monkeypatch.chdir(root)
    find_layout.cache_clear()
    assert main(["audit", "verify", str(path)]) != 0
    _, err = capsys.readouterr()
    assert "this is not a trusted root of Sigstore" in err
    assert "Traceback" not in err
