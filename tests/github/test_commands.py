"""Commands in comments: of people who may write, found by the sweep, each obeyed once."""

import pytest

from geneb_ci.github.commands import REFUSED_COMMANDS_MAX
from geneb_ci.github.waiting_list import LONGEST_WAIT
from tests.github.conftest import sound
from tests.github.refusals import Fault
from tests.github.text import calm
from tests.github.world import World

MAINTAINER = {"id": 50, "login": "maintainer"}


@pytest.fixture
def world(tmp_path) -> World:
    new_world = World(tmp_path / "board")
    new_world.server.rights |= {"maintainer": "write", "reader": "read"}
    return new_world


def say(world: World, number: int, body: str, **user: object) -> None:
    world.server.add_comment(number, MAINTAINER | user, body)


def test_a_dispute_takes_the_pass_back_until_a_recheck(world):
    number = world.open(sound())
    world.sweep()
    assert world.state(number) == "success"
    say(world, number, "/dispute the weights are another model's @everyone")
    world.sweep()
    (last, *_) = world.server.statuses[world.server.pulls[number]["head"]["sha"]]
    assert (last["state"], last["description"]) == (
        "pending",
        "disputed by maintainer: the weights are another model's @everyone",
    )
    body = world.server.comments[number][0]["body"]
    assert "Disputed by `maintainer`: `the weights are another model's" in body
    assert calm(body)
    # New commits do not end it.
    world.push(number, sound())
    world.sweep()
    assert world.state(number) == "pending"
    assert not world.merge(number)
    say(world, number, "/recheck")
    world.sweep()
    assert world.state(number) == "success"
    written = len(world.server.writes())
    world.sweep()
    assert len(world.server.writes()) == written


def test_an_audit_is_asked_for(world):
    number = world.open(sound())
    world.sweep()
    say(world, number, "/audit\nThe jump in promoters is large.")
    world.sweep()
    assert world.state(number) == "success"
    assert "`maintainer` asked for an audit" in world.server.comments[number][0]["body"]
    assert "audit" in world.server.labels(number)
    # The label is set once: the audit takes it away, and new commits do not ask again.
    world.server.pulls[number]["labels"] = [{"name": "geneb: passed"}]
    world.push(number, sound())
    world.sweep()
    assert world.server.labels(number) == ["geneb: passed"]


@pytest.mark.parametrize(
    ("body", "login"),
    [
        ("/dispute x", "reader"),
        ("/dispute x", "stranger"),
        ("/dispute", "maintainer"),
        ("please /dispute x", "maintainer"),
        ("> /dispute x", "maintainer"),
        ("```\n/dispute x\n```", "maintainer"),
        ("`/dispute x`", "maintainer"),
        ("<!--\n/dispute x\n-->", "maintainer"),
        ("/Dispute x", "maintainer"),
        ("/disputed x", "maintainer"),
        ("/recheck; rm", "a\nb"),
        ("/dispute x", "maintainer[bot]"),
    ],
)
def test_what_is_no_command_of_theirs_changes_nothing(world, body, login):
    number = world.open(sound())
    world.sweep()
    written = len(world.server.writes())
    say(world, number, body, login=login)
    world.sweep()
    assert world.state(number) == "success"
    assert len(world.server.writes()) == written


def test_rights_that_were_taken_away_count_no_more(world):
    """Rights are those of the moment at which a sweep reads the command."""
    number = world.open(sound())
    world.sweep()
    say(world, number, "/dispute x")
    world.server.rights["maintainer"] = "read"
    world.sweep()
    assert world.state(number) == "success"


def test_a_comment_that_is_edited_after_it_was_read_is_no_command(world):
    number = world.open(sound())
    world.sweep()
    say(world, number, "Thank you.")
    say(world, number, "/recheck")
    world.sweep()
    for comment in world.server.comments[number]:
        if comment["body"] == "Thank you.":
            comment["body"] = "/dispute x"
    world.sweep()
    assert world.state(number) == "success"


def test_a_dispute_with_signs_that_a_status_cannot_have_takes_the_pass_back(world):
    """GitHub refused the status, and the pull request went on to pass."""
    number = world.open(sound())
    world.sweep()
    say(world, number, "/dispute copied \U0001f41b from another")
    world.sweep()
    last = world.server.statuses[world.server.pulls[number]["head"]["sha"]][0]
    assert (last["state"], last["description"]) == (
        "pending",
        "disputed by maintainer: copied \ufffd from another",
    )


def test_an_audit_does_not_end_a_dispute(world):
    number = world.open(sound())
    world.sweep()
    say(world, number, "/dispute fake")
    world.sweep()
    say(world, number, "/audit")
    world.sweep()
    assert world.state(number) == "pending"
    assert "audit" in world.server.labels(number)
    body = world.server.comments[number][0]["body"]
    assert "Disputed by `maintainer`: `fake`" in body
    assert "`maintainer` asked for an audit" in body
    assert not world.merge(number)
    # Nor does a second one, or both before one sweep.
    say(world, number, "/audit")
    world.sweep()
    assert world.state(number) == "pending"
    say(world, number, "/recheck")
    world.sweep()
    assert world.state(number) == "success"


@pytest.mark.parametrize("others", [5, 120])
@pytest.mark.parametrize("has_command", [True, False])
def test_comments_of_others_hide_no_command(world, others, has_command):
    """Who is a member is not asked: GitHub shows a private membership to no token of Actions."""
    number = world.open(sound())
    world.sweep()
    say(world, number, "/dispute fake" if has_command else "Hm.")
    for n in range(others):
        say(world, number, f"Nice ({n}).", id=7, login="stranger")
    world.sweep()
    assert world.state(number) == ("pending" if has_command else "success")
    # Read once: our comment notes how far, and a sweep with nothing new asks for no comment.
    before = len(world.server.requests)
    world.sweep()
    requests = world.server.requests[before:]
    assert [path for _, path in requests if path.split("?")[0].endswith("/comments")] == []


def test_many_comments_before_ours_hide_no_command(world):
    """Ours is not among the first ones then, and no command was read on that pull request."""
    number = world.open(sound())
    for n in range(25):
        say(world, number, f"Nice ({n}).", id=7, login="stranger")
    world.sweep()
    assert world.state(number) == "success"
    say(world, number, "/dispute fake")
    world.sweep()
    assert world.state(number) == "pending"
    say(world, number, "/recheck")
    world.sweep()
    assert world.state(number) == "success"


def test_commands_of_strangers_cost_requests_once(world):
    number = world.open(sound())
    world.sweep()

    def permission_requests() -> int:
        before = len(world.server.requests)
        world.sweep()
        return sum("/collaborators/" in path for _, path in world.server.requests[before:])

    for n in range(REFUSED_COMMANDS_MAX + 1):
        say(world, number, "/dispute x", id=100 + n, login=f"stranger-{n}")
    assert [permission_requests(), permission_requests()] == [REFUSED_COMMANDS_MAX + 1, 0]
    assert world.state(number) == "success"


def test_where_comments_cannot_be_read_nothing_passes(world):
    number = world.open(sound())
    world.sweep()
    for n in range(3_100):
        say(world, number, f"Nice ({n}).", id=7, login="stranger")
    world.sweep()
    assert world.state(number) == "pending"
    (issue,) = world.server.issues.values()
    assert f"| #{number} |" in issue["body"]


def test_a_command_is_not_lost_where_rights_cannot_be_asked(world):
    number = world.open(sound())
    world.sweep()
    say(world, number, "/dispute fake")
    world.server.faults.append(Fault("GET", "/collaborators/", 502, times=3))
    world.sweep()
    world.clock += LONGEST_WAIT
    world.sweep()
    assert world.state(number) == "pending"
    assert not world.merge(number)
