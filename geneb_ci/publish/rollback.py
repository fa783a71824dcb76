"""Puts an earlier generation in the place of the live one, and keeps stale jobs from undoing it."""

import hashlib
import re
from dataclasses import dataclass
from typing import NamedTuple

from geneb_ci.errors import UsageProblem
from geneb_ci.publish.faults import Overtaken, Refused, Unverified
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import Repository
from geneb_ci.publish.push import SHORT
from geneb_ci.publish.shape import Manifest, Rollback
from geneb_ci.publish.space import Space, State

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


def must_be_of_main(held: Manifest, covers: str, repository: Repository) -> None:
    """Refuse a generation of a commit that main up to `covers` does not hold. Raises Refused."""
    if not repository.is_ancestor(held.source_commit, covers):
        raise Refused(
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
        raise Refused(
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
    repository: Repository

    def is_live(self, state: State) -> bool:
        """Whether the Space already has it, in every byte."""
        live = state.manifest
        return (
            live is not None
            and live.generation == self.made.manifest.generation
            and (live.rollback is None or live.rollback.covers == self.covers)
            and state.holds(self.made.files)
        )

    def generation(self, state: State) -> Generation:
        """Give it with the record of the rollback.

        Raises Overtaken when the Space answers for a commit that this clone does not know of.
        """
        live = state.manifest
        if live is None:
            raise Overtaken(
                "the Space holds no board of ours, so there is nothing to take back",
                "geneb-ci publish",
            )
        if not self.repository.is_ancestor(live.newest_commit, self.covers):
            raise Overtaken(
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
