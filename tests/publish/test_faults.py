"""The fault matrix: whatever the Hub does, the newest main is live, once, and never by halves."""

import re
import threading

import pytest

from geneb_ci.publish import faults
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.push import MainIntent, PublishOutcome, push
from geneb_ci.publish.space import Space
from tests.publish.clone import Clone
from tests.publish.conftest import NAME, made
from tests.publish.hub import READER, WRITER, Fault
from tests.publish.settled import BY_HAND, Patience, assert_settled


@pytest.fixture
def clock():
    return Patience()


@pytest.fixture
def newest(clone, space):
    """Publish one board, then merge a model: what is returned is to be published next."""
    push(space, MainIntent(made(clone), GitRepository(clone.root)))
    clone.add("model-b")
    clone.commit("Add model-b")
    return MainIntent(made(clone), GitRepository(clone.root))


def test_412_twice_then_success(hub, repo, space, newest, clock):
    hub.faults = [Fault("commit", 412)] * 2
    done = push(space, newest, clock=clock)
    assert (done.outcome, done.commit, clock.waits) == (PublishOutcome.PUBLISHED, repo.head.oid, [])
    assert_settled(repo, newest.built)


def test_412_because_somebody_else_committed(repo, space, newest, clock, hub):
    def intrude(step, when):
        if (step, when) == ("preupload", "after") and len(repo.commits) == 2:
            repo.add(repo.head.tree | {"theirs.txt": b"by hand"}, BY_HAND)

    hub.watch = intrude
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert repo.head.tree["theirs.txt"] == b"by hand"
    assert [commit.title for commit in repo.commits][2] == BY_HAND
    assert_settled(repo, newest.built)


def test_409_three_times(hub, repo, space, newest, clock):
    hub.faults = [Fault("commit", 409)] * 3
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert clock.waits == [2, 4, 8]
    assert_settled(repo, newest.built)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_5xx_though_committed(hub, repo, space, newest, clock, status):
    hub.faults = [Fault("commit", status, after=True, body=b"<html>")]
    done = push(space, newest, clock=clock)
    assert (done.outcome, done.commit) == (PublishOutcome.PUBLISHED, repo.head.oid)
    assert hub.calls.count("commit") == 2, "one for each board"
    assert_settled(repo, newest.built)


def test_500_and_not_committed(hub, repo, space, newest, clock):
    hub.faults = [Fault("commit", 500)]
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert_settled(repo, newest.built)


@pytest.mark.parametrize("after", [True, False], ids=["committed", "not committed"])
def test_time_out(hub, repo, newest, clock, after):
    hub.faults = [Fault("commit", after=after)]
    hasty = Space(NAME, token=WRITER, endpoint=hub.endpoint, timeout_s=0.5)
    assert push(hasty, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert clock.waits == [2]
    assert_settled(repo, newest.built)


def test_a_commit_that_arrives_after_its_retry_is_refused_by_its_parent(hub, repo, newest, clock):
    """The first commit hangs in the Hub, is given up, and gets through when all is over."""
    first: list[threading.Thread] = []
    answer = hub.answer
    late = threading.Event()

    def delay(step, call):
        if step == "commit" and not first:
            first.append(threading.current_thread())
            late.wait(10)
        return answer(step, call)

    hub.answer = delay
    hasty = Space(NAME, token=WRITER, endpoint=hub.endpoint, timeout_s=0.5)
    assert push(hasty, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    late.set()
    first[0].join(10)
    assert_settled(repo, newest.built)


def test_429_waits_as_told(hub, repo, space, newest, clock):
    hub.faults = [
        Fault("commit", 429, {"RateLimit": '"api";r=0;t=55'}),
        Fault("commit", 429, {"Retry-After": "7", "RateLimit": ""}),
        Fault("info", 429, {"RateLimit": ""}),
    ]
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert sorted(clock.waits) == [2, 8, 56]
    assert_settled(repo, newest.built)


@pytest.mark.parametrize("step", ["info", "resolve", "commit"])
def test_six_tries_are_all(hub, repo, space, newest, clock, step):
    hub.faults = [Fault(step, 500)] * 9
    with pytest.raises(
        faults.RetriesExhausted, match=r"6 tries failed; the last: the Hub failed \(500\)"
    ):
        push(space, newest, clock=clock)
    assert (len(hub.faults), clock.waits) == (3, [2, 4, 8, 16, 32])
    assert len(repo.commits) == 2


def test_412_for_ever_ends(hub, space, newest, clock):
    hub.faults = [Fault("commit", 412)] * 9
    with pytest.raises(faults.RetriesExhausted, match="the repository has a new commit"):
        push(space, newest, clock=clock)


@pytest.mark.parametrize("step", ["info", "resolve", "preupload"])
def test_a_lost_read_after_the_commit_is_settled_by_the_next(hub, repo, space, newest, clock, step):
    made_one = threading.Event()

    def fail_once(now, when):
        if (now, when) == ("commit", "after") and not made_one.is_set():
            made_one.set()
            hub.faults = [Fault(step, 502)]

    hub.watch = fail_once
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert_settled(repo, newest.built)


@pytest.mark.parametrize(
    ("token", "error", "message"),
    [
        (
            "hf_revoked",
            faults.HubTokenRefused,
            r"rejected the token for spaces/geneb/board \(401\)",
        ),
        (READER, faults.NoWriteRight, r"may not write to spaces/geneb/board \(403\)"),
    ],
)
def test_token_refused(hub, repo, newest, clock, token, error, message):
    before = repo.head
    with pytest.raises(error, match=message) as refusal:
        push(Space(NAME, token=token, endpoint=hub.endpoint), newest, clock=clock)
    assert token not in refusal.value.message + refusal.value.fix
    assert (repo.head, clock.waits) == (before, [])


def test_no_space(hub, clock, newest):
    with pytest.raises(faults.RepoMissing) as refusal:
        push(Space("geneb/none", token=WRITER, endpoint=hub.endpoint), newest, clock=clock)
    assert (
        refusal.value.fix
        == "create it: `hf repos create geneb/none --type space --space-sdk static`; "
        "if it exists, use a token that may read it"
    )
    with pytest.raises(faults.RepoMissing):
        Space("geneb/none", token=None, endpoint=hub.endpoint).state()


def test_a_stale_rerun_after_a_newer_publish(repo, space, newest, clock, clone):
    push(space, newest, clock=clock)
    old, new = clone.commits[0], clone.commits[-1]
    stale = MainIntent(made(clone, old), newest.repository)
    with pytest.raises(faults.NotFastForward) as refusal:
        push(space, stale, clock=clock)
    assert old in refusal.value.message
    assert new in refusal.value.message
    assert_settled(repo, newest.built)


def test_a_commit_that_this_clone_does_not_know_is_not_overtaken(repo, space, newest, tmp_path):
    push(space, newest)
    other = Clone(tmp_path / "other")
    other.add("elsewhere")
    other.commit("Another history")
    with pytest.raises(faults.NotFastForward):
        push(space, MainIntent(made(other), GitRepository(other.root)))
    assert_settled(repo, newest.built)


def test_a_file_that_the_space_ignores_is_noticed(repo, space, newest, clock):
    repo.ignored = {"ledger.json"}
    with pytest.raises(
        faults.SpaceDiffers, match=re.escape("differs from the upload: ledger.json")
    ):
        push(space, newest, clock=clock)


def test_a_manifest_that_is_served_otherwise_than_sent_is_noticed(hub, repo, space, newest, clock):
    """The Hub's digests are right, and the bytes that it serves are of the board before."""
    before = repo.head.tree["manifest.json"]

    def tamper(step, when):
        if (step, when) == ("commit", "after"):
            hub.faults = [Fault("resolve", 200, body=before)]

    hub.watch = tamper
    with pytest.raises(faults.SpaceDiffers, match=r"differs from the upload: manifest\.json$"):
        push(space, newest, clock=clock)
    assert clock.waits == []


def test_a_read_back_that_is_no_manifest_is_an_error(hub, space, newest, clock):
    def tamper(step, when):
        if (step, when) == ("commit", "after"):
            hub.faults = [Fault("resolve", 200, body=b"<html>sign in</html>")]

    hub.watch = tamper
    with pytest.raises(faults.BadManifest, match="Invalid JSON"):
        push(space, newest, clock=clock)


def test_a_file_that_is_not_deleted_is_noticed(hub, repo, space, clone, clock):
    clone.write("leaderboard/old.css", b"p {}")
    clone.commit("Style")
    push(space, MainIntent(made(clone), GitRepository(clone.root)))
    clone.git("rm", "--quiet", "leaderboard/old.css")
    clone.commit("No style")

    def keep(step, when):
        if (step, when) == ("commit", "after") and "old.css" not in repo.head.tree:
            repo.head.tree["old.css"] = b"p {}"

    hub.watch = keep
    with pytest.raises(faults.SpaceDiffers, match=r"differs from the upload: old\.css$"):
        push(space, MainIntent(made(clone), GitRepository(clone.root)), clock=clock)


@pytest.mark.parametrize("body", [b"[]", b"{}", b"<html>", b'{"id": "x", "sha": null}'])
def test_an_answer_of_another_shape_is_tried_again(hub, repo, space, newest, clock, body):
    hub.faults = [Fault("info", 200, body=body)]
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert clock.waits == [2]
    assert_settled(repo, newest.built)


def test_a_repository_that_may_not_be_read(hub, space):
    hub.faults = [Fault("info", 403)]
    with pytest.raises(faults.NoWriteRight, match="the token may not read spaces/geneb/board"):
        space.state()


def test_a_card_that_the_hub_refuses_names_the_card(repo, space, clone, clock):
    clone.write("leaderboard/README.md", b"---\ntitle: no sdk\n---\n")
    clone.commit("A card without its sdk")
    with pytest.raises(faults.HubRefused, match='"sdk" is required') as refusal:
        push(space, MainIntent(made(clone), GitRepository(clone.root)), clock=clock)
    assert refusal.value.fix == "fix the YAML header of README.md"
    assert len(repo.commits) == 1
