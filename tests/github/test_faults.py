"""Input 62 of the corpus, and every way in which GitHub says no: bounded, and never twice."""

import datetime as dt
import re
import time

import pytest

from geneb_ci.github.api import connect
from geneb_ci.github.waiting_list import read_waits
from tests.github.conftest import BoardCheckout, sound
from tests.github.refusals import Fault
from tests.github.server import BOT, READ, TOKEN, WRITE


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that commands wait, one number each time; none of them pass."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def only_the_list(board_checkout: BoardCheckout) -> list[int]:
    """Return the pull requests that wait; nothing else was written."""
    assert {path for _, path in board_checkout.server.writes()} == {"/repos/org/board/issues"}
    with connect(None) as github:
        return list(read_waits(github).waits)


def line_of(board_checkout: BoardCheckout, number: int) -> str:
    code, line, err = board_checkout.run("reconcile", "--pr", str(number))
    assert code == 0, err
    return line


@pytest.mark.parametrize(
    "fault",
    [
        Fault(
            "GET",
            "/compare/",
            403,
            {"Retry-After": "1"},
            "You have exceeded a secondary rate limit",
        ),
        Fault(
            "GET", "/compare/", 403, {}, "You have exceeded a secondary rate limit. Please wait."
        ),
        Fault("GET", "/compare/", 429, {"Retry-After": "1"}, "slow down"),
        Fault("GET", "/compare/", 502),
        Fault("GET", "/git/blobs/", 503, times=2),
        Fault("GET", "/pulls/1", 500),
    ],
    ids=["secondary", "secondary-no-header", "429", "502", "503-twice", "500"],
)
def test_62_reading_goes_on_after_a_fault(board_checkout, fault, waits):
    number = board_checkout.pull(sound())
    board_checkout.server.faults.append(fault)
    assert board_checkout.verdict(number)["outcome"] == "passed"
    assert fault.times == 0
    assert sum(waits) >= float(fault.headers.get("Retry-After", 0))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault("GET", "/compare/", 502, times=99), "GitHub answered 502"),
        (
            Fault("GET", "/compare/", 403, {"Retry-After": "900"}, "You have exceeded a secondary"),
            "GitHub's rate limit is reached until ",
        ),
        (
            Fault("GET", "/compare/", 429, {"Retry-After": "900"}, "slow"),
            "GitHub's rate limit is reached until ",
        ),
        (Fault("GET", "/compare/", 429, {}, "slow", 99), "GitHub's rate limit is reached until "),
        (
            Fault("GET", "/compare/", 418, {}, "a\x1b[2J ##[error]"),
            "GitHub refused the request (418): a\\x1b[2J ",
        ),
    ],
    ids=["502", "secondary", "429", "429-no-header", "unknown"],
)
def test_62_a_fault_that_stays_ends_the_run_and_says_so(board_checkout, fault, message):
    number = board_checkout.pull(sound())
    board_checkout.server.faults.append(fault)
    code, out, err = board_checkout.run("reconcile", "--pr", str(number))
    assert (code, out) == (3, "")
    assert err.startswith(f"geneb-ci: {message}")
    assert re.search("  fix: .*run the command again", err)
    assert "##[" not in err
    assert sum("/compare/" in path for _, path in board_checkout.server.requests) <= 3


@pytest.mark.parametrize("skew", [-7200.0, 0.0, 7200.0], ids=["behind", "right", "ahead"])
def test_62_the_limit_of_the_hour_is_told_by_githubs_clock(board_checkout, skew):
    number = board_checkout.pull(sound())
    board_checkout.server.limit = 2
    board_checkout.server.skew = skew
    code, out, err = board_checkout.run("reconcile", "--pr", str(number))
    assert (code, out) == (3, "")
    assert err.startswith("geneb-ci: GitHub's rate limit is reached until ")
    reset_time = dt.datetime.fromisoformat(err.split("until ")[1][:19] + "+00:00")
    right = dt.datetime.fromtimestamp(time.time() + skew + 1800, dt.UTC)
    assert abs(reset_time - right) < dt.timedelta(minutes=10)


@pytest.mark.parametrize("status", [500, 502, 504, 0], ids=["500", "502", "504", "hung-up"])
@pytest.mark.parametrize("done", [True, False], ids=["though-done", "not-done"])
def test_62_a_comment_is_never_posted_twice(board_checkout, status, done):
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    board_checkout.server.faults.append(Fault("POST", "/comments", status, done=done))
    assert board_checkout.report(line)[0] == 0
    assert board_checkout.comment(number).startswith("<!-- geneb-ci:verdict:1 ")
    posts = [path for verb, path in board_checkout.server.writes() if path.endswith("/comments")]
    assert len(posts) == (1 if done else 2)


def test_62_a_comment_that_github_gave_back_changed_is_still_ours(board_checkout):
    """GitHub may cut blanks and change line ends; a stranger's copy of it is not taken for it."""
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    board_checkout.server.faults.append(Fault("POST", "/comments", 502, done=True))

    def changed(verb: str, _path: str) -> None:
        for comment in board_checkout.server.comments[number] if verb == "GET" else ():
            comment["body"] = "\r\n".join(comment["body"].strip().splitlines())

    board_checkout.server.before = changed
    assert board_checkout.report(line)[0] == 0
    assert board_checkout.report(line)[0] == 0
    assert len(board_checkout.server.comments[number]) == 1
    assert len(board_checkout.server.writes()) == 3


@pytest.mark.parametrize("path", ["/labels", "/statuses/"])
def test_62_a_write_of_unknown_outcome_is_not_repeated_in_the_same_run(board_checkout, path):
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    board_checkout.server.faults.append(Fault("POST", path, 502, done=True))
    code, _, err = board_checkout.report(line)
    assert code == 3
    assert err.startswith("geneb-ci: 1: GitHub answered 502\n")
    assert sum(path in requests for _, requests in board_checkout.server.writes()) == 1
    assert board_checkout.report(line)[0] == 0
    assert board_checkout.server.labels(number) == ["geneb: passed"]
    board_checkout.comment(number)


@pytest.mark.parametrize("skew", [-7200.0, 0.0, 7200.0], ids=["behind", "right", "ahead"])
def test_62_a_limit_that_passes_soon_is_never_waited_for_by_our_own_clock(
    board_checkout, skew, waits
):
    """GitHub's clock is two hours from ours: the wait is of seconds, or the run ends at once."""
    number = board_checkout.pull(sound())
    board_checkout.server.skew = skew
    headers = {
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(time.time() + skew) + 1),
    }
    board_checkout.server.faults.append(
        Fault("GET", "/compare/", 403, headers, "API rate limit exceeded")
    )
    code, _, err = board_checkout.run("reconcile", "--pr", str(number))
    assert sum(waits) < 10
    assert code == 0 or "until " in err


def test_62_a_comment_that_github_keeps_failing_on_is_made_good_later(board_checkout):
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    board_checkout.server.faults.append(Fault("POST", "/comments", 502, times=2))
    code, _, err = board_checkout.report(line)
    assert code == 3
    assert err == (
        "geneb-ci: 1: GitHub answered 502\n  fix: run the command again; nothing is written twice\n"
    )
    assert board_checkout.report(line)[0] == 0
    board_checkout.comment(number)


@pytest.mark.parametrize("headers", [{"Retry-After": "1"}, {}], ids=["header", "no-header"])
def test_62_a_write_that_a_limit_refused_is_written_once(board_checkout, headers, waits):
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    message = "You have exceeded a secondary rate limit. Please wait a few minutes"
    board_checkout.server.faults.append(Fault("POST", "/comments", 403, headers, message))
    assert board_checkout.report(line)[0] == 0
    board_checkout.comment(number)
    assert sum(waits) >= float(headers.get("Retry-After", 0))


def test_62_a_page_of_comments_that_is_missing_stops_the_report(board_checkout):
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    for n in range(150):
        board_checkout.server.add_comment(number, {"id": 9, "login": "x"}, f"comment {n}")
    board_checkout.server.faults.append(
        Fault("GET", r"/comments\?.*page=2", 404, message="Not Found")
    )
    code, _, err = board_checkout.report(line)
    assert code == 2
    assert "GitHub finds no such repository, pull request or commit" in err
    assert only_the_list(board_checkout) == [number]
    # On the second page, ours is found, and edited rather than doubled.
    board_checkout.report(line)
    board_checkout.server.comments[number][-1]["body"] += "edited by hand"
    board_checkout.report(line)
    assert "edited by hand" not in board_checkout.comment(number)


def test_a_flood_of_comments_ends_in_a_message(board_checkout):
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    board_checkout.server.comments[number] = [
        {"id": n, "user": {"id": 9, "login": "x"}, "body": "x"} for n in range(3001)
    ]
    code, _, err = board_checkout.report(line)
    assert code == 3
    assert "GitHub lists more than the 3,000 entries" in err
    assert only_the_list(board_checkout) == [number]


def test_no_token(board_checkout, monkeypatch):
    monkeypatch.setenv("GH_TOKEN", "")
    code, out, err = board_checkout.run("reconcile", "--pr", "1")
    assert (code, out) == (2, "")
    assert err == (
        "geneb-ci: GH_TOKEN is not set: a GitHub token is required\n"
        "  fix: export GH_TOKEN=$(gh auth token), or in a workflow: GH_TOKEN: ${{ github.token }}\n"
    )
    assert board_checkout.server.requests == []


def test_a_token_that_github_does_not_know(board_checkout, monkeypatch):
    monkeypatch.setenv("GH_TOKEN", "ghp_expired")
    code, _, err = board_checkout.run("triage", "--no-cache")
    assert code == 2
    assert err == (
        "geneb-ci: GitHub rejected the token (401)\n"
        "  fix: set GH_TOKEN to a valid token: export GH_TOKEN=$(gh auth token); in a workflow, "
        "renew the token or the App that the job uses\n"
    )
    assert "ghp_expired" not in err


@pytest.mark.parametrize(
    ("granted", "scope"),
    [
        (READ, "pull_requests=write"),
        (READ | {"pull_requests:write"}, "statuses=write"),
    ],
)
def test_a_token_without_a_scope_names_it(board_checkout, granted, scope):
    number = board_checkout.pull(sound())
    line = line_of(board_checkout, number)
    board_checkout.server.permissions = granted
    code, _, err = board_checkout.report(line)
    assert code == 2
    assert "the token lacks a permission: Resource not accessible by integration" in err
    assert f"  fix: grant the token {scope}\n" in err


@pytest.mark.parametrize(
    ("granted", "scope"),
    [
        (READ - {"contents:read"}, "contents=read"),
        (READ - {"pull_requests:read"}, "pull_requests=read"),
    ],
)
def test_a_token_that_may_not_read_says_what_it_lacks(board_checkout, granted, scope):
    number = board_checkout.pull(sound())
    board_checkout.server.permissions = granted
    code, out, err = board_checkout.run("reconcile", "--pr", str(number))
    assert (code, out) == (2, "")
    assert err == (
        "geneb-ci: the token lacks a permission: Resource not accessible by integration\n"
        f"  fix: grant the token {scope}\n"
    )


def test_a_repository_that_is_not_there(board_checkout):
    code, _, err = board_checkout.run("reconcile", "--repo", "org/other", "--pr", "1")
    assert code == 2
    assert err == (
        "geneb-ci: org/other: GitHub finds no such repository, pull request or commit (404)\n"
        "  fix: check --repo and the number or commit that was passed; for a private repository, "
        "use a token with read access\n"
    )


@pytest.mark.parametrize("name", ["", "board", "a/b/c", "../x", "o/r?x=1", "o /r"])
def test_a_name_that_is_no_repository(board_checkout, monkeypatch, name):
    monkeypatch.setenv("GITHUB_REPOSITORY", name)
    code, _, err = board_checkout.run("triage")
    assert code == 2
    assert "  fix: pass --repo OWNER/NAME\n" in err
    assert board_checkout.server.requests == []


def test_nobody_listens(board_checkout, monkeypatch):
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    code, _, err = board_checkout.run("reconcile", "--pr", "1")
    assert code == 3
    assert err.startswith("geneb-ci: GitHub did not answer: ConnectionError\n")


def test_the_token_is_never_printed(board_checkout):
    number = board_checkout.pull(sound())
    board_checkout.server.faults.append(Fault("GET", "/compare/", 418, message="no"))
    outputs = [board_checkout.run("reconcile", "--pr", str(n)) for n in (number, number)]
    assert TOKEN not in str(outputs)
    assert board_checkout.server.permissions == WRITE
    assert BOT["id"] == 41898282
