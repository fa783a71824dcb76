"""What the log means for a row: aborts dispute it, two people reproduce it, draws are kept."""

import hashlib
from typing import Any

import pytest

from geneb_ci.audit.canonical import moment_of, seconds_of
from geneb_ci.audit.record.events import AuditStart, bounded
from geneb_ci.audit.record.verify import StepState
from geneb_ci.audit.sampling.task_draw import draw
from geneb_ci.audit.trust.evidence import gather_evidence
from geneb_ci.common.config import find_layout
from tests.audit.log_place import (
    aborted,
    audited,
    begun,
    extend,
    kept,
    log_of,
    read,
    set_keys,
    signed,
)
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
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
OTHER = key("another")
KEYS = [entry(), entry(OTHER, owner="another maintainer")]
REVOKED = "2024-01-01T00:00:00Z"


def decision(root, raw: bytes = RAW):
    find_layout.cache_clear()
    evidence = gather_evidence(find_layout(root))
    evidence.require_sound()
    return evidence.decide(hashlib.sha256(raw).hexdigest())


def test_three_aborts_in_a_row_dispute_the_row_and_a_record_ends_it(tmp_path):
    root = kept(tmp_path)
    plan = begun(root, plan_for(RAW))
    for number in range(3):
        assert decision(root).level == "self-reported"
        signed(root, aborted(plan, at=number))
        assert decision(root).level == "self-reported"  # not in the log yet
        extend(root, FIRST + 1 + number)
    found = decision(root)
    assert found.level == "disputed"
    assert found.reason.startswith("the last 3 runs were aborted: ")
    put(root, outcome_of(plan, RAW))
    extend(root, FIRST + 5)
    assert decision(root).level == "verified"


def test_aborts_follow_the_code_whatever_the_row_is_called(tmp_path):
    root = kept(tmp_path)
    for number, name in enumerate(("a", "b", "c")):
        plan = plan_for(RAW, FIRST, model_id=name)
        signed(root, plan.commitment)
        extend(root, FIRST - 20)
        signed(root, AuditStart(schema_version="1.0", plan=plan))
        signed(root, aborted(plan, at=number))
    extend(root, FIRST)
    assert [one.kind for one in log_of(root).entries].count("abort") == 3
    assert decision(root).level == "disputed"


def test_without_a_log_aborts_count_in_order_of_time(tmp_path):
    root = repository(tmp_path)
    plan = plan_for(RAW)
    path = put(root, outcome_of(plan, RAW))
    for number in range(3):
        signed(root, aborted(plan, at=number))
    assert decision(root).level == "disputed"
    # An abort before the record is followed by it.
    path.unlink()
    early = aborted(plan).model_copy(update={"finished_at": moment_of(seconds_of(REVOKED) - 10**9)})
    signed(root, early)
    assert decision(root).level == "disputed"


def test_the_message_of_an_extractor_is_one_bounded_line():
    assert bounded("CUDA\nout of\tmemory \x1b[31m\u202e\x7f") == (
        "CUDA out of memory \\u001b[31m\\u202e\\u007f"
    )
    assert len(bounded("x" * 10_000)) == 500


def test_one_key_verifies_at_most_and_two_people_reproduce(tmp_path):
    root = kept(tmp_path, keys=KEYS)
    plan = begun(root, plan_for(RAW))
    whole = draw(plan.commitment, plan.committed_at, plan.beacon, drawn=3)
    put(root, outcome_of(whole, RAW))
    extend(root, FIRST + 1)
    assert decision(root).level == "verified"
    put(root, outcome_of(plan, RAW), OTHER)
    extend(root, FIRST + 2)
    assert decision(root).level == "reproduced"
    # The same person with a second key is no second signer.
    for owner in ("a maintainer", " A  Maintainer", "\N{CYRILLIC SMALL LETTER A} maintainer"):
        set_keys(root, [entry(), entry(OTHER, owner=owner)])
        assert decision(root).level == "verified"


def test_what_the_second_signer_finds_disputes_the_row(tmp_path):
    root = kept(tmp_path, keys=KEYS)
    plan = begun(root, plan_for(RAW))
    put(root, outcome_of(plan, RAW))
    put(root, outcome_of(plan, RAW, 0.01), OTHER)
    extend(root, FIRST + 1)
    assert decision(root).level == "disputed"


@pytest.fixture
def stolen(tmp_path):
    """A log of an audit by a key, after which the key was stolen and signed another."""
    root = kept(tmp_path, keys=KEYS)
    before = audited(root, RAW)
    size = len(log_of(root).entries)
    after = put(root, outcome_of(plan_for(RAW), RAW, 0.01))
    extend(root, FIRST + 2)
    return root, before, after, size


def revoke(root, **changes: Any) -> None:
    set_keys(root, [entry(revoked_at=REVOKED, **changes), KEYS[1]])


def test_records_from_before_the_compromise_count_and_later_ones_stop_nothing(stolen):
    root, before, after, size = stolen
    assert decision(root).level == "disputed"
    revoke(root, revoked_from=size)
    assert decision(root).level == "verified"
    found = read(root)
    assert found.verification(before).holds
    late = found.verification(after)
    assert [one.name for one in late.differs] == ["signer"]
    assert f"from entry {size} of the log on" in late.differs[0].message
    revoke(root)
    assert decision(root).level == "self-reported"
    assert read(root).verification(before).is_revoked


def test_revocation_is_an_entry_that_cannot_be_taken_back(stolen):
    root, before, _, size = stolen
    revoke(root, revoked_from=size)
    extend(root, FIRST + 3)
    assert log_of(root).entries[-1].kind == "revocation"
    extend(root, FIRST + 4)
    assert log_of(root).entries[-2].kind == "result"
    set_keys(root, KEYS)
    found = [one for one in read(root).verification(before).steps if one.name == "log"]
    assert [one.state for one in found] == [StepState.DIFFERS]
    assert "revokes the key" in found[0].message


def test_revocation_and_withdrawal_lose_no_draw(stolen):
    root, before, after, size = stolen
    revoke(root)
    withdraw(before, OTHER)
    withdraw(after, OTHER)
    extend(root, FIRST + 3)
    drawn = read(root).inputs.drawn
    assert [one.commitment_sha256 for one in drawn] == [plan_for(RAW).commitment_sha256] * 3
    other = submission_bytes(" again")
    (root / f"submissions/{MODEL}.json").write_bytes(other)
    # The key is revoked, so another one signs; the earlier draw is left out.
    plan = plan_for(other, SECOND)
    signed(root, plan.commitment, OTHER)
    extend(root, SECOND - 20)
    signed(root, AuditStart(schema_version="1.0", plan=plan), OTHER)
    path = put(root, outcome_of(plan, other), OTHER)
    extend(root, SECOND)
    found = read(root).verification(path)
    assert [(one.name, one.state) for one in found.differs] == [("earlier", StepState.DIFFERS)]
    assert size == 3


def test_a_revoked_key_adds_nothing_to_the_log(stolen):
    root, _, _, size = stolen
    revoke(root, revoked_from=size)
    put(root, outcome_of(plan_for(RAW), RAW, 0.02))
    batch = extend(root, FIRST + 3)
    assert [one.kind for one in batch.entries] == ["revocation"]
    assert "was revoked at" in batch.refused[0].reason
