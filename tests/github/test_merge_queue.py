"""Groups of a merge queue: records beside rows, and groups whose verdict main overtook."""

import pytest

from geneb_ci.github.api import COMMENTS_PAGES_MAX
from geneb_ci.github.reconcile import group_verdict
from tests.audit.recorded import outcome_of
from tests.github.audit_flow import committed, flow, founded
from tests.github.conftest import REGULAR, sound
from tests.github.server import BOT, STRANGER
from tests.github.test_motion import copied
from tests.github.world import World
from tools.rehearse import row

__all__ = ["committed", "flow", "founded"]


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path / "board")


def judged(flow, *words: str) -> str:
    """Run the two jobs; return the state of the verdict on the commit named last."""
    code, line, err = flow.run("reconcile", *words)
    assert code == 0, err
    code, _, err = flow.run("report", VERDICT=line.strip())
    assert code == 0, err
    statuses = flow.forge.statuses[words[-1]] if words[0] == "--group" else []
    return statuses[0]["state"] if statuses else ""


@pytest.mark.parametrize("shift", [0.0, 0.05], ids=["row and record", "record alone"])
def test_a_group_with_audit_records_passes(flow, shift: float):
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    code, err = flow.delivered(order, outcome_of(order.plan, flow.raw(order), shift=shift))
    assert code == 0, err
    flow.forge.known_labels = None
    judged(flow, "--pr", str(number + 1))
    group = flow.forge.make_group(number + 1)
    assert judged(flow, "--group", group) == "success"


def test_a_group_that_main_overtook_gets_its_verdict_from_the_next_sweep(world):
    member, two = world.open(sound("one")), world.open(sound("two"))
    world.sweep()
    first = world.queue(member)
    second = world.queue(two, first)
    world.write(group_verdict(world.github(), world.layout, first))
    late = group_verdict(world.github(), world.layout, second)
    world.merge_group(first, member)
    world.write(late)
    assert world.status(second) == ""
    world.sweep(events=True)  # the push of the merge starts it
    assert world.status(second) == "success"
    assert world.merge_group(second, two)
    assert world.errors_of_main() == []
    written = len(world.server.writes())
    world.sweep()
    assert len(world.server.writes()) == written


def test_two_rows_of_one_group_are_compared_with_each_other(world):
    """Both passed when neither knew the other: the group holds what no verdict of one could."""
    first, two = world.open(sound("copycat")), world.open(sound("CopyCat"))
    world.sweep()
    world.server.pulls[first]["state"] = "closed"
    world.sweep()
    world.server.pulls[first]["state"] = "open"
    assert (world.state(first), world.state(two)) == ("pending", "success")  # the comment passes
    group = world.queue(two, world.queue(first))
    world.write(group_verdict(world.github(), world.layout, group))
    assert world.status(group) == "failure"
    assert world.server.statuses[group][0]["description"] == "open-collision"


def test_a_pull_request_that_cannot_be_read_stops_no_group(world):
    """One with more comments than can be read kept every group from its verdict."""
    first, other = world.open(sound("one")), world.open(sound("other"))
    world.sweep()
    for n in range(COMMENTS_PAGES_MAX * 100 + 1):
        world.server.add_comment(other, STRANGER, f"Nice ({n}).")
    ours = next(c for c in world.server.comments[other] if c["user"] == BOT)
    world.server.comments[other].remove(ours)
    world.server.comments[other].append(ours)  # not among the first
    group = world.queue(first)
    world.write(group_verdict(world.github(), world.layout, group))
    assert world.status(group) == "success"


def test_a_group_may_contain_copies(world):
    """Whatever an older pull request lacks."""
    world.open(sound("older") | {"submissions/older.json": (REGULAR, b"{}")})
    first, two = world.open(sound("first")), world.open(copied("second", "first"))
    world.sweep()
    group = world.queue(two, world.queue(first))
    world.write(group_verdict(world.github(), world.layout, group))
    assert world.status(group) == "success"
