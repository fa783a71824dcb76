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
from geneb_ci.submission.reading import PATH_SORT_KEY, read_bytes
from reference_harness.formats.files import member_at, read_json, text_at

COMPARED_ROWS_MAX = 500
"""Maximum number of rows whose scores are kept for comparison: with 900 doubles each, 4 MB."""
_SEPARATORS = re.compile(r"[-_.]+")
"""Characters of a model id between words."""


def normal_model_id(model_id: str) -> str:
    """Return a model id in lower case, with a hyphen for each run of - _ . between words."""
    return _SEPARATORS.sub("-", model_id.casefold())


def results_digest(results: Any) -> str | None:
    """Return the digest of all scores, independent of the order of keys; None without scores."""
    score_names, scores = named_scores(results)
    return _digest(score_names, scores) if scores else None


def _digest(score_names: tuple[str, ...], scores: "array.array[float]") -> str:
    """Return the SHA-256 of names and scores."""
    digest = _digest_of_names(score_names).copy()
    digest.update(struct.pack(f"<{len(scores)}d", *scores))  # little-endian on every machine
    return digest.hexdigest()


@functools.lru_cache(maxsize=4)
def _digest_of_names(score_names: tuple[str, ...]) -> "hashlib._Hash":
    """Return a SHA-256 to which the scores are added; most rows have the same names of scores."""
    return hashlib.sha256("\0".join(score_names).encode())


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
            names, sort_values = _sorted_names(tasks, tuple(map(tuple, cells)))
            return names, array.array("d", [number + 0.0 for number in sort_values(numbers)])
    return _named_scores(results)


@functools.lru_cache(maxsize=4)
def _sorted_names(
    regimes: tuple[tuple[str, ...], ...], metrics: tuple[tuple[str, ...], ...]
) -> "tuple[tuple[str, ...], itemgetter[Any]]":
    """Return the sorted names of scores, and a function that sorts values in the same way.

    Each item of `regimes` is a regime's name followed by its tasks; `metrics` has the metrics of
    each cell.
    """
    cells = ((regime, task) for regime, *tasks in regimes for task in tasks)
    keys = [(*cell, name) for cell, names in zip(cells, metrics, strict=True) for name in names]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return tuple(score_name(*keys[index]) for index in order), itemgetter(*order)


def _named_scores(results: Any) -> "tuple[tuple[str, ...], array.array[float]]":
    """Return the same as `named_scores` for results of any form, even if they are invalid."""
    names: list[str] = []
    numbers: list[float] = []
    for regime in sorted(results) if isinstance(results, dict) else ():
        tasks = results[regime] if isinstance(results[regime], dict) else {}
        for task in sorted(tasks):
            scores = tasks[task] if isinstance(tasks[task], dict) else {}
            for metric in sorted(scores):
                if type(scores[metric]) in {int, float}:
                    names.append(score_name(regime, task, metric))
                    numbers.append(_double(scores[metric]))
    return tuple(names), array.array("d", numbers)


SharedNames = dict[tuple[str, ...], tuple[str, ...]]
"""Names of scores to an equal tuple that all rows share, to save memory."""


def score_name(regime: str, task: str, metric: str) -> str:
    """Return the name of one score: regime, task and metric, separated by NUL."""
    return f"{regime}\0{task}\0{metric}"


def _double(number: float) -> float:
    """Return a number as a double: infinity if it is too large, 0.0 instead of -0.0."""
    try:
        return float(number) + 0.0
    except OverflowError:
        return math.inf


class PeerRow(NamedTuple):
    """Another row with its scores, for comparison."""

    path: Path
    score_names: tuple[str, ...]
    """Name of each score, as from `score_name`."""
    scores: "array.array[float]"


class RowWithoutFile(NamedTuple):
    """A row whose file is not available, such as a row that ships with the package."""

    model_id: str
    digest: str
    """Digest of the row's scores, as from `results_digest`."""
    score_names: tuple[str, ...]
    scores: "array.array[float]"
    display: str = ""
    """Display name of the model; "" if unknown."""

    @property
    def path(self) -> Path:
        """The file name that the row would have."""
        return Path(f"{self.model_id}.json")

    def as_read(self, path: Path, *, keep_scores: bool) -> "ReadRow":
        """Return the row as if read from a file at `path`; with its scores if `keep_scores`."""
        row = PeerRow(path, self.score_names, self.scores) if keep_scores else None
        return ReadRow(
            path, self.model_id, self.digest, _skeleton_pairs(self.model_id, self.display), row
        )


class ReadRow(NamedTuple):
    """Model id, names and digest of one row, and its scores if they are kept for comparison."""

    path: Path
    model_id: str
    digest: str
    """Digest of its scores, as from `results_digest`; "" without scores."""
    skeletons: tuple[tuple[str, str], ...]
    """Pairs of a skeleton and the name that has it, for model id and display name."""
    row: PeerRow | None
    """The row with its scores; None if they are not kept."""


class _RowIndexes(NamedTuple):
    """All rows of a board, each read once, by file, by name and by digest of their scores."""

    paths: tuple[Path, ...]
    names_by_skeleton: dict[str, list[tuple[Path, str]]]
    """File and name of the rows whose names look alike, by the skeleton of the names."""
    paths_by_digest: dict[str, list[Path]]
    rows: tuple[PeerRow, ...]
    """The rows whose scores are kept for comparison."""


@dataclass(frozen=True)
class Peers:
    """The other rows of a board, which are read on demand."""

    paths: tuple[Path, ...] = ()
    """Files of rows."""
    population: tuple[Path | RowWithoutFile, ...] = ()
    """More rows to compare with; a file of `paths` replaces the row of the same model."""
    derived: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """Cache of results computed from these rows, shared by all files of a folder."""
    bytes_by_path: Mapping[Path, bytes] = field(default_factory=dict, compare=False, repr=False)
    """Bytes of the files that the caller has already read, by path."""
    rows_by_digest: Mapping[str, RowWithoutFile] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Known rows by the SHA-256 of their files, which are not parsed."""

    @functools.cached_property
    def paths_by_normal_id(self) -> dict[str, list[Path]]:
        """Normal form of a model id to the files of rows whose names have that form."""
        files: dict[str, list[Path]] = {}
        # Files are read only if `population` has rows that they may replace.
        for path in self._indexes.paths if self.population else self.paths:
            files.setdefault(normal_model_id(path.stem), []).append(path)
        return files

    @property
    def names_by_skeleton(self) -> dict[str, list[tuple[Path, str]]]:
        """Skeleton of names that look alike to the rows with such a name: file and name."""
        return self._indexes.names_by_skeleton

    def has_other(self, own_path: Path) -> bool:
        """Whether there is another row than that of the file `own_path`."""
        paths = self._indexes.paths if self.population else self.paths
        return len(paths) > 1 or (bool(paths) and own_path not in self._path_set)

    @functools.cached_property
    def _path_set(self) -> frozenset[Path]:
        """The elements of `paths`, for fast lookup."""
        return frozenset(self.paths)

    @property
    def paths_by_digest(self) -> dict[str, list[Path]]:
        """Digest of scores to the files of rows with these scores.

        Unreadable files are left out; their own check reports them.
        """
        return self._indexes.paths_by_digest

    @property
    def rows(self) -> tuple[PeerRow, ...]:
        """The scores of up to `COMPARED_ROWS_MAX` other rows, sorted by name."""
        return self._indexes.rows

    @functools.cached_property
    def _indexes(self) -> _RowIndexes:
        """The rows, each read once; at most `COMPARED_ROWS_MAX` of them have scores."""
        candidates = set(self._candidate_paths)
        if len(candidates) > COMPARED_ROWS_MAX:
            candidates = set(sorted(self._candidate_paths, key=random_sort_key)[:COMPARED_ROWS_MAX])
        shared_names: SharedNames = {}
        rows_read = [
            self._row(path, shared_names, keep_scores=path in candidates) for path in self.paths
        ]
        file_ids = {read.model_id for read in rows_read if read.model_id}
        for peer in self.population:
            if isinstance(peer, RowWithoutFile):
                row = peer._replace(display="")  # only ids are compared with those of such rows
                read = row.as_read(peer.path, keep_scores=peer.path in candidates)
            elif peer not in self._path_set:
                read = self._row(peer, shared_names, keep_scores=peer in candidates)
            else:
                continue
            if read.model_id not in file_ids:
                rows_read.append(read)
        if self.population:
            rows_read.sort(key=lambda read: (read.path.name, str(read.path)))
        digests: dict[str, list[Path]] = {}
        for read in rows_read:
            if read.digest:
                digests.setdefault(read.digest, []).append(read.path)
        rows = tuple(read.row for read in rows_read if read.row is not None)
        return _RowIndexes(
            tuple(read.path for read in rows_read), _rows_by_skeleton(rows_read), digests, rows
        )

    def _row(self, path: Path, shared_names: SharedNames, *, keep_scores: bool) -> "ReadRow":
        """Return the row in a file, by its digest if the row is known."""
        raw: bytes | Fault | None = self.bytes_by_path.get(path)
        if raw is None and self.rows_by_digest:
            with contextlib.suppress(NothingChecked):
                raw = read_bytes(path)
        listed_row = (
            self.rows_by_digest.get(hashlib.sha256(raw).hexdigest())
            if isinstance(raw, bytes)
            else None
        )
        if listed_row is not None:
            return listed_row.as_read(path, keep_scores=keep_scores)
        return read_row(path, shared_names, keep_scores=keep_scores, raw=raw)

    @property
    def _candidate_paths(self) -> list[Path]:
        """The files of all rows, from which the rows to compare with are chosen."""
        paths = (row.path if isinstance(row, RowWithoutFile) else row for row in self.population)
        return [*self.paths, *paths]


def _rows_by_skeleton(rows: Iterable[ReadRow]) -> dict[str, list[tuple[Path, str]]]:
    """Return, by skeleton, the file and name of each row that has it."""
    names_by_skeleton: dict[str, list[tuple[Path, str]]] = {}
    for row in rows:
        for skeleton, name in row.skeletons:
            names_by_skeleton.setdefault(skeleton, []).append((row.path, name))
    return names_by_skeleton


def _skeleton_pairs(model_id: str, display: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of a skeleton and the name that has it, for a model id and a display name."""
    names = sorted({model_id, display} - {""})
    return tuple((form, name) for name in names for form in sorted(skeletons(name)))


def random_sort_key(path: Path) -> bytes:
    """Return a pseudorandom sort key, so that no row can be named to be chosen."""
    return hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).digest()


def read_row(
    path: Path,
    shared_names: SharedNames,
    *,
    keep_scores: bool,
    raw: bytes | Fault | None = None,
) -> ReadRow:
    """Return the row in a file; a file that cannot be read has no scores.

    `raw` is its content, if the caller has read it. The row includes its scores if `keep_scores`.
    Rows with the same cells share one tuple of names in `shared_names`.
    """
    try:
        content = read_bytes(path) if raw is None else raw
        # A byte order mark is reported elsewhere; the row is read in spite of it.
        document = (
            read_json(content.removeprefix(codecs.BOM_UTF8)) if isinstance(content, bytes) else None
        )
    except (NothingChecked, ValueError):
        document = None
    score_names, scores = named_scores(member_at(document, "results"))
    row = None
    if scores and keep_scores:
        row = PeerRow(path, shared_names.setdefault(score_names, score_names), scores)
    model_id = text_at(document, "model_id")
    forms = _skeleton_pairs(model_id, text_at(document, "meta", "display"))
    return ReadRow(path, model_id, _digest(score_names, scores) if scores else "", forms, row)


def peers_of(paths: Iterable[Path], population: Iterable[Path | RowWithoutFile] = ()) -> Peers:
    """Return the rows in some files, without duplicates and sorted by path."""
    return Peers(tuple(sorted(set(paths), key=PATH_SORT_KEY)), tuple(population))
