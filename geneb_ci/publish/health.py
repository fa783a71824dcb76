"""Holds what the Space serves against its own manifest and against main."""

import enum
import hashlib
from dataclasses import dataclass

from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import Repository
from geneb_ci.publish.shape import Manifest
from geneb_ci.publish.space import Space


class Standing(enum.StrEnum):
    """How the live generation stands to that of main."""

    CURRENT = "current"
    ROLLED_BACK = "rolled back"
    BEHIND = "behind"
    AHEAD = "ahead"
    OTHER = "other"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Health:
    """What a look at the Space found."""

    standing: Standing
    head: str
    live: Manifest | None
    altered: tuple[str, ...]
    """Files that the Space serves with other bytes than its manifest says, or not at all."""

    @property
    def sound(self) -> bool:
        """Whether the right board is served, whole."""
        right = self.standing in {Standing.CURRENT, Standing.ROLLED_BACK}
        return right and not self.altered


def look(space: Space, made: Generation, repository: Repository) -> Health:
    """Fetch every published file and digest it; compare the generation with that of main.

    Raises Setback and PublishFault.
    """
    state = space.state()
    live = state.manifest
    if live is None:
        return Health(Standing.NOTHING, state.head, None, ())
    altered = tuple(
        name
        for name, file in live.files.items()
        if name not in state.files
        or hashlib.sha256(space.read(name, state.head)).hexdigest() != file.sha256
    )
    return Health(_standing(live, made.manifest, repository), state.head, live, altered)


def _standing(live: Manifest, main: Manifest, repository: Repository) -> Standing:
    if live.generation == main.generation:
        return Standing.CURRENT
    if live.rollback is not None and live.rollback.covers == main.source_commit:
        return Standing.ROLLED_BACK
    if live.source_commit == main.source_commit:
        return Standing.OTHER  # the same commit, built by another version
    if repository.is_ancestor(live.newest_commit, main.source_commit):
        return Standing.BEHIND
    if repository.is_ancestor(main.source_commit, live.newest_commit):
        return Standing.AHEAD
    return Standing.OTHER
