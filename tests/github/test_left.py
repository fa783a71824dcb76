"""The outcome of a sweep is stated from what was done; what it left is named, and no success."""

import datetime as dt
import json

import pytest

from geneb_ci.github.reconcile import FAILURES_MAX, PULLS_PER_BATCH
from tests.github.conftest import CARD_PATH, REGULAR, sound, swept
from tests.github.refusals import Fault

OPEN, BEFORE = 55, 43
FIRST_REQUESTS = 4
"""Before any comment is read: main and its files, the pull requests, those that wait."""
RESERVED_REQUESTS = 100
LATER = {"Retry-After": "900"}


@pytest.fixture
def crowd(board_checkout):
    """Open 55 pull requests that change a file of no submission, and give 50 their verdict."""
    board_checkout.server.is_graphql = False
    for n in range(OPEN):
        board_checkout.pull({f"notes/{n}.md": (REGULAR, b"%d\n" % n)})
    code, numbers, err = swept(board_checkout)
    assert (code, len(numbers)) == (0, 50)
    # A full sweep says what it leaves to the next.
    assert err.endswith("55 open pull requests: 50 judged now, 5 are left: 51 to 55\n")
    return board_checkout


def test_a_sweep_that_the_limit_stopped_is_no_success(crowd):
    """It said that every open pull request has its verdict, with exit code 0."""
    crowd.server.charged = 0
    crowd.server.limit = FIRST_REQUESTS + BEFORE - 1 + RESERVED_REQUESTS - 1
    code, line, err = crowd.run("reconcile")
    assert (code, json.loads(line)["pulls"], json.loads(line)["waiting"]) == (3, [], 13)
    *_, counts, message, fix = err.splitlines()
    left = "43 to 55"
    assert counts == f"55 open pull requests: 42 have their verdict, 13 are left: {left}"
    assert message == (
        f"geneb-ci: 13 of 55 open pull requests were left: {left}: 99 requests are left in this "
        "hour, and 100 are kept for runs that events start"
    )
    until = dt.datetime.fromisoformat(
        fix.removeprefix("  fix: run `geneb-ci reconcile` after ")[:19]
    )
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    assert dt.timedelta(minutes=20) < until - now < dt.timedelta(minutes=31)
    # The next runs go on where it stopped, and say so once nothing is left.
    crowd.server.limit = 9999
    assert swept(crowd)[:2] == (0, list(range(51, 56)))
    assert swept(crowd) == (0, [], "every open pull request has its verdict: 55\n")


@pytest.mark.nightly  # in the gate, it is reached before, above
def test_a_limit_that_is_reached_while_comments_are_read_is_no_success(crowd):
    """It ended with the limit alone: neither how many were left, nor what was found so far."""
    crowd.server.faults.append(
        Fault("GET", f"/issues/{BEFORE}/comments", 429, {"Retry-After": "900"})
    )
    code, line, err = crowd.run("reconcile")
    assert (code, json.loads(line)["waiting"]) == (3, 13)
    assert "13 of 55 open pull requests were left: 43 to 55: GitHub's" in err


def test_without_a_pull_request_there_is_no_verdict_to_speak_of(board_checkout):
    repository = {"full_name": "org/board", "default_branch": "main"}
    number = board_checkout.pull(sound())
    board_checkout.server.pulls[number]["base"] = {
        "sha": board_checkout.base,
        "ref": "next",
        "repo": repository,
    }
    code, _, err = board_checkout.run("reconcile")
    assert (code, err) == (0, "no pull request is open to main\n")


def test_the_report_of_a_limit_names_what_is_not_written(board_checkout):
    numbers = [board_checkout.pull(sound(f"model-{n}")) for n in range(3)]
    line = board_checkout.run("reconcile")[1]
    head = board_checkout.server.pulls[numbers[1]]["head"]["sha"]
    board_checkout.server.faults.append(
        Fault("POST", f"/statuses/{head}", 429, {"Retry-After": "900"}, times=9)
    )
    code, _, err = board_checkout.report(line)
    assert code == 3
    assert f"geneb-ci: {numbers[1]}, {numbers[2]}: GitHub's rate limit is reached until " in err


def test_a_dispute_outlives_a_sweep_that_gave_up_reading(board_checkout):
    """Those whose comments were not read were judged as if nobody had disputed them."""
    board_checkout.server.is_graphql = False
    board_checkout.server.rights = {"maintainer": "write"}
    failing = [board_checkout.pull(sound(f"failing-{n}")) for n in range(FAILURES_MAX)]
    disputed = board_checkout.pull(sound())
    board_checkout.server.add_comment(
        disputed, {"id": 50, "login": "maintainer"}, "/dispute copied"
    )
    swept(board_checkout)
    assert board_checkout.status(disputed)[0] == "pending"
    numbers = "|".join(map(str, failing))
    fault = Fault("GET", f"/issues/({numbers})/comments", 502, times=999)
    board_checkout.server.faults.append(fault)
    code, judged, err = swept(board_checkout)
    assert (code, judged) == (3, [])
    assert f"1 of {FAILURES_MAX + 1} open pull requests was left: {disputed}: " in err
    assert board_checkout.status(disputed) == ("pending", "disputed by maintainer: copied")


@pytest.mark.parametrize("more", [["--pr"], ["--head-sha"]])
def test_a_dispute_outlives_a_run_of_one_whose_comments_cannot_be_read(board_checkout, more):
    """The verdict was computed as if nobody had disputed it, and passed."""
    board_checkout.server.rights = {"maintainer": "write"}
    number = board_checkout.pull(sound())
    board_checkout.server.add_comment(number, {"id": 50, "login": "maintainer"}, "/dispute copied")
    swept(board_checkout)
    files = board_checkout.files | sound() | {CARD_PATH: (REGULAR, b"New commits.")}
    head = board_checkout.server.pulls[number]["head"]["sha"] = board_checkout.server.commit(
        files, board_checkout.base
    )
    board_checkout.server.is_graphql = False
    board_checkout.server.faults.append(Fault("GET", f"/issues/{number}/comments", 502, times=3))
    code, out, err = board_checkout.run(
        "reconcile", *more, str(number) if more == ["--pr"] else head
    )
    assert (code, out) == (3, "")
    assert err.startswith("geneb-ci: GitHub answered 502\n")


def test_a_sweep_keeps_its_reserve_while_it_judges(board_checkout):
    """It looked at what is left before the first pull request, and then used all of it."""
    for n in range(PULLS_PER_BATCH):
        board_checkout.pull(sound(f"model-{n}"))
    board_checkout.server.is_graphql = False
    board_checkout.server.limit = 160
    code, line, err = board_checkout.run("reconcile")
    assert code == 3
    assert board_checkout.server.charged < board_checkout.server.limit - RESERVED_REQUESTS / 3
    assert "requests are left in this hour" in err
    assert 0 < len(json.loads(line)["pulls"]) < PULLS_PER_BATCH
