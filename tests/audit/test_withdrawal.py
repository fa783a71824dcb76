"""Withdrawals: signed, bound to one record, and never without it."""

import json

import pytest

from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.events import read_withdrawal
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import WITHDRAWN_SUFFIX
from geneb_ci.audit.record.verify import Verification
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.render.audits import verification_text
from tests.audit.recorded import (
    entry,
    key,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
    withdraw,
)

RAW = submission_bytes()
FAILED = outcome_of(plan_for(RAW), RAW, shift=0.05)


def only(root) -> Verification:
    (verification,) = AuditRepository(find_layout(root)).verifications()
    return verification


def test_a_withdrawal_names_its_record_and_its_reason(tmp_path):
    root = repository(tmp_path)
    path = put(root, FAILED)
    keys = AuditRepository(find_layout(root)).keys
    withdrawal_path = withdraw(path)
    withdrawal = read_withdrawal(
        withdrawal_path, withdrawal_path.read_bytes(), keys, path.read_bytes()
    )
    assert (withdrawal.audit_id, withdrawal.reason) == (path.stem, "the wrong weights were fetched")
    assert only(root).withdrawn == withdrawal
    assert only(root).holds
    withdrawal_line = (
        f"  withdrawn {withdrawal.withdrawn_at} by a maintainer: the wrong weights were fetched\n"
    )
    assert withdrawal_line in verification_text([only(root)])


def test_the_command_writes_it_beside_the_record_once(tmp_path, capsys):
    root = repository(tmp_path)
    path = put(root, FAILED)
    pem = tmp_path / "key.pem"
    main(["audit", "keygen", "--output", str(pem)])
    made = json.loads(capsys.readouterr().out)
    keys = {"keys": [entry(), made | {"valid_from": "2023-01-01T00:00:00Z"}]}
    (root / "leaderboard/policy/keys.json").write_text(json.dumps(keys))
    arguments = ["audit", "withdraw", str(path), "--reason", "wrong weights", "--key", str(pem)]
    assert main(arguments) == 0
    assert only(root).withdrawn is not None
    capsys.readouterr()
    assert main(arguments) == 2
    assert "the audit is withdrawn already" in capsys.readouterr().err


@pytest.mark.parametrize("reason", ["", "x" * 1001])
def test_a_reason_is_needed(tmp_path, reason):
    path = put(repository(tmp_path), FAILED)
    with pytest.raises(UsageProblem, match="the withdrawal cannot be written"):
        withdraw(path, reason=reason)


def test_a_reason_that_deceives_the_eye_is_not_signed(tmp_path):
    path = put(repository(tmp_path), FAILED)
    with pytest.raises(StepMismatch):
        withdraw(path, reason="fine \u202e enif")


def test_a_stranger_withdraws_nothing(tmp_path):
    root = repository(tmp_path)
    withdraw(put(root, FAILED), key("a stranger"))
    (step,) = only(root).broken
    assert step.name == "signer"
    assert step.message.startswith("its withdrawal is invalid: the key ")


def test_a_withdrawal_of_another_record_withdraws_nothing(tmp_path):
    root = repository(tmp_path)
    path = put(root, FAILED)
    other = put(root, outcome_of(plan_for(RAW), RAW))
    withdraw(other).rename(path.with_name(f"{path.stem}{WITHDRAWN_SUFFIX}"))
    broken = [
        verification
        for verification in AuditRepository(find_layout(root)).verifications()
        if verification.broken
    ]
    assert [verification.broken[0].name for verification in broken] == ["statement"]
    assert "but the record beside it has another path or digest" in broken[0].broken[0].message


def test_a_withdrawal_of_other_bytes_by_the_same_name_withdraws_nothing(tmp_path):
    root = repository(tmp_path)
    path = put(root, FAILED)
    withdraw(path)
    path.write_bytes(put(root, outcome_of(plan_for(RAW), RAW)).read_bytes())
    event = AuditRepository(find_layout(root)).withdrawals[path]
    assert isinstance(event, StepMismatch)
    assert f"the withdrawal names {path.parent.name}/{path.name}, but the record" in event.message


def test_a_withdrawal_whose_record_is_gone_is_a_fault(tmp_path):
    root = repository(tmp_path)
    path = put(root, FAILED)
    withdraw(path)
    path.unlink()
    assert "the withdrawn record is missing" in only(root).broken[0].message


def test_the_record_of_a_revoked_key_counts_no_more_and_stops_nothing(tmp_path):
    keys = [entry(revoked_at="2024-01-01T00:00:00Z"), entry(key("new"))]
    root = repository(tmp_path, keys=keys)
    path = put(root, FAILED)
    (step,) = only(root).differs
    assert (step.name, step.message.endswith("was revoked at 2024-01-01T00:00:00Z")) == (
        "signer",
        True,
    )
    assert only(root).broken == ()
    withdraw(path, key("new"))
    assert only(root).withdrawn is not None


def test_a_withdrawal_by_a_revoked_key_is_none(tmp_path):
    keys = [entry(), entry(key("stolen"), revoked_at="2024-01-01T00:00:00Z")]
    path = put(repository(tmp_path, keys=keys), FAILED)
    withdraw(path, key("stolen"))
    assert (only(tmp_path).withdrawn, only(tmp_path).is_sound) == (None, True)
