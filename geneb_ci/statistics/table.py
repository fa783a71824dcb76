"""The rows of a board as vectors: one number per cell, in benchmark order."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.submission.peers import PeerRow, cell_name

Vector = tuple[float, ...]
"""The primary metric of each cell, regime by regime; NaN where there is none."""


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The rows of one folder for one benchmark; hashed by identity, for caches."""

    names: tuple[str, ...]
    vectors: tuple[Vector, ...]
    index: dict[Path, int]
    """File of each row to its index."""
    regimes: tuple[slice, ...]
    """Slice of each regime in a vector."""


def cell_names(benchmark: Benchmark) -> list[str]:
    """Return the names of the primary metric of each cell, in the order of a vector."""
    metric = benchmark.primary_metric
    return [cell_name(r, t, metric) for r in benchmark.regimes for t in benchmark.task_ids]


def table_of(rows: Iterable[PeerRow], benchmark: Benchmark) -> ScoreTable:
    """Return the table of rows."""
    wanted = cell_names(benchmark)
    places: dict[int, list[int | None]] = {}
    names: list[str] = []
    vectors: list[Vector] = []
    index: dict[Path, int] = {}
    for row in rows:
        if id(row.names) not in places:  # rows share their tuple of names
            at = {name: place for place, name in enumerate(row.names)}
            places[id(row.names)] = [at.get(name) for name in wanted]
        index[row.path] = len(names)
        names.append(row.path.stem)
        picked = [math.nan if p is None else row.values[p] for p in places[id(row.names)]]
        vectors.append(vector(picked))
    size = len(benchmark.task_ids)
    regimes = tuple(slice(k * size, (k + 1) * size) for k in range(len(benchmark.regimes)))
    return ScoreTable(tuple(names), tuple(vectors), index, regimes)


def vector(numbers: Iterable[float]) -> Vector:
    """Return the scores as a vector; values outside [-1, 1] become NaN."""
    return tuple([x if -1 <= x <= 1 else math.nan for x in numbers])


def share_present(row: Sequence[float]) -> float:
    """Return the share of cells that have a number."""
    return sum(x == x for x in row) / len(row)  # noqa: PLR0124 (NaN alone differs from itself)
