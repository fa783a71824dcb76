"""What starts a verdict: the doorbell of a pull request, twice, and comments of anybody."""

import pytest

from tests.github.conftest import CARD_PATH, REGULAR, BoardCheckout, sound

MAINTAINER = {"id": 50, "login": "maintainer"}


def rung(board_checkout: BoardCheckout, number: int) -> str:
    """Ring for the head of a pull request, and write what came of it; return that."""
    code, line, err = board_checkout.run("reconcile", "--head-sha", head(board_checkout, number))
    assert code == 0, err
    if line:
        assert board_checkout.report(line)[0] == 0
    return line


def head(board_checkout: BoardCheckout, number: int) -> str:
    return str(board_checkout.server.pulls[number]["head"]["sha"])


@pytest.mark.parametrize(
    "row",
    [sound(), sound() | {CARD_PATH: (REGULAR, b"")}, {"README.md": (REGULAR, b"x")}],
    ids=["passes", "fails", "for a maintainer"],
)
def test_a_second_ring_for_a_head_takes_one_request_and_writes_nothing(board_checkout, row):
    """A run that needs no approval is requested, and completed a minute later."""
    number = board_checkout.pull(row)
    assert rung(board_checkout, number)
    board_checkout.server.requests.clear()
    assert rung(board_checkout, number) == ""
    ((verb, path),) = board_checkout.server.requests
    assert (verb, path.split("?")[0].endswith(f"{head(board_checkout, number)}/statuses")) == (
        "GET",
        True,
    )
    # New commits are another head.
    board_checkout.server.pulls[number]["head"]["sha"] = board_checkout.server.commit(
        board_checkout.files, board_checkout.base
    )
    assert rung(board_checkout, number)


def test_a_status_that_is_no_verdict_does_not_answer_a_ring(board_checkout):
    """Closed and opened again, or read in vain: the status says that there is no verdict."""
    number = board_checkout.pull(sound())
    assert rung(board_checkout, number)
    board_checkout.server.pulls[number]["state"] = "closed"
    code, line, _ = board_checkout.run("reconcile")
    assert code == 0
    assert board_checkout.report(line)[0] == 0
    assert board_checkout.status(number)[0] == "pending"
    board_checkout.server.pulls[number]["state"] = "open"
    assert rung(board_checkout, number)
    assert board_checkout.status(number)[0] == "success"


def test_a_status_of_another_name_is_no_verdict(board_checkout):
    number = board_checkout.pull(sound())
    board_checkout.server.statuses[head(board_checkout, number)] = [
        {"context": "ci", "state": "success", "description": "", "created_at": ""}
    ]
    assert rung(board_checkout, number)


def commented(
    board_checkout: BoardCheckout, number: int, text: str, login: str = "maintainer"
) -> str:
    """Comment, and do what the event of the comment starts; return the verdict, "" for none."""
    board_checkout.server.rights = {"maintainer": "write"}
    board_checkout.server.add_comment(number, MAINTAINER | {"login": login}, text)
    code, line, err = board_checkout.run("reconcile", "--commented", str(number))
    assert code == 0, err
    if line:
        assert board_checkout.report(line)[0] == 0
    return line


def test_a_command_has_its_effect_at_once(board_checkout):
    number = board_checkout.pull(sound())
    rung(board_checkout, number)
    assert commented(board_checkout, number, "/dispute copied")
    assert board_checkout.status(number) == ("pending", "disputed by maintainer: copied")
    assert commented(board_checkout, number, "/audit")
    assert "audit" in board_checkout.server.labels(number)
    assert commented(board_checkout, number, "/recheck")
    assert board_checkout.status(number)[0] == "success"
    # The event of a comment that a sweep was faster to read.
    assert not board_checkout.run("reconcile", "--commented", str(number))[1]


@pytest.mark.parametrize(
    ("text", "login"),
    [("/recheck", "stranger"), ("/help", "maintainer"), ("/dispute", "maintainer")],
)
def test_any_other_comment_costs_three_requests_at_most_and_no_verdict(board_checkout, text, login):
    number = board_checkout.pull(sound())
    rung(board_checkout, number)
    written = len(board_checkout.server.writes())
    board_checkout.server.requests.clear()
    assert commented(board_checkout, number, text, login) == ""
    assert len(board_checkout.server.requests) <= 3
    assert len(board_checkout.server.writes()) in {0, written}


def test_a_comment_on_what_is_closed_changes_nothing(board_checkout):
    number = board_checkout.pull(sound())
    rung(board_checkout, number)
    board_checkout.server.pulls[number]["state"] = "closed"
    assert commented(board_checkout, number, "/recheck") == ""
