"""Earlier draws: each counts once, none is lost, and the union only grows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.sampling.embedding_draw import draw_embeddings, earlier_embedding_draws
from geneb_ci.audit.sampling.plan import (
    DrandBeacon,
    EarlierDraw,
    EmbeddingPlan,
    TaskPlan,
)
from geneb_ci.audit.sampling.task_draw import (
    draw_tasks,
    earlier_draws,
    earlier_sample_size,
    require_one_draw,
)
from geneb_ci.common.errors import UsageProblem
from geneb_ci.receipt.draw import EmbeddingCounts
from tests.audit.examples import COMMITTED_AT, TASKS, beacon, commitment, hexes, plan

T = [f"2026-09-17T15:22:4{number}Z" for number in range(10)]


def pushed(number: int, at: str = COMMITTED_AT, **options) -> TaskPlan:
    """Return the plan for one version of the submission."""
    version = commitment(submission_sha256=hexes(f"version {number}"))
    return draw_tasks(version, at, beacon(), **options)


def test_each_earlier_draw_is_listed_by_its_commitment():
    first, two = pushed(1, T[1]), pushed(2, T[2])
    assert earlier_draws([two, first], commitment()) == [
        EarlierDraw(commitment=first.commitment_sha256, drawn=first.drawn),
        EarlierDraw(commitment=two.commitment_sha256, drawn=two.drawn),
    ]


def test_earlier_draws_of_earlier_draws_are_not_lost():
    pushed_plan = pushed(1, T[1])
    two = pushed(2, T[2], earlier=earlier_draws([pushed_plan], commitment()))
    assert earlier_draws([two], commitment()) == earlier_draws([pushed_plan, two], commitment())


def test_a_raised_draw_counts_as_a_whole():
    small, large = pushed(1, T[1]), pushed(1, T[1], drawn=9)
    for plans in ([small, large], [large, small]):
        (earlier_draw,) = earlier_draws(plans, commitment())
        assert sorted(earlier_draw.drawn) == sorted(large.drawn)


def test_targeted_tasks_were_not_drawn():
    aimed = pushed(1, T[1], targeted=list(TASKS))
    (earlier_draw,) = earlier_draws([aimed], commitment())
    assert earlier_draw.drawn == aimed.drawn
    assert len(earlier_draw.drawn) == 5


def test_other_models_have_no_part():
    code = commitment().extractor.model_copy(update={"sha256": hexes("another")})
    other = draw_tasks(commitment(model_id="another", extractor=code), T[1], beacon())
    assert earlier_draws([other], commitment()) == []


def test_another_name_for_the_same_code_is_no_other_model():
    other = draw_tasks(commitment(model_id="another"), T[1], beacon())
    assert [earlier_draw.commitment for earlier_draw in earlier_draws([other], commitment())] == [
        other.commitment_sha256
    ]


def rows() -> EmbeddingPlan:
    """Return a draw of rows for the same commitment as `plan`."""
    expected = EmbeddingCounts(test=9, training=3, support=9, whole=False)
    return draw_embeddings(commitment(), COMMITTED_AT, beacon(), hexes("root"), expected)


@pytest.mark.parametrize("mine", [plan(), rows()], ids=["tasks", "rows"])
def test_one_draw_for_one_commitment(mine):
    assert not earlier_draws([mine], commitment())
    assert not earlier_embedding_draws([mine], commitment())
    kind, other = (
        (TaskPlan, EmbeddingPlan) if isinstance(mine, TaskPlan) else (EmbeddingPlan, TaskPlan)
    )
    require_one_draw(kind, [mine], commitment(), COMMITTED_AT)
    require_one_draw(kind, [mine], commitment(model_id="another"), "2026-09-17T15:22:43Z")
    require_one_draw(other, [mine], commitment(), "2026-09-17T15:22:43Z")
    with pytest.raises(AuditRefused) as caught:
        require_one_draw(kind, [mine], commitment(), "2026-09-17T15:22:43Z")
    assert caught.value.message == f"this commitment already has a draw, as of {COMMITTED_AT}"


def test_what_was_drawn_before_for_this_commitment():
    assert earlier_sample_size([], commitment()) == 0
    assert earlier_sample_size([pushed(1, drawn=12), plan(), plan(drawn=9)], commitment()) == 9


def test_tasks_of_earlier_draws_come_after_the_drawn_ones():
    first_plan = plan()
    undrawn = [task for task in TASKS if task not in first_plan.drawn]
    again = EarlierDraw(commitment=hexes("old"), drawn=[*first_plan.drawn, *undrawn[:2], "gone"])
    two = plan(
        earlier=[again], targeted=[undrawn[0], undrawn[3], undrawn[3], first_plan.drawn[0], "gone"]
    )
    assert two.drawn == first_plan.drawn
    assert [(c.task, c.reason) for c in two.chosen[len(first_plan.drawn) :]] == [
        *((task, "earlier") for task in ordered(first_plan, undrawn[:2])),
        (undrawn[3], "targeted"),
    ]


def ordered(task_plan: TaskPlan, tasks: list[str]) -> list[str]:
    return [ticket.task for ticket in task_plan.tickets if ticket.task in tasks]


@pytest.mark.parametrize("drawn", [0, 4, 21])
def test_a_sample_is_never_lowered(drawn):
    with pytest.raises(UsageProblem, match="the commitment has 20 tasks, and requires at least 5"):
        plan(drawn=drawn)


@given(st.lists(st.binary(min_size=48, max_size=48), min_size=1, max_size=8, unique=True))
def test_the_union_only_grows(signatures):
    """Whatever the beacon says, a push adds to what is rerun and takes nothing away."""
    plans: list[TaskPlan] = []
    before: set[str] = set()
    for number, signature in enumerate(signatures):
        version = commitment(submission_sha256=hexes(f"version {number}"))
        source = DrandBeacon(kind="drand", chain=beacon().chain, round=1, signature=signature.hex())
        at = f"2026-09-17T15:22:{number:02}Z"
        drawn_tasks = draw_tasks(version, at, source, earlier=earlier_draws(plans, version))
        rerun = {chosen_task.task for chosen_task in drawn_tasks.chosen}
        assert before <= rerun
        assert set(drawn_tasks.drawn) <= rerun
        plans.append(drawn_tasks)
        before = rerun
