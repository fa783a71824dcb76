"""The other rows of a board, as far as a rule may compare a submission with them."""

import array
import functools
import hashlib
import math
import re
import struct
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pydantic_core

from geneb_ci.errors import NothingChecked
from geneb_ci.read.bytes import read_bytes

# Rows kept for comparison: 900 doubles each, 4 MB in all, however many files a folder has.
ROWS_MAX = 500
_SEPARATORS = re.compile(r"[-_.]+")


def normal_form(model_id: str) -> str:
    """Give the form in which ids must be unique: casefolded, runs of - _ . as one hyphen."""
    return _SEPARATORS.sub("-", model_id.casefold())


def results_digest(results: Any) -> str | None:  # noqa: ANN401 (JSON has no narrower type)
    """Digest every score of a results table in any order of its keys; None when it has none."""
    names, values = flat(results)
    return _digest(names, values) if values else None


def _digest(names: list[str], values: "array.array[float]") -> str:
    packed = struct.pack(f"<{len(values)}d", *values)  # in one order of bytes on every machine
    return hashlib.sha256("\0".join(names).encode() + packed).hexdigest()


def flat(results: Any) -> "tuple[list[str], array.array[float]]":  # noqa: ANN401 (JSON has no narrower type)
    """Give every score of a results table beside its name, in the order of the names."""
    names: list[str] = []
    numbers: list[float] = []
    for regime in sorted(results) if isinstance(results, dict) else ():
        tasks = results[regime] if isinstance(results[regime], dict) else {}
        for task in sorted(tasks):
            scores = tasks[task] if isinstance(tasks[task], dict) else {}
            if tuple(map(type, scores.values())) == _THREE_FLOATS:
                # Nearly every cell: its names are made once, and its floats need no look.
                metrics, cells = _names(regime, task, tuple(scores))
                names += cells
                numbers += [scores[metric] for metric in metrics]
                continue
            for metric in sorted(scores):
                if type(scores[metric]) in {int, float}:
                    names.append(cell_name(regime, task, metric))
                    numbers.append(_double(scores[metric]))
    return names, array.array("d", [number + 0.0 for number in numbers])


_THREE_FLOATS = (float, float, float)


@functools.lru_cache(maxsize=4096)
def _names(regime: str, task: str, metrics: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Give the metrics in order, and the name of each of their cells."""
    ordered = sorted(metrics)
    return ordered, [cell_name(regime, task, metric) for metric in ordered]


def cell_name(regime: str, task: str, metric: str) -> str:
    """Name one score."""
    return f"{regime}\0{task}\0{metric}"


def _double(number: float) -> float:
    """Give the number as the scanner would; no score is too large for a double, or is -0.0."""
    try:
        return float(number) + 0.0
    except OverflowError:
        return math.inf


class Row(NamedTuple):
    """Every score of one peer."""

    path: Path
    names: tuple[str, ...]
    values: "array.array[float]"


class _Read(NamedTuple):
    digests: dict[str, list[Path]]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Peers:
    """Files beside the one under check."""

    paths: tuple[Path, ...] = ()
    derived: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What later stages computed from these rows, once for all files of a folder."""

    @functools.cached_property
    def ids(self) -> dict[str, list[Path]]:
        """Normal form of each file's name to the files that have it."""
        found: dict[str, list[Path]] = {}
        for path in self.paths:
            found.setdefault(normal_form(path.stem), []).append(path)
        return found

    @property
    def by_digest(self) -> dict[str, list[Path]]:
        """Digest of all scores to the files that have them.

        A peer is judged when it is itself under check; here, one that cannot be read has no scores.
        """
        return self._read.digests

    @property
    def rows(self) -> tuple[Row, ...]:
        """The scores of up to `ROWS_MAX` peers, in the order of their names."""
        return self._read.rows

    @functools.cached_property
    def _read(self) -> _Read:
        """Read each peer once."""
        kept = set(self.paths)
        if len(kept) > ROWS_MAX:
            kept = set(sorted(self.paths, key=_lot)[:ROWS_MAX])
        digests: dict[str, list[Path]] = {}
        rows: list[Row] = []
        shapes: dict[str, tuple[str, ...]] = {}
        for path in self.paths:
            names, values = flat(_results_of(path))
            if not values:
                continue
            digests.setdefault(_digest(names, values), []).append(path)
            if path in kept:
                # Nearly all rows name the same cells: one tuple of names serves them all.
                shape = shapes.setdefault("\0".join(names), tuple(names))
                rows.append(Row(path, shape, values))
        return _Read(digests, tuple(rows))


def _lot(path: Path) -> bytes:
    """Order files in a way that nobody chooses by a name near the front of the alphabet."""
    return hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).digest()


def _results_of(path: Path) -> Any:  # noqa: ANN401 (JSON has no narrower type)
    try:
        raw = read_bytes(path)
        value = pydantic_core.from_json(raw) if isinstance(raw, bytes) else None
    except (NothingChecked, ValueError):
        return None
    return value.get("results") if isinstance(value, dict) else None


def peers_of(paths: Iterable[Path]) -> Peers:
    """Give the peers, each file once, in the order of their names."""
    return Peers(tuple(sorted(set(paths))))
