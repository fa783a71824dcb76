"""From a generation to one commit on the Space: read, compare, refuse or commit, read back."""

import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from geneb_ci.publish.faults import Overtaken, Unknown, Unverified
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import Repository
from geneb_ci.publish.manifest import NAME
from geneb_ci.publish.retry import Clock, attempt
from geneb_ci.publish.shape import Manifest
from geneb_ci.publish.space import Space, State

SHORT = 12  # hex digits of a digest that people read


class Outcome(enum.StrEnum):
    """What a publish did."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Published:
    """Outcome, the Space's commit, and what that says of itself."""

    outcome: Outcome
    commit: str
    manifest: Manifest


class Intent(Protocol):
    """What is to be live: a new generation or, as a rollback, an earlier one."""

    def is_live(self, state: State) -> bool:
        """Whether the Space already is as intended."""

    def generation(self, state: State) -> Generation:
        """Give what is to replace a state. Raises Overtaken where it must not be replaced."""

    def message(self, generation: Generation) -> str:
        """Give the text of the commit."""


@dataclass(frozen=True)
class Newest:
    """The generation of a commit of main, which must follow what is live."""

    made: Generation
    repository: Repository

    def is_live(self, state: State) -> bool:
        """Whether the Space has this generation, in every byte and on its own account."""
        live = state.manifest
        return (
            live is not None
            and live.generation == self.made.manifest.generation
            and live.rollback is None
            and state.holds(self.made.files)
        )

    def generation(self, state: State) -> Generation:
        """Give it unless something newer is live. Raises Overtaken."""
        if state.manifest is not None:
            must_follow(state.manifest, self.made.manifest.source_commit, self.repository)
        return self.made

    def message(self, generation: Generation) -> str:
        """Name the generation and its commit."""
        made = generation.manifest
        return (
            f"Board {made.generation[:SHORT]} of commit {made.source_commit[:SHORT]}\n\n"
            f"Generation: {made.generation}\nSource-commit: {made.source_commit}"
        )


def must_follow(live: Manifest, ours: str, repository: Repository) -> None:
    """Refuse to replace what commit `ours` does not follow. Raises Overtaken."""
    if live.rollback is not None and live.rollback.covers == ours:
        raise Overtaken(
            f"the board of commit {ours} was taken back: generation {live.generation[:SHORT]} of "
            f"commit {live.source_commit} is live on purpose",
            "merge the mend and publish that; or roll back to generation "
            f"{live.rollback.former_generation[:SHORT]} to undo the rollback",
        )
    if not repository.is_ancestor(live.newest_commit, ours):
        raise Overtaken(
            f"the Space answers for commit {live.newest_commit}, which is not an ancestor of ours, "
            f"{ours}: publishing would undo it",
            "publish from the newest main; if main was rewritten on purpose, delete manifest.json "
            "on the Space first",
        )


def push(
    space: Space,
    intent: Intent,
    *,
    clock: Clock = time,
    say: Callable[[str], None] = lambda _: None,
) -> Published:
    """Make what is intended live with one commit, or find that it is. Raises PublishFault."""
    perhaps = False  # whether an earlier try may have made the commit

    def once() -> Published:
        nonlocal perhaps
        # 1. What is there? This also settles a try whose answer was lost.
        state = space.state()
        if state.manifest is not None and intent.is_live(state):
            outcome = Outcome.PUBLISHED if perhaps else Outcome.UNCHANGED
            return Published(outcome, state.head, state.manifest)
        # 2. May it be replaced?
        made = intent.generation(state)
        gone = dropped(state, made)
        # 3. One commit on just this head: what differs, and what we had published and dropped.
        try:
            commit = space.commit(
                state.head, differing(state, made.published), gone, intent.message(made)
            )
        except Unknown:
            perhaps = True
            raise
        perhaps = True
        # 4. Is it there as sent?
        after = space.state(commit)
        if wrong := _wrong(after, made, gone):
            raise Unverified(
                f"{space.resource} at {commit} differs from what was sent: {', '.join(wrong)}",
                "look for a .gitignore on the Space that names them, and at who else writes to it; "
                "then publish again",
            )
        return Published(Outcome.PUBLISHED, commit, made.manifest)

    return attempt(once, clock=clock, say=say)


def _wrong(after: State, made: Generation, gone: list[str]) -> list[str]:
    """Name the files that are not as they were sent, by the Hub's digests and in the manifest."""
    wrong = {*differing(after, made.published), *after.files.keys() & set(gone)}
    if after.manifest != made.manifest:
        wrong.add(NAME)
    return sorted(wrong)


def differing(state: State, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Give the files that a state lacks or has with other bytes."""
    return {name: content for name, content in files.items() if not state.holds({name: content})}


def dropped(state: State, made: Generation) -> list[str]:
    """Name the files that we published earlier and no longer have; others are not ours."""
    ours = state.manifest.files if state.manifest else {}
    return sorted(n for n in ours if n in state.files and n not in made.files and n != NAME)
