"""One commit on the Space: a new generation, or an earlier one put back."""

import enum
import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from geneb_ci.common.errors import UsageProblem
from geneb_ci.publish.faults import HubRefused, NotFastForward, Unknown, Unverified
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.manifest import NAME, Manifest, Rollback
from geneb_ci.publish.session import Clock, attempt
from geneb_ci.publish.space import Space, SpaceState

SHORT = 12  # hex digits of a digest that people read


class PublishOutcome(enum.StrEnum):
    """What a publish did."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Published:
    """Outcome, the Space's commit, and what that says of itself."""

    outcome: PublishOutcome
    commit: str
    manifest: Manifest


class Intent(Protocol):
    """What is to be live: a new generation or, as a rollback, an earlier one."""

    def is_live(self, state: SpaceState) -> bool:
        """Whether the Space already is as intended."""

    def generation(self, state: SpaceState) -> Generation:
        """Return what is to replace a state. Raises Overtaken where it must not be replaced."""

    def message(self, generation: Generation) -> str:
        """Return the text of the commit."""


@dataclass(frozen=True)
class Newest:
    """The generation of a commit of main, which must follow what is live."""

    made: Generation
    repository: GitRepository

    def is_live(self, state: SpaceState) -> bool:
        """Whether the Space has this generation, in every byte and on its own account."""
        live = state.manifest
        return (
            live is not None
            and live.generation == self.made.manifest.generation
            and live.rollback is None
            and state.holds(self.made.files)
        )

    def generation(self, state: SpaceState) -> Generation:
        """Return it unless something newer is live. Raises Overtaken."""
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


def must_follow(live: Manifest, ours: str, repository: GitRepository) -> None:
    """Refuse to replace what commit `ours` does not follow. Raises Overtaken."""
    if live.rollback is not None and live.rollback.covers == ours:
        raise NotFastForward(
            f"the board of commit {ours} was taken back: generation {live.generation[:SHORT]} of "
            f"commit {live.source_commit} is live on purpose",
            "merge the mend and publish that; or roll back to generation "
            f"{live.rollback.former_generation[:SHORT]} to undo the rollback",
        )
    if not repository.is_ancestor(live.newest_commit, ours):
        raise NotFastForward(
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
            outcome = PublishOutcome.PUBLISHED if perhaps else PublishOutcome.UNCHANGED
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
        return Published(PublishOutcome.PUBLISHED, commit, made.manifest)

    return attempt(once, clock=clock, say=say)


def _wrong(after: SpaceState, made: Generation, gone: list[str]) -> list[str]:
    """Name the files that are not as they were sent, by the Hub's digests and in the manifest."""
    wrong = {*differing(after, made.published), *after.files.keys() & set(gone)}
    if after.manifest != made.manifest:
        wrong.add(NAME)
    return sorted(wrong)


def differing(state: SpaceState, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that a state lacks or has with other bytes."""
    return {name: content for name, content in files.items() if not state.holds({name: content})}


def dropped(state: SpaceState, made: Generation) -> list[str]:
    """Name the files that we published earlier and no longer have; others are not ours."""
    ours = state.manifest.files if state.manifest else {}
    return sorted(n for n in ours if n in state.files and n not in made.files and n != NAME)


AS_PUBLISHED = "add --as-published to take the bytes that the Space held then, by their digests"
"""The way out where a generation cannot be rebuilt."""

_NAME = re.compile(r"[0-9a-f]{7,64}")


class Held(NamedTuple):
    """A generation that the Space held at one of its commits."""

    commit: str
    manifest: Manifest


def find_generation(space: Space, name: str) -> Held:
    """Find a generation by the first digits of its digest, among all that the Space ever held.

    Raises UsageProblem when none or several have that name, else what Space raises.
    """
    if not _NAME.fullmatch(name):
        raise UsageProblem(
            f"{name!r} is no generation: expected 7 to 64 hex digits",
            "`geneb-ci publish --verify` names the live one, the Space's commits name all",
        )
    found: dict[str, Held] = {}
    # The text of a commit only says where to look; its manifest decides.
    for past in space.past():
        if f"Generation: {name}" in past.message:
            held = space.state(past.commit).manifest
            if held is not None and held.generation.startswith(name):
                found[held.generation] = Held(past.commit, held)
    if not found:
        raise UsageProblem(
            f"{space.resource} never held a generation {name}",
            "its commits name the generations: https://huggingface.co/"
            f"{space.resource}/commits/main",
        )
    if len(found) > 1:
        raise UsageProblem(f"{name} is short for {len(found)} generations", "give more digits")
    return next(iter(found.values()))


def must_be_of_main(held: Manifest, covers: str, repository: GitRepository) -> None:
    """Refuse a generation of a commit that main up to `covers` does not hold. Raises Refused."""
    if not repository.is_ancestor(held.source_commit, covers):
        raise HubRefused(
            f"generation {held.generation[:SHORT]} is of commit {held.source_commit}, which is not "
            f"an ancestor of ours, {covers}",
            "git pull; if main was rewritten, publish a commit that reverts it instead",
        )


def as_published(space: Space, held: Held) -> Generation:
    """Fetch the bytes of a generation from the Space's own history.

    Raises Unverified where they are not those that its manifest lists, and what Space raises.
    """
    files = {}
    for name, file in held.manifest.files.items():
        files[name] = space.read(name, held.commit)
        if hashlib.sha256(files[name]).hexdigest() != file.sha256:
            raise Unverified(
                f"{space.resource} at {held.commit}: {name} is not what its manifest lists",
                "leave out --as-published, so that it is rebuilt",
            )
    return Generation(files, held.manifest.model_copy(update={"rollback": None}))


def hold_against(held: Manifest, made: Generation) -> None:
    """Refuse a rebuilt generation that is not the one that was published. Raises Refused."""
    if held.generation != made.manifest.generation:
        raise HubRefused(
            f"generation {held.generation[:SHORT]} was built by geneb-ci {held.tool.version}; this "
            f"version, {made.manifest.tool.version}, builds other bytes from commit "
            f"{held.source_commit}",
            AS_PUBLISHED,
        )


@dataclass(frozen=True)
class Earlier:
    """An earlier generation, put in the place of all that main holds up to `covers`."""

    made: Generation
    covers: str
    repository: GitRepository

    def is_live(self, state: SpaceState) -> bool:
        """Whether the Space already has it, in every byte."""
        live = state.manifest
        return (
            live is not None
            and live.generation == self.made.manifest.generation
            and (live.rollback is None or live.rollback.covers == self.covers)
            and state.holds(self.made.files)
        )

    def generation(self, state: SpaceState) -> Generation:
        """Return it with the record of the rollback.

        Raises Overtaken when the Space answers for a commit that this clone does not know of.
        """
        live = state.manifest
        if live is None:
            raise NotFastForward(
                "the Space holds no board of ours, so there is nothing to take back",
                "geneb-ci publish",
            )
        if not self.repository.is_ancestor(live.newest_commit, self.covers):
            raise NotFastForward(
                f"the Space answers for commit {live.newest_commit}, which is not an ancestor of "
                f"ours, {self.covers}: this clone does not hold what is to be taken back",
                "git pull, then roll back",
            )
        if self.covers == self.made.manifest.source_commit:
            return self.made  # the newest board: nothing is taken back any more
        return self.made.rolled_back(
            Rollback(former_generation=live.generation, covers=self.covers)
        )

    def message(self, generation: Generation) -> str:
        """Name what is live again, and up to where it takes main back."""
        made = generation.manifest
        return (
            f"Roll back to board {made.generation[:SHORT]} of commit {made.source_commit[:SHORT]}"
            f"\n\nGeneration: {made.generation}\nSource-commit: {made.source_commit}\n"
            f"Covers: {self.covers}"
        )
