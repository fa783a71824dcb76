"""manifest.json: made from the files of a generation, and read back with distrust."""

import hashlib
import json
import re
from collections.abc import Mapping

import pydantic_core
from pydantic import ValidationError

from geneb_ci import __version__
from geneb_ci.publish.faults import BadManifest, NewerManifest
from geneb_ci.publish.shape import SCHEMA_VERSION, Manifest, PublishedFile, Rollback, Tool

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
    """Give the bytes of manifest.json."""
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
        first = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in first["loc"]) or "the document"
        raise BadManifest(where, f"{place}: {first['msg']}") from error
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
