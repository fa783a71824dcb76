"""One submission among the rows of its folder, and what those predict of each of its cells."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.statistics.reference import ROWS_MIN, Reference, dot, reference_of, row_spread
from geneb_ci.statistics.table import ScoreTable, Vector, share_present, table_of, vector
from geneb_ci.submission.peers import Peers

# A row with more holes than this is compared cell by cell, but not predicted as a whole.
PRESENT_MIN = 0.9
# Below this many cells, the spread of a row cannot be told from a fault in it.
CELLS_MIN = 30


@dataclass(frozen=True)
class LeaveOneOut:
    """How far each cell lies from what the row's other cells and the other rows predict.

    Cells that are missing have no distance: 0, and a prediction that nobody asks for.
    """

    predicted: list[float]
    distance: list[float]
    """In standard deviations of what real rows of this board differ by."""
    spread: tuple[float, ...]
    """How far the row strays as a whole, by regime: about 1 for real rows, near 0 for a blend."""
    weights: dict[int, float]
    """The table's rows that the prediction is made of."""


def leave_one_out_of(row: Vector, reference: Reference, own: int | None) -> LeaveOneOut | None:
    """Predict a row from the table without its own row; None when it is short or full of holes."""
    if len(row) < CELLS_MIN or share_present(row) < PRESENT_MIN:
        return None
    without = reference.place(own)
    moved = reference.centre.clipped(row)
    standard = [x / s for x, s in zip(moved, reference.unit, strict=True)]
    # 1. Weights of the other rows: A_-i Z x, where A_-i is the inverse without the row's own place.
    right = [dot(line, standard) for line in reference.standard]
    if without is not None:
        right[without] = 0.0
    weights = [dot(line, right) for line in reference.inverse]
    leverage = reference.leverage
    if without is not None:
        line, pivot = reference.inverse[without], reference.inverse[without][without]
        share = dot(line, right) / pivot
        weights = [w - a * share for w, a in zip(weights, line, strict=True)]
        weights[without] = 0.0
        out = reference.products[without]
        leverage = [q - u * u / pivot for q, u in zip(leverage, out, strict=True)]
    # 2. The prediction, with each cell left out in turn.
    fitted = [dot(weights, column) for column in reference.columns]
    predicted, residuals = [], []
    for x, m, s, z, f, h in zip(
        row, reference.centre.usual, reference.unit, standard, fitted, leverage, strict=True
    ):
        guess = m + s * (z - (z - f) / (1.0 - h))
        predicted.append(guess)
        residuals.append(x - guess if x == x else 0.0)  # noqa: PLR0124 (NaN)
    # 3. In units of the noise of the cell, then of the row's own spread where that is wider.
    distance: list[float] = []
    spreads: list[float] = []
    for number, part in enumerate(reference.table.regimes):
        cells = range(part.start, part.stop)
        sizes = [residuals[j] / reference.scale(j, number, without) for j in cells]
        spreads.append(
            row_spread([t for j, t in zip(cells, sizes, strict=True) if not math.isnan(row[j])])
        )
        distance += [t / max(1.0, spreads[-1]) for t in sizes]
    named = {reference.rows[k]: w for k, w in enumerate(weights) if w}
    return LeaveOneOut(predicted, distance, tuple(spreads), named)


SCORE_MAX = 10.0


def score_of(size: float, limit: float) -> float:
    """Return how many times over its limit something is: at least 1, at most `SCORE_MAX`."""
    return round(min(SCORE_MAX, max(1.0, size / limit)), 1)


@dataclass(frozen=True)
class RowView:
    """The row under check, and the table it is held against without its own place in it."""

    benchmark: Benchmark
    table: ScoreTable
    row: Vector
    own: int | None
    """The row's own number in the table: it is never its own witness."""

    def cell(self, number: int) -> tuple[str, str]:
        """Return the regime and the task of a cell."""
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
    def standing(self) -> LeaveOneOut | None:
        """The row against the fit; None when there is no fit or too little of the row."""
        reference = self.reference
        return None if reference is None else leave_one_out_of(self.row, reference, self.own)


def view_of(results: dict[str, Any], own: Path, peers: Peers, benchmark: Benchmark) -> RowView:
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
    return RowView(benchmark, table, vector(numbers), table.index.get(own))


def _score(results: dict[str, Any], regime: str, task: str, metric: str) -> float:
    value: Any = results
    for key in (regime, task, metric):
        value = value.get(key) if isinstance(value, dict) else None
    if type(value) not in {int, float} or not -1 <= value <= 1:
        return math.nan
    return float(value)
