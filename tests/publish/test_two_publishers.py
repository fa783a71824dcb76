"""Two publishers at once, each in a process of its own, both at the point of committing."""

import contextlib
import os
import pickle
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests import forked
from tests.paths import ROOT
from tests.publish import racer
from tests.publish.command import environment
from tests.publish.conftest import made
from tests.publish.hub import Hub
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


class Racer:
    """A publisher in a process of its own."""

    def __init__(self, hub: Hub, file: Path, requests: Path, env: dict[str, str]) -> None:
        os.mkfifo(requests)
        self._requests = os.open(requests, os.O_RDWR)  # a writer alone waits
        words = (hub.endpoint, str(file), str(requests))
        self._process = forked.start(racer.__name__, *words, cwd=ROOT, env=env)
        self._lines = self._process.lines()

    def publish(self, space: str, generation: str) -> None:
        os.write(self._requests, f"{space} {generation}\n".encode())

    def outcome(self) -> str:
        """Return what became of the generation."""
        answer = next(line for line in self._lines if line.startswith(racer.ANSWER))
        return answer.removeprefix(racer.ANSWER)

    def close(self) -> None:
        os.close(self._requests)
        self._process.communicate(30)


@pytest.fixture
def racers(hub, clone, generations, tmp_path):
    file = tmp_path / "generations"
    file.write_bytes(pickle.dumps((clone.root, generations)))
    env = environment(hub, tmp_path)
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                contextlib.closing(Racer(hub, file, tmp_path / f"requests-{number}", env))
            )
            for number in range(2)
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
        for publisher, which in zip(racers, pair, strict=True):
            publisher.publish(name, which)
        outcomes = [publisher.outcome() for publisher in racers]
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
