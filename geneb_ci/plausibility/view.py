"""One submission among the rows of its folder: what every rule of plausibility looks at."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb_ci.benchmark import Benchmark
from geneb_ci.plausibility.reference import ROWS_MIN, Reference, reference_of
from geneb_ci.plausibility.standing import Standing, standing_of
from geneb_ci.plausibility.table import Table, Vector, table_of, vector
from geneb_ci.read.peers import Peers

SCORE_MAX = 10.0


def score_of(size: float, limit: float) -> float:
    """Give how many times over its limit something is: at least 1, at most `SCORE_MAX`."""
    return round(min(SCORE_MAX, max(1.0, size / limit)), 1)


@dataclass(frozen=True)
class View:
    """The row under check, and the table it is held against without its own place in it."""

    benchmark: Benchmark
    table: Table
    row: Vector
    own: int | None
    """The row's own number in the table: it is never its own witness."""

    def cell(self, number: int) -> tuple[str, str]:
        """Give the regime and the task of a cell."""
        regime, task = divmod(number, len(self.benchmark.task_ids))
        return self.benchmark.regimes[regime], self.benchmark.task_ids[task]

    @property
    def others(self) -> Iterator[tuple[int, Vector]]:
        """Each other row with its number."""
        return ((i, row) for i, row in enumerate(self.table.vectors) if i != self.own)

    @property
    def others_count(self) -> int:
        """How many other rows there are."""
        return len(self.table.vectors) - (self.own is not None)

    @functools.cached_property
    def shots(self) -> tuple[float, ...]:
        """Training sequences a class by regime; infinite where all are used."""
        known = self.benchmark.protocol.few_shot_k
        return tuple(known.get(regime, math.inf) for regime in self.benchmark.regimes)

    @property
    def reference(self) -> Reference | None:
        """The fit of the table; None when there are too few other rows."""
        return reference_of(self.table) if self.others_count >= ROWS_MIN else None

    @functools.cached_property
    def standing(self) -> Standing | None:
        """The row against the fit; None when there is no fit or too little of the row."""
        reference = self.reference
        return None if reference is None else standing_of(self.row, reference, self.own)


def view_of(results: dict[str, Any], own: Path, peers: Peers, benchmark: Benchmark) -> View:
    """Place a table of results among its peers."""
    key = ("table", benchmark.name, benchmark.sha256)
    table = peers.derived.get(key)
    if table is None:
        table = peers.derived[key] = table_of(peers.rows, benchmark)
    numbers = [
        _score(results, regime, task, benchmark.primary_metric)
        for regime in benchmark.regimes
        for task in benchmark.task_ids
    ]
    return View(benchmark, table, vector(numbers), table.index.get(own))


def _score(results: dict[str, Any], regime: str, task: str, metric: str) -> float:
    value: Any = results
    for key in (regime, task, metric):
        value = value.get(key) if isinstance(value, dict) else None
    if type(value) not in {int, float} or not -1 <= value <= 1:
        return math.nan
    return float(value)
