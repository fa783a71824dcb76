"""How often GitHub is asked: a pull request takes 13 requests, 3 of them writes; 200 new ones
stay below the 1,000 of an hour."""

import json

import pytest

from geneb_ci.github.one_line import LINE_BYTES_MAX
from geneb_ci.github.reconcile import RESERVED_REQUESTS
from geneb_ci.github.verdict.model import VERDICTS_MAX
from geneb_ci.github.verdict.verdict_line import decode
from tests.github.conftest import CARD_PATH, REGULAR, BoardCheckout, sound
from tests.github.server import REPOSITORY

HOUR = 1000
REQUESTS_MAX = 150  # of a sweep in which two of a hundred have new commits
OPEN = 200


@pytest.mark.parametrize(("arguments", "request_count"), [(["--pr"], 0), (["--head-sha"], 1)])
def test_one_pull_request_takes_thirteen_requests(board_checkout, arguments, request_count):
    """And a ring one more: whether its head has a verdict."""
    number = board_checkout.pull(sound())
    named = (
        str(number) if arguments == ["--pr"] else board_checkout.server.pulls[number]["head"]["sha"]
    )
    code, line, _ = board_checkout.run("reconcile", *arguments, named)
    assert code == 0
    assert len(board_checkout.server.requests) == 8 + request_count
    assert board_checkout.report(line)[0] == 0
    assert len(board_checkout.server.requests) == 13 + request_count
    assert len(board_checkout.server.writes()) == 3
    # Again, with nothing new: the head of main, and what is there, but no write.
    assert board_checkout.report(line)[0] == 0
    assert len(board_checkout.server.requests) == 15 + request_count
    assert len(board_checkout.server.writes()) == 3


@pytest.mark.parametrize("before", [["help wanted"], ["geneb: passed", "dataset"]])
def test_a_second_verdict_takes_no_more(board_checkout, before):
    """New commits and another outcome: where a label goes, all are read again before that."""
    number = board_checkout.pull(sound())
    board_checkout.both(number)
    broken = board_checkout.files | sound() | {CARD_PATH: (REGULAR, b"")}
    pull = board_checkout.server.pulls[number]
    pull["head"]["sha"] = board_checkout.server.commit(broken, board_checkout.base)
    pull["labels"] = [{"name": name} for name in before]
    board_checkout.server.requests.clear()
    board_checkout.both(number)
    again = int("geneb: passed" in before)
    assert (len(board_checkout.server.requests), len(board_checkout.server.writes())) == (
        13 + again,
        3,
    )
    board_checkout.both(number)
    assert len(board_checkout.server.writes()) == 3


@pytest.fixture
def crowd(board_checkout):
    """Open 200 pull requests, none with a verdict."""
    for n in range(OPEN):
        board_checkout.pull(sound(f"model-{n}"))
    return board_checkout


def swept(board_checkout: BoardCheckout) -> list[int]:
    """Run one sweep, both jobs, and return the numbers that got a verdict."""
    code, line, err = board_checkout.run("reconcile")
    assert code == 0, err
    assert len(line) <= LINE_BYTES_MAX
    assert board_checkout.report(line)[0] == 0
    return [pull.number for pull in decode(line, REPOSITORY).pulls]


def requests_after_two_pushes(board_checkout: BoardCheckout, pushed: list[int]) -> int:
    """Push to these pull requests, sweep, and return how many requests of any kind that took."""
    server = board_checkout.server
    for number in pushed:
        head = f"{server.pulls[number]['head']['sha']}-again"
        server.pulls[number]["head"]["sha"] = server.commit(
            board_checkout.files | sound(head), board_checkout.base
        )
    before = len(server.requests)
    assert sorted(swept(board_checkout)) == pushed
    return len(server.requests) - before


@pytest.mark.nightly
def test_200_new_pull_requests_have_their_verdict_after_an_hour(crowd):
    """Four sweeps in an hour, the longest waiting first, in fewer than 1,000 requests."""
    server = crowd.server
    server.limit = HOUR
    judged = [swept(crowd) for _ in range(4)]
    assert [len(numbers) for numbers in judged] == [VERDICTS_MAX] * 4
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
def test_a_sweep_asks_for_what_changed_and_not_for_each_that_is_open(board_checkout, is_graphql):
    """Of 3 and of 7 open pull requests two have new commits: as many requests, by GraphQL."""
    counts = []
    for opened in (3, 7):
        for n in range(len(board_checkout.server.pulls), opened):
            board_checkout.pull(sound(f"model-{n}"))
        swept(board_checkout)
        board_checkout.server.is_graphql = is_graphql
        counts.append(requests_after_two_pushes(board_checkout, [1, 3]))
        board_checkout.server.is_graphql = True
    # Without GraphQL, two more for each that is open: its comments and its status.
    assert counts[1] - counts[0] <= (0 if is_graphql else 2 * 4)
    assert counts[0] <= REQUESTS_MAX // 4


def test_without_graphql_it_is_slower_and_no_less_right(board_checkout):
    board_checkout.server.is_graphql = False
    numbers = [board_checkout.pull(sound(f"model-{n}")) for n in range(3)]
    assert swept(board_checkout) == numbers
    assert {board_checkout.status(n)[0] for n in numbers} == {"success"}
    assert swept(board_checkout) == []
    assert {len(board_checkout.server.comments[n]) for n in numbers} == {1}


PAGE = 100


def test_triage_of_two_pages_takes_three_requests(board_checkout):
    for n in range(PAGE + 1):
        board_checkout.pull(sound(f"model-{n}"))
    code, _, _ = board_checkout.run("triage", "--format", "json", "--limit", "200")
    assert (code, board_checkout.server.charged) == (0, 3)  # the lists: two pages, and the issues
    # Without GraphQL, one for each.
    board_checkout.server.is_graphql = False
    board_checkout.server.charged = 0
    code, _, _ = board_checkout.run("triage", "--format", "json", "--limit", "200")
    assert (code, board_checkout.server.charged) == (0, PAGE + 1 + 3)
    # A comment that changes is seen.
    board_checkout.both(1)
    rows = json.loads(board_checkout.run("triage", "--format", "json", "--limit", "200")[1])[
        "pulls"
    ]
    assert next(row["verdict"] for row in rows if row["number"] == 1) == "passed"
