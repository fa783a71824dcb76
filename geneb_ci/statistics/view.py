"""A submission among the other rows, and their prediction of each of its cells."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.statistics.reference import ROWS_MIN, Reference, dot, reference_of, row_spread
from geneb_ci.statistics.table import ScoreTable, Vector, share_present, table_of, vector
from geneb_ci.submission.peers import Peers

# Share of present cells below which a row is not predicted.
PRESENT_MIN = 0.9
# With fewer cells the spread of a row cannot be estimated.
CELLS_MIN = 30
# Weight of one other row in the prediction from which it is a twin, which may have been made to
# agree with this row: left out. The largest among the 41 public rows is 0.77 (space, enformer).
TWIN = 0.82


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out prediction of each cell from the row's other cells and the other rows.

    Missing cells have distance 0.
    """

    predicted: list[float]
    distance: list[float]
    """In standard deviations of the residuals of real rows."""
    spread: tuple[float, ...]
    """Relative residual spread by regime: about 1 for real rows, near 0 for a blend of rows."""
    weights: dict[int, float]
    """Weights of the table's rows in the prediction."""


def leave_one_out_of(
    row: Vector, reference: Reference, own: int | None, nearest: int | None = None
) -> LeaveOneOut | None:
    """Predict a row from the table without `own` and `nearest`; None if it has too few cells."""
    if len(row) < CELLS_MIN or share_present(row) < PRESENT_MIN:
        return None
    without = reference.place(own)
    moved = reference.centre.clipped(row)
    standard = [x / s for x, s in zip(moved, reference.unit, strict=True)]
    # 1. Weights of the other rows: A_-i Z x, where A_-i is the inverse without the row's own place.
    right = [dot(line, standard) for line in reference.standard]
    out = [place for place in (without, reference.place(nearest)) if place is not None]
    inverse, leverage = _downdated(reference, out)
    for place in out:
        right[place] = 0.0
    weights = [dot(line, right) for line in inverse]
    for place in out:
        weights[place] = 0.0
    # 2. Prediction of each cell, leaving this cell out.
    fitted = [dot(weights, column) for column in reference.columns]
    predicted, residuals = [], []
    for x, m, s, z, f, h in zip(
        row, reference.centre.usual, reference.unit, standard, fitted, leverage, strict=True
    ):
        guess = m + s * (z - (z - f) / (1.0 - h))
        predicted.append(guess)
        residuals.append(x - guess if x == x else 0.0)  # noqa: PLR0124 (NaN)
    # 3. Residuals divided by the noise of the cell, and by the row's spread if that exceeds 1.
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


def _downdated(reference: Reference, out: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    """Return inverse and leverage of the fit without some of its rows."""
    inverse, products, leverage = reference.inverse, reference.products, reference.leverage
    for place in out:
        line, pivot, gone = inverse[place], inverse[place][place], products[place]
        leverage = [q - u * u / pivot for q, u in zip(leverage, gone, strict=True)]
        if place != out[-1]:
            products = [
                [p - row[place] / pivot * u for p, u in zip(cells, gone, strict=True)]
                for row, cells in zip(inverse, products, strict=True)
            ]
        inverse = [
            [x - row[place] / pivot * a for x, a in zip(row, line, strict=True)] for row in inverse
        ]
    return inverse, leverage


SCORE_MAX = 10.0


def score_of(size: float, limit: float) -> float:
    """Return size / limit, rounded and clipped to 1 ... `SCORE_MAX`."""
    return round(min(SCORE_MAX, max(1.0, size / limit)), 1)


@dataclass(frozen=True)
class RowView:
    """The checked row, and the table of rows that it is compared with."""

    benchmark: Benchmark
    table: ScoreTable
    row: Vector
    own: int | None
    """The row's own index in the table, which is excluded from comparisons."""

    def cell(self, number: int) -> tuple[str, str]:
        """Return the regime and the task of a cell."""
        regime, task = divmod(number, len(self.benchmark.task_ids))
        return self.benchmark.regimes[regime], self.benchmark.task_ids[task]

    @property
    def others(self) -> Iterator[tuple[int, Vector]]:
        """Each other row with its index."""
        return ((i, row) for i, row in enumerate(self.table.vectors) if i != self.own)

    @property
    def others_count(self) -> int:
        """Number of other rows."""
        return len(self.table.vectors) - (self.own is not None)

    @functools.cached_property
    def shots(self) -> tuple[float, ...]:
        """Training sequences per class by regime; infinite if all are used."""
        known = self.benchmark.protocol.few_shot_k
        return tuple(known.get(regime, math.inf) for regime in self.benchmark.regimes)

    @property
    def reference(self) -> Reference | None:
        """The fit of the table; None if there are too few other rows."""
        return reference_of(self.table) if self.others_count >= ROWS_MIN else None

    @functools.cached_property
    def standing(self) -> LeaveOneOut | None:
        """The leave-one-out prediction; None without a fit or with too few cells."""
        reference = self.reference
        return None if reference is None else leave_one_out_of(self.row, reference, self.own)

    @functools.cached_property
    def standing_alone(self) -> LeaveOneOut | None:
        """The same without the row of the largest weight, which may have been made to agree."""
        reference, standing = self.reference, self.standing
        if reference is None or standing is None or not standing.weights:
            return standing
        nearest = max(standing.weights, key=lambda i: abs(standing.weights[i]))
        return leave_one_out_of(self.row, reference, self.own, nearest)

    @functools.cached_property
    def distances(self) -> list[float]:
        """The distance of each cell from its prediction; 0 without a prediction.

        In the regime of all data the larger of both predictions counts above them, and everywhere
        the one without the nearest row where that row is a twin.
        """
        standing, alone = self.standing, self.standing_alone
        if standing is None or alone is None:
            return [0.0] * len(self.row)
        if max(map(abs, standing.weights.values()), default=0.0) > TWIN:
            return alone.distance
        size = len(self.benchmark.task_ids)
        return [
            far if far > max(near, 0.0) and self.shots[number // size] == math.inf else near
            for number, (near, far) in enumerate(
                zip(standing.distance, alone.distance, strict=True)
            )
        ]


def view_of(results: dict[str, Any], own: Path, peers: Peers, benchmark: Benchmark) -> RowView:
    """Return the view of a results table among the other rows."""
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
