"""The outcome of a sweep is stated from what was done; what it left is named, and no success."""

import datetime as dt
import json

import pytest

from geneb_ci.github.reconcile import CHUNK, FAILED_MAX
from tests.github.conftest import CARD_PATH, REGULAR, sound, swept
from tests.github.refusals import Fault

OPEN, BEFORE = 110, 43
FIRST_REQUESTS = 5
"""Before any comment is read: main and its files, two pages of pull requests, those that wait."""
RESERVED_REQUESTS = 100
LATER = {"Retry-After": "900"}


@pytest.fixture
def crowd(place):
    """Open 110 pull requests that change a file of no submission, and give 50 their verdict."""
    place.server.is_graphql = False
    for n in range(OPEN):
        place.pull({f"notes/{n}.md": (REGULAR, b"%d\n" % n)})
    assert swept(place)[0] == 0
    return place


def test_a_sweep_that_the_limit_stopped_is_no_success(crowd):
    """It said that every open pull request has its verdict, with exit code 0."""
    crowd.server.charged = 0
    crowd.server.limit = FIRST_REQUESTS + BEFORE - 1 + RESERVED_REQUESTS - 1
    code, line, err = crowd.run("reconcile")
    assert (code, json.loads(line)["pulls"], json.loads(line)["waiting"]) == (3, [], 68)
    *_, counts, message, fix = err.splitlines()
    left = "43 to 110"
    assert counts == f"110 open pull requests: 42 have their verdict, 68 are left: {left}"
    assert message == (
        f"geneb-ci: 68 of 110 open pull requests were left: {left}: 99 requests are left in this "
        "hour, and 100 are kept for runs that events start"
    )
    until = dt.datetime.fromisoformat(
        fix.removeprefix("  fix: run `geneb-ci reconcile` after ")[:19]
    )
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    assert dt.timedelta(minutes=20) < until - now < dt.timedelta(minutes=31)
    # The next runs go on where it stopped, and say so once nothing is left.
    crowd.server.limit = 9999
    assert swept(crowd)[:2] == (0, list(range(51, 101)))
    assert swept(crowd)[:2] == (0, list(range(101, 111)))
    assert swept(crowd) == (0, [], "every open pull request has its verdict: 110\n")


@pytest.mark.nightly  # in the gate, it is reached before, above
def test_a_limit_that_is_reached_while_comments_are_read_is_no_success(crowd):
    """It ended with the limit alone: neither how many were left, nor what was found so far."""
    crowd.server.faults.append(
        Fault("GET", f"/issues/{BEFORE}/comments", 429, {"Retry-After": "900"})
    )
    code, line, err = crowd.run("reconcile")
    assert (code, json.loads(line)["waiting"]) == (3, 68)
    assert "68 of 110 open pull requests were left: 43 to 110: GitHub's" in err


def test_a_full_sweep_says_what_it_leaves_to_the_next(place):
    place.server.is_graphql = False
    for n in range(52):
        place.pull({f"notes/{n}.md": (REGULAR, b"")})
    code, numbers, err = swept(place)
    assert (code, len(numbers)) == (0, 50)
    assert err.endswith("52 open pull requests: 50 judged now, 2 are left: 51 to 52\n")


def test_without_a_pull_request_there_is_no_verdict_to_speak_of(place):
    repository = {"full_name": "org/board", "default_branch": "main"}
    number = place.pull(sound())
    place.server.pulls[number]["base"] = {"sha": place.base, "ref": "next", "repo": repository}
    code, _, err = place.run("reconcile")
    assert (code, err) == (0, "no pull request is open to main\n")


def test_the_report_of_a_limit_names_what_is_not_written(place):
    numbers = [place.pull(sound(f"model-{n}")) for n in range(3)]
    line = place.run("reconcile")[1]
    head = place.server.pulls[numbers[1]]["head"]["sha"]
    place.server.faults.append(
        Fault("POST", f"/statuses/{head}", 429, {"Retry-After": "900"}, times=9)
    )
    code, _, err = place.report(line)
    assert code == 3
    assert f"geneb-ci: {numbers[1]}, {numbers[2]}: GitHub's rate limit is reached until " in err


def test_a_dispute_outlives_a_sweep_that_gave_up_reading(place):
    """Those whose comments were not read were judged as if nobody had disputed them."""
    place.server.is_graphql = False
    place.server.rights = {"maintainer": "write"}
    failing = [place.pull(sound(f"failing-{n}")) for n in range(FAILED_MAX)]
    disputed = place.pull(sound())
    place.server.add_comment(disputed, {"id": 50, "login": "maintainer"}, "/dispute copied")
    swept(place)
    assert place.status(disputed)[0] == "pending"
    numbers = "|".join(map(str, failing))
    fault = Fault("GET", f"/issues/({numbers})/comments", 502, times=999)
    place.server.faults.append(fault)
    code, judged, err = swept(place)
    assert (code, judged) == (3, [])
    assert f"1 of {FAILED_MAX + 1} open pull requests was left: {disputed}: " in err
    assert place.status(disputed) == ("pending", "disputed by maintainer: copied")


@pytest.mark.parametrize("more", [["--pr"], ["--head-sha"]])
def test_a_dispute_outlives_a_run_of_one_whose_comments_cannot_be_read(place, more):
    """The verdict was computed as if nobody had disputed it, and passed."""
    place.server.rights = {"maintainer": "write"}
    number = place.pull(sound())
    place.server.add_comment(number, {"id": 50, "login": "maintainer"}, "/dispute copied")
    swept(place)
    files = place.files | sound() | {CARD_PATH: (REGULAR, b"New commits.")}
    head = place.server.pulls[number]["head"]["sha"] = place.server.commit(files, place.base)
    place.server.is_graphql = False
    place.server.faults.append(Fault("GET", f"/issues/{number}/comments", 502, times=3))
    code, out, err = place.run("reconcile", *more, str(number) if more == ["--pr"] else head)
    assert (code, out) == (3, "")
    assert err.startswith("geneb-ci: GitHub answered 502\n")


def test_a_sweep_keeps_its_reserve_while_it_judges(place):
    """It looked at what is left before the first pull request, and then used all of it."""
    for n in range(CHUNK):
        place.pull(sound(f"model-{n}"))
    place.server.is_graphql = False
    place.server.limit = 160
    code, line, err = place.run("reconcile")
    assert code == 3
    assert place.server.charged < place.server.limit - RESERVED_REQUESTS / 3
    assert "requests are left in this hour" in err
    assert 0 < len(json.loads(line)["pulls"]) < CHUNK
