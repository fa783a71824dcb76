"""What stands beside a row: its card and its extractor, on disk or along with it."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geneb_ci.common.config import Layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.submission.bytes import read_bytes
from geneb_ci.submission.card import Card, read_card
from geneb_ci.submission.document import Document
from geneb_ci.submission.fault import Fault


@dataclass(frozen=True)
class Proposed:
    """A row that no folder holds yet, with what comes along with it.

    `raw` is the reason where there are no bytes. Without a card or an extractor of its own, it is
    held against those that lie in the repository.
    """

    raw: bytes | Fault
    card: Card | None = None
    extractors: Mapping[str, bytes] = field(default_factory=dict)
    """Name of each module to its bytes."""


NOTHING = Proposed(b"")
"""Nothing comes along: the row lies in its folder, and so does what belongs to it."""


def card_of(document: Document, layout: Layout, proposed: Proposed) -> Card | None:
    """Return the card that comes along with a row, or else the one that lies in the repository."""
    if proposed.card is not None:
        return proposed.card
    if layout.cards is None:
        return None
    path = layout.cards / f"{document.path.stem}.md"
    return read_card(path, _relative(path, layout))


def extractor_module(value: object) -> str:
    """Return the name of the module that a document's run names, or "".

    Only the last part counts: a path of the contributor's never leads out of the folder.
    """
    path = _extractor_path(value)
    return path.rsplit("/", 1)[-1] if path.endswith(".py") else ""


def is_built_in(value: object) -> bool:
    """Whether a document's run names an extractor that ships with the harness."""
    return _extractor_path(value).startswith("builtin:")


def names_module(document: Document) -> bool:
    """Whether a document's run names an extractor that should lie among the extractors."""
    return bool(extractor_module(document.value)) and not is_built_in(document.value)


def _extractor_path(value: object) -> str:
    for key in ("run", "extractor", "path"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def extractor_digest(document: Document, layout: Layout, proposed: Proposed) -> str | None:
    """Digest the extractor that the run names, if it comes along or lies among the extractors."""
    module = extractor_module(document.value)
    if module in proposed.extractors:
        return hashlib.sha256(proposed.extractors[module]).hexdigest()
    if layout.extractors is None or not module:
        return None
    path = layout.extractors / module
    try:
        raw = read_bytes(path)
    except (NothingChecked, ValueError):  # none there, or a name that no file can have
        return None
    return hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes) else None


def _relative(path: Path, layout: Layout) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return os.path.relpath(path, layout.root)
