"""How often GitHub is asked: a pull request takes 13 requests, 3 of them writes; 200 new ones
stay below the 1,000 of an hour."""

import json

import pytest

from geneb_ci.github.one_line import BYTES_MAX
from geneb_ci.github.reconcile import RESERVED_REQUESTS
from geneb_ci.github.verdict.model import PULLS_MAX
from geneb_ci.github.verdict.verdict_line import decode
from tests.github.conftest import CARD_PATH, REGULAR, Place, sound
from tests.github.server import REPOSITORY

HOUR = 1000
REQUESTS_MAX = 150  # of a sweep in which two of a hundred have new commits
OPEN = 200


@pytest.mark.parametrize(("arguments", "asked"), [(["--pr"], 0), (["--head-sha"], 1)])
def test_one_pull_request_takes_thirteen_requests(place, arguments, asked):
    """And a ring one more: whether its head has a verdict."""
    number = place.pull(sound())
    named = str(number) if arguments == ["--pr"] else place.server.pulls[number]["head"]["sha"]
    code, line, _ = place.run("reconcile", *arguments, named)
    assert code == 0
    assert len(place.server.requests) == 8 + asked
    assert place.report(line)[0] == 0
    assert len(place.server.requests) == 13 + asked
    assert len(place.server.writes()) == 3
    # Again, with nothing new: the head of main, and what is there, but no write.
    assert place.report(line)[0] == 0
    assert len(place.server.requests) == 15 + asked
    assert len(place.server.writes()) == 3


@pytest.mark.parametrize("before", [["help wanted"], ["geneb: passed", "dataset"]])
def test_a_second_verdict_takes_no_more(place, before):
    """New commits and another outcome: where a label goes, all are read again before that."""
    number = place.pull(sound())
    place.both(number)
    broken = place.files | sound() | {CARD_PATH: (REGULAR, b"")}
    pull = place.server.pulls[number]
    pull["head"]["sha"] = place.server.commit(broken, place.base)
    pull["labels"] = [{"name": name} for name in before]
    place.server.requests.clear()
    place.both(number)
    again = int("geneb: passed" in before)
    assert (len(place.server.requests), len(place.server.writes())) == (13 + again, 3)
    place.both(number)
    assert len(place.server.writes()) == 3


@pytest.fixture
def crowd(place):
    """Open 200 pull requests, none with a verdict."""
    for n in range(OPEN):
        place.pull(sound(f"model-{n}"))
    return place


def swept(place: Place) -> list[int]:
    """Run one sweep, both jobs, and return the numbers that got a verdict."""
    code, line, err = place.run("reconcile")
    assert code == 0, err
    assert len(line) <= BYTES_MAX
    assert place.report(line)[0] == 0
    return [pull.number for pull in decode(line, REPOSITORY).pulls]


def requests_after_two_pushes(place: Place, pushed: list[int]) -> int:
    """Push to these pull requests, sweep, and return how many requests of any kind that took."""
    server = place.server
    for number in pushed:
        head = f"{server.pulls[number]['head']['sha']}-again"
        server.pulls[number]["head"]["sha"] = server.commit(place.files | sound(head), place.base)
    before = len(server.requests)
    assert sorted(swept(place)) == pushed
    return len(server.requests) - before


@pytest.mark.nightly
def test_200_new_pull_requests_have_their_verdict_after_an_hour(crowd):
    """Four sweeps in an hour, the longest waiting first, in fewer than 1,000 requests."""
    server = crowd.server
    server.limit = HOUR
    judged = [swept(crowd) for _ in range(4)]
    assert [len(numbers) for numbers in judged] == [PULLS_MAX] * 4
    assert sorted(number for numbers in judged for number in numbers) == list(range(1, OPEN + 1))
    assert {len(server.comments[n]) for n in server.pulls} == {1}
    assert {crowd.status(n)[0] for n in server.pulls} == {"success"}
    assert server.charged < HOUR - RESERVED_REQUESTS
    assert server.charged + server.queried < HOUR
    # A sweep with nothing to do: lists, main, what is said, and nothing written.
    server.limit, before, written = 5000, server.charged, len(server.writes())
    assert swept(crowd) == []
    assert (server.charged - before, len(server.writes()) - written) == (6, 0)
    assert requests_after_two_pushes(crowd, [3, OPEN // 2]) <= REQUESTS_MAX


@pytest.mark.parametrize("is_graphql", [True, False], ids=["graphql", "rest"])
def test_a_sweep_asks_for_what_changed_and_not_for_each_that_is_open(place, is_graphql):
    """Of 3 and of 7 open pull requests two have new commits: as many requests, by GraphQL."""
    counts = []
    for opened in (3, 7):
        for n in range(len(place.server.pulls), opened):
            place.pull(sound(f"model-{n}"))
        swept(place)
        place.server.is_graphql = is_graphql
        counts.append(requests_after_two_pushes(place, [1, 3]))
        place.server.is_graphql = True
    # Without GraphQL, two more for each that is open: its comments and its status.
    assert counts[1] - counts[0] <= (0 if is_graphql else 2 * 4)
    assert counts[0] <= REQUESTS_MAX // 4


def test_without_graphql_it_is_slower_and_no_less_right(place):
    place.server.is_graphql = False
    numbers = [place.pull(sound(f"model-{n}")) for n in range(3)]
    assert swept(place) == numbers
    assert {place.status(n)[0] for n in numbers} == {"success"}
    assert swept(place) == []
    assert {len(place.server.comments[n]) for n in numbers} == {1}


PAGE = 100


def test_triage_of_two_pages_takes_three_requests(place):
    for n in range(PAGE + 1):
        place.pull(sound(f"model-{n}"))
    code, _, _ = place.run("triage", "--format", "json", "--limit", "200")
    assert (code, place.server.charged) == (0, 3)  # the lists: two pages, and the issues
    # Without GraphQL, one for each.
    place.server.is_graphql = False
    place.server.charged = 0
    code, _, _ = place.run("triage", "--format", "json", "--limit", "200")
    assert (code, place.server.charged) == (0, PAGE + 1 + 3)
    # A comment that changes is seen.
    place.both(1)
    rows = json.loads(place.run("triage", "--format", "json", "--limit", "200")[1])["pulls"]
    assert next(row["verdict"] for row in rows if row["number"] == 1) == "passed"
