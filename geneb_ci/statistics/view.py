"""A submission among the other rows: predictions of its cells, and where it leads.

A model may be a specialist, which is better in one category than its other categories predict. To
see by how much, each category mean of a row is predicted from its other category means, by a ridge
regression on the other rows, and the residual is compared with the residuals of the other rows.
"""

import bisect
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from geneb_ci.common.finding import ROWS_MIN
from geneb_ci.statistics.reference import (
    MAD_TO_DEVIATION,
    RidgeFit,
    ScoreTable,
    Vector,
    dot,
    gram,
    inverse,
    median,
    ridge_fit_of,
    row_spread,
    score_table_of,
    share_present,
)
from geneb_ci.submission.peers import Peers
from reference_harness.formats.benchmark import Benchmark

PRESENT_SHARE_MIN = 0.9
"""Share of cells with a score below which a row is not predicted."""
PREDICTED_CELLS_MIN = 30
"""Minimum number of cells of a row that is predicted: with fewer its spread cannot be estimated."""
TWIN_WEIGHT_MIN = 0.82
"""Weight in the prediction of a row from which the other row is its twin, which may have been made
to agree with that row. The largest weight among the 41 public rows is 0.77 (space, enformer)."""


@dataclass(frozen=True)
class LeaveOneOut:
    """A prediction of each cell of a row from the row's other cells and the other rows."""

    predicted: list[float]
    """The predicted score of each cell."""
    distances: list[float]
    """Difference of each score from its prediction, in standard deviations of the noise; 0 for a
    missing cell."""
    spread: tuple[float, ...]
    """Spread of the row's residuals in each regime, as a multiple of the noise: about 1 for a real
    row, near 0 for a blend of other rows."""
    weights: dict[int, float]
    """Weights of the table's rows in the prediction."""


def leave_one_out_of(
    row: Vector, reference: RidgeFit, own_index: int | None, nearest: int | None = None
) -> LeaveOneOut | None:
    """Return the prediction of a row from the table without the rows `own_index` and `nearest`.

    Return None if the row has too few cells.
    """
    if len(row) < PREDICTED_CELLS_MIN or share_present(row) < PRESENT_SHARE_MIN:
        return None
    own_fit_index = reference.index_of(own_index)
    # 1. Weights of the other rows, A_-i Z x, and the prediction Z' A_-i Z x, where A_-i is the
    # inverse without the row's own place.
    standardised_row, weights, fitted = _predictions(row, reference)
    excluded = [i for i in (own_fit_index, reference.index_of(nearest)) if i is not None]
    weights, fitted, leverage = _fit_without_rows(reference, excluded, weights, fitted)
    # 2. Prediction of each cell, leaving this cell out.
    predicted, residuals = [], []
    for x, m, s, z, f, h in zip(
        row,
        reference.centre.medians,
        reference.fit_scales,
        standardised_row,
        fitted,
        leverage,
        strict=True,
    ):
        prediction = m + s * (z - (z - f) / (1.0 - h))
        predicted.append(prediction)
        residuals.append(0.0 if math.isnan(x) else x - prediction)
    # 3. Residuals divided by the noise of the cell, and by the row's spread if that exceeds 1.
    distances: list[float] = []
    spreads: list[float] = []
    scales = reference.scales(own_fit_index)
    for regime in reference.table.regimes:
        sizes = [x / s for x, s in zip(residuals[regime], scales[regime], strict=True)]
        spreads.append(
            row_spread([t for x, t in zip(row[regime], sizes, strict=True) if not math.isnan(x)])
        )
        distances += [t / max(1.0, spreads[-1]) for t in sizes]
    weight_by_row = {reference.rows[k]: w for k, w in enumerate(weights) if w}
    return LeaveOneOut(predicted, distances, tuple(spreads), weight_by_row)


@functools.lru_cache(maxsize=2)
def _predictions(row: Vector, reference: RidgeFit) -> tuple[list[float], list[float], list[float]]:
    """Return three lists: the standardised row, the weights of all rows, and the fitted values.

    The predictions of the row with and without its nearest row both start from these.
    """
    clipped = reference.centre.clipped(row)
    standardised_row = [x / s for x, s in zip(clipped, reference.fit_scales, strict=True)]
    row_squares, column_squares = _sums_of_squares(reference)
    products = _dot_products(reference.standardised, row_squares, standardised_row)
    weights = [dot(line, products) for line in reference.inverse]
    return standardised_row, weights, _dot_products(reference.columns, column_squares, weights)


@functools.lru_cache(maxsize=4)
def _sums_of_squares(fit: RidgeFit) -> tuple[list[float], list[float]]:
    """Return two lists: the sum of squares of each standardised row, and of each column."""
    return [dot(row, row) for row in fit.standardised], [
        dot(column, column) for column in fit.columns
    ]


def _dot_products(
    rows: Sequence[Sequence[float]], squares: Sequence[float], vector: Sequence[float]
) -> list[float]:
    """Return the inner product of each row and a vector, in a fifth of the time of `dot`.

    It is a'b = (|a|^2 + |b|^2 - |a - b|^2) / 2; `squares` are |a|^2. The error is some 1e-16 of the
    squares, which are thousands here.
    """
    pairs, own_square = zip(rows, squares, strict=True), dot(vector, vector)
    return [(square + own_square - math.dist(row, vector) ** 2) / 2 for row, square in pairs]


def _fit_without_rows(
    reference: RidgeFit, excluded: Sequence[int], weights: list[float], fitted: list[float]
) -> tuple[list[float], list[float], list[float]]:
    """Return weights, fitted values and leverage of the fit without its rows `excluded`.

    Each of these rows is swept out of the inverse A, which becomes A - a a' / p, where a is the
    row's line of A and p its element on the diagonal. The three results are updated accordingly.
    """
    leverage = reference.leverage
    remaining = [(i, reference.inverse[i], reference.products[i]) for i in excluded]
    while remaining:
        (index, line, cells), *remaining = remaining
        pivot = line[index]
        share = weights[index] / pivot
        weights = [w - share * a for w, a in zip(weights, line, strict=True)]
        fitted = [f - share * u for f, u in zip(fitted, cells, strict=True)]
        leverage = [q - u * u / pivot for q, u in zip(leverage, cells, strict=True)]
        remaining = [
            (
                later,
                [x - other[index] / pivot * a for x, a in zip(other, line, strict=True)],
                [x - other[index] / pivot * u for x, u in zip(products, cells, strict=True)],
            )
            for later, other, products in remaining
        ]
    for index in excluded:
        weights[index] = 0.0
    return weights, fitted, leverage


FINDING_SCORE_MAX = 10.0
"""Highest score of a finding, of one that is most unusual."""


def finding_score(size: float, limit: float) -> float:
    """Return how unusual a finding is: size / limit, clipped to 1 to `FINDING_SCORE_MAX`."""
    return round(min(FINDING_SCORE_MAX, max(1.0, size / limit)), 1)


@dataclass(frozen=True)
class RowView:
    """The checked row, and the table of rows that it is compared with."""

    benchmark: Benchmark
    table: ScoreTable
    """Scores of all rows of the folder."""
    row: Vector
    """Scores of the checked row."""
    own_index: int | None
    """The row's own index in the table, which is excluded from comparisons."""

    def cell(self, number: int) -> tuple[str, str]:
        """Return regime and task of the cell with this index in a `Vector`."""
        regime, task = divmod(number, len(self.benchmark.task_ids))
        return self.benchmark.regimes[regime], self.benchmark.task_ids[task]

    @property
    def other_rows(self) -> Iterator[tuple[int, Vector]]:
        """Index and scores of each other row of the table."""
        return ((i, row) for i, row in enumerate(self.table.vectors) if i != self.own_index)

    @property
    def others_count(self) -> int:
        """Number of other rows."""
        return len(self.table.vectors) - (self.own_index is not None)

    @functools.cached_property
    def shots(self) -> tuple[float, ...]:
        """Training sequences per class in each regime; infinite if all are used."""
        return shots_of(self.benchmark)

    @property
    def reference(self) -> RidgeFit | None:
        """The fit of the table; None if there are too few other rows."""
        return ridge_fit_of(self.table) if self.others_count >= ROWS_MIN else None

    @functools.cached_property
    def prediction(self) -> LeaveOneOut | None:
        """Each cell as predicted from the others; None with too few rows or cells."""
        reference = self.reference
        return None if reference is None else leave_one_out_of(self.row, reference, self.own_index)

    @functools.cached_property
    def prediction_without_nearest(self) -> LeaveOneOut | None:
        """The prediction without the row of the largest weight, which may be forged to agree."""
        reference, prediction = self.reference, self.prediction
        if reference is None or prediction is None or not prediction.weights:
            return prediction
        nearest = max(prediction.weights, key=lambda i: abs(prediction.weights[i]))
        return leave_one_out_of(self.row, reference, self.own_index, nearest)

    @functools.cached_property
    def distances(self) -> list[float]:
        """The distance of each cell from its prediction; 0 without a prediction.

        If the row of the largest weight is a twin, the prediction without that row counts.
        Otherwise the prediction with that row counts, with one exception: in the regime of all
        training data, a cell above its prediction has the larger of both distances.
        """
        prediction, without_nearest = self.prediction, self.prediction_without_nearest
        if prediction is None or without_nearest is None:
            return [0.0] * len(self.row)
        if max(map(abs, prediction.weights.values()), default=0.0) > TWIN_WEIGHT_MIN:
            return without_nearest.distances
        task_count = len(self.benchmark.task_ids)
        return [
            distance_without
            if distance_without > max(distance_with, 0.0)
            and self.shots[number // task_count] == math.inf
            else distance_with
            for number, (distance_with, distance_without) in enumerate(
                zip(prediction.distances, without_nearest.distances, strict=True)
            )
        ]


def view_of(row: Vector, own_path: Path, peers: Peers, benchmark: Benchmark) -> RowView:
    """Return the row of the file `own_path`, with the table of all rows."""
    table_key = ("table", benchmark.name, benchmark.sha256)
    table = peers.derived.get(table_key)
    if table is None:
        table = peers.derived[table_key] = score_table_of(peers.rows, benchmark)
    return RowView(benchmark, table, row, table.index_by_file.get(own_path))


def shots_of(benchmark: Benchmark) -> tuple[float, ...]:
    """Return the training sequences per class of each regime; infinite if all are used."""
    shots_by_regime = benchmark.protocol.few_shot_k
    return tuple(shots_by_regime.get(regime, math.inf) for regime in benchmark.regimes)


CATEGORY_RIDGE_PENALTY = 3.0
"""Penalty of the ridge regression of category means: from 3 to 30 the 41 public rows are predicted
about equally well."""
CATEGORY_CLIP_DEVIATIONS = 5.0
"""Robust standard deviations at which a category mean is clipped, so that no row dominates the fit.
"""
CATEGORY_SCALE_MIN = 0.005
"""Lower bound of the robust standard deviation of a category's means, and of its residuals, in
units of the score; as `reference.SCALE_MIN` for a cell."""
TAIL, NORMAL_TAIL = 0.8, 1.2816
"""A scale is the 80 % quantile of absolute residuals over that of N(0, 1): one row in five cannot
raise it."""
ROWS_ABOVE_LEADER_MAX = 1
"""Maximum number of other rows above a leader, so that no single row of the folder ends a lead."""

CategoryCells = tuple[tuple[str, tuple[int, ...]], ...]
"""Each category with the indices of its cells in a vector."""


class LedCategory(NamedTuple):
    """A category in which a row leads."""

    category: str
    mean: float
    """Mean of the primary metric in the regime of all training data."""
    expected: float
    """The mean that the row's other categories predict."""
    size: float
    """`mean` minus `expected`, in standard deviations of this difference over the other rows."""
    cells: tuple[int, ...]
    """Cells of the category, the most surprising first."""


@dataclass(frozen=True, eq=False)
class _CategoryMeans:
    """Category means of the rows that have every cell of the regime of all training data."""

    rows: tuple[int, ...]
    """Indices of these rows in the table."""
    means: list[list[float]]
    """One list of category means per row."""
    medians: list[float]
    """Median of each category's means over the rows."""
    spread: list[float]
    """Robust standard deviation of each category's means over the rows."""
    standardised: list[list[float]]
    """Each of `means`, minus the category's median and divided by the category's spread."""
    precision: list[list[float]]
    """Inverse of the Gram matrix of the categories."""

    @functools.cached_property
    def residuals(self) -> list[list[float]]:
        """For each row, the residuals of its means from a fit without the row."""
        return [self.residuals_of(row, i) for i, row in enumerate(self.means)]

    def residuals_of(self, means: Sequence[float], excluded: int | None) -> list[float]:
        """Return the residuals of a row's means, by a fit without row `excluded`.

        Each is the mean minus its prediction from the other means, by the precision matrix K^-1.
        Without a row z this matrix is K^-1 + h h' / (1 - z'h), for h = K^-1 z (Sherman and Morrison
        1950).
        """
        clipped = _standardised(means, self.medians, self.spread)
        products = [dot(line, clipped) for line in self.precision]
        precisions = [line[k] for k, line in enumerate(self.precision)]
        if excluded is not None:
            excluded_row = self.standardised[excluded]
            update = [dot(line, excluded_row) for line in self.precision]
            unexplained = 1.0 - dot(excluded_row, update)
            share = dot(update, clipped) / unexplained
            products = [x + share * h for x, h in zip(products, update, strict=True)]
            precisions = [x + h * h / unexplained for x, h in zip(precisions, update, strict=True)]
        lines = zip(means, self.medians, self.spread, clipped, products, precisions, strict=True)
        return [x - m - s * (z - r / d) for x, m, s, z, r, d in lines]

    def scale(self, category: int, excluded: int | None) -> float:
        """Return the scale of a category's residuals, without that of row `excluded`."""
        absolute_residuals = sorted(
            abs(r[category]) for i, r in enumerate(self.residuals) if i != excluded
        )
        return max(
            CATEGORY_SCALE_MIN,
            absolute_residuals[int(TAIL * (len(absolute_residuals) - 1))] / NORMAL_TAIL,
        )


def led_categories(view: RowView) -> list[LedCategory]:
    """Return the categories in which a row is first or second, the most surprising one first."""
    if math.inf not in view.shots or len(view.benchmark.categories) < 2:  # noqa: PLR2004
        return []
    start = view.shots.index(math.inf) * len(view.benchmark.task_ids)
    index_of = {task: start + number for number, task in enumerate(view.benchmark.task_ids)}
    categories = _category_cells(view.benchmark.categories, index_of)
    all_means = _category_means(view.table, categories)
    if all_means is None or view.others_count < ROWS_MIN:
        return []
    means = _means_by_category(view.row, categories)
    if any(map(math.isnan, means)):
        return []
    led_numbers = [
        k
        for k, mean in enumerate(means)
        if _count_above(view, categories, k, mean) <= ROWS_ABOVE_LEADER_MAX
    ]
    if not led_numbers:
        return []
    own_number = all_means.rows.index(view.own_index) if view.own_index in all_means.rows else None
    residuals = all_means.residuals_of(means, own_number)
    leads = []
    for number in led_numbers:
        category, cells = categories[number]
        deviation = residuals[number] / all_means.scale(number, own_number)
        expected = means[number] - residuals[number]
        leads.append(
            LedCategory(
                category, means[number], expected, deviation, _most_surprising_first(view, cells)
            )
        )
    return sorted(leads, key=lambda lead: -lead.size)


def _count_above(view: RowView, categories: CategoryCells, category: int, mean: float) -> int:
    """Return how many other rows have at least this mean in a category."""
    by_row, ranked = _ranked_means(view.table, categories)[category]
    count = len(ranked) - bisect.bisect_left(ranked, mean)
    return count - (view.own_index is not None and by_row[view.own_index] >= mean)


@functools.lru_cache(maxsize=4)
def _ranked_means(
    table: ScoreTable, categories: CategoryCells
) -> list[tuple[list[float], list[float]]]:
    """Return, for each category, the means of all rows in table order, and sorted without NaN."""
    ranked = []
    for _, cells in categories:
        means = [_mean_of_cells(row, cells) for row in table.vectors]
        ranked.append((means, sorted(mean for mean in means if not math.isnan(mean))))
    return ranked


def _most_surprising_first(view: RowView, cells: tuple[int, ...]) -> tuple[int, ...]:
    """Return cells by descending distance from their predictions."""
    if view.prediction is None:
        return cells
    distance = view.distances
    return tuple(sorted(cells, key=lambda cell: -distance[cell]))


def _category_cells(
    categories: Mapping[str, Sequence[str]], index_of: Mapping[str, int]
) -> CategoryCells:
    """Return the categories with the indices of their tasks; `index_of` has the index of each."""
    return tuple((name, tuple(index_of[task] for task in ids)) for name, ids in categories.items())


def _mean_of_cells(row: Vector, cells: Sequence[int]) -> float:
    """Return the mean of a row over some cells; NaN if one of them is missing."""
    return math.fsum(row[cell] for cell in cells) / len(cells)


def _means_by_category(row: Vector, categories: CategoryCells) -> list[float]:
    """Return the mean of a row in each category; NaN where a cell is missing."""
    return [_mean_of_cells(row, cells) for _, cells in categories]


@functools.lru_cache(maxsize=4)
def _category_means(table: ScoreTable, categories: CategoryCells) -> _CategoryMeans | None:
    """Return the category means of a table; None if fewer than `ROWS_MIN` rows are complete."""
    means = {i: _means_by_category(row, categories) for i, row in enumerate(table.vectors)}
    complete = {i: row for i, row in means.items() if not any(map(math.isnan, row))}
    if len(complete) < ROWS_MIN:
        return None
    columns = list(zip(*complete.values(), strict=True))
    medians = [median(column) for column in columns]
    spread = [
        max(CATEGORY_SCALE_MIN, MAD_TO_DEVIATION * median([abs(x - m) for x in column]))
        for column, m in zip(columns, medians, strict=True)
    ]
    rows = list(complete.values())
    standardised_rows = [_standardised(row, medians, spread) for row in rows]
    precision = inverse(gram(list(zip(*standardised_rows, strict=True)), CATEGORY_RIDGE_PENALTY))
    return _CategoryMeans(tuple(complete), rows, medians, spread, standardised_rows, precision)


def _standardised(
    means: Sequence[float], medians: Sequence[float], spread: Sequence[float]
) -> list[float]:
    """Return category means minus the medians, divided by the spread, and clipped."""
    limit = CATEGORY_CLIP_DEVIATIONS
    return [
        max(-limit, min(limit, (x - m) / s)) for x, m, s in zip(means, medians, spread, strict=True)
    ]
