"""What belongs to a row: its card, its extractor, and what is known by the digest of its file."""

import array
import contextlib
import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.common.config import Layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.files import in_processes, read_json, seal
from geneb_ci.common.finding import Fault
from geneb_ci.submission.document import Document, quick_value
from geneb_ci.submission.names import Card, read_card
from geneb_ci.submission.peers import (
    ROWS_MAX,
    Known,
    PeerRow,
    ReadRow,
    Shapes,
    lot,
    packed_digest,
    read_row,
)
from geneb_ci.submission.reading import decode, read_bytes
from geneb_ci.submission.tokens import UNUSABLE


@dataclass(frozen=True)
class Proposed:
    """A row that is not in the repository yet, with the files submitted together with it.

    `raw` is a Fault if the bytes could not be read. Without its own card or extractor, the row is
    checked against those in the repository.
    """

    raw: bytes | Fault
    card: Card | None = None
    extractors: Mapping[str, bytes] = field(default_factory=dict)
    """Module file name to its bytes."""


NOTHING = Proposed(b"")
"""No submitted files: the row, its card and its extractor are in their folders."""


def card_of(document: Document, layout: Layout, proposed: Proposed) -> Card | None:
    """Return the card submitted with a row, or else the one in the repository."""
    if proposed.card is not None:
        return proposed.card
    return card_at(document.path, layout)


def card_at(row: Path, layout: Layout) -> Card | None:
    """Return the card in the repository of the row at a path."""
    if layout.cards is None:
        return None
    path = layout.cards / f"{row.stem}.md"
    return read_card(path, _relative(path, layout))


def extractor_module(value: object) -> str:
    """Return the file name of the extractor module in a document's run, or "".

    Only the last path component is used, so that no path can leave the folder of extractors.
    """
    path = _extractor_path(value)
    return path.rsplit("/", 1)[-1] if path.endswith(".py") else ""


def is_built_in(value: object) -> bool:
    """Whether a document's run names an extractor that ships with the harness."""
    return _extractor_path(value).startswith("builtin:")


def names_module(document: Document) -> bool:
    """Whether a document's run names an extractor that should be in the folder of extractors."""
    return bool(extractor_module(document.value)) and not is_built_in(document.value)


def _extractor_path(value: object) -> str:
    for key in ("run", "extractor", "path"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def extractor_digest(document: Document, layout: Layout, proposed: Proposed) -> str | None:
    """Return the SHA-256 of the run's extractor, submitted or in the repository; None if absent."""
    return module_digest(extractor_module(document.value), layout, proposed)


def module_digest(module: str, layout: Layout, proposed: Proposed) -> str | None:
    """Return the SHA-256 of an extractor by its file name, as `extractor_digest` does."""
    if module in proposed.extractors:
        return hashlib.sha256(proposed.extractors[module]).hexdigest()
    if layout.extractors is None or not module:
        return None
    path = layout.extractors / module
    try:
        raw = read_bytes(path)
    except (NothingChecked, ValueError):  # no such file, or an impossible file name
        return None
    return hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes) else None


def _relative(path: Path, layout: Layout) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return os.path.relpath(path, layout.root)


class RowFacts(NamedTuple):
    """Facts that follow from the bytes of a row."""

    model_id: str
    digest: str
    """Of its scores."""
    forms: tuple[tuple[str, str], ...]
    """Skeletons of its names, each with the name."""
    is_plain: bool
    """Whether its text has no fault: results of others are not kept."""
    module: str
    """File name of the extractor that its run names, or ""; of a plain row."""
    benchmark: str
    """Name of the benchmark of its run, or ""; of a plain row."""


def plain_value(raw: bytes) -> Any:
    """Return the value of a text without a fault; UNUSABLE for any other."""
    text, readable, faults = decode(raw)
    return quick_value(text) if readable and not faults else UNUSABLE


def facts_of(value: Any, row: ReadRow) -> RowFacts:
    """Return the facts of a row from its plain value, and from what its neighbours read of it."""
    named = value.get("run") if isinstance(value, dict) else None
    named = named.get("benchmark") if isinstance(named, dict) else None
    named = named.get("name") if isinstance(named, dict) else None
    return RowFacts(
        row.model_id,
        row.digest,
        row.forms,
        value is not UNUSABLE,
        extractor_module(value),
        named if isinstance(named, str) else "",
    )


RECENT_MAX = 64
"""Values that are kept, of up to a megabyte as text."""
_NONE_KNOWN: dict[str, Known] = {}


class RowSource:
    """Reads rows for `Peers`, each once for the bytes that it has."""

    def __init__(self, *, learns: bool = True) -> None:
        self.learns = learns
        """Whether facts are kept; otherwise each row is just read."""
        self.facts: dict[str, RowFacts] = {}
        self.values: dict[str, tuple[tuple[str, ...], array.array[float]]] = {}
        """SHA-256 of a file to the names and values of its scores, for rows that are compared."""
        self.recent: dict[str, Any] = {}
        """SHA-256 of a file without faults to its value; of the first files, which take memory."""
        self.is_changed = False
        self.used: dict[str, None] = {}
        self._lines: dict[str, bytes] = {}
        """SHA-256 of a file to its facts, as an earlier run kept them."""
        self._sha256: dict[Path, str] = {}
        self._shapes: Shapes = {}

    def seen(self, path: Path, raw: bytes) -> str:
        """Return the digest of a file that was read already, and remember it."""
        found = self._sha256[path] = hashlib.sha256(raw).hexdigest()
        return found

    def sha256_of(self, path: Path) -> str:
        """Return the digest of a file when it was first read; "" if it was not."""
        return self._sha256.get(path, "")

    def reader(self, known: Mapping[str, Known]) -> Callable[[Path, bool], ReadRow]:
        """Return what reads a row, where files of these digests are known already."""
        return functools.partial(self.read, known=known)

    def read(self, path: Path, keep: bool, known: Mapping[str, Known] = _NONE_KNOWN) -> ReadRow:
        """Return a row as `read_row` does; of a known one, the scores that are known."""
        sha256 = self._sha256.get(path)
        raw: bytes | Fault | None = None
        if sha256 is None:
            try:
                raw = read_bytes(path)
            except NothingChecked:
                return read_row(path, self._shapes, keep=keep)
            if isinstance(raw, Fault):
                return read_row(path, self._shapes, keep=keep, raw=raw)
            sha256 = self.seen(path, raw)
        if sha256 in known:
            return known[sha256].at(path, keep=keep)
        if not self.learns:
            return read_row(path, self._shapes, keep=keep, raw=raw)
        facts = self.known(sha256)
        if facts is None or (keep and facts.digest and sha256 not in self.values):
            return self._parsed(path, sha256, raw, keep=keep)
        self.used[sha256] = None
        row = PeerRow(path, *self.values[sha256]) if keep and facts.digest else None
        return ReadRow(path, facts.model_id, facts.digest, facts.forms, row)

    def _parsed(self, path: Path, sha256: str, raw: bytes | Fault | None, *, keep: bool) -> ReadRow:
        if raw is None:
            try:
                raw = read_bytes(path)
            except NothingChecked:
                raw = b""
        is_same = isinstance(raw, bytes) and hashlib.sha256(raw).hexdigest() == sha256
        value = plain_value(raw) if isinstance(raw, bytes) and is_same else UNUSABLE
        known = None if value is UNUSABLE else value
        row = read_row(path, self._shapes, keep=keep, raw=raw, value=known)
        if known is not None and len(self.recent) < RECENT_MAX:
            self.recent[sha256] = value
        if is_same:
            self.learn(sha256, facts_of(value, row), row.row)
        return row

    def learn_all(self, files: Mapping[Path, str], jobs_for: Callable[[int], int]) -> None:
        """Parse files that are not known, given with their digests, if by several processes."""
        kept, shapes = set(sorted(files, key=lot)[:ROWS_MAX]), self._shapes

        def parsed(path: Path) -> tuple[RowFacts | None, tuple[str, ...], bytes]:
            found = RowSource()
            found._shapes = shapes  # one tuple of names is sent once for all files of a chunk
            row = found._parsed(path, files[path], None, keep=path in kept).row
            names, values = ((), b"") if row is None else (row.names, _packed(row.values))
            return found.facts.get(files[path]), names, values

        paths = [path for path, sha256 in files.items() if self.known(sha256) is None]
        jobs = jobs_for(len(paths))
        if jobs == 1:
            return  # each is parsed where it is needed, and its value used there
        learned = in_processes(parsed, paths, jobs, CHUNK)
        for path, (facts, names, raw) in zip(paths, learned, strict=True):
            if facts is not None:
                row = PeerRow(path, names, _unpacked(raw)) if raw else None
                self.learn(files[path], facts, row)

    def known(self, sha256: str) -> RowFacts | None:
        """Return the facts of a file by its digest; None where they are not known, or in doubt."""
        if sha256 not in self.facts and sha256 in self._lines:
            try:
                self.facts[sha256] = _read_facts(sha256, self._lines[sha256])
            except ValueError:
                del self._lines[sha256]
        return self.facts.get(sha256)

    def learn(self, sha256: str, facts: RowFacts, row: PeerRow | None) -> None:
        """Remember the facts of a file, and its scores if they are kept."""
        self.facts[sha256] = facts
        self.used[sha256] = None
        self.is_changed = True
        if row is not None:
            names = self._shapes.setdefault(row.names, row.names)
            self.values[sha256] = (names, row.values)

    def dumped(self, most: int) -> tuple[dict[str, bytes], bytes]:
        """Return facts, a line each, and scores, of at most `most` files, used ones first."""
        others = [one for one in self._lines if one not in self.used]
        lines = {}
        for sha256 in [*self.used, *others][:most]:
            lines[sha256] = self._lines.get(sha256) or _facts_line(sha256, self.facts[sha256])
        shapes: dict[tuple[str, ...], int] = {}
        listed, content = [], []
        for sha256 in lines:
            if sha256 in self.values and sha256 in self.used:
                names, values = self.values[sha256]
                listed.append([sha256, shapes.setdefault(names, len(shapes))])
                content.append(_packed(values))
        head = json.dumps({"shapes": [list(names) for names in shapes], "rows": listed})
        return lines, head.encode() + b"\n" + b"".join(content)

    def load(self, lines: dict[str, bytes], scores: bytes | None) -> None:
        """Take what `dumped` gave; of anything else, what is whole."""
        self._lines = lines
        head, _, content = (scores or b"").partition(b"\n")
        with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):
            self._load_scores(read_json(head, own=True), content)

    def _load_scores(self, value: Any, content: bytes) -> None:
        shapes = [tuple(names) for names in value["shapes"]]
        joined = ["\0".join(names) for names in shapes]
        at = 0
        for sha256, shape in value["rows"]:
            raw = content[at : at + 8 * len(shapes[shape])]
            at += len(raw)
            facts = self.known(sha256)
            if facts is None or facts.digest != packed_digest(joined[shape], raw):
                continue  # cut, or those of another file
            self._shapes.setdefault(shapes[shape], shapes[shape])
            self.values[sha256] = (shapes[shape], _unpacked(raw))


def _facts_line(sha256: str, facts: RowFacts) -> bytes:
    text = json.dumps(facts, separators=(",", ":")).encode()
    return f"{seal(sha256, text)} ".encode() + text


def _read_facts(sha256: str, line: bytes) -> RowFacts:
    """Return the facts of a line. Raises ValueError for anything that `_facts_line` did not write.

    Neither its shape nor a type of it is taken on trust.
    """
    own, _, text = line.partition(b" ")
    if own.decode("ascii") != seal(sha256, text):
        raise ValueError("the facts of another file")
    try:
        model_id, digest, forms, is_plain, module, benchmark = read_json(text, own=True)
        pairs = tuple((form, name) for form, name in forms)
    except TypeError as error:
        raise ValueError("other than facts") from error
    told = (model_id, digest, is_plain, module, benchmark)
    if tuple(map(type, told)) != (str, str, bool, str, str) or type(forms) is not list:
        raise ValueError("facts of other types")
    if any(type(one) is not list for one in forms) or {type(x) for pair in pairs for x in pair} - {
        str
    }:
        raise ValueError("names of other types")
    if len(digest) not in {0, 64} or "/" in module:
        raise ValueError("facts of no file")
    return RowFacts(model_id, digest, pairs, is_plain, module, benchmark)


CHUNK = 16
"""Files that a process takes at once: a tenth of a second of work."""


def _packed(numbers: "array.array[float]") -> bytes:
    """Return numbers as little-endian doubles, on every machine."""
    if sys.byteorder == "little":
        return numbers.tobytes()
    swapped = array.array("d", numbers)
    swapped.byteswap()
    return swapped.tobytes()


def _unpacked(raw: bytes) -> "array.array[float]":
    numbers = array.array("d", raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
