"""Pull requests that cannot be read, in numbers: the others have their verdicts all the same."""

import hashlib

import pytest

from geneb_ci.github import reconcile, report
from geneb_ci.github.verdict import decide, model
from geneb_ci.github.verdict.model import OPEN_PULLS_MAX, PullOutcome
from geneb_ci.github.waiting_list import LISTED_PULLS_MAX, Wait, issue_text, read_waits
from tests.github.conftest import REGULAR, sound
from tests.github.history import git_sha
from tests.github.server import BOT
from tests.github.world import World
from tests.small import CARD

MANY = 105


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path / "board")


def flood(world: World, number: int) -> list[int]:
    """Open pull requests whose heads GitHub cannot find."""
    main = world.server.main_sha()
    return [
        world.server.open_pull(git_sha("commit", f"lost {n}".encode()), main) for n in range(number)
    ]


def test_a_hundred_unreadable_heads_hold_up_no_other(world):
    """From 81 on, those that had no place in the list ended every sweep."""
    honest = [world.open(sound(f"honest-{n}")) for n in range(2)]
    world.sweep()
    lost = flood(world, MANY)
    assert world.merge(honest[0])
    for _ in range(2):  # a sweep tries a hundred of those that are new
        world.sweep()
    assert world.state(honest[1]) == "success"
    new = world.open(sound("new"))
    world.sweep()
    assert world.state(new) == "success"
    assert set(read_waits(world.github()).waits) == set(lost)
    assert world.merge(honest[1])
    world.sweep(events=True)
    assert world.state(new) == "success"
    assert not world.is_stale(new)


def test_a_card_without_a_row_costs_no_other_its_verdict(world):
    """The job that writes refused its verdict, and with it those of all others, in every sweep."""
    card = world.open({"submissions/cards/new.md": (REGULAR, CARD.encode())})
    honest = world.open(sound("honest"))
    world.sweep()
    assert (world.state(card), world.state(honest)) == ("pending", "success")


def test_a_verdict_that_contradicts_itself_costs_no_other(world, monkeypatch):
    """A mistake of ours in one verdict is noted on that pull request."""
    wrong, honest = world.open(sound("wrong")), world.open(sound("honest"))
    plain = model.outcome_of
    outcomes = iter([PullOutcome.CHANGES_NEEDED])
    monkeypatch.setattr(
        decide, "outcome_of", lambda *one, **two: next(outcomes, None) or plain(*one, **two)
    )
    world.sweep()
    assert (world.state(wrong), world.state(honest)) == ("pending", "success")
    (wait,) = read_waits(world.github()).waits.values()
    assert (wait.number, "its findings give passed" in wait.reason) == (wrong, True)


@pytest.mark.parametrize("where", [(reconcile, "read_commands"), (report, "verdict_comment")])
def test_a_mistake_of_ours_about_one_costs_no_other(world, monkeypatch, where):
    """An exception on one of them ended the job."""
    first, honest = world.open(sound("first")), world.open(sound("honest"))
    plain, failures = getattr(*where), iter([ValueError("x\n::error::y")])

    def failing(*arguments, **named):
        if (error := next(failures, None)) is not None:
            raise error
        return plain(*arguments, **named)

    monkeypatch.setattr(*where, failing)
    world.sweep()
    assert (world.state(first) in {"", "pending"}, world.state(honest)) == (True, "success")
    (wait,) = read_waits(world.github()).waits.values()
    assert (wait.number, wait.reason) == (
        first,
        "geneb-ci failed on this pull request: ValueError: x\\n::error::y",
    )


def test_the_list_has_room_for_every_open_pull_request(world):
    waits = {
        n: Wait(
            number=n,
            head_sha=hashlib.sha1(b"%d" % n, usedforsecurity=False).hexdigest(),
            reason="é" + hashlib.sha512(b"%d" % n).hexdigest(),
            tries=n % 6 + 1,
            until=f"2026-11-{n % 28 + 1:02}T{n % 24:02}:{n % 60:02}:00Z",
        )
        for n in range(1, OPEN_PULLS_MAX + 1)
    }
    text = issue_text(waits)
    assert len(text) <= 65_536
    assert f"{OPEN_PULLS_MAX - LISTED_PULLS_MAX} more" in text
    world.server.issues[1] = {"number": 1, "body": text, "user": BOT, "state": "open"}
    result = read_waits(world.github()).waits
    assert {n: member.until for n, member in result.items()} == {
        n: w.until for n, w in waits.items()
    }
    assert result[1].reason == waits[1].reason
