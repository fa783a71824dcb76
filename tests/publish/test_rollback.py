"""An earlier generation live again, and no stale job that undoes it."""

import json
from collections.abc import Mapping

import pytest

from geneb_ci import __version__
from geneb_ci.common.errors import UsageProblem
from geneb_ci.publish.difference import LiveStatus, space_health
from geneb_ci.publish.faults import HubRefused, NotFastForward
from geneb_ci.publish.generation import Generation, generate
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.manifest import Tool, manifest_of
from geneb_ci.publish.push import (
    MainIntent,
    Published,
    PublishOutcome,
    RollbackIntent,
    find_generation,
    push,
    require_generation_of_main,
    require_same_generation,
)
from geneb_ci.publish.space import Space
from tests.publish.clone import Clone
from tests.publish.command import environment, within
from tests.publish.conftest import NAME, made
from tests.publish.hub import WRITER, Fault
from tests.publish.settled import Patience


def without_editions(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a Space but for the pages that each generation leaves."""
    return {name: raw for name, raw in tree.items() if not name.startswith("v/")}


@pytest.fixture
def repository(clone):
    return GitRepository(clone.root)


@pytest.fixture
def two(space, clone, repository):
    """Publish two boards, and give both."""
    first = made(clone)
    push(space, MainIntent(first, repository))
    clone.add("model-b")
    clone.commit("Add model-b")
    push(space, MainIntent(made(clone), repository))
    return first, made(clone)


def back(space: Space, clone: Clone, repository: GitRepository, name: str) -> Published:
    held = find_generation(space, name).manifest
    again = generate(repository, held.source_commit)
    require_same_generation(held, again)
    intent = RollbackIntent(again, clone.commits[-1], repository)
    return push(space, intent, clock=Patience())


def test_the_earlier_board_is_live_again_to_the_byte(space, repo, clone, repository, two):
    first, second = two
    done = back(space, clone, repository, first.manifest.generation[:7])
    assert done.outcome is PublishOutcome.PUBLISHED
    assert {name: repo.head.tree[name] for name in first.files} == first.files
    document = json.loads(repo.head.tree["manifest.json"])
    assert (document["generation"], document["source_commit"]) == (
        first.manifest.generation,
        clone.commits[0],
    )
    assert document["rollback"] == {
        "former_generation": second.manifest.generation,
        "covers": clone.commits[-1],
    }
    assert repo.head.title.startswith("Roll back to board ")
    assert (
        back(space, clone, repository, first.manifest.generation).outcome
        is PublishOutcome.UNCHANGED
    )
    assert len(repo.commits) == 4


def test_a_stale_job_does_not_undo_it_and_the_next_merge_does(space, repo, clone, repository, two):
    first, second = two
    back(space, clone, repository, first.manifest.generation)
    for stale in two:
        with pytest.raises(NotFastForward):
            push(space, MainIntent(stale, repository))
    assert space_health(space, second, repository).live_status is LiveStatus.ROLLED_BACK
    clone.add("model-c")
    clone.commit("Add model-c")
    third = made(clone)
    assert space_health(space, third, repository).live_status is LiveStatus.BEHIND
    assert push(space, MainIntent(third, repository)).outcome is PublishOutcome.PUBLISHED
    assert json.loads(repo.head.tree["manifest.json"])["rollback"] is None
    assert space_health(space, third, repository).live_status is LiveStatus.CURRENT
    # A job that was late from before the rollback, or for what it took back, is stale still.
    for stale in two:
        assert space_health(space, stale, repository).live_status is LiveStatus.AHEAD
        with pytest.raises(NotFastForward):
            push(space, MainIntent(stale, repository))
    assert {f"v/{publication.manifest.generation}/index.html" for publication in (*two, third)} < {
        *repo.head.tree
    }
    assert without_editions(repo.head.tree) == without_editions(
        {**repo.commits[0].tree, **third.published}
    )
    assert len(repo.commits) == 5


def test_a_stale_job_that_read_before_the_rollback_is_refused(hub, space, clone, repository, two):
    """Its commit is on the head that it read, which the rollback has replaced meanwhile."""
    first, _ = two
    clone.add("model-c")
    clone.commit("Add model-c")
    third = made(clone)
    clone.add("model-d")
    clone.commit("Add model-d")
    turns = iter(range(1))

    def overtake(step, when):
        if (step, when) == ("preupload", "after") and next(turns, None) is not None:
            back(space, clone, repository, first.manifest.generation)

    hub.watch = overtake
    with pytest.raises(NotFastForward, match="publishing would undo the board on the Space"):
        push(space, MainIntent(third, repository), clock=Patience())
    assert space_health(space, made(clone), repository).live_status is LiveStatus.ROLLED_BACK


def test_a_rollback_can_be_undone(space, repo, clone, repository, two):
    first, second = two
    back(space, clone, repository, first.manifest.generation)
    back(space, clone, repository, second.manifest.generation)
    assert json.loads(repo.head.tree["manifest.json"])["rollback"] is None
    assert push(space, MainIntent(second, repository)).outcome is PublishOutcome.UNCHANGED


def test_a_rollback_whose_answer_is_lost_is_made_once(hub, space, repo, clone, repository, two):
    hub.faults = [Fault("commit", 500, after=True)]
    done = back(space, clone, repository, two[0].manifest.generation)
    assert (done.outcome, len(repo.commits)) == (PublishOutcome.PUBLISHED, 4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("abc", "is not a generation: expected 7 to 64 hex digits"),
        ("0" * 12, "never had a generation 000000000000"),
        ("../../x", "is not a generation"),
    ],
)
def test_generations_that_are_none(space, two, name, message):
    assert two
    with pytest.raises(UsageProblem, match=message):
        find_generation(space, name)


def test_digits_of_two_generations_are_refused(space, two, monkeypatch):
    assert two
    monkeypatch.setattr("geneb_ci.publish.push.check_generation_name", lambda _: None)
    with pytest.raises(UsageProblem, match="matches 2 generations") as refused:
        find_generation(space, "")  # what two have in common is rarely seven digits
    assert refused.value.fix == "pass more digits"


def built_by_another(clone: Clone) -> Generation:
    """Return the board of HEAD as another version would have built it."""
    here = made(clone)
    files = here.files | {"leaderboard.json": here.files["leaderboard.json"] + b"\n"}
    manifest = manifest_of(files, here.manifest.source_commit)
    tool = Tool(version="0.0.1")
    return Generation(files, manifest.model_copy(update={"tool": tool}))


def test_a_board_of_another_version_comes_back_as_published(hub, space, repo, clone, tmp_path):
    repository = GitRepository(clone.root)
    other = built_by_another(clone)
    push(space, MainIntent(other, repository))
    assert space_health(space, made(clone), repository).live_status is LiveStatus.OTHER
    clone.add("model-b")
    clone.commit("Add model-b")
    push(space, MainIntent(made(clone), repository))
    newer = made(clone).manifest.generation
    env = environment(hub, tmp_path, HF_TOKEN=WRITER)
    words = ("rollback", other.manifest.generation[:12], "--space", NAME)
    code, output, errors = within(*words, cwd=clone.root, env=env)
    assert (code, output, len(repo.commits)) == (1, "", 3)
    assert errors == (
        f"geneb-ci: generation {other.manifest.generation[:12]} was built by geneb-ci 0.0.1; "
        f"geneb-ci {__version__} on this machine builds other bytes from commit "
        f"{clone.commits[0]}\n"
        "  fix: pass --as-published to use the bytes that the Space had then\n"
    )
    code, _, errors = within(*words, "--as-published", cwd=clone.root, env=env)
    assert (code, errors, len(repo.commits)) == (0, "", 4)
    live = without_editions(repo.head.tree)
    del live["manifest.json"]
    assert live == {**repo.commits[0].tree, **other.files}
    document = json.loads(repo.head.tree["manifest.json"])
    assert (document["generation"], document["tool"]["version"]) == (
        other.manifest.generation,
        "0.0.1",
    )
    assert document["rollback"] == {"former_generation": newer, "covers": clone.commits[1]}
    with pytest.raises(NotFastForward, match="was rolled back"):
        push(space, MainIntent(made(clone), repository))


def test_a_generation_of_another_history_is_refused(clone, repository, two):
    first, _ = two
    require_generation_of_main(first.manifest, clone.commits[-1], repository)
    clone.git("checkout", "--quiet", "--orphan", "other")
    clone.commit("Another history")
    with pytest.raises(HubRefused, match="is not an ancestor of"):
        require_generation_of_main(first.manifest, clone.commits[-1], repository)
