"""What a rollback asks of the Space and of the clone, on states made by hand."""

import dataclasses
from types import SimpleNamespace
from typing import cast

import pytest

from geneb_ci.publish.faults import NotFastForward, SpaceDiffers
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.manifest import Rollback, manifest_of
from geneb_ci.publish.push import PastGeneration, RollbackIntent, generation_as_published
from geneb_ci.publish.space import Space, SpaceState
from tests.publish.test_parts import FILES, MADE, live

LIVE, COVERS, LATER = "1" * 40, "3" * 40, "4" * 40
HISTORY = (LIVE, COVERS, LATER)
OTHER = Generation(FILES, manifest_of(FILES, COVERS))
BACK = Rollback(former_generation=OTHER.manifest.generation, covers=COVERS)


def repository(*commits: str) -> GitRepository:
    """Return a clone with these commits, each the parent of the next."""

    def is_ancestor(ancestor: str, other: str) -> bool:
        return ancestor in commits and commits.index(ancestor) <= commits.index(other)

    return cast("GitRepository", SimpleNamespace(is_ancestor=is_ancestor))


def earlier(covers: str = COVERS, *commits: str) -> RollbackIntent:
    return RollbackIntent(MADE, covers, repository(*(commits or HISTORY)))


def test_an_earlier_generation_is_live_as_itself_or_as_this_rollback():
    states = {
        "no board": dataclasses.replace(live(MADE), manifest=None),
        "itself": live(MADE),
        "this rollback": live(MADE.with_rollback(BACK)),
        "a rollback of more": live(MADE.with_rollback(BACK.model_copy(update={"covers": LATER}))),
        "another generation": live(OTHER),
        "a file is missing": dataclasses.replace(live(MADE), files={}),
    }
    assert {name: earlier().is_live(state) for name, state in states.items()} == {
        "no board": False,
        "itself": True,
        "this rollback": True,
        "a rollback of more": False,
        "another generation": False,
        "a file is missing": False,
    }


def test_a_clone_without_the_live_commit_may_not_roll_back():
    with pytest.raises(NotFastForward) as refusal:
        earlier(LIVE, LIVE).generation(live(OTHER))
    assert (refusal.value.message, refusal.value.fix) == (
        (
            f"the Space has the board of commit {COVERS}, which is not an ancestor of {LIVE}: "
            "this clone is "
            "outdated"
        ),
        "run `git pull`, then roll back",
    )


def test_a_space_without_a_board_has_nothing_to_roll_back():
    with pytest.raises(NotFastForward) as refusal:
        earlier().generation(SpaceState("2" * 40))
    assert (refusal.value.message, refusal.value.fix) == (
        "the Space has no board, so there is nothing to roll back",
        "run `geneb-ci publish`",
    )


def test_a_generation_as_published_has_its_bytes_and_no_rollback():
    def read(name: str, commit: str) -> bytes:
        assert commit == "5" * 40
        return FILES[name]

    space = cast("Space", SimpleNamespace(read=read))
    held = PastGeneration("5" * 40, MADE.with_rollback(BACK).manifest)
    assert generation_as_published(space, held) == MADE


def test_altered_bytes_are_not_as_published():
    space = cast("Space", SimpleNamespace(read=lambda *_: b"x", resource="spaces/geneb/board"))
    with pytest.raises(SpaceDiffers) as refusal:
        generation_as_published(space, PastGeneration("5" * 40, MADE.manifest))
    assert refusal.value.message == (
        f"spaces/geneb/board at {'5' * 40}: a.json does not match its manifest"
    )
