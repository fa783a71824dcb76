"""A history that cannot forget: what was deleted, changed or dated back is named, offline."""

import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.compare.outcome import HEADS_MAX
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.events import AuditStart
from geneb_ci.audit.record.history import NO_SERVER_REMARK
from geneb_ci.audit.record.published import STATEMENTS_PATH, statements_file, statements_in
from geneb_ci.audit.record.signing import heads_for_statement
from geneb_ci.audit.record.verify import StepState, Verification
from geneb_ci.audit.sampling.beacon import time_of_round
from geneb_ci.audit.trust.evidence import BrokenRecordError, gather_evidence
from geneb_ci.cli.main import main
from tests.audit.linked_place import (
    AGAIN,
    OTHER,
    RAW,
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
    submission_bytes,
)

FAILED = 0.01
COMMIT = "0123456789abcdef" * 2 + "01234567"


def verified(root: Path, path: Path) -> Verification:
    return read(root).verification(path)


def named(path: Path) -> list[str]:
    return list(json.loads(parse_envelope(path.read_bytes()).payload)["heads"])


def test_each_statement_of_an_audit_names_the_one_before(tmp_path):
    root = repository(tmp_path)
    plan = plan_for(RAW)
    commitment_file = committed(root, plan.commitment)
    start = started(root, plan)
    record = recorded(root, outcome_of(plan, RAW))
    assert named(commitment_file) == []
    assert named(start) == [name_of(commitment_file)]
    assert named(record) == [name_of(start)]
    verification = verified(root, record)
    assert verification.holds
    assert step(verification) == (StepState.HOLDS, NO_SERVER_REMARK)
    withdrawal = withdrawn(record)
    assert named(withdrawal) == [name_of(record)]
    assert heads_of(root) == [name_of(withdrawal)]
    assert verified(root, record).withdrawn is not None


def test_what_is_signed_again_is_not_another_statement(tmp_path):
    root = repository(tmp_path)
    path = audited(root, RAW)
    before = sorted(path.parent.iterdir())
    assert audited(root, RAW) == path
    assert sorted(path.parent.iterdir()) == before


def test_two_audits_at_once_make_two_heads_and_the_next_names_both(tmp_path):
    """Two branches from one main; both are merged."""
    root, other = repository(tmp_path / "one"), repository(tmp_path / "two")
    first = audited(root, RAW)
    second = audited(other, AGAIN, model_id="another")
    shutil.copytree(second.parent, root / "leaderboard/audits/another")
    assert heads_of(root) == sorted([name_of(first), name_of(second)])
    for path in (first, root / "leaderboard/audits" / name_of(second)):
        assert step(verified(root, path)) == (StepState.HOLDS, NO_SERVER_REMARK)
    third = committed(root, commitment(submission_bytes(" third"), model_id="third"))
    assert named(third) == sorted([name_of(first), name_of(second)])
    assert heads_of(root) == [name_of(third)]


def test_deleting_a_failed_record_is_named(tmp_path, monkeypatch, capsys):
    root = repository(tmp_path)
    failed = audited(root, RAW, shift=FAILED)
    other = recorded(root, outcome_of(plan_for(RAW), RAW))
    failed.unlink()
    name = name_of(failed)
    assert step(verified(root, other))[1] == f"{name} was deleted: {name_of(other)} names it"
    with pytest.raises(BrokenRecordError, match=f"{name} is broken, step 'links': .* was deleted"):
        gather_evidence(layout_of(root)).require_sound()
    monkeypatch.chdir(root)
    assert main(["audit", "verify"]) == 11
    assert main(["trust"]) == 11
    assert f"{name} was deleted" in capsys.readouterr().out


def test_a_statement_that_was_changed_and_signed_again_is_named(tmp_path):
    root = repository(tmp_path, keys=[entry(), entry(OTHER, owner="somebody else")])
    plan = plan_for(RAW)
    commitment_file = committed(root, plan.commitment)
    started(root, plan)
    record = recorded(root, outcome_of(plan, RAW))
    # The same statement, by another key: its file has the same name.
    signed(root, plan.commitment, {}, OTHER)
    state, message = step(verified(root, record))
    assert state is StepState.DIFFERS
    assert message.startswith(f"{name_of(commitment_file)} was changed: ")


def test_deleting_the_newest_too_is_found_by_what_was_published(tmp_path, monkeypatch, capsys):
    root = repository(tmp_path)
    plan = begun(root, plan_for(RAW))
    failed = recorded(root, outcome_of(plan, RAW, FAILED))
    published = statements_file(read(root).history)[STATEMENTS_PATH]
    (root / "published.json").write_bytes(published)
    assert statements_in(published)[name_of(failed)]
    monkeypatch.chdir(root)
    check = ["audit", "verify", "--published", "published.json"]
    assert main(check) == 0
    # Whoever has the key takes the head back, and adds another record in its place.
    failed.unlink()
    recorded(root, outcome_of(plan, RAW))
    layout_of(root)
    assert main(["audit", "verify"]) == 0
    capsys.readouterr()
    assert main(check) == 11
    assert f"published.json were lost: {name_of(failed)} was deleted" in (capsys.readouterr().err)
    (root / "published.json").write_text("{}")
    assert main(check) == 3
    empty = {"schema_version": "1.0", "heads": {}, "statements": {}}
    (root / "published.json").write_text(json.dumps(empty))
    capsys.readouterr()
    assert main(check) == 3
    assert "it lists no statement, so nothing was compared" in capsys.readouterr().err


def test_a_time_before_what_the_commitment_comes_after_is_refused(tmp_path):
    root = repository(tmp_path)
    first = audited(root, RAW, SECOND)
    other = plan_for(AGAIN, FIRST, model_id="another")
    committed(root, other.commitment)
    started(root, other)
    dated = recorded(root, outcome_of(other, AGAIN))
    state, message = step(verified(root, dated))
    assert state is StepState.DIFFERS
    assert message.endswith(f"which was drawn after {moment_of(time_of_round(SECOND))}")
    assert step(verified(root, first))[0] is StepState.HOLDS


def test_a_record_needs_a_start_among_what_it_comes_after(tmp_path):
    root = repository(tmp_path)
    plan = plan_for(RAW)
    committed(root, plan.commitment)
    path = recorded(root, outcome_of(plan, RAW))
    assert step(verified(root, path)) == (
        StepState.UNKNOWN,
        "no signed start of the draw precedes the record",
    )


def test_who_says_when_a_commitment_became_public_is_named(tmp_path):
    root = repository(tmp_path)
    plan = plan_for(RAW)
    started(root, plan)
    path = recorded(root, outcome_of(plan, RAW))
    assert step(verified(root, path)) == (StepState.HOLDS, NO_SERVER_REMARK)
    started(root, plan, shown_on=COMMIT)
    again = recorded(root, outcome_of(plan, RAW).model_copy(update={"notes": []}))
    assert step(verified(root, again)) == (
        StepState.HOLDS,
        "GitHub dates the commitment: its digest is in a status of commit 0123456789ab",
    )


def test_a_commitment_that_was_never_drawn_blocks_the_next_one(tmp_path):
    root = repository(tmp_path)
    # The draw for the first version would have been public; it was passed over.
    skipped = committed(root, commitment(submission_bytes(" before")))
    path = audited(root, RAW, SECOND)
    state, message = step(verified(root, path))
    assert (state, message) == (
        StepState.DIFFERS,
        f"{name_of(skipped)} is a commitment of the same model id, and it was never drawn",
    )
    # Drawn late, its draw is one that the plan should have listed.
    started(root, plan_for(submission_bytes(" before"), FIRST), shown_on=COMMIT)
    verification = verified(root, path)
    assert step(verification)[0] is StepState.HOLDS
    assert step(verification, "earlier")[0] is StepState.DIFFERS


def test_one_that_names_old_heads_blocks_too_and_a_later_one_does_not(tmp_path):
    root = repository(tmp_path)
    skipped = committed(root, commitment(submission_bytes(" before")))
    plan = plan_for(RAW)
    start = AuditStart(schema_version="1.0", plan=plan, shown_on=COMMIT)
    start_file = signed(root, start, {})
    heads = {name_of(start_file): read(root).history.digests[name_of(start_file)]}
    path = signed(root, outcome_of(plan, RAW), heads)
    state, message = step(verified(root, path))
    assert (state, "never drawn" in message) == (StepState.UNKNOWN, True)
    skipped.unlink()
    assert verified(root, path).holds
    committed(root, commitment(submission_bytes(" after")))
    assert verified(root, path).holds


def test_the_draw_of_an_abort_is_drawn_again(tmp_path):
    root = repository(tmp_path)
    plan = begun(root, plan_for(RAW))
    path = aborted(root, plan)
    assert heads_of(root) == [name_of(path)]
    (root / f"submissions/{MODEL}.json").write_bytes(AGAIN)
    record = audited(root, AGAIN, SECOND)
    assert step(verified(root, record), "earlier") == (
        StepState.DIFFERS,
        f"the plan leaves out the earlier draw for commitment {plan.commitment_sha256[:16]}...",
    )


def test_what_names_nothing_counts_only_where_others_name_it(tmp_path):
    root = repository(tmp_path)
    old = put(root, outcome_of(plan_for(RAW), RAW))
    state, message = step(verified(root, old))
    assert (state, message.startswith("the record names no earlier statement")) == (
        StepState.HOLDS,
        True,
    )
    committed(root, commitment(AGAIN, model_id="another"))
    assert verified(root, old).holds
    late = put(root, outcome_of(plan_for(RAW), RAW, FAILED))
    assert step(verified(root, late)) == (
        StepState.DIFFERS,
        (
            "nothing shows when the record was made: it names no earlier statement, and the first "
            "statements that name others do not name it"
        ),
    )


def test_more_heads_than_a_statement_may_name_cannot_be_written(tmp_path):
    root = repository(tmp_path)
    heads = {f"m/{number:016x}.json": "0" * 64 for number in range(HEADS_MAX + 1)}
    with pytest.raises(ValueError, match="heads"):
        signed(root, commitment(RAW), heads)
    assert heads_for_statement(read(root)) == {}
