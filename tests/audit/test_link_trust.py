"""What the history means for a row: aborts dispute it, two people reproduce it, draws are kept."""

import hashlib
from typing import Any

import pytest

from geneb_ci.audit.canonical import moment_of, seconds_of
from geneb_ci.audit.record.events import AuditStart, bounded_message
from geneb_ci.audit.record.verify import StepState
from geneb_ci.audit.sampling.plan import PracticeBeacon
from geneb_ci.audit.sampling.task_draw import draw_tasks
from geneb_ci.audit.trust.evidence import BrokenRecordError, gather_evidence
from tests.audit.linked_place import (
    AGAIN,
    KEYS,
    OTHER,
    RAW,
    abort_of,
    aborted,
    audited,
    begun,
    committed,
    heads_of,
    layout_of,
    name_of,
    read,
    recorded,
    signed,
    started,
    step,
    withdrawn,
)
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
    commitment,
    entry,
    outcome_of,
    plan_for,
    put,
    repository,
    write_keys,
)

REVOKED = "2024-01-01T00:00:00Z"


def decision(root, raw: bytes = RAW):
    evidence = gather_evidence(layout_of(root))
    evidence.require_sound()
    return evidence.decide(hashlib.sha256(raw).hexdigest())


def test_three_aborts_in_a_row_dispute_the_row_and_a_record_ends_it(tmp_path):
    root = repository(tmp_path)
    plan = begun(root, plan_for(RAW))
    for number in range(3):
        assert decision(root).level == "self-reported"
        aborted(root, plan, at=number)
    trust_decision = decision(root)
    assert trust_decision.level == "disputed"
    assert trust_decision.reason.startswith("the last 3 runs were aborted: ")
    recorded(root, outcome_of(plan, RAW))
    assert decision(root).level == "verified"


def test_what_comes_after_ends_the_row_whatever_its_date_says(tmp_path):
    root = repository(tmp_path)
    plan = begun(root, plan_for(RAW))
    recorded(root, outcome_of(plan, RAW))
    for number in range(3):  # dated before the record, which they come after
        early = abort_of(plan).model_copy(
            update={"finished_at": moment_of(seconds_of(REVOKED) - 10**8 + number)}
        )
        signed(root, early, read(root).history.heads)
    assert decision(root).level == "disputed"


def test_aborts_follow_the_code_whatever_the_row_is_called(tmp_path):
    root = repository(tmp_path)
    for number, name in enumerate(("a", "b", "c")):
        plan = plan_for(RAW, FIRST, model_id=name)
        started(root, plan)
        aborted(root, plan, at=number)
    assert decision(root).level == "disputed"


def test_aborts_that_name_nothing_count_in_order_of_time(tmp_path):
    root = repository(tmp_path)
    plan = plan_for(RAW)
    path = put(root, outcome_of(plan, RAW))
    for number in range(3):
        signed(root, abort_of(plan, at=number), None)
    assert decision(root).level == "disputed"
    # An abort before the record is followed by it.
    path.unlink()
    early = abort_of(plan).model_copy(
        update={"finished_at": moment_of(seconds_of(REVOKED) - 10**9)}
    )
    signed(root, early, None)
    assert decision(root).level == "disputed"


def test_the_message_of_an_extractor_is_one_bounded_line():
    assert bounded_message("CUDA\nout of\tmemory \x1b[31m\u202e\x7f") == (
        "CUDA out of memory \\u001b[31m\\u202e\\u007f"
    )
    assert len(bounded_message("x" * 10_000)) == 500


def test_one_key_verifies_at_most_and_two_people_reproduce(tmp_path):
    root = repository(tmp_path, keys=KEYS)
    plan = begun(root, plan_for(RAW))
    whole = draw_tasks(plan.commitment, plan.committed_at, plan.beacon, drawn=3)
    started(root, whole)
    recorded(root, outcome_of(whole, RAW))
    assert decision(root).level == "verified"
    recorded(root, outcome_of(plan, RAW), OTHER)
    assert decision(root).level == "reproduced"
    # The same person with a second key is no second signer.
    for owner in ("a maintainer", " A  Maintainer", "\N{CYRILLIC SMALL LETTER A} maintainer"):
        write_keys(root, [entry(), entry(OTHER, owner=owner)])
        assert decision(root).level == "verified"


def test_what_the_second_signer_finds_disputes_the_row(tmp_path):
    root = repository(tmp_path, keys=KEYS)
    plan = begun(root, plan_for(RAW))
    recorded(root, outcome_of(plan, RAW))
    recorded(root, outcome_of(plan, RAW, 0.01), OTHER)
    assert decision(root).level == "disputed"


@pytest.fixture
def stolen(tmp_path):
    """An audit by a key, the head after it, and another audit after the key was stolen."""
    root = repository(tmp_path, keys=KEYS)
    before = audited(root, RAW)
    (head,) = read(root).history.heads.values()
    after = recorded(root, outcome_of(plan_for(RAW), RAW, 0.01))
    return root, before, after, head


def revoke(root, **changes: Any) -> None:
    write_keys(root, [entry(revoked_at=REVOKED, **changes), KEYS[1]])


def test_records_from_before_the_compromise_count_and_later_ones_stop_nothing(stolen):
    root, before, after, head = stolen
    assert decision(root).level == "disputed"
    revoke(root, revoked_after=[head])
    assert decision(root).level == "verified"
    content = read(root)
    assert content.verification(before).holds
    late = content.verification(after)
    assert [difference.name for difference in late.differs] == ["signer"]
    assert (
        "the statements in revoked_after and those before them still count"
        in late.differs[0].message
    )
    revoke(root)
    assert decision(root).level == "self-reported"
    assert read(root).verification(before).is_revoked


def test_what_a_thief_signs_makes_nothing_look_lost(stolen):
    root, before, _, head = stolen
    revoke(root, revoked_after=[head])
    signed(root, abort_of(plan_for(RAW)), {f"{MODEL}/{'0' * 16}.json": "0" * 64})
    assert read(root).history.loss_reasons == {}
    assert decision(root).level == "verified"
    # Nor can it be taken out, once an honest statement names it.
    path = committed(root, commitment(AGAIN), OTHER)
    before.unlink()
    assert read(root).history.loss_reasons[name_of(before)] == (
        f"{name_of(before)} was deleted: {name_of(path)} names it"
    )


def test_revocation_cannot_be_taken_back_once_it_is_named(stolen):
    root, before, _, head = stolen
    revoke(root, revoked_after=[head])
    assert f"keys.json/{entry()['keyid']}" in heads_of(root)
    path = committed(root, commitment(AGAIN), OTHER)
    assert heads_of(root) == [name_of(path)]
    assert step(read(root).verification(before))[0] is StepState.HOLDS
    write_keys(root, KEYS)
    state, message = step(read(root).verification(before))
    assert state is StepState.DIFFERS
    assert "names the revocation of the key" in message


def test_revocation_and_withdrawal_lose_no_draw(stolen):
    root, before, after, head = stolen
    withdrawn(before, OTHER)
    withdrawn(after, OTHER)
    revoke(root)
    drawn = read(root).inputs.plans
    assert {draw.commitment_sha256 for draw in drawn} == {plan_for(RAW).commitment_sha256}
    (root / f"submissions/{MODEL}.json").write_bytes(AGAIN)
    # The key is revoked, so another one signs; the earlier draw is left out.
    plan = begun(root, plan_for(AGAIN, SECOND), OTHER)
    verification = read(root).verification(recorded(root, outcome_of(plan, AGAIN), OTHER))
    assert [(difference.name, difference.state) for difference in verification.differs] == [
        ("earlier", StepState.DIFFERS)
    ]
    assert head


def test_a_dispute_stays_where_a_commitment_is_added_that_was_never_drawn(tmp_path):
    root = repository(tmp_path)
    record = audited(root, RAW, shift=0.01)
    assert decision(root).level == "disputed"
    signed(root, commitment(AGAIN), {})
    assert step(read(root).verification(record))[0] is StepState.UNKNOWN
    assert decision(root).level == "disputed"


def test_a_commitment_of_another_benchmark_passes_over_nothing(tmp_path):
    root = repository(tmp_path)
    record = audited(root, RAW)
    pin = commitment(RAW).benchmark.model_copy(update={"sha256": "d" * 64})
    signed(root, commitment(AGAIN).model_copy(update={"benchmark": pin}), {})
    assert step(read(root).verification(record))[0] is StepState.HOLDS
    assert decision(root).level == "verified"


@pytest.mark.parametrize("change", ["empty", "damaged", "unlisted"])
def test_an_event_that_cannot_be_read_stops_the_board(tmp_path, change: str):
    root = repository(tmp_path, keys=KEYS)
    plan = begun(root, plan_for(RAW), OTHER)
    aborts = [aborted(root, plan, at=number, of=OTHER) for number in range(3)]
    assert decision(root).level == "disputed"
    if change == "empty":
        (aborts[0].parent / f"{'0' * 16}.started.json").write_bytes(b"")
    elif change == "damaged":
        aborts[-1].write_bytes(b"{}")
    else:
        write_keys(root, [entry()])
    with pytest.raises(BrokenRecordError, match="is broken, step"):
        decision(root)


def test_a_start_by_the_practice_beacon_draws_no_real_commitment(tmp_path):
    root = repository(tmp_path)
    other = commitment(AGAIN)
    committed(root, other)
    plan = plan_for(RAW, SECOND)
    committed(root, plan.commitment)
    practice = PracticeBeacon(kind="practice", round=1, value="0" * 64)
    changes = {"commitment": other, "commitment_sha256": other.sha256, "beacon": practice}
    fake = AuditStart(schema_version="1.0", plan=plan.model_copy(update=changes))
    signed(root, fake, read(root).history.heads)
    started(root, plan)
    record = recorded(root, outcome_of(plan, RAW))
    state, message = step(read(root).verification(record))
    assert state is StepState.DIFFERS
    assert "it was never drawn" in message


def test_a_record_without_links_is_not_brought_in_by_a_later_statement(tmp_path):
    root = repository(tmp_path)
    begun(root, plan_for(RAW, SECOND))
    record = signed(root, outcome_of(plan_for(RAW), RAW), None)
    signed(
        root,
        commitment(AGAIN),
        read(root).history.heads
        | {name_of(record): hashlib.sha256(record.read_bytes()).hexdigest()},
    )
    assert step(read(root).verification(record))[0] is StepState.DIFFERS


def test_a_start_by_a_revoked_key_is_signed_again(tmp_path):
    root = repository(tmp_path, keys=KEYS)
    plan = plan_for(RAW)
    committed(root, plan.commitment, OTHER)
    started(root, plan)
    revoke(root)
    started(root, plan, OTHER)
    record = recorded(root, outcome_of(plan, RAW), OTHER)
    assert step(read(root).verification(record))[0] is StepState.HOLDS
