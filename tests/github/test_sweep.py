"""The sweep's queue: no pull request that cannot be read, and none that is hostile, holds it up."""

import json

import pytest

from geneb_ci.github.api import connect
from geneb_ci.github.reconcile import FAILURES_MAX, PULLS_PER_BATCH
from tests.github.conftest import sound
from tests.github.refusals import Fault


def numbers(line: str) -> list[int]:
    return [pull["number"] for pull in json.loads(line)["pulls"]]


@pytest.mark.parametrize("status", [502, 404, 422], ids=["5xx", "no-common-commit", "refused"])
def test_pull_requests_that_can_never_be_read_take_no_place(board_checkout, status):
    """As many as a verdict holds, the oldest of all: GitHub fails on comparing each."""
    hostile = [board_checkout.pull(sound(f"hostile-{n}")) for n in range(4)]
    honest = board_checkout.pull(sound())
    heads = "|".join(board_checkout.server.pulls[number]["head"]["sha"] for number in hostile)
    board_checkout.server.faults.append(Fault("GET", f"/compare/.*({heads})", status, times=999))
    code, line, err = board_checkout.run("reconcile")
    assert (code, numbers(line)) == (0, [honest])
    assert json.loads(line)["waiting"] == 4
    assert err.count("geneb-ci: ") == 4
    *_, done, counts = err.splitlines()
    assert done == f"{honest}: passed"
    assert counts == "5 open pull requests: 1 judged now, 4 cannot be judged, and wait: 1 to 4"


def test_comments_that_cannot_be_read_hide_no_other(board_checkout):
    broken, honest = board_checkout.pull(sound("broken")), board_checkout.pull(sound())
    board_checkout.server.faults.append(Fault("GET", f"/issues/{broken}/comments", 502, times=999))
    code, line, err = board_checkout.run("reconcile")
    assert (code, numbers(line)) == (0, [honest])
    assert err.startswith("geneb-ci: GitHub answered 502\n")


def test_a_github_that_is_out_of_order_ends_the_sweep(board_checkout):
    for n in range(FAILURES_MAX + 5):
        board_checkout.pull(sound(f"model-{n}"))
    fault = Fault("GET", "/compare/", 502, times=9999)
    board_checkout.server.faults.append(fault)
    code, out, err = board_checkout.run("reconcile")
    assert code == 3
    assert err.startswith("geneb-ci: GitHub answered 502\n")
    assert (
        "5 of 15 open pull requests were left: 11 to 15: 10 pull requests in a row could not "
        "be judged, the last because GitHub answered 502\n"
    ) in err
    assert len(json.loads(out)["troubles"]) == FAILURES_MAX
    retried = 1 + 2  # as the conftest's patience has it
    assert 9999 - fault.times == FAILURES_MAX * retried
    # Those that failed wait; the next sweep takes the others.
    board_checkout.report(out)
    assert len(json.loads(board_checkout.run("reconcile")[1])["troubles"]) == 5


def test_a_limit_ends_the_sweep_with_what_is_done(board_checkout):
    done = [board_checkout.pull(sound(f"model-{n}")) for n in range(PULLS_PER_BATCH)]
    head = board_checkout.server.pulls[board_checkout.pull(sound("last"))]["head"]["sha"]
    board_checkout.server.faults.append(
        Fault("GET", f"/compare/.*{head}", 429, {"Retry-After": "900"})
    )
    code, line, err = board_checkout.run("reconcile")
    assert (code, numbers(line), json.loads(line)["waiting"]) == (3, done, 1)
    assert "1 of 26 open pull requests was left: 26: GitHub's rate limit is reached until " in err


def test_of_several_problems_the_one_that_is_no_push_gives_the_exit_code(board_checkout):
    moved, failing = board_checkout.pull(sound("one")), board_checkout.pull(sound("two"))
    code, line, _ = board_checkout.run("reconcile")
    assert (code, numbers(line)) == (0, [moved, failing])
    board_checkout.server.pulls[failing]["head"]["sha"] = board_checkout.base
    board_checkout.server.faults.append(Fault("GET", f"/issues/{moved}/comments", 502, times=99))
    code, _, err = board_checkout.report(line)
    assert code == 3
    assert err == (
        f"geneb-ci: {moved}: GitHub answered 502\n"
        f"geneb-ci: {failing}: pull request {failing} has the new head {board_checkout.base}\n"
        "  fix: run the command again; nothing is written twice\n"
    )
    assert {path for _, path in board_checkout.server.writes()} == {"/repos/org/board/issues"}


def test_a_pull_request_that_changes_its_page_while_we_read_is_judged_once(board_checkout):
    """Page 1 ends with number 1; before page 2 is asked for, another one moves up."""
    for n in range(101):
        board_checkout.pull(sound(f"model-{n}"))
    moved: list[str] = []

    def meanwhile(_verb: str, path: str) -> None:
        if path.endswith("/pulls") and not moved:
            moved.append(path)
        elif moved == [path]:
            board_checkout.server.pulls[1]["updated_at"] = "2026-11-30T00:00:00Z"
            moved.append(path)

    board_checkout.server.before = meanwhile
    with connect(None) as github:
        listed = [pull.number for pull in github.open_pulls().pulls]
    assert len(moved) == 2
    assert len(set(listed)) == len(listed) == 100
