"""Two publishers at once, each in a process of its own, both at the point of committing."""

import contextlib
import pickle
import subprocess
import sys
import threading
from collections import Counter

import pytest

from tests.publish.command import environment
from tests.publish.conftest import made
from tests.publish.settled import assert_settled

ROUNDS, ROUNDS_OF_THE_NIGHT = 3, 100
PAIRS = (("newer", "newer"), ("older", "newer"), ("newer", "older"))
"""What each of the two publishes; the rounds take turns."""


@pytest.fixture
def generations(clone):
    older = made(clone)
    clone.add("model-b")
    clone.commit("Add model-b")
    return {"older": older, "newer": made(clone)}


@pytest.fixture
def racers(hub, clone, generations, tmp_path):
    file = tmp_path / "generations"
    file.write_bytes(pickle.dumps((clone.root, generations)))
    command = [sys.executable, "-m", "tests.publish.racer", hub.endpoint, str(file)]
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    env=environment(hub, tmp_path),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(2)
        ]


@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(ROUNDS_OF_THE_NIGHT, marks=pytest.mark.nightly)]
)
def test_two_publishers_at_once(hub, generations, racers, rounds):
    outcome_counts: Counter[tuple[tuple[str, str], ...]] = Counter()
    for number in range(rounds):
        name = f"geneb/round-{number}"
        repo = hub.create(f"spaces/{name}")
        # Both have read the Space and are about to commit; then both go on.
        ready = threading.Barrier(2)
        waiting = iter(range(2))

        def meet(step, when, ready=ready, waiting=waiting):
            if (step, when) == ("preupload", "after") and next(waiting, None) is not None:
                ready.wait(30)

        hub.watch = meet
        hub.calls.clear()
        pair = PAIRS[number % len(PAIRS)]
        for racer, which in zip(racers, pair, strict=True):
            racer.stdin.write(f"{name} {which}\n")
            racer.stdin.flush()
        outcomes = [racer.stdout.readline().strip() for racer in racers]
        assert_settled(repo, generations["newer"])
        made_commits = len(repo.commits) - 1
        # On a busy machine one may be refused twice, when it reads before the other has written.
        if outcomes != ["published", "published"] or made_commits > 1:
            assert hub.calls.count("commit") > made_commits, "one of the first two was refused"
        assert outcomes[pair.index("newer")] in {"published", "unchanged"}
        outcome_counts[tuple(sorted(zip(pair, outcomes, strict=True)))] += made_commits
    same = len(range(0, rounds, len(PAIRS)))
    # The client leaves out files that the Hub has by then; with none left, it makes no commit and
    # returns the other's, which is read back and compared like its own.
    twice = outcome_counts.pop((("newer", "published"), ("newer", "published")), 0)
    assert (
        outcome_counts.pop((("newer", "published"), ("newer", "unchanged")), 0) + twice == same
    ), outcome_counts
    # Whichever is first: the older is refused after the newer, or replaced by it.
    assert set(outcome_counts) <= {
        (("newer", "published"), ("older", "overtaken")),
        (("newer", "published"), ("older", "published")),
    }
