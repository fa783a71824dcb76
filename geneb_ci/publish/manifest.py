"""Models of ledger.json and manifest.json on the Space, with which fetched files are validated."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import pydantic_core
from pydantic import Field, ValidationError

from geneb_ci import __version__
from geneb_ci.publish.faults import BadManifest, NewerManifest
from reference_harness.formats.base import Hex40, Hex64, Moment, StrictModel, first_error
from reference_harness.formats.files import dumps

SCHEMA_VERSION: Final = "1.0"
"""Format version of ledger.json and manifest.json."""
LINE_CHARACTERS_MAX = 300
"""Maximum length of a line of a commit message; the rest is cut off."""

Line = Annotated[str, Field(max_length=LINE_CHARACTERS_MAX)]
"""A line of a commit message."""
EventKind = Literal[
    "include", "change", "correction", "audit", "withdrawal", "relabel", "dispute", "removal"
]
"""Kinds of events in the history of a row."""


class EventEvidence(StrictModel):
    """The file that is the evidence of an event."""

    path: str
    """Path in the repository of submissions."""
    sha256: Hex64 | None
    """SHA-256 of the file; null if it was deleted."""


class Event(StrictModel):
    """One event in the history of a row, caused by a commit."""

    when: Moment
    """Time of the commit, UTC."""
    commit: Hex40
    model: str
    kind: EventKind
    level: str | None
    """Trust level of the row after the event; null if the row was removed."""
    former_level: str | None
    """Trust level before the event; null if there was no row."""
    who: Line
    """Who is responsible: from trailers of the commit, or its author."""
    why: Line
    """The reason: a trailer of the commit, or its subject."""
    evidence: EventEvidence


class Ledger(StrictModel):
    """ledger.json: the events of all rows, oldest first, computed from the git history."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    events: list[Event]


class Tool(StrictModel):
    """The program that built the files."""

    name: Literal["geneb-ci"] = "geneb-ci"
    version: str


class PublishedFile(StrictModel):
    """One published file."""

    sha256: Hex64
    bytes: Annotated[int, Field(ge=0)]


class Rollback(StrictModel):
    """Record of a rollback to an earlier generation."""

    former_generation: Hex64
    """The generation that was live before."""
    covers: Hex40
    """The newest commit that was rolled back; only later commits can be published."""


class Manifest(StrictModel):
    """manifest.json: the generation of the board on the Space, and its commit."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    generation: Hex64
    """Id of this state of the board: digest of `source_commit` and of the files."""
    source_commit: Hex40
    """The newest commit on the main line that the files depend on."""
    tool: Tool
    rollback: Rollback | None = None
    """Null unless this is a rollback."""
    files: dict[str, PublishedFile]
    """Every published file except this one."""

    @property
    def newest_commit(self) -> str:
        """The newest commit that this state includes or rolls back."""
        return self.rollback.covers if self.rollback else self.source_commit


MANIFEST_FILE = "manifest.json"
"""File of the Space that names its generation and the digest of each file."""
# 19 files take 2.6 kB, a hundred files 15 kB.
MANIFEST_BYTES_MAX = 1_000_000


def manifest_of(files: Mapping[str, bytes], source_commit: str) -> Manifest:
    """Return the manifest of a generation with these files."""
    published_files = {
        name: PublishedFile(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
        for name, content in sorted(files.items())
    }
    return Manifest(
        generation=generation_digest(
            {name: file.sha256 for name, file in published_files.items()}, source_commit
        ),
        source_commit=source_commit,
        tool=Tool(version=__version__),
        files=published_files,
    )


def generation_digest(digests: Mapping[str, str], source_commit: str) -> str:
    """Return the id of a generation: SHA-256 of its commit and files' digests, by file name."""
    lines = [source_commit, *(f"{digest}  {name}" for name, digest in sorted(digests.items()))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of manifest.json."""
    return dumps(manifest.model_dump(mode="json"))


def parse_manifest(raw: bytes, where: str) -> Manifest:
    """Return the validated manifest of a Space; `where` names the file in errors.

    Raises BadManifest if it is invalid or its generation does not follow from its files, and
    NewerManifest if its format is newer.
    """
    try:
        manifest = Manifest.model_validate_json(raw)
    except ValidationError as error:
        _refuse_newer(raw, where)
        raise BadManifest(where, first_error(error)) from error
    digests = {name: file.sha256 for name, file in manifest.files.items()}
    if generation_digest(digests, manifest.source_commit) != manifest.generation:
        raise BadManifest(
            where,
            "the member generation does not follow from source_commit and files",
        )
    return manifest


_VERSION_PATTERN = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")
"""Version of a format: two numbers."""


def _refuse_newer(raw: bytes, where: str) -> None:
    """Raise NewerManifest if the format version of a document is newer than ours."""
    try:
        # pydantic_core raises ValueError for text that is nested too deeply, too.
        version = _VERSION_PATTERN.fullmatch(pydantic_core.from_json(raw)["schema_version"])
    except (ValueError, TypeError, KeyError):
        return
    supported = tuple(map(int, SCHEMA_VERSION.split(".")))
    if version is not None and tuple(map(int, version.groups())) > supported:
        raise NewerManifest(
            f"{where}: manifest.json has format {version[0]}, but geneb-ci {__version__} supports "
            f"only {SCHEMA_VERSION}",
            "update geneb-ci to the version of main",
        )
