"""The issue on the health of the Space: one is opened, updated, closed; none beside it."""

from tests.github.server import BOT, STRANGER

RUN = "https://github.com/org/board/actions/runs/1"


def test_one_issue_is_opened_updated_and_closed(board_checkout):
    messages = []
    for result in ("success", "failure", "failure", "success", "success", "failure"):
        code, _, err = board_checkout.run("report", "--health", result, "--run", RUN)
        assert code == 0, err
        messages.append(err.strip())
    nothing = "nothing to write"
    assert messages == [
        *(nothing, "issue opened", "issue updated", "issue closed", nothing, "issue opened")
    ]
    states = [issue["state"] for issue in board_checkout.server.issues.values()]
    assert states == ["closed", "open"]
    (_, last) = board_checkout.server.issues.values()
    assert RUN in last["body"]


def test_an_issue_of_a_stranger_is_not_taken_for_ours(board_checkout):
    body = "<!-- geneb-ci:health:1 -->\nmine"
    board_checkout.server.issues[1] = {
        "number": 1,
        "user": STRANGER,
        "state": "open",
        "body": body,
        "title": "",
    }
    assert board_checkout.run("report", "--health", "failure")[0] == 0
    assert board_checkout.server.issues[1]["body"] == body
    assert [issue["user"] for issue in board_checkout.server.issues.values()] == [STRANGER, BOT]
