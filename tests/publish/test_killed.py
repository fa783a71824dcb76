"""A publisher that is killed at any step leaves the old board or the new one; the next mends it."""

import signal
import threading

import pytest

from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.push import MainIntent, PublishOutcome, push
from tests import forked
from tests.publish.command import environment
from tests.publish.conftest import NAME, made
from tests.publish.hub import WRITER
from tests.publish.settled import assert_settled, generation_of

# Every call of a publish, in order; the card has changed, so that it is looked at, too.
STEPS = (
    "info",
    "resolve",
    *["commits", "resolve"],
    "validate-yaml",
    "preupload",
    "commit",
    "info",
    "resolve",
)
COMMIT = STEPS.index("commit")
# Before each call has its effect; and once the commit is made, before its answer, in the midst of
# the answer, and at the very end. After any other call nothing has changed against before the next.
MOMENTS = [
    *((number, "before") for number in range(len(STEPS))),
    *((COMMIT, "after"), (COMMIT, "half"), (len(STEPS) - 1, "half")),
]


GATE = {(COMMIT, "before"), (COMMIT, "half"), (COMMIT, "after")}
"""Moments around the commit; the others are left to the night."""


@pytest.mark.parametrize(
    ("number", "when"),
    [
        pytest.param(*moment, marks=() if moment in GATE else pytest.mark.nightly)
        for moment in MOMENTS
    ],
)
def test_sigkill_at_each_step(hub, repo, space, clone, tmp_path, number, when):
    push(space, MainIntent(made(clone), GitRepository(clone.root)))
    clone.add("model-b")
    clone.write("leaderboard/README.md", b"---\ntitle: New card\nsdk: static\n---\n")
    clone.commit("Add model-b, and a new card")
    calls: list[str] = []
    killed, served = threading.Event(), threading.Event()

    def kill(step, now):
        if now == "before":
            calls.append(step)
        elif len(calls) == number + 1:
            served.set()
        if now == when and len(calls) == number + 1 and not killed.is_set():
            process.kill()
            process.wait(30)
            killed.set()

    hub.watch = kill
    process = forked.start(
        "geneb_ci",
        *("publish", "--space", NAME),
        cwd=clone.root,
        env=environment(hub, tmp_path, HF_TOKEN=WRITER),
    )
    process.communicate(60)
    # The Hub goes on with what it was sent, whoever is dead by then.
    assert killed.wait(30)
    assert served.wait(30)
    assert (process.returncode, calls) == (-signal.SIGKILL, list(STEPS[: number + 1]))
    committed = number >= COMMIT
    assert len(repo.commits) == (3 if committed else 2)
    assert generation_of(repo.head), "what is live is whole"
    hub.watch = lambda _step, _when: None
    again = push(space, MainIntent(made(clone), GitRepository(clone.root)))
    assert again.outcome is (PublishOutcome.UNCHANGED if committed else PublishOutcome.PUBLISHED)
    assert_settled(repo, made(clone))


def test_the_steps_are_all_of_a_publish(hub, repo, space, clone):
    push(space, MainIntent(made(clone), GitRepository(clone.root)))
    clone.write("leaderboard/README.md", b"---\ntitle: New card\nsdk: static\n---\n")
    clone.commit("A new card")
    hub.calls.clear()
    push(space, MainIntent(made(clone), GitRepository(clone.root)))
    assert tuple(hub.calls) == STEPS
    assert len(repo.commits) == 3
