"""Identity: another name, a copy of the weights or of the claims is still the same method."""

import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.commitment import (
    CLAIM_SCALE,
    Commitment,
    MethodIdentity,
    Weights,
    method_identity,
    same_method_reason,
)
from geneb_ci.audit.sampling.task_draw import earlier_draws
from tests.audit.examples import TASKS, commitment, draw_at, hexes
from tests.paths import ROOT

HONEST = random.Random(1).sample(range(20_000, 90_000), len(TASKS))
MANY = random.Random(4).sample(range(20_000, 90_000), 300)
OTHERS = random.Random(2).sample(range(20_000, 90_000), len(TASKS))


def code(name: str = "module") -> dict[str, object]:
    base = commitment().extractor.model_dump()
    return base | {"sha256": hexes(name), "tree": hexes(name), "shape": hexes(f"shape of {name}")}


def weights(**files: str) -> Weights:
    named = {name.replace("_", "."): hexes(text) for name, text in files.items()}
    return Weights(kind="huggingface", location="org/model", revision="0" * 40, files=named)


def method(model_id: str, module: str = "module", **changes: object) -> Commitment:
    return commitment(
        model_id=model_id, submission_sha256=hexes(model_id), extractor=code(module), **changes
    )


def same(own_commitment: Commitment, other: Commitment) -> str:
    assert same_method_reason(
        method_identity(own_commitment), method_identity(other)
    ) == same_method_reason(method_identity(other), method_identity(own_commitment))
    return same_method_reason(method_identity(own_commitment), method_identity(other))


def test_each_reason_by_itself():
    assert same(method("a"), method("a", "other")) == "of the same model id"
    assert same(method("a"), method("b")) == "of the same code, without weights"
    assert same(method("a"), method("b", "other")) == ""


def test_options_of_the_same_code_make_another_method():
    other = commitment(
        model_id="b", submission_sha256=hexes("b"), extractor=code() | {"options": {"k": "5"}}
    )
    assert same(method("a"), other) == ""


def test_a_shared_file_of_weights():
    test_method = method("a", weights=weights(model_safetensors="x", tokenizer_json="t"))
    two = method("b", "other", weights=weights(model_bin="x"))
    assert same(test_method, two) == "with a file of weights in common"
    # Models of a family share their tokenizer, and different weights may have the same code.
    three = method("c", weights=weights(model_safetensors="y", tokenizer_json="t"))
    assert same(test_method, three) == ""


def claimed(scores: list[int], **changes: object) -> Commitment:
    """Return a method with other code and weights, of which only the claims may be alike."""
    name = str(sum(scores)) + str(changes)
    own = weights(model_safetensors=name)
    return method(f"model-{hexes(name)[:8]}", name, weights=own, claims={"full": scores})


def test_one_changed_weight_and_another_name_do_not_hide_the_claims():
    # Another digest of the weights; the scores move as those of a rerun do.
    moved = [score + number % 2 * 40 for number, score in enumerate(HONEST)]
    assert same(claimed(HONEST), claimed(moved)) == "with nearly the same claims"
    raised = [score + 5_000 * (number < 8) for number, score in enumerate(HONEST)]
    assert same(claimed(HONEST), claimed(raised)) == "with nearly the same claims"
    assert same(claimed(HONEST), claimed(OTHERS)) == ""


def test_claims_that_each_name_moves_within_the_tolerance_are_still_one_method():
    """A weight and each claim are changed a little for each name, up to 0.008 either way."""
    moves = random.Random(3)
    names = [
        row(str(number), [score + moves.randint(-800, 800) for score in MANY])
        for number in range(5)
    ]
    reasons = {
        same_method_reason(first, other) for first, other in itertools.combinations(names, 2)
    }
    assert reasons == {"with nearly the same claims"}


def row(model_id: str, *scores: list[int]) -> MethodIdentity:
    claims = {str(number): score for number, score in enumerate(scores)}
    tasks = [str(number) for number in range(len(scores[0]))]
    return MethodIdentity(model_id, None, frozenset({model_id}), claims, tasks, "benchmark")


@pytest.mark.parametrize("left", [MANY, MANY[::-1]])
def test_a_task_that_one_row_lacks_does_not_shift_the_others(left):
    """Nor does another order: scores are compared task by task."""
    names = [str(number) for number in range(len(MANY))]
    whole = MethodIdentity("whole", None, frozenset({"x"}), {"full": MANY}, names, "benchmark")
    tasks = [names[MANY.index(score)] for score in left if score != MANY[0]]
    rest = [MANY[int(task)] for task in tasks]
    part = MethodIdentity("part", None, frozenset({"y"}), {"full": rest}, tasks, "benchmark")
    assert (
        same_method_reason(whole, part)
        == same_method_reason(part, whole)
        == "with nearly the same claims"
    )


@pytest.mark.parametrize(
    ("every", "apart", "reason"),
    [
        (8, 99, "with nearly the same claims"),
        (8, 100, ""),
        (3, 499, "with nearly the same claims"),
        (3, 500, ""),
    ],
)
def test_an_eighth_that_is_near_or_a_third_that_is_close_is_one_method(every, apart, reason):
    """Near is below 0.001, close below 0.005."""
    moved = [score + (apart if n % every == 0 else 4_000) for n, score in enumerate(MANY)]
    assert same_method_reason(row("one", MANY), row("other", moved)) == reason


@pytest.mark.parametrize(("close", "reason"), [(90, "with nearly the same claims"), (89, "")])
def test_claims_of_300_cells_are_close_from_90_on(close, reason):
    moved = [score + (400 if n < close else 4_000) for n, score in enumerate(MANY)]
    assert same_method_reason(row("one", MANY), row("other", moved)) == reason


def test_no_two_public_rows_are_one_method():
    rows = []
    for path in sorted((ROOT / "tests/public/submissions").glob("*.json")):
        cells = json.loads(path.read_bytes())["results"]
        scores = [
            [round(task["MCC"] * CLAIM_SCALE) for _, task in sorted(tasks.items())]
            for _, tasks in sorted(cells.items())
        ]
        rows.append(row(path.stem, *scores))
    assert len(rows) == 41
    assert not [pair for pair in itertools.combinations(rows, 2) if same_method_reason(*pair)]


def test_rounded_claims_need_more_cells_and_are_still_found():
    rounded = [round(score, -3) for score in HONEST]
    assert same(claimed(HONEST), claimed(rounded)) == "with nearly the same claims"
    # A third of the cells agrees by chance once they are rounded.
    third = [
        score if number % 3 == 0 else score + 4_000
        for number, score in enumerate(round(score, -3) for score in HONEST)
    ]
    assert same(claimed(rounded), claimed(third)) == ""


def test_too_few_claims_say_nothing():
    few = [*HONEST[:7], *[None] * 13]
    assert same(claimed(HONEST), method("b", "other", claims={"full": few})) == ""


def test_claims_of_another_benchmark_say_nothing():
    pin = commitment().benchmark.model_copy(update={"sha256": hexes("another")})
    other = method("b", "other", claims={"full": HONEST}, benchmark=pin)
    assert same(method("a", claims={"full": HONEST}), other) == ""


def test_sixteen_names_for_one_method_share_one_draw():
    plans = [draw_at(method("name-0"), 0)]
    for number in range(1, 16):
        own = method(f"name-{number}")
        history = earlier_draws(plans, own)
        assert {draw.commitment for draw in history} == {item.commitment_sha256 for item in plans}
        plans.append(draw_at(own, number, earlier=history))
    drawn = {task for plan in plans for task in plan.drawn}
    assert {chosen_task.task for chosen_task in plans[-1].chosen} == drawn


@given(st.lists(st.integers(-100_000, 100_000), min_size=20, max_size=20))
def test_every_row_is_a_copy_of_itself(scores):
    assert (
        same_method_reason(row("one", scores), row("copy", scores)) == "with nearly the same claims"
    )


def test_one_score_for_each_task():
    with pytest.raises(ValueError, match="claims must have one score for each task"):
        commitment(claims={"full": [1]})
