"""ledger.json and manifest.json, as the Space holds them: written here, read back with distrust."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import pydantic_core
from pydantic import Field, ValidationError

from geneb_ci import __version__
from geneb_ci.common.types import Hex40, Hex64, Moment, StrictModel, first_error
from geneb_ci.publish.faults import BadManifest, NewerManifest

SCHEMA_VERSION: Final = "1.0"
"""Of ledger.json and manifest.json; a change of shape makes a later one."""
LINE_MAX = 300  # characters; more of a commit message does not help a reader

Line = Annotated[str, Field(max_length=LINE_MAX)]
EventKind = Literal[
    "include", "change", "correction", "audit", "withdrawal", "relabel", "dispute", "removal"
]


class EventEvidence(StrictModel):
    """The file that an event rests on."""

    path: str
    """In the repository of submissions."""
    sha256: Hex64 | None
    """Digest of its bytes; null where the event is that it went away."""


class Event(StrictModel):
    """One thing that happened to one row."""

    when: Moment
    """Time of the commit, UTC."""
    commit: Hex40
    model: str
    kind: EventKind
    level: str | None
    """Trust level of the row after the event; null when there is no row any more."""
    former_level: str | None
    """Trust level before it; null when there was no row."""
    who: Line
    """Who answers for it: trailers of the commit, or its author."""
    why: Line
    """The reason: a trailer of the commit, or its subject."""
    evidence: EventEvidence


class Ledger(StrictModel):
    """ledger.json: what happened to every row, oldest first. A function of the git history."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    events: list[Event]


class Tool(StrictModel):
    """What built the files."""

    name: Literal["geneb-ci"] = "geneb-ci"
    version: str


class PublishedFile(StrictModel):
    """One published file."""

    sha256: Hex64
    bytes: Annotated[int, Field(ge=0)]


class Rollback(StrictModel):
    """An older generation was put in the place of a newer one."""

    former_generation: Hex64
    """What was live before."""
    covers: Hex40
    """The newest commit that the rollback takes back: only what comes after it is published."""


class Manifest(StrictModel):
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


NAME = "manifest.json"
# 19 files make 2.6 kB; a page of a hundred files would make 15.
BYTES_MAX = 1_000_000


def manifest_of(
    files: Mapping[str, bytes], source_commit: str, rollback: Rollback | None = None
) -> Manifest:
    """Describe the files of a generation."""
    described = {
        name: PublishedFile(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
        for name, content in sorted(files.items())
    }
    return Manifest(
        generation=generation_digest(
            {name: file.sha256 for name, file in described.items()}, source_commit
        ),
        source_commit=source_commit,
        tool=Tool(version=__version__),
        rollback=rollback,
        files=described,
    )


def generation_digest(sha256: Mapping[str, str], source_commit: str) -> str:
    """Name a generation: sha256 over its source commit and, by name, the digest of each file."""
    lines = [source_commit, *(f"{digest}  {name}" for name, digest in sorted(sha256.items()))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of manifest.json."""
    value = manifest.model_dump(mode="json")
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


def parse_manifest(raw: bytes, where: str) -> Manifest:
    """Read a manifest from a Space; its generation must follow from what it lists.

    Raises BadManifest when it cannot be one of ours, NewerManifest when it is of a later format.
    """
    try:
        found = Manifest.model_validate_json(raw)
    except ValidationError as error:
        _refuse_newer(raw, where)
        raise BadManifest(where, first_error(error)) from error
    said = {name: file.sha256 for name, file in found.files.items()}
    if generation_digest(said, found.source_commit) != found.generation:
        raise BadManifest(where, "its generation does not follow from its files")
    return found


_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")


def _refuse_newer(raw: bytes, where: str) -> None:
    """Raise NewerManifest where a document says that it is of a later format than ours."""
    try:
        # It bounds the depth by itself; json does not once py_ecc has raised Python's limit.
        told = _VERSION.fullmatch(pydantic_core.from_json(raw)["schema_version"])
    except (ValueError, TypeError, KeyError):
        return
    ours = tuple(map(int, SCHEMA_VERSION.split(".")))
    if told is not None and tuple(map(int, told.groups())) > ours:
        raise NewerManifest(
            f"{where}: manifest.json is of format {told[0]}, and geneb-ci {__version__} knows "
            f"{SCHEMA_VERSION}: a later version published it",
            "update geneb-ci to that of main",
        )
