"""The fallback for the beacon: a published key, a reason, and a value anybody can check later."""

import hashlib
import hmac

import pytest

from geneb_ci.audit.commitment import BenchmarkPin
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.sampling.beacon import (
    fallback_value,
    practice_beacon,
    verify_fallback,
)
from geneb_ci.audit.sampling.design import seed_of
from geneb_ci.audit.sampling.plan import FallbackBeacon
from geneb_ci.audit.sampling.task_draw import check_task_plan, draw_tasks
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK
from geneb_ci.common.errors import UsageProblem
from tests.audit.examples import COMMITTED_AT, ROUND, commitment, hexes

KEY = hexes("the key of an epoch")
PUBLISHED = hashlib.sha256(bytes.fromhex(KEY)).hexdigest()
C = commitment()
WHY = "no relay since 2026-11-20T08:30:00Z"


def substitute(*, reveal: bool = False) -> FallbackBeacon:
    return fallback_value(C.sha256, KEY, [PUBLISHED], f" {WHY}\n", reveal=reveal)


def test_the_value_is_the_hmac_of_the_commitment():
    value = hmac.new(bytes.fromhex(KEY), bytes.fromhex(C.sha256), hashlib.sha256).hexdigest()
    assert substitute().model_dump() == {
        "kind": "hmac",
        "key_sha256": PUBLISHED,
        "key": None,
        "value": value,
        "why": WHY,
    }
    assert substitute(reveal=True).key == KEY


@pytest.mark.parametrize("reveal", [False, True])
def test_a_plan_by_the_substitute_is_recomputed(reveal):
    source = substitute(reveal=reveal)
    plan = draw_tasks(C, COMMITTED_AT, source)
    assert plan.seed == seed_of(C.sha256, bytes.fromhex(source.value))
    check_task_plan(plan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": hexes("another key")}, "not the key whose digest the plan names"),
        ({"key_sha256": hexes("another key")}, "not the key whose digest the plan names"),
        ({"value": hexes("a wish")}, "not the HMAC-SHA256 of the commitment under the key"),
    ],
)
def test_a_revealed_key_has_to_fit(change, message):
    wrong = FallbackBeacon.model_validate(substitute(reveal=True).model_dump() | change)
    with pytest.raises(StepMismatch) as caught:
        check_task_plan(draw_tasks(C, COMMITTED_AT, wrong))
    assert caught.value.step == "signature"
    assert message in caught.value.message


def test_a_value_for_another_commitment_is_refused():
    with pytest.raises(StepMismatch, match="not the HMAC-SHA256 of the commitment"):
        verify_fallback(substitute(reveal=True), hexes("another commitment"))


@pytest.mark.parametrize("why", ["", "  \n"])
def test_a_reason_has_to_be_given(why):
    with pytest.raises(UsageProblem, match="--why is missing"):
        fallback_value(C.sha256, KEY, [PUBLISHED], why)


@pytest.mark.parametrize("published", [[], [hexes("another")], [KEY]])
def test_a_key_that_was_not_published_is_refused(published):
    with pytest.raises(UsageProblem, match=f"{PUBLISHED}, which is not among fallback_keys"):
        fallback_value(C.sha256, KEY, published, WHY)


@pytest.mark.parametrize("key", ["", "ab", KEY.upper(), KEY + "0", "g" * 64])
def test_what_is_no_key(key):
    with pytest.raises(UsageProblem, match="not 64 hex digits"):
        fallback_value(C.sha256, key, [PUBLISHED], WHY)


MINI = shipped_benchmark(PRACTICE_BENCHMARK)
PIN = BenchmarkPin(
    name=MINI.name,
    sha256=MINI.sha256,
    dataset=MINI.dataset.repo_id,
    revision=MINI.dataset.revision,
)


def test_a_practice_value_decides_for_the_practice_benchmark():
    of = commitment(benchmark=PIN)
    plan = draw_tasks(of, COMMITTED_AT, practice_beacon(ROUND, PIN.sha256))
    check_task_plan(plan)
    other = draw_tasks(of, COMMITTED_AT, practice_beacon(ROUND + 1, PIN.sha256))
    with pytest.raises(StepMismatch, match=f"round {ROUND + 1}, expected {ROUND}"):
        check_task_plan(other)
    wrong = plan.beacon.model_copy(update={"value": hexes("chosen")})
    with pytest.raises(StepMismatch, match="the value is not the practice value of round"):
        check_task_plan(draw_tasks(of, COMMITTED_AT, wrong))


def test_a_practice_value_decides_for_no_other_benchmark():
    with pytest.raises(UsageProblem, match="which is only allowed for GENEB-mini"):
        practice_beacon(ROUND, C.benchmark.sha256)
    plan = draw_tasks(C, COMMITTED_AT, practice_beacon(ROUND, PIN.sha256))
    with pytest.raises(StepMismatch, match="only valid for the practice benchmark") as caught:
        check_task_plan(plan)
    assert caught.value.step == "signature"
