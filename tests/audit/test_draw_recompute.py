"""A plan is recomputed step by step; a change anywhere is refused, and its step is named."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.canonical import DRAW_STEPS
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.sampling.plan import EarlierDraw, TaskPlan
from geneb_ci.audit.sampling.task_draw import check_task_plan
from tests.audit.examples import (
    ROUNDS,
    TASKS,
    VECTORS,
    commitment,
    hexes,
    plan,
    stratified,
)
from tests.audit.place import put
from tests.each import each

EARLIER = [EarlierDraw(commitment=hexes("an earlier one"), drawn=[*TASKS[:6], "gone-since"])]
FULL = plan(earlier=EARLIER, targeted=TASKS[-4:])
Document = dict[str, Any]


@pytest.mark.parametrize(
    "sound",
    [
        plan(),
        plan(drawn=9),
        plan(drawn=len(TASKS)),
        plan(stratified()),
        plan(stratified(), drawn=11, targeted=["task-01"]),
        FULL,
    ],
    ids=["plain", "raised", "all", "strata", "strata raised", "earlier and targeted"],
)
def test_a_sound_plan_passes(sound):
    check_task_plan(sound)
    check_task_plan(TaskPlan.model_validate_json(sound.model_dump_json()))


def changed(change: Callable[[Document], None], of: TaskPlan = FULL) -> TaskPlan:
    document = of.model_dump()
    change(document)
    return TaskPlan.model_validate(document)


def refused(wrong: TaskPlan) -> StepMismatch:
    with pytest.raises(StepMismatch) as caught:
        check_task_plan(wrong)
    assert caught.value.message.startswith(f"{caught.value.step}: ")
    assert caught.value.step in DRAW_STEPS
    return caught.value


def resealed(change: Callable[[Document], None], of: TaskPlan) -> TaskPlan:
    """Change a commitment and publish the digest of what it is now."""

    def both(document: Document) -> None:
        change(document["commitment"])
        wrong = type(of.commitment).model_validate(document["commitment"])
        document["commitment_sha256"] = wrong.sha256

    return changed(both, of)


def bit_flipped(digest: str) -> str:
    return f"{int(digest[0], 16) ^ 1:x}{digest[1:]}"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all texts, numbers and booleans of the commitment."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key], (*path, key))]
    if isinstance(value, list):
        return [leaf for k, member in enumerate(value) for leaf in leaves(member, (*path, k))]
    return [] if value is None else [path]


COMMITTED_SUFFIX = [path for path in leaves(FULL.commitment.model_dump()) if path != ("protocol",)]
HEX = {"sha256", "tree", "submission_sha256", "tolerance", "revision"}


@each("path", COMMITTED_SUFFIX, ids=lambda path: "/".join(map(str, path)))
def test_each_field_of_the_commitment_is_held_by_its_digest(path):
    def change(document: Document) -> None:
        node = document["commitment"]
        for key in path[:-1]:
            node = node[key]
        value = node[path[-1]]
        if isinstance(value, bool):
            node[path[-1]] = not value
        elif isinstance(value, int):
            node[path[-1]] = value + 1
        elif path[-1] == "kind":
            node[path[-1]] = "url"
        else:
            node[path[-1]] = bit_flipped(value) if path[-1] in HEX else f"{value}x"

    assert refused(changed(change)).step == "commitment"


def swapped(document: Document) -> None:
    document["tickets"][3:5] = reversed(document["tickets"][3:5])


def another_drawn(document: Document) -> None:
    """Take a task of a larger ticket in place of a drawn one."""
    document["chosen"][0]["task"] = document["tickets"][-1]["task"]


def drawn_swapped(document: Document) -> None:
    document["chosen"][:2] = reversed(document["chosen"][:2])


@each(
    ("change", "step", "message"),
    [
        (put("commitment_sha256", "0" * 64), "commitment", ", expected 000"),
        (put("committed_at", "2026-09-17T15:22:43Z"), "round", "expected 32285087"),
        (put("committed_at", "2026-09-17T15:22:39Z"), "round", "expected 32285085"),
        (put("committed_at", "2020-01-01T00:00:00Z"), "round", "older than the beacon"),
        (put("committed_at", "2026-02-30T00:00:00Z"), "round", "is not a time"),
        (put("beacon", "round", 32_285_083), "round", "the plan has round 32285083"),
        (put("beacon", "round", 32_285_089), "round", "the plan has round 32285089"),
        (put("beacon", "chain", "0" * 64), "round", "not that of drand quicknet"),
        (put("beacon", "signature", ROUNDS[32_285_085]), "signature", "not that of round"),
        (put("beacon", "signature", bit_flipped(FULL.seed) + "0" * 32), "signature", "point"),
        (put("seed", bit_flipped(FULL.seed)), "seed", " of commitment and beacon"),
        (put("tickets", 4, "ticket", "0" * 64), "tickets", FULL.tickets[4].task),
        (put("tickets", 4, "task", "other"), "tickets", "'other'"),
        (swapped, "tickets", FULL.tickets[4].task),
        (lambda d: d["tickets"].pop(), "tickets", "one for each task"),
        (lambda d: d["tickets"].append(d["tickets"][0]), "tickets", "one for each task"),
        (
            lambda d: d["chosen"].pop(0),
            "sample",
            "4 tasks are drawn, expected the 5 committed or more",
        ),
        (another_drawn, "sample", "not those of the smallest tickets"),
        (drawn_swapped, "sample", "in the order of their tickets"),
        (put("earlier", []), "sample", "earlier draws add []"),
        (put("earlier", 0, "drawn", ["task-07"]), "sample", "earlier draws add ['task-07']"),
        (put("earlier", 0, "commitment", FULL.commitment_sha256), "sample", "own draw"),
        (lambda d: d["chosen"].pop(6), "sample", "earlier draws add"),
        (put("chosen", -1, "task", "unknown"), "sample", "is not in the commitment"),
        (lambda d: d["chosen"].append(d["chosen"][-1]), "sample", "is listed twice"),
        (
            lambda d: d["chosen"].insert(0, d["chosen"].pop()),
            "sample",
            "expected drawn tasks, then earlier ones",
        ),
    ],
)
def test_a_change_is_refused_and_its_step_named(change, step, message):
    refusal = refused(changed(change))
    assert refusal.step == step
    assert message in refusal.message


@given(st.integers(0, 767), st.sampled_from(["seed", "commitment_sha256"]))
def test_a_flipped_bit_of_a_digest_is_refused(bit, name):
    def change(document: Document) -> None:
        document[name] = f"{int(document[name], 16) ^ (1 << bit % 256):064x}"

    assert refused(changed(change)).step in {"seed", "commitment"}


def test_fewer_places_than_strata():
    few = stratified(drawn=2)
    wrong = changed(lambda d: d["chosen"].pop(), plan(few))
    assert refused(wrong).step == "sample"
    lone = resealed(put("policy", "drawn", 1), plan(few))
    assert refused(lone).step == "seed"


def test_a_lowered_sample_is_refused_though_it_is_a_prefix():
    lowered = plan(commitment(policy={"drawn": 3}))
    refusal = refused(changed(put("commitment", commitment().model_dump()), lowered))
    assert refusal.step == "commitment"


def test_the_signature_of_another_key_is_refused():
    other = VECTORS["test_key"]["rounds"][0]["signature"]
    assert refused(changed(put("beacon", "signature", other))).step == "signature"
