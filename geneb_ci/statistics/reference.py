"""The rows of a board as vectors, and ridge regression of rows on the other rows.

The regression gives leave-one-out predictions of cells. This module does not use numpy: a check of
one file takes 0.2 s, and importing numpy would double that; the fit of the public rows ships with
the package. Sums are exact (math.fsum), so that findings have the same digits on every machine.
"""

import functools
import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import eq, mul
from pathlib import Path
from typing import NamedTuple

from geneb_ci.common import shipped
from geneb_ci.common.finding import ROWS_MIN
from geneb_ci.submission.peers import PeerRow, RowWithoutFile, score_name
from reference_harness.formats.benchmark import Benchmark

Vector = tuple[float, ...]
"""The primary metric of each cell, regime by regime; NaN where there is none."""


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of all rows of a folder on one benchmark; hashed by identity, for caches."""

    models: tuple[str, ...]
    """Model id of each row."""
    vectors: tuple[Vector, ...]
    """Scores of each row."""
    index_by_file: dict[Path, int]
    """Index of each row, by its file."""
    regimes: tuple[slice, ...]
    """Slice of each regime in a vector."""


def primary_score_names(benchmark: Benchmark) -> list[str]:
    """Return the name of the primary metric of each cell, in the order of a `Vector`."""
    metric = benchmark.primary_metric
    return [score_name(r, t, metric) for r in benchmark.regimes for t in benchmark.task_ids]


def score_table_of(rows: Iterable[PeerRow | RowWithoutFile], benchmark: Benchmark) -> ScoreTable:
    """Return the table of the rows' scores for a benchmark."""
    names = primary_score_names(benchmark)
    positions: dict[int, list[int | None]] = {}
    model_ids: list[str] = []
    vectors: list[Vector] = []
    index: dict[Path, int] = {}
    for row in rows:
        if id(row.score_names) not in positions:  # rows share their tuple of names
            position_of = {name: position for position, name in enumerate(row.score_names)}
            positions[id(row.score_names)] = [position_of.get(name) for name in names]
        index[row.path] = len(model_ids)
        model_ids.append(row.path.stem)
        numbers = [math.nan if p is None else row.scores[p] for p in positions[id(row.score_names)]]
        vectors.append(score_vector(numbers))
    task_count = len(benchmark.task_ids)
    regimes = tuple(
        slice(k * task_count, (k + 1) * task_count) for k in range(len(benchmark.regimes))
    )
    return ScoreTable(tuple(model_ids), tuple(vectors), index, regimes)


def score_vector(numbers: Iterable[float]) -> Vector:
    """Return scores as a `Vector`; numbers outside [-1, 1] become NaN."""
    return tuple([x if -1 <= x <= 1 else math.nan for x in numbers])


def share_present(row: Sequence[float]) -> float:
    """Return the share of cells that have a number."""
    return float(sum(map(eq, row, row)) / len(row))  # a NaN alone differs from itself


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the inner product."""
    return math.fsum(map(mul, a, b))


def gram(rows: Sequence[Sequence[float]], ridge: float) -> list[list[float]]:
    """Return the inner products of all rows (Gram), with `ridge` added on the diagonal."""
    products = [[0.0] * len(rows) for _ in rows]
    for i, row in enumerate(rows):
        for k in range(i):
            products[i][k] = products[k][i] = dot(row, rows[k])
        products[i][i] = dot(row, row) + ridge
    return products


def inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the inverse of a symmetric positive definite matrix, by sweeps (Beaton 1964).

    No pivoting is needed: a Gram matrix with a ridge has positive pivots in any order.
    """
    work = [list(row) for row in matrix]
    size = len(work)
    for k in range(size):
        pivot = 1.0 / work[k][k]
        top = [x * pivot for x in work[k]]
        for i in range(size):
            if i != k:
                row, factor = work[i], work[i][k]
                work[i] = [x - factor * y for x, y in zip(row, top, strict=True)]
                work[i][k] = -factor * pivot
        top[k] = pivot
        work[k] = top
    return work


def median_sorted(numbers: Sequence[float]) -> float:
    """Return the median of sorted numbers."""
    middle = len(numbers) // 2
    return numbers[middle] if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2


def median(numbers: Sequence[float]) -> float:
    """Return the median."""
    return median_sorted(sorted(numbers))


FITTED_ROWS_MAX = 64
"""Maximum number of rows that a fit uses: 64 take 0.15 s, and more hardly improve the prediction.
"""
RIDGE_PENALTY = 100.0
"""Penalty of the ridge regression: from 50 to 200 the 41 public rows are predicted equally well."""
CLIP_DEVIATIONS = 6.0
"""Robust standard deviations of a cell at which scores are clipped, so that outliers of other rows
do not distort the prediction."""
SCALE_MIN = 0.005
"""Lower bound of scales: the standard error of a share of 10,000 sequences."""
FIRST_SCALE_SHARE = 0.5
"""Scale of the first fit, as a share of the spread over models; the second fit uses residuals."""
BULK_QUANTILES = (0.5, 0.9)
"""The scale of noise, which has heavy tails, is the mean of absolute residuals between these
quantiles, since the largest 10 % may be errors."""
POOLING_ROWS = 20
"""Number of rows that the scale of the regime counts as, when that of a cell is estimated."""
MAD_TO_DEVIATION = 1.4826
"""Factor from a median absolute deviation to a standard deviation, for normal noise."""
_BULK_MEAN_OF_NORMAL = 1.0735
"""Mean of the absolute values of N(0, 1) between the quantiles `BULK_QUANTILES`:
2 (phi(0.6745) - phi(1.6449)) / 0.4 for the density phi."""


class Centre(NamedTuple):
    """The median of each cell, and the distance from the median at which scores are clipped."""

    medians: list[float]
    clip_distances: list[float]
    """Largest distance from the median; greater ones are clipped."""

    def clipped(self, row: Vector) -> list[float]:
        """Return the differences of a row from the medians, clipped; 0 for missing cells."""
        return [
            0.0 if math.isnan(x) else -c if x < m - c else c if x > m + c else x - m
            for x, m, c in zip(row, self.medians, self.clip_distances, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """The ridge regression of the rows of a score table on each other."""

    table: ScoreTable
    """The table whose rows are fitted."""
    rows: tuple[int, ...]
    """Indices of the table's rows that the fit uses."""
    centre: Centre
    """Median of each cell, from which scores are measured."""
    fit_scales: list[float]
    """Scale by which the scores of each cell are divided before the fit."""
    standardised: list[list[float]]
    """The clipped rows, each score divided by the scale of its cell."""
    columns: list[tuple[float, ...]]
    """The standardised rows, transposed."""
    inverse: list[list[float]]
    """Inverse of the Gram matrix of the standardised rows."""
    products: list[list[float]]
    """The inverse times the standardised rows."""
    leverage: list[float]
    """x' A x of each cell, for its column x of the standardised rows and the inverse A."""
    sorted_sizes: list[list[float]]
    """By cell, the sorted absolute residuals of the rows, each divided by its row's spread."""
    sizes: list[list[float]]
    """The same sizes by row, unsorted, to exclude a row's own residual."""
    pooled_scales: tuple[float, ...]
    """Median noise scale of the cells of each regime."""

    def index_of(self, number: int | None) -> int | None:
        """Return the index in `rows` of row `number` of the table; None if `rows` lacks it."""
        return self.rows.index(number) if number in self.rows else None

    def scale(self, cell: int, regime: int, excluded: int | None) -> float:
        """Return the noise scale of a cell, without the residual of row `excluded`."""
        numbers = self.sorted_sizes[cell]
        own_size = None if excluded is None else self.sizes[excluded][cell]
        return _shrunk_scale(
            _central_mean(numbers, own_size) / _BULK_MEAN_OF_NORMAL,
            self.pooled_scales[regime],
            len(numbers),
        )

    def scales(self, excluded: int | None) -> list[float]:
        """Return the noise scale of every cell, without the residuals of row `excluded`."""
        if excluded not in self._scales:
            self._scales[excluded] = [
                self.scale(cell, regime, excluded)
                for regime, part in enumerate(self.table.regimes)
                for cell in range(part.start, part.stop)
            ]
        return self._scales[excluded]

    @functools.cached_property
    def _scales(self) -> dict[int | None, list[float]]:
        """Cache of `scales`, by excluded row."""
        return {}


@functools.lru_cache(maxsize=4)
def ridge_fit_of(table: ScoreTable) -> RidgeFit | None:
    """Return the fit of a table; None if it has fewer than ROWS_MIN complete rows."""
    indices = [i for i, row in enumerate(table.vectors) if share_present(row) == 1.0]
    if len(indices) < ROWS_MIN:
        return None
    if len(indices) > FITTED_ROWS_MAX:  # evenly spaced in the sorted names
        indices = [indices[k * len(indices) // FITTED_ROWS_MAX] for k in range(FITTED_ROWS_MAX)]
    rows = [table.vectors[i] for i in indices]
    centre, mads = _centre(rows)
    clipped = [centre.clipped(row) for row in rows]
    identity = _fit_digest(rows, table.regimes)
    fitted = _shipped_fit(identity, clipped, table.regimes)
    if fitted is None:
        fitted = _computed_fit(rows, centre, mads, clipped, table.regimes)
    fit_scales, fit, sizes, pooled_scales = fitted
    sorted_sizes = [sorted(column) for column in zip(*sizes, strict=True)]
    return RidgeFit(
        table, tuple(indices), centre, fit_scales, *fit, sorted_sizes, sizes, pooled_scales
    )


FitParts = tuple[list[float], "_FitMatrices", list[list[float]], tuple[float, ...]]
"""`fit_scales`, matrices, `sizes` and `pooled_scales` of a `RidgeFit`."""


def _computed_fit(
    rows: list[Vector],
    centre: Centre,
    mads: list[float],
    clipped: list[list[float]],
    regimes: tuple[slice, ...],
) -> FitParts:
    """Return a fit with scales from the residuals of a first fit, in which scales are equal."""
    fit_scales: list[float] = []
    for regime in regimes:
        fit_scales += [FIRST_SCALE_SHARE * median(mads[regime])] * (regime.stop - regime.start)
    fit = _fit_matrices(clipped, fit_scales)
    fit_scales = _scales(_residuals(rows, centre, clipped, fit_scales, fit), regimes, rounds=1)[0]
    fit = _fit_matrices(clipped, fit_scales)
    residuals = _residuals(rows, centre, clipped, fit_scales, fit)
    _, sizes, pooled_scales = _scales(residuals, regimes, rounds=2)
    return fit_scales, fit, sizes, pooled_scales


def fit_text(table: ScoreTable) -> str:
    """Return the text of `shipped.FIT_FILE` for a table of complete rows."""
    rows = list(table.vectors)
    centre, mads = _centre(rows)
    clipped = [centre.clipped(row) for row in rows]
    fitted = _computed_fit(rows, centre, mads, clipped, table.regimes)
    return shipped.fit_text(_fit_digest(rows, table.regimes), _fit_bytes(fitted))


def _fit_bytes(fitted: FitParts) -> bytes:
    """Return the numbers of a fit as bytes."""
    fit_scales, fit, sizes, pooled_scales = fitted
    return shipped.doubles_as_bytes(
        [fit_scales, *fit.inverse, *fit.products, fit.leverage, *sizes, pooled_scales]
    )


def _fit_digest(rows: Sequence[Vector], regimes: tuple[slice, ...]) -> str:
    """Return a digest of everything that a fit depends on."""
    settings = (
        RIDGE_PENALTY,
        CLIP_DEVIATIONS,
        SCALE_MIN,
        FIRST_SCALE_SHARE,
        *BULK_QUANTILES,
        POOLING_ROWS,
        len(rows),
    )
    bounds = [bound for regime in regimes for bound in (regime.start, regime.stop)]
    return hashlib.sha256(shipped.doubles_as_bytes([settings, bounds, *rows])).hexdigest()


def _shipped_fit(
    identity: str, clipped: list[list[float]], regimes: tuple[slice, ...]
) -> FitParts | None:
    """Return the fit with this digest that the package contains; None if it contains none."""
    height, width = len(clipped), len(clipped[0])
    shapes = [(1, width), (height, height), (height, width), (1, width), (height, width)]
    arrays = shipped.shipped_fit(identity, [*shapes, (1, len(regimes))])
    if arrays is None:
        return None
    (fit_scales,), inverted, products, (leverage,), sizes, (pooled_scales,) = arrays
    if min(fit_scales) < SCALE_MIN:  # no fit has such a scale; 0 would give infinite weights
        return None
    standardised = _standardised(clipped, fit_scales)
    columns = list(zip(*standardised, strict=True))
    return (
        fit_scales,
        _FitMatrices(standardised, columns, inverted, products, leverage),
        sizes,
        tuple(pooled_scales),
    )


def _centre(rows: list[Vector]) -> tuple[Centre, list[float]]:
    """Return the centre of complete rows, and the robust standard deviation of each cell."""
    medians, mads = [], []
    for column in zip(*rows, strict=True):
        middle = median(column)
        medians.append(middle)
        mads.append(max(SCALE_MIN, MAD_TO_DEVIATION * median([abs(x - middle) for x in column])))
    return Centre(medians, [CLIP_DEVIATIONS * m for m in mads]), mads


class _FitMatrices(NamedTuple):
    """Matrices of a ridge fit, computed from clipped rows and the scale of each cell."""

    standardised: list[list[float]]
    """The clipped rows, each score divided by the scale of its cell."""
    columns: list[tuple[float, ...]]
    """The standardised rows, transposed."""
    inverse: list[list[float]]
    """Inverse of the Gram matrix of the standardised rows."""
    products: list[list[float]]
    """The inverse times the standardised rows."""
    leverage: list[float]
    """Influence of each cell's scores on their own prediction."""


def _fit_matrices(clipped: list[list[float]], fit_scales: list[float]) -> _FitMatrices:
    """Return the matrices of the ridge regression of clipped rows on each other."""
    standardised = _standardised(clipped, fit_scales)
    inverted = inverse(gram(standardised, RIDGE_PENALTY))
    columns = list(zip(*standardised, strict=True))
    products = [[dot(line, column) for column in columns] for line in inverted]
    leverage = [dot(a, b) for a, b in zip(columns, zip(*products, strict=True), strict=True)]
    return _FitMatrices(standardised, columns, inverted, products, leverage)


def _standardised(clipped: list[list[float]], fit_scales: list[float]) -> list[list[float]]:
    """Return clipped rows, each score divided by the scale of its cell."""
    weights = [1.0 / s for s in fit_scales]
    return [[x * w for x, w in zip(row, weights, strict=True)] for row in clipped]


def _residuals(
    rows: list[Vector],
    centre: Centre,
    clipped: list[list[float]],
    fit_scales: list[float],
    fit: _FitMatrices,
) -> list[list[float]]:
    """Return leave-one-out residuals: each cell from the row's other cells and the other rows."""
    residuals = []
    for i, row in enumerate(rows):
        variance = 1.0 / fit.inverse[i][i]
        residuals.append(
            [
                s * u * variance / (1.0 - q + u * u * variance) + (x - m - z)
                for s, u, q, x, m, z in zip(
                    fit_scales,
                    fit.products[i],
                    fit.leverage,
                    row,
                    centre.medians,
                    clipped[i],
                    strict=True,
                )
            ]
        )
    return residuals


def _scales(
    residuals: list[list[float]], regimes: tuple[slice, ...], rounds: int
) -> tuple[list[float], list[list[float]], tuple[float, ...]]:
    """Return the scales of cells, the absolute residuals over row spreads, and scales of regimes.

    Scales are computed `rounds` times; before each repetition, residuals are divided by the spread
    of their row in units of the scales.
    """
    sizes = [[abs(x) for x in row] for row in residuals]
    for rounds_left in range(rounds, 0, -1):
        own_scales = [
            _central_mean(sorted(column), None) / _BULK_MEAN_OF_NORMAL
            for column in zip(*sizes, strict=True)
        ]
        pooled_scales = tuple(median(own_scales[part]) for part in regimes)
        scales = [
            _shrunk_scale(s, p, len(sizes))
            for part, p in zip(regimes, pooled_scales, strict=True)
            for s in own_scales[part]
        ]
        if rounds_left > 1:
            sizes = [_residuals_over_spread(row, scales, regimes) for row in residuals]
    return scales, sizes, pooled_scales


def _residuals_over_spread(
    row: list[float], scales: list[float], regimes: tuple[slice, ...]
) -> list[float]:
    """Return the absolute residuals of a row, divided by the row's spread."""
    sizes: list[float] = []
    for regime in regimes:
        spread = row_spread([x / s for x, s in zip(row[regime], scales[regime], strict=True)])
        sizes += [abs(x) / spread for x in row[regime]]
    return sizes


def row_spread(standardised: list[float]) -> float:
    """Return the robust standard deviation of residuals around 0."""
    return max(SCALE_MIN, MAD_TO_DEVIATION * median_sorted(sorted(map(abs, standardised))))


def _central_mean(ordered: list[float], excluded: float | None) -> float:
    """Return the mean of sorted numbers between the `BULK_QUANTILES`, without `excluded`."""
    size = len(ordered) if excluded is None else len(ordered) - 1
    low, high = (int(q * size) for q in BULK_QUANTILES)
    if excluded is None or excluded > ordered[high]:
        total = math.fsum(ordered[low:high])
    elif excluded < ordered[low]:
        total = math.fsum(ordered[low + 1 : high + 1])
    else:
        total = math.fsum(ordered[low : high + 1]) - excluded
    return total / (high - low)


def _shrunk_scale(scale: float, pooled_scale: float, rows: int) -> float:
    """Return the scale of a cell, computed from `rows` rows, moved towards that of its regime."""
    square = (rows * scale * scale + POOLING_ROWS * pooled_scale * pooled_scale) / (
        rows + POOLING_ROWS
    )
    return max(SCALE_MIN, math.sqrt(square))
