"""The list of signed statements in a published board, by which a deleted one is detected."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from geneb_ci.audit.record.history import History
from geneb_ci.audit.record.old_log import LogBroken
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.submission.reading import read_bytes
from reference_harness.formats.base import Hex64, StrictModel, first_error

STATEMENTS_PATH = "audits/statements.json"
"""Path of the list of signed statements in a published board."""
STATEMENTS_BYTES_MAX = 10_000_000
"""Largest size of the list, in bytes: 70,000 statements of 130 bytes fit."""


class PublishedStatements(StrictModel):
    """audits/statements.json: every signed statement of a board, by path below its audits."""

    schema_version: Literal["1.0"]
    heads: dict[str, Hex64]
    """SHA-256 of each statement that no other statement names, by path."""
    statements: dict[str, Hex64]
    """SHA-256 of each file, of the checkpoint of an old log, and of each revocation of a key."""


def statements_file(history: History) -> dict[str, bytes]:
    """Return path and content of audits/statements.json; {} if nothing is signed."""
    if not history.digests:
        return {}
    statements = PublishedStatements(
        schema_version="1.0", heads=history.heads, statements=history.digests
    ).model_dump()
    return {STATEMENTS_PATH: json.dumps(statements, indent=1, ensure_ascii=True).encode() + b"\n"}


def statements_in(raw: bytes) -> dict[str, str]:
    """Return the digest of each listed statement, by name. Raises ValueError for another file."""
    try:
        return PublishedStatements.model_validate_json(raw).statements
    except ValidationError as error:
        raise ValueError(first_error(error)) from error


def published_losses(
    published_digests: Mapping[str, str], present_digests: Mapping[str, str]
) -> list[str]:
    """Return a clause about each published statement that was deleted or changed, by name."""
    return [
        f"{name} was {'changed' if name in present_digests else 'deleted'}"
        for name, sha256 in sorted(published_digests.items())
        if present_digests.get(name) != sha256
    ]


def require_published(files: Sequence[Path], layout: Layout) -> None:
    """Raise LogBroken if the repository lost a statement of a published board.

    `files` are copies of audits/statements.json of published boards. Raises NothingChecked for
    another file, and for a list without statements.
    """
    digest_by_name = AuditRepository(layout).history.digests if files else {}
    for file in files:
        raw = read_bytes(file)
        try:
            published = statements_in(raw if isinstance(raw, bytes) else b"")
        except ValueError as error:
            raise NothingChecked(
                f"{file}: this is not the list of statements of a published board: {error}",
                f"name {STATEMENTS_PATH} of a published board, of any generation",
            ) from error
        if not published:
            raise NothingChecked(
                f"{file}: it lists no statement, so nothing was compared",
                f"name {STATEMENTS_PATH} of a board that was published after the first audit",
            )
        if lost := published_losses(published, digest_by_name):
            raise LogBroken(f"statements in {file} were lost: {'; '.join(lost)}")
