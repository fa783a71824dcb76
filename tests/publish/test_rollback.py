"""An earlier generation live again, and no stale job that undoes it."""

import json

import pytest

from geneb_ci.errors import UsageProblem
from geneb_ci.publish.faults import Overtaken, Refused
from geneb_ci.publish.generation import generate
from geneb_ci.publish.git import Repository
from geneb_ci.publish.health import Standing, look
from geneb_ci.publish.push import Newest, Outcome, Published, push
from geneb_ci.publish.rollback import Earlier, find_generation, hold_against
from geneb_ci.publish.space import Space
from tests.publish.clone import Clone
from tests.publish.conftest import made
from tests.publish.hub import Fault
from tests.publish.settled import Patience


@pytest.fixture
def repository(clone):
    return Repository(clone.root)


@pytest.fixture
def two(space, clone, repository):
    """Publish two boards, and give both."""
    first = made(clone)
    push(space, Newest(first, repository))
    clone.add("model-b")
    clone.commit("Add model-b")
    push(space, Newest(made(clone), repository))
    return first, made(clone)


def back(space: Space, clone: Clone, repository: Repository, name: str) -> Published:
    held = find_generation(space, name)
    _, again = generate(repository, held.source_commit)
    assert again is not None
    hold_against(held, again)
    intent = Earlier(again, clone.commits[-1], repository)
    return push(space, intent, clock=Patience())


def test_the_earlier_board_is_live_again_to_the_byte(space, repo, clone, repository, two):
    first, second = two
    done = back(space, clone, repository, first.manifest.generation[:7])
    assert done.outcome is Outcome.PUBLISHED
    assert {name: repo.head.tree[name] for name in first.files} == first.files
    told = json.loads(repo.head.tree["manifest.json"])
    assert (told["generation"], told["source_commit"]) == (
        first.manifest.generation,
        clone.commits[0],
    )
    assert told["rollback"] == {
        "former_generation": second.manifest.generation,
        "covers": clone.commits[-1],
    }
    assert repo.head.title.startswith("Roll back to board ")
    assert back(space, clone, repository, first.manifest.generation).outcome is Outcome.UNCHANGED
    assert len(repo.commits) == 4


def test_a_stale_job_does_not_undo_it_and_the_next_merge_does(space, repo, clone, repository, two):
    first, second = two
    back(space, clone, repository, first.manifest.generation)
    for stale in two:
        with pytest.raises(Overtaken):
            push(space, Newest(stale, repository))
    assert look(space, second, repository).standing is Standing.ROLLED_BACK
    clone.add("model-c")
    clone.commit("Add model-c")
    assert push(space, Newest(made(clone), repository)).outcome is Outcome.PUBLISHED
    assert json.loads(repo.head.tree["manifest.json"])["rollback"] is None


def test_a_rollback_can_be_undone(space, repo, clone, repository, two):
    first, second = two
    back(space, clone, repository, first.manifest.generation)
    back(space, clone, repository, second.manifest.generation)
    assert json.loads(repo.head.tree["manifest.json"])["rollback"] is None
    assert push(space, Newest(second, repository)).outcome is Outcome.UNCHANGED


def test_a_rollback_whose_answer_is_lost_is_made_once(hub, space, repo, clone, repository, two):
    hub.faults = [Fault("commit", 500, after=True)]
    done = back(space, clone, repository, two[0].manifest.generation)
    assert (done.outcome, len(repo.commits)) == (Outcome.PUBLISHED, 4)


def test_a_clone_that_lacks_what_is_live_may_not_roll_back(space, clone, repository, two):
    first, _ = two
    with pytest.raises(Overtaken, match="does not hold what is to be taken back"):
        push(space, Earlier(first, clone.commits[0], repository))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("abc", "is no generation: expected 7 to 64 hex digits"),
        ("0" * 12, "never held a generation 000000000000"),
        ("../../x", "is no generation"),
    ],
)
def test_generations_that_are_none(space, two, name, message):
    assert two
    with pytest.raises(UsageProblem, match=message):
        find_generation(space, name)


def test_a_board_that_this_version_builds_otherwise_is_not_passed_off(two):
    first, second = two
    with pytest.raises(Refused, match="was built by geneb-ci"):
        hold_against(first.manifest, second)
