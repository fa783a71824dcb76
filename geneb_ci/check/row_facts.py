"""The files that belong to a row: its card and its extractor."""

import functools
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geneb_ci.common.config import Layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Fault
from geneb_ci.submission.document import Document
from geneb_ci.submission.names import Card, read_card
from geneb_ci.submission.reading import disguise_fault, read_bytes
from reference_harness.formats.files import text_at
from reference_harness.formats.package_lock import lock_beside
from reference_harness.formats.recognition import disguise_of


@dataclass(frozen=True)
class ProposedRow:
    """A row that is not in the repository yet, with the files submitted together with it.

    Without its own card or extractor, the row is checked against those in the repository.
    """

    raw: bytes | Fault
    """Bytes of the row; a Fault if they could not be read."""
    card: Card | None = None
    extractors: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes by file name, of modules and of the lock files beside them."""


EMPTY_ROW = ProposedRow(b"")
"""A row without submitted files: row, card and extractor are read from their folders."""


def card_of(document: Document, layout: Layout, proposed: ProposedRow) -> Card | None:
    """Return the card that was submitted with a row, or else its card in the repository."""
    if proposed.card is not None:
        return proposed.card
    return card_at(document.path, layout)


def card_at(row: Path, layout: Layout) -> Card | None:
    """Return the card in the repository for the row at the path `row`; None if there is none."""
    if layout.cards is None:
        return None
    path = layout.cards / f"{row.stem}.md"
    return read_card(path, _shown_path(path, layout))


def extractor_module(document: object) -> str:
    """Return the file name of the extractor module in a document's run, or "".

    Only the last path component is used, so that no path can leave the folder of extractors.
    """
    path = text_at(document, "run", "extractor", "path")
    return path.rsplit("/", 1)[-1] if path.endswith(".py") else ""


def is_built_in(document: object) -> bool:
    """Whether a document's run names an extractor that ships with the harness."""
    return text_at(document, "run", "extractor", "path").startswith("builtin:")


def names_module(document: Document) -> bool:
    """Whether a document's run names an extractor file that the repository should have."""
    return bool(extractor_module(document.value)) and not is_built_in(document.value)


@dataclass(frozen=True)
class ExtractorFile:
    """The module of an extractor that a run names, or the lock file of this extractor."""

    name: str
    """Path that findings show."""
    raw: bytes

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the file, as hex digits."""
        return hashlib.sha256(self.raw).hexdigest()

    @functools.cached_property
    def fault(self) -> Fault | None:
        """The fault of a file that is not a Python module, such as a Git LFS pointer."""
        disguise = disguise_of(self.raw, markup=True)
        if disguise is None:
            return None
        line = disguise.lines[0]
        return disguise_fault(disguise, "a module of Python", at=line, file=self.name)


def extractor_of(document: Document, layout: Layout, proposed: ProposedRow) -> ExtractorFile | None:
    """Return the run's extractor, from the submission or the repository; None if absent."""
    module = extractor_module(document.value)
    if layout.extractors is None or not module:
        raw: bytes | Fault | None = proposed.extractors.get(module)
        return ExtractorFile(module, raw) if isinstance(raw, bytes) else None
    path = layout.extractors / module
    try:
        raw = proposed.extractors[module] if module in proposed.extractors else read_bytes(path)
        relative_path = _shown_path(path, layout)
    except (NothingChecked, ValueError):  # no such file, or an impossible file name
        return None
    return ExtractorFile(relative_path, raw) if isinstance(raw, bytes) else None


def lock_of(document: Document, layout: Layout, proposed: ProposedRow) -> ExtractorFile | None:
    """Return the lock file of the run's extractor, submitted or in the repository; None if absent.

    A lock file that the pull request deletes counts as one without bytes.
    """
    module = extractor_module(document.value)
    if layout.extractors is None or not module:
        return None
    path = lock_beside(layout.extractors / module)
    try:
        submitted = proposed.extractors.get(path.name)
        raw = read_bytes(path) if submitted is None else submitted
        relative_path = _shown_path(path, layout)
    except (NothingChecked, ValueError):  # no such file, or an impossible file name
        return None
    return ExtractorFile(relative_path, raw if isinstance(raw, bytes) else b"")


def _shown_path(path: Path, layout: Layout) -> str:
    """Return a path relative to the current folder if it is in it, else to the root."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return os.path.relpath(path, layout.root)
