"""The other rows of a board, with which rules compare a submission."""

import array
import codecs
import contextlib
import functools
import hashlib
import itertools
import math
import re
import struct
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Fault
from geneb_ci.submission.names import skeletons
from geneb_ci.submission.reading import BY_PARTS, read_bytes
from reference_harness.formats.files import member_at, read_json, text_at

# Limit of the rows kept for comparison: 900 doubles each, 4 MB in all.
ROWS_MAX = 500
_SEPARATORS = re.compile(r"[-_.]+")


def normal_form(model_id: str) -> str:
    """Return the form in which ids must be unique: case-folded, runs of - _ . as one hyphen."""
    return _SEPARATORS.sub("-", model_id.casefold())


def results_digest(results: Any) -> str | None:
    """Return the digest of all scores, independent of the order of keys; None without scores."""
    names, values = named_scores(results)
    return _digest(names, values) if values else None


def _digest(names: tuple[str, ...], values: "array.array[float]") -> str:
    digest = _digest_of_names(names).copy()
    digest.update(struct.pack(f"<{len(values)}d", *values))  # little-endian on every machine
    return digest.hexdigest()


@functools.lru_cache(maxsize=4)
def _digest_of_names(names: tuple[str, ...]) -> "hashlib._Hash":
    """Return the digest of names, with which that of scores begins; most rows share it."""
    return hashlib.sha256("\0".join(names).encode())


def named_scores(results: Any) -> "tuple[tuple[str, ...], array.array[float]]":
    """Return names and values of all scores of a results table, sorted by name."""
    numbers: list[float] = []
    if isinstance(results, dict) and all(
        isinstance(regime_results, dict) for regime_results in results.values()
    ):
        cells = [cell for tasks in results.values() for cell in tasks.values()]
        if set(map(type, cells)) == {dict}:
            numbers = list(itertools.chain.from_iterable(map(dict.values, cells)))
        if len(numbers) > 1 and set(map(type, numbers)) == {float}:  # nearly every row
            tasks = tuple((regime, *results[regime]) for regime in results)
            names, ordered = _names(tasks, tuple(map(tuple, cells)))
            return names, array.array("d", [number + 0.0 for number in ordered(numbers)])
    return _named_scores(results)


@functools.lru_cache(maxsize=4)
def _names(
    regimes: tuple[tuple[str, ...], ...], metrics: tuple[tuple[str, ...], ...]
) -> "tuple[tuple[str, ...], itemgetter[Any]]":
    """Return the sorted names of scores, and what sorts these.

    `regimes` are their names, each before those of its tasks; `metrics` those of each cell.
    """
    cells = ((regime, task) for regime, *tasks in regimes for task in tasks)
    keys = [(*cell, name) for cell, names in zip(cells, metrics, strict=True) for name in names]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return tuple(cell_name(*keys[index]) for index in order), itemgetter(*order)


def _named_scores(results: Any) -> "tuple[tuple[str, ...], array.array[float]]":
    names: list[str] = []
    numbers: list[float] = []
    for regime in sorted(results) if isinstance(results, dict) else ():
        tasks = results[regime] if isinstance(results[regime], dict) else {}
        for task in sorted(tasks):
            scores = tasks[task] if isinstance(tasks[task], dict) else {}
            for metric in sorted(scores):
                if type(scores[metric]) in {int, float}:
                    names.append(cell_name(regime, task, metric))
                    numbers.append(_double(scores[metric]))
    return tuple(names), array.array("d", numbers)


NameTuples = dict[tuple[str, ...], tuple[str, ...]]
"""Names of scores to the one copy of them. Joined they would not tell rows apart: a contributor's
key may have any letter, also the one between parts of a name."""


def cell_name(regime: str, task: str, metric: str) -> str:
    """Return the name of one score."""
    return f"{regime}\0{task}\0{metric}"


def _double(number: float) -> float:
    """Return the number as the scanner would: infinity if too large, 0.0 instead of -0.0."""
    try:
        return float(number) + 0.0
    except OverflowError:
        return math.inf


class PeerRow(NamedTuple):
    """The scores of one other row."""

    path: Path
    names: tuple[str, ...]
    values: "array.array[float]"


class RowWithoutFile(NamedTuple):
    """A row without a file here, such as a shipped one."""

    model_id: str
    digest: str
    """Digest of its scores, as from `results_digest`."""
    names: tuple[str, ...]
    values: "array.array[float]"
    display: str = ""
    """Its display name, where it is known of a file."""

    @property
    def path(self) -> Path:
        """The file name that the row would have."""
        return Path(f"{self.model_id}.json")

    def as_read(self, path: Path, *, keep: bool) -> "ReadRow":
        """Return the row as if it were read from a file; with `keep`, with its scores."""
        row = PeerRow(path, self.names, self.values) if keep else None
        return ReadRow(path, self.model_id, self.digest, _forms(self.model_id, self.display), row)


class ReadRow(NamedTuple):
    """Id, names and digest of one row, and its scores if they are kept for comparison."""

    path: Path
    model_id: str
    digest: str
    skeletons: tuple[tuple[str, str], ...]
    """Skeletons of its names, each with the name."""
    row: PeerRow | None


class _ReadRows(NamedTuple):
    paths: tuple[Path, ...]
    names: dict[str, list[tuple[Path, str]]]
    digests: dict[str, list[Path]]
    rows: tuple[PeerRow, ...]


@dataclass(frozen=True)
class Peers:
    """The other rows."""

    paths: tuple[Path, ...] = ()
    population: tuple[Path | RowWithoutFile, ...] = ()
    """Further rows to compare with; a file of `paths` replaces the row of the same model."""
    derived: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """Results of later stages from these rows, once for all files of a folder."""
    contents: Mapping[Path, bytes] = field(default_factory=dict, compare=False, repr=False)
    """Files that the caller has read, with their bytes: they are not opened again."""
    rows_by_digest: Mapping[str, RowWithoutFile] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Rows by the SHA-256 of their file, which then need not be parsed."""

    @functools.cached_property
    def ids(self) -> dict[str, list[Path]]:
        """Normal form of the file name to the files that have it."""
        files: dict[str, list[Path]] = {}
        # Without replacements the paths suffice, and no file is read.
        for path in self._read.paths if self.population else self.paths:
            files.setdefault(normal_form(path.stem), []).append(path)
        return files

    @property
    def names(self) -> dict[str, list[tuple[Path, str]]]:
        """Skeleton of a display name or an id to the files that have it, each with that name."""
        return self._read.names

    def has_other(self, own_path: Path) -> bool:
        """Whether there is a row besides that of the file `own_path`."""
        paths = self._read.paths if self.population else self.paths
        return len(paths) > 1 or (bool(paths) and own_path not in self._own_paths)

    @functools.cached_property
    def _own_paths(self) -> frozenset[Path]:
        return frozenset(self.paths)

    @property
    def by_digest(self) -> dict[str, list[Path]]:
        """Digest of scores to the files that have them.

        Unreadable files are left out; they are reported when they are checked themselves.
        """
        return self._read.digests

    @property
    def rows(self) -> tuple[PeerRow, ...]:
        """The scores of up to `ROWS_MAX` other rows, sorted by name."""
        return self._read.rows

    @functools.cached_property
    def _read(self) -> _ReadRows:
        """Read each row once."""
        candidates = set(self._candidates)
        if len(candidates) > ROWS_MAX:
            candidates = set(sorted(self._candidates, key=random_sort_key)[:ROWS_MAX])
        shapes: NameTuples = {}
        rows_read = [self._row(path, shapes, keep=path in candidates) for path in self.paths]
        replaced = {scores.model_id for scores in rows_read if scores.model_id}
        for peer in self.population:
            if isinstance(peer, RowWithoutFile):
                row = (
                    PeerRow(peer.path, peer.names, peer.values) if peer.path in candidates else None
                )
                scores = ReadRow(
                    peer.path, peer.model_id, peer.digest, _forms(peer.model_id, ""), row
                )
            elif peer not in self._own_paths:
                scores = self._row(peer, shapes, keep=peer in candidates)
            else:
                continue
            if scores.model_id not in replaced:
                rows_read.append(scores)
        if self.population:
            rows_read.sort(key=lambda scores: (scores.path.name, str(scores.path)))
        digests: dict[str, list[Path]] = {}
        for scores in rows_read:
            if scores.digest:
                digests.setdefault(scores.digest, []).append(scores.path)
        rows = tuple(scores.row for scores in rows_read if scores.row is not None)
        return _ReadRows(
            tuple(scores.path for scores in rows_read), _by_skeleton(rows_read), digests, rows
        )

    def _row(self, path: Path, shapes: NameTuples, *, keep: bool) -> "ReadRow":
        raw: bytes | Fault | None = self.contents.get(path)
        if raw is None and self.rows_by_digest:
            with contextlib.suppress(NothingChecked):
                raw = read_bytes(path)
        listed_row = (
            self.rows_by_digest.get(hashlib.sha256(raw).hexdigest())
            if isinstance(raw, bytes)
            else None
        )
        if listed_row is not None:
            return listed_row.as_read(path, keep=keep)
        return read_row(path, shapes, keep=keep, raw=raw)

    @property
    def _candidates(self) -> list[Path]:
        paths = (row.path if isinstance(row, RowWithoutFile) else row for row in self.population)
        return [*self.paths, *paths]


def _by_skeleton(rows: Iterable[ReadRow]) -> dict[str, list[tuple[Path, str]]]:
    names: dict[str, list[tuple[Path, str]]] = {}
    for scores in rows:
        for form, name in scores.skeletons:
            names.setdefault(form, []).append((scores.path, name))
    return names


def _forms(model_id: str, display: str) -> tuple[tuple[str, str], ...]:
    names = sorted({model_id, display} - {""})
    return tuple((form, name) for name in names for form in sorted(skeletons(name)))


def random_sort_key(path: Path) -> bytes:
    """Return a pseudorandom sort key, so that names do not influence the selection."""
    return hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).digest()


def read_row(
    path: Path,
    shapes: NameTuples,
    *,
    keep: bool,
    raw: bytes | Fault | None = None,
) -> ReadRow:
    """Read the scores of a file; one that cannot be read has none.

    `raw` is its content where the caller has read it. Rows with the same cells share one tuple of
    names in `shapes`.
    """
    try:
        content = read_bytes(path) if raw is None else raw
        # A mark at the beginning is a finding of the file; it has its id and scores all the same.
        value = (
            read_json(content.removeprefix(codecs.BOM_UTF8)) if isinstance(content, bytes) else None
        )
    except (NothingChecked, ValueError):
        value = None
    names, values = named_scores(member_at(value, "results"))
    row = None
    if values and keep:
        row = PeerRow(path, shapes.setdefault(names, names), values)
    model_id = text_at(value, "model_id")
    forms = _forms(model_id, text_at(value, "meta", "display"))
    return ReadRow(path, model_id, _digest(names, values) if values else "", forms, row)


def peers_of(paths: Iterable[Path], population: Iterable[Path | RowWithoutFile] = ()) -> Peers:
    """Return the other rows, without duplicate files, sorted by path."""
    return Peers(tuple(sorted(set(paths), key=BY_PARTS)), tuple(population))
