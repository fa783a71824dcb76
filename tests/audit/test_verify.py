"""Verification: records that somebody with a trusted key made up, refused step by step."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.compare.tolerance import tolerance_digest
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.verify import StepState, Verification
from geneb_ci.audit.sampling.plan import EarlierDraw, FallbackBeacon
from geneb_ci.audit.sampling.task_draw import draw_tasks
from geneb_ci.common.config import find_layout
from tests.audit.place import POLICY
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
    commitment,
    few_shot_of,
    mutated,
    outcome_of,
    plan_for,
    put,
    record_bytes,
    repository,
    submission_bytes,
)
from tests.small import BENCHMARK

RAW = submission_bytes()
PLAN = plan_for(RAW)
OUTCOME = outcome_of(PLAN, RAW)


def verified(root, raw: bytes) -> Verification:
    path = root / "record.json"
    path.write_bytes(raw)
    return AuditRepository(find_layout(root)).verification(path)


def refusal(verification: Verification) -> tuple[str, str]:
    first = verification.differs[0]
    return first.name, first.message


def _plan(value: dict[str, Any]) -> dict[str, Any]:
    plan: dict[str, Any] = value["predicate"]["plan"]
    return plan


def _later_round(value: dict[str, Any]) -> None:
    _plan(value)["beacon"]["round"] += 3


def _lower_k(value: dict[str, Any]) -> None:
    _plan(value)["chosen"].pop()
    value["predicate"]["tasks"].pop()


def _other_task(value: dict[str, Any]) -> None:
    left = {ticket["task"] for ticket in _plan(value)["tickets"]}
    spare = (left - {chosen_task["task"] for chosen_task in _plan(value)["chosen"]}).pop()
    _plan(value)["chosen"][0]["task"] = value["predicate"]["tasks"][0]["task"] = spare


def _relabel(value: dict[str, Any]) -> None:
    _plan(value)["chosen"][1]["reason"] = value["predicate"]["tasks"][1]["reason"] = "targeted"


def _swap_tickets(value: dict[str, Any]) -> None:
    _plan(value)["tickets"].reverse()


def _other_seed(value: dict[str, Any]) -> None:
    _plan(value)["seed"] = hashlib.sha256(b"a seed that is kinder").hexdigest()


def _other_commitment(value: dict[str, Any]) -> None:
    _plan(value)["commitment"]["policy"]["drawn"] = 1


def _flip_verdict(value: dict[str, Any]) -> None:
    value["predicate"]["verdict"] = "differs"


def _flip_cell(value: dict[str, Any]) -> None:
    value["predicate"]["tasks"][0]["regimes"]["full"]["verdict"] = "differs"


def _kinder_claim(value: dict[str, Any]) -> None:
    cell = value["predicate"]["tasks"][0]["regimes"]["full"]
    cell["claimed"] = cell["rescored"]


def _drop_task(value: dict[str, Any]) -> None:
    value["predicate"]["tasks"].pop()


def _drop_regime(value: dict[str, Any]) -> None:
    del value["predicate"]["tasks"][0]["regimes"]["1shot"]


def _canonical(value: dict[str, Any]) -> None:
    cell = value["predicate"]["tasks"][0]["regimes"]["full"]
    cell["canonical"] = {key: cell[key] for key in ("claimed", "rescored", "tolerance", "verdict")}


def _unconfined(value: dict[str, Any]) -> None:
    value["predicate"]["sandbox"] |= {"level": 0, "kind": "none", "escapes": []}


def _memorised(value: dict[str, Any]) -> None:
    value["predicate"]["decoys"]["memorised"] = True


def _traversal(value: dict[str, Any]) -> None:
    _plan(value)["commitment"]["model_id"] = "../../.github/workflows/x"
    value["subject"][0]["name"] = "../../.github/workflows/x.json"


def _early_start(value: dict[str, Any]) -> None:
    value["predicate"]["started_at"] = _plan(value)["committed_at"]


@pytest.mark.parametrize(
    ("change", "step", "message"),
    [
        (
            _later_round,
            "round",
            "the plan has round 126, expected 123 for a commitment at 2023-08-23T15:14:33Z",
        ),
        (_lower_k, "sample", "1 tasks are drawn, expected the 2 committed or more"),
        (_relabel, "sample", "1 tasks are drawn, expected the 2 committed or more"),
        (_other_task, "sample", "the drawn tasks are not those of the smallest tickets"),
        (_swap_tickets, "tickets", "the tickets do not follow from the seed"),
        (_other_seed, "seed", " of commitment and beacon"),
        (_other_commitment, "commitment", "the commitment has the digest"),
        (
            _flip_verdict,
            "comparison",
            "the whole audit: the verdict is 'differs', the numbers give",
        ),
        (_flip_cell, "comparison", "full: the verdict is 'differs', the numbers give 'agrees'"),
        (_memorised, "comparison", "the verdict is 'agrees', the numbers give 'differs'"),
        (_kinder_claim, "comparison", "the submission does not claim MCC"),
        (_drop_task, "comparison", "the tasks compared are not those of the plan"),
        (
            _drop_regime,
            "comparison",
            "is compared in ['10shot', 'full'], expected ['10shot', '1shot', 'full']",
        ),
        (_canonical, "comparison", "the canonical scores are not those that the submission claims"),
        (
            _unconfined,
            "sandbox",
            "the extractor ran at sandbox level 0, but the policy requires level 2 or above",
        ),
        (_traversal, "statement", '"../../.github/workflows/x" is not a model id'),
        (_early_start, "statement", "expected committed_at + 60 s <= started_at <= finished_at"),
    ],
)
def test_what_is_made_up_is_refused_at_its_step(tmp_path, change, step, message):
    verification = verified(repository(tmp_path), mutated(OUTCOME, change))
    assert refusal(verification)[0] == step
    assert message in refusal(verification)[1]
    assert not verification.holds


def test_a_plan_that_was_made_for_a_smaller_sample_is_refused_at_the_policy(tmp_path):
    policy = {**commitment(RAW).policy.model_dump(), "drawn": 1}
    outcome = outcome_of(plan_for(RAW, policy=policy), RAW)
    verification = verified(repository(tmp_path), record_bytes(outcome))
    assert [step.name for step in verification.differs] == ["policy"]
    assert refusal(verification)[1] == "the audit drew 1 task, but the policy requires 2"
    # The record itself is true, so that it may still dispute a row.
    assert verification.is_sound


def test_an_earlier_draw_that_is_left_out_is_named(tmp_path):
    root = repository(tmp_path)
    before = submission_bytes(" of before")
    first = plan_for(before)
    put(root, outcome_of(first, before))
    left_out = verified(root, record_bytes(outcome_of(plan_for(RAW, SECOND), RAW)))
    assert refusal(left_out)[0] == "earlier"
    assert first.commitment_sha256[:16] in refusal(left_out)[1]
    listed = (EarlierDraw(commitment=first.commitment_sha256, drawn=first.drawn),)
    union = verified(root, record_bytes(outcome_of(plan_for(RAW, SECOND, listed), RAW)))
    assert union.holds
    # Half of what was drawn is not what was drawn.
    half = (EarlierDraw(commitment=first.commitment_sha256, drawn=first.drawn[:1]),)
    short = verified(root, record_bytes(outcome_of(plan_for(RAW, SECOND, half), RAW)))
    assert refusal(short)[0] == "earlier"


def test_of_two_draws_in_one_second_the_listed_one_is_earlier_else_the_smaller_digest(tmp_path):
    raws = {plan_for(raw).commitment_sha256: raw for raw in (RAW, submission_bytes(" of twins"))}
    (small, first), (large, second) = sorted(raws.items())
    third = plan_for(submission_bytes(" of a third"))
    lists = {
        digest: (EarlierDraw(commitment=digest, drawn=plan_for(raw).drawn),)
        for digest, raw in raws.items()
    }
    lists["third"] = (EarlierDraw(commitment=third.commitment_sha256, drawn=third.drawn),)

    def state(own: bytes, listed: str, other: bytes, other_listed: str) -> StepState:
        root = repository(tmp_path / f"{listed}-{other_listed}-{own == first}")
        put(root, outcome_of(plan_for(other, earlier=lists.get(other_listed, ())), other))
        plan = plan_for(own, earlier=lists.get(listed, ()))
        steps = verified(root, record_bytes(outcome_of(plan, own))).steps
        return next(step.state for step in steps if step.name == "earlier")

    assert state(first, "", second, "") is StepState.HOLDS
    assert state(second, "", first, "") is StepState.DIFFERS
    assert state(second, small, first, "") is StepState.HOLDS
    assert state(second, "", first, large) is StepState.HOLDS
    # Whatever else the earlier one lists, it is earlier.
    assert state(second, "", first, "third") is StepState.DIFFERS


def test_an_earlier_task_that_is_not_rerun_is_refused_at_the_sample(tmp_path):
    before = plan_for(submission_bytes(" of before"))
    spare = [task for task in PLAN.commitment.tasks if task not in plan_for(RAW, SECOND).drawn]
    listed = (EarlierDraw(commitment=before.commitment_sha256, drawn=spare),)
    whole = outcome_of(plan_for(RAW, SECOND, listed), RAW)
    assert [chosen_task.reason for chosen_task in whole.plan.chosen] == [
        "drawn",
        "drawn",
        "earlier",
    ]
    verification = verified(repository(tmp_path), mutated(whole, _lower_k))
    assert refusal(verification)[0] == "sample"


def test_one_commitment_has_one_draw(tmp_path):
    root = repository(tmp_path)
    put(root, OUTCOME)
    verification = verified(root, record_bytes(outcome_of(plan_for(RAW, SECOND), RAW)))
    assert refusal(verification)[0] == "earlier"
    assert "this commitment already has a draw" in refusal(verification)[1]


def test_a_neighbour_that_cannot_be_read_leaves_its_draw_unknown(tmp_path):
    root = repository(tmp_path)
    path = put(
        root, outcome_of(plan_for(submission_bytes(" of before")), submission_bytes(" of before"))
    )
    path.write_bytes(path.read_bytes().replace(b"A", b"B", 1))
    verification = verified(root, record_bytes(OUTCOME))
    (unknown,) = [step for step in verification.steps if step.state is StepState.UNKNOWN]
    assert unknown.name == "earlier"
    assert unknown.message == f"{path.name} cannot be read, so its draw is not known"


def test_a_record_in_the_place_of_another_is_refused(tmp_path):
    root = repository(tmp_path)
    path = put(root, OUTCOME)
    other = path.with_name(f"{'0' * 16}.json")
    path.rename(other)
    verification = AuditRepository(find_layout(root)).verification(other)
    assert refusal(verification)[0] == "statement"
    assert (
        refusal(verification)[1]
        == f"the record is at {MODEL}/{other.name}, expected {MODEL}/{path.name}"
    )


def test_a_file_that_was_changed_after_the_audit_is_named(tmp_path):
    changed = json.loads(RAW)
    changed["results"]["full"]["promoter_tata"]["MCC"] += 0.03
    raw = json.dumps(changed).encode()
    verification = verified(repository(tmp_path, raw), record_bytes(OUTCOME))
    assert [step.name for step in verification.differs] == ["submission"]
    assert hashlib.sha256(raw).hexdigest() in refusal(verification)[1]
    assert "the file was changed after the audit" in verification.differs[0].fix


def test_a_file_that_is_not_here_leaves_its_step_open(tmp_path):
    root = repository(tmp_path)
    (root / f"submissions/{MODEL}.json").unlink()
    verification = verified(root, record_bytes(OUTCOME))
    assert not verification.differs
    assert [step.name for step in verification.steps if step.state is StepState.UNKNOWN] == [
        "submission"
    ]


@pytest.mark.parametrize(
    ("replaced_tasks", "steps"),
    [
        ((), ["benchmark", "harness"]),
        (BENCHMARK.task_ids, ["submission", "benchmark", "harness"]),
    ],
)
def test_another_benchmark_leaves_the_record_sound_and_stale(tmp_path, replaced_tasks, steps):
    root = repository(tmp_path)
    path = root / "schemas/benchmark.json"
    raw = path.read_bytes().replace(b"GENEB-0.1.0", b"GENEB-0.2.0")
    for task in replaced_tasks:
        raw = raw.replace(f'"{task}"'.encode(), f'"other_{task}"'.encode())
    path.write_bytes(raw)
    verification = verified(root, record_bytes(OUTCOME))
    assert [step.name for step in verification.differs] == steps
    assert verification.is_sound


KEY = "ab" * 32
KEY_SHA256 = hashlib.sha256(bytes.fromhex(KEY)).hexdigest()


@pytest.mark.parametrize(
    ("published", "revealed", "state"),
    [
        ("", True, StepState.DIFFERS),
        ("fallback_keys", False, StepState.UNKNOWN),
        ("fallback_keys", True, StepState.HOLDS),
        ("spent_keys", True, StepState.HOLDS),
    ],
)
def test_a_fallback_counts_under_a_published_and_revealed_key(tmp_path, published, revealed, state):
    root = repository(tmp_path)
    if published:
        policy = root / "leaderboard/policy/policy.toml"
        policy.write_text(f'{POLICY}{published} = ["{KEY_SHA256}"]\n')
    digest = bytes.fromhex(PLAN.commitment_sha256)
    beacon = FallbackBeacon(
        kind="hmac",
        key_sha256=KEY_SHA256,
        key=KEY if revealed else None,
        value=hmac.digest(bytes.fromhex(KEY), digest, "sha256").hex(),
        why="the relays were out of reach",
    )
    plan = draw_tasks(PLAN.commitment, PLAN.committed_at, beacon)
    outcome = _at_the_time_of(outcome_of(plan, RAW))
    verification = verified(root, record_bytes(outcome))
    (step,) = [step for step in verification.steps if step.name == "signature"]
    assert step.state is state
    assert verification.holds == (state is StepState.HOLDS)


def _at_the_time_of(outcome: AuditOutcome) -> AuditOutcome:
    times = {"started_at": OUTCOME.started_at, "finished_at": OUTCOME.finished_at}
    return outcome.model_copy(update=times)


def test_the_rounds_of_these_tests_are_in_order():
    assert FIRST < SECOND


FIVE_FITS = {"rows": 2000, "worse": 800, "better": 50}
TOO_MANY = {"rows": 200, "worse": 200, "better": 100}
NONE: dict[str, Any] = {"kinds": {}, "training": None, "others": {}}


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ({"memorised": True}, "memorised is True, which contradicts the numbers"),
        (
            {"others": {"1shot, record": {"fits": 5, "kinds": {"cropped": FIVE_FITS}}}},
            "memorised is False, which contradicts the numbers",
        ),
        (
            {"others": {"1shot, record": {"fits": 5, "kinds": {"cropped": TOO_MANY}}}},
            "variants: 1shot, record, cropped: 300 of 200 decisions changed",
        ),
        (
            {"tasks": {"t": NONE}},
            "the sums of the decisions of the tasks are not the decisions of all together",
        ),
        ({"tasks": {"t": NONE}} | NONE, "variants: their tasks are not those of the audit"),
        ({"rows": 1}, "1 sequences per task were varied, expected 2000"),
        (
            {"training": {"rows": 10, "worse": 6, "better": 6}},
            "variants: training: 12 of 10 decisions changed",
        ),
    ],
)
def test_what_variants_show_is_computed_again(tmp_path, variants, message):
    def change(statement: dict[str, Any]) -> None:
        statement["predicate"]["variants"].update(variants)

    verification = verified(repository(tmp_path), mutated(OUTCOME, change))
    assert [step.name for step in verification.differs] == ["comparison"]
    assert message in verification.differs[0].message


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([0.1] * 20, ""),
        ([0.0] * 20, "the whole audit: the verdict is 'agrees', the numbers give 'differs'"),
        ([0.1] * 19, "few-shot probes: 10shot: "),
    ],
)
def test_what_few_shot_probes_show_is_computed_again(tmp_path, others, message):
    def change(statement: dict[str, Any]) -> None:
        outcome = statement["predicate"]
        tasks = [task["task"] for task in outcome["tasks"]]
        outcome["few_shot"] = few_shot_of(tasks, others=others)

    verification = verified(repository(tmp_path), mutated(OUTCOME, change))
    assert [step.name for step in verification.differs] == ["comparison"] * bool(message)
    assert message in "".join(step.message for step in verification.differs)


@pytest.mark.parametrize(
    ("leave_out", "message"),
    [
        (lambda outcome: outcome.update(variants=None), "variants: no variant was embedded"),
        (lambda outcome: outcome.pop("few_shot"), "few-shot probes: no probe was fitted on other"),
    ],
)
def test_an_audit_that_leaves_a_defence_out_is_refused_unless_its_limits_are_earlier(
    tmp_path, leave_out, message
):
    root = repository(tmp_path)
    earlier = commitment(RAW).policy.model_dump() | {"tolerance": tolerance_digest()}
    cases: list[tuple[dict[str, Any], str]] = [({}, message), ({"policy": earlier}, "")]
    for changes, expected in cases:
        outcome = outcome_of(plan_for(RAW, **changes), RAW)
        raw = mutated(outcome, lambda statement: leave_out(statement["predicate"]))
        differing = verified(root, raw).differs
        assert [step.name for step in differing] == ["comparison"] * bool(expected)
        assert expected in "".join(step.message for step in differing)
