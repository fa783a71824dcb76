"""A board with an App: the App sets the status of verdicts, and no other status counts."""

import pytest

from tests.github.conftest import CARD_PATH, REGULAR, BoardCheckout, sound
from tests.github.server import BOT

APP = {"id": 9, "login": "board[bot]"}
APP_TOKEN = "ghs_app"  # noqa: S105 (of the loopback server)


@pytest.fixture
def app(board_checkout: BoardCheckout, monkeypatch: pytest.MonkeyPatch) -> BoardCheckout:
    """Lend a board whose workflow has minted a token of its App."""
    board_checkout.server.grants[APP_TOKEN] = frozenset({"statuses:write", "metadata:read"})
    board_checkout.server.accounts[APP_TOKEN] = APP
    monkeypatch.setenv("VERDICT_BOT", str(APP["id"]))
    monkeypatch.setenv("VERDICT_TOKEN", APP_TOKEN)
    return board_checkout


def creators(board_checkout: BoardCheckout, number: int) -> list[dict[str, object]]:
    """Return who set the statuses of a head, the last first."""
    head = board_checkout.server.pulls[number]["head"]["sha"]
    return [status["creator"] for status in board_checkout.server.statuses.get(head, [])]


def test_the_app_sets_the_status_and_our_own_account_comments(app):
    number = app.pull(sound())
    assert app.both(number)
    assert (app.status(number)[0], creators(app, number)) == ("success", [APP])
    # Once is enough: the sweep knows the App's status, and our comment.
    app.server.requests.clear()
    _, line, _ = app.run("reconcile")
    app.report(line)
    assert app.server.writes() == []


@pytest.mark.parametrize("state", ["success", "failure"])
def test_a_status_that_somebody_else_sets_does_not_count_and_is_replaced(app, state):
    """Whoever may write can set any status: a verdict that fails, shown as passed, or stuck."""
    number = app.pull(sound() | {CARD_PATH: (REGULAR, b"x" * 9)})
    app.both(number)
    judged, _ = app.status(number)
    head = app.server.pulls[number]["head"]["sha"]
    forged = {"context": "geneb/verdict", "state": state, "description": "", "creator": BOT}
    app.server.statuses[head].insert(0, forged | {"created_at": "2026-11-28T00:00:00Z"})
    code, line, err = app.run("reconcile")
    assert code == 0, err
    assert app.report(line)[0] == 0
    assert (app.status(number)[0], creators(app, number)[0]) == (judged, APP)


def test_statuses_of_before_the_app_are_set_again(board_checkout, monkeypatch):
    number = board_checkout.pull(sound())
    board_checkout.both(number)
    assert creators(board_checkout, number) == [BOT]
    board_checkout.server.grants[APP_TOKEN] = frozenset({"statuses:write", "metadata:read"})
    board_checkout.server.accounts[APP_TOKEN] = APP
    monkeypatch.setenv("VERDICT_BOT", "9")
    monkeypatch.setenv("VERDICT_TOKEN", APP_TOKEN)
    code, line, err = board_checkout.run("reconcile")
    assert code == 0, err
    assert board_checkout.report(line)[0] == 0
    assert creators(board_checkout, number) == [APP, BOT]


def test_without_a_token_of_the_app_the_comment_comes_and_the_status_does_not(app, monkeypatch):
    monkeypatch.setenv("VERDICT_TOKEN", "")
    number = app.pull(sound())
    _, line, _ = app.run("reconcile", "--pr", str(number))
    code, _, err = app.report(line)
    assert code == 2
    assert "the App that sets the status of verdicts gave no token" in err
    assert "install the App on this repository" in " ".join(err.split())
    assert app.comment(number)
    assert creators(app, number) == []


def test_an_account_that_is_no_number_is_refused(app, monkeypatch):
    monkeypatch.setenv("VERDICT_BOT", "board[bot]")
    code, _, err = app.run("reconcile")
    assert code == 2
    assert "VERDICT_BOT is 'board[bot]', expected the number of an account" in err
