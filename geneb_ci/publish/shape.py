"""ledger.json and manifest.json, as the Space holds them."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION: Final = "1.0"
"""Of ledger.json and manifest.json; a change of shape makes a later one."""
LINE_MAX = 300  # characters; more of a commit message does not help a reader

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Line = Annotated[str, Field(max_length=LINE_MAX)]
Moment = Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}Z$")]
Kind = Literal[
    "include", "change", "correction", "audit", "withdrawal", "relabel", "dispute", "removal"
]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Evidence(_Shape):
    """The file that an event rests on."""

    path: str
    """In the repository of submissions."""
    sha256: Hex64 | None
    """Digest of its bytes; null where the event is that it went away."""


class Event(_Shape):
    """One thing that happened to one row."""

    when: Moment
    """Time of the commit, UTC."""
    commit: Hex40
    model: str
    kind: Kind
    level: str | None
    """Trust level of the row after the event; null when there is no row any more."""
    former_level: str | None
    """Trust level before it; null when there was no row."""
    who: Line
    """Who answers for it: trailers of the commit, or its author."""
    why: Line
    """The reason: a trailer of the commit, or its subject."""
    evidence: Evidence


class Ledger(_Shape):
    """ledger.json: what happened to every row, oldest first. A function of the git history."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    events: list[Event]


class Tool(_Shape):
    """What built the files."""

    name: Literal["geneb-ci"] = "geneb-ci"
    version: str


class PublishedFile(_Shape):
    """One published file."""

    sha256: Hex64
    bytes: Annotated[int, Field(ge=0)]


class Rollback(_Shape):
    """An older generation was put in the place of a newer one."""

    former_generation: Hex64
    """What was live before."""
    covers: Hex40
    """The newest commit that the rollback takes back: only what comes after it is published."""


class Manifest(_Shape):
    """manifest.json: which generation of the board the Space holds, and from which commit."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    generation: Hex64
    """Digest of `source_commit` and of the files: names this state of the board."""
    source_commit: Hex40
    """The newest commit on the main line that the files depend on."""
    tool: Tool
    rollback: Rollback | None = None
    """Null unless an older generation was published again on purpose."""
    files: dict[str, PublishedFile]
    """Every published file but this one; other files on the Space are not ours."""

    @property
    def newest_commit(self) -> str:
        """The newest commit that this state of the Space answers for."""
        return self.rollback.covers if self.rollback else self.source_commit
