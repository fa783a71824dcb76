"""What starts a verdict: the doorbell of a pull request, twice, and comments of anybody."""

import pytest

from tests.github.conftest import CARD_PATH, REGULAR, Place, sound

MAINTAINER = {"id": 50, "login": "maintainer"}


def rung(place: Place, number: int) -> str:
    """Ring for the head of a pull request, and write what came of it; return that."""
    code, line, err = place.run("reconcile", "--head-sha", head(place, number))
    assert code == 0, err
    if line:
        assert place.report(line)[0] == 0
    return line


def head(place: Place, number: int) -> str:
    return str(place.server.pulls[number]["head"]["sha"])


@pytest.mark.parametrize(
    "row",
    [sound(), sound() | {CARD_PATH: (REGULAR, b"")}, {"README.md": (REGULAR, b"x")}],
    ids=["passes", "fails", "for a maintainer"],
)
def test_a_second_ring_for_a_head_takes_one_request_and_writes_nothing(place, row):
    """A run that needs no approval is requested, and completed a minute later."""
    number = place.pull(row)
    assert rung(place, number)
    place.server.requests.clear()
    assert rung(place, number) == ""
    ((verb, path),) = place.server.requests
    assert (verb, path.split("?")[0].endswith(f"{head(place, number)}/statuses")) == ("GET", True)
    # New commits are another head.
    place.server.pulls[number]["head"]["sha"] = place.server.commit(place.files, place.base)
    assert rung(place, number)


def test_a_status_that_is_no_verdict_does_not_answer_a_ring(place):
    """Closed and opened again, or read in vain: the status says that there is no verdict."""
    number = place.pull(sound())
    assert rung(place, number)
    place.server.pulls[number]["state"] = "closed"
    code, line, _ = place.run("reconcile")
    assert code == 0
    assert place.report(line)[0] == 0
    assert place.status(number)[0] == "pending"
    place.server.pulls[number]["state"] = "open"
    assert rung(place, number)
    assert place.status(number)[0] == "success"


def test_a_status_of_another_name_is_no_verdict(place):
    number = place.pull(sound())
    place.server.statuses[head(place, number)] = [
        {"context": "ci", "state": "success", "description": "", "created_at": ""}
    ]
    assert rung(place, number)


def commented(place: Place, number: int, text: str, login: str = "maintainer") -> str:
    """Comment, and do what the event of the comment starts; return the verdict, "" for none."""
    place.server.rights = {"maintainer": "write"}
    place.server.add_comment(number, MAINTAINER | {"login": login}, text)
    code, line, err = place.run("reconcile", "--commented", str(number))
    assert code == 0, err
    if line:
        assert place.report(line)[0] == 0
    return line


def test_a_command_has_its_effect_at_once(place):
    number = place.pull(sound())
    rung(place, number)
    assert commented(place, number, "/dispute copied")
    assert place.status(number) == ("pending", "disputed by maintainer: copied")
    assert commented(place, number, "/audit")
    assert "audit" in place.server.labels(number)
    assert commented(place, number, "/recheck")
    assert place.status(number)[0] == "success"
    # The event of a comment that a sweep was faster to read.
    assert not place.run("reconcile", "--commented", str(number))[1]


@pytest.mark.parametrize(
    ("text", "login"),
    [("/recheck", "stranger"), ("/help", "maintainer"), ("/dispute", "maintainer")],
)
def test_any_other_comment_costs_three_requests_at_most_and_no_verdict(place, text, login):
    number = place.pull(sound())
    rung(place, number)
    written = len(place.server.writes())
    place.server.requests.clear()
    assert commented(place, number, text, login) == ""
    assert len(place.server.requests) <= 3
    assert len(place.server.writes()) in {0, written}


def test_a_comment_on_what_is_closed_changes_nothing(place):
    number = place.pull(sound())
    rung(place, number)
    place.server.pulls[number]["state"] = "closed"
    assert commented(place, number, "/recheck") == ""
