"""The scores of a plain row as arrays: what is sound in all of its cells is settled at once.

A plain row has exactly the cells of the benchmark, each of them numbers within range and not
rounded. Each function says True where the costly test of every cell would find nothing; False says
that it has to be made. Elementwise operations on arrays round as those on numbers do, so that with
the same formulas both come to the same numbers.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.statistics import metrics
from geneb_ci.statistics.binary import Classes
from geneb_ci.statistics.mean_triples import AREA_MIN, SEEN_MAX, TOLERANCE, hull_of, outside
from geneb_ci.statistics.metrics import EXACT, MIXED_SHARE, OFF, SCALE, Reading, Triple

Array = npt.NDArray[np.float64]

METRICS = ("MCC", "Acc", "F1")
MCC, ACC, F1 = range(3)
_WIDTH = Triple(EXACT, EXACT, EXACT)
_SIGNS = (1, -1)
_FLOATS = frozenset({float})
SIZE_MAX = 1_000_000
"""Test sequences up to which the counts of a table and their products of two are exact."""
HALF = EXACT / 2
"""Table and score may differ by this, so that rounding, some 1e-15, cannot cross `EXACT`."""


class CellArrays:
    """The cells of a benchmark: its tasks, their sizes, and the fits of each regime."""

    def __init__(
        self, benchmark: Benchmark, fits: Sequence[int], classes: Sequence[Classes | None]
    ) -> None:
        self.regimes, self.tasks = benchmark.regimes, benchmark.task_ids
        self._pick_tasks, self._pick_scores = itemgetter(*self.tasks), itemgetter(*METRICS)
        self.primary = METRICS.index(benchmark.primary_metric)
        sizes = [task.n_test for task in benchmark.tasks]
        self.fits = np.array(fits, float)[:, None]
        self.sizes = np.array([np.nan if n is None else n for n in sizes])
        self.two = np.array([one is not None for one in classes])
        self.small, self.large = np.array([one or (0.0, 0.0) for one in classes], float).T
        self.single = self.fits[:, 0] == 1
        self._classes = [one for one in classes if one is not None]
        self.hulls = [hull_of(one) for one in classes if one is not None]
        self.tables = np.full((2, 3, 3, SEEN_MAX, len(self.hulls)), np.nan)
        """Tables of which means were found possible: (sign, metric, corner, set, hull)."""

    def scores(self, results: Any) -> Array | None:
        """Return MCC, Acc and F1 by regime and task; None if the row is not plain."""
        if type(results) is not dict or len(results) != len(self.regimes):
            return None
        numbers: list[float] = []
        try:
            for regime in self.regimes:
                tasks = results[regime]
                cells = self._pick_tasks(tasks)
                if len(tasks) != len(cells) or set(map(len, cells)) != {len(METRICS)}:
                    return None
                numbers += itertools.chain.from_iterable(map(self._pick_scores, cells))
        except (KeyError, TypeError):  # another regime, task or metric, or no object
            return None
        if set(map(type, numbers)) != _FLOATS:
            return None
        shape = (len(self.regimes), len(self.tasks), len(METRICS))
        found = np.array(numbers).reshape(shape).transpose(2, 0, 1).copy()
        within = found.max() <= 1 and found[1:].min() >= 0 and found.min() >= -1
        return found if within else None

    def is_possible(self, task: int, mean: Triple) -> bool:
        """Whether `outside` finds nothing of a mean; its tables then are in `tables`."""
        hull = self.hulls[task]
        if outside(hull, Reading(mean, _WIDTH)) is not None:
            return False
        for place, sign in enumerate(_SIGNS):
            if found := hull.seen[sign]:
                self.tables[place, :, :, : len(found), task] = np.array(found).T
        return True


@dataclass(frozen=True, eq=False)
class PlainRow:
    """A row of which every metric of every regime was computed in doubles and not rounded."""

    cells: CellArrays
    scores: Array
    """MCC, Acc and F1, each by regime and task."""
    rights: Array
    """Least and greatest number of correct predictions, as `acc_limits` gives them."""

    @functools.cached_property
    def primary(self) -> Array:
        """The primary metric by regime and task."""
        found: Array = self.scores[self.cells.primary]
        return found

    @functools.cached_property
    def is_on_grid(self) -> bool:
        """Whether some whole number of correct predictions gives each accuracy."""
        low, high = self.rights
        return not (low > high).any()

    def has_tables(self) -> bool:
        """Whether each cell of one fit and two classes has a table, as `fits` first looks."""
        cells = self.cells
        where = np.ix_(cells.single, cells.two)
        mcc, acc, f1 = (one[where] for one in self.scores)
        a, b = cells.small[cells.two], cells.large[cells.two]
        n = a + b
        right = np.rint(acc * n)
        with np.errstate(all="ignore"):  # where F1 is 1, or a margin is one class only
            share = 1 - (n - right) / (n * (1 - f1))
            size = np.where(f1 >= 1, 0.0, np.rint(n * np.sqrt(np.maximum(0.0, share))))
            size += (size - right) % 2
            found = np.zeros(right.shape, bool)
            for rho in (size, -size):
                square, spread = rho * rho, a * b * (a + rho) * (b - rho)
                top = n * right - 2 * a * b - rho * (b - a)
                theirs = np.where(spread > 0, top / (2 * np.sqrt(spread)), 0.0)
                found |= (
                    (np.maximum(-right, right - 2 * a) <= rho)
                    & (rho <= np.minimum(right, 2 * b - right))
                    & (np.abs(theirs - mcc) <= HALF)
                    & (np.abs(right / n - acc) <= HALF)
                    & (np.abs((right * n - square) / (n * n - square) - f1) <= HALF)
                )
        return bool(found.all())

    def has_means(self) -> bool:
        """Whether `outside` finds nothing of any mean over fits, by tables of earlier searches.

        The formulas are its own; where these tables do not suffice, it decides.
        """
        cells = self.cells
        mcc, acc, f1 = found = self.scores[:, ~cells.single][:, :, cells.two]
        if not mcc.size:
            return True
        tables = cells.tables[:, :, :, None]  # one more axis, for the regimes
        heights, (acc0, acc1, acc2), (f10, f11, f12) = (
            tables[:, k].transpose(1, 0, 2, 3, 4) for k in range(3)
        )
        acc1, f11, acc2, f12 = acc1 - acc0, f11 - f10, acc2 - acc0, f12 - f10
        right, up = acc[:, None] - acc0, f1[:, None] - f10
        with np.errstate(all="ignore"):  # no table is NaN
            area = acc1 * f12 - acc2 * f11
            second, third = (right * f12 - acc2 * up) / area, (acc1 * up - right * f11) / area
            first = 1.0 - second - third
            height = first * heights[0] + second * heights[1] + third * heights[2]
            sign = np.array(_SIGNS)[:, None, None, None]
            is_within = (
                (f1 - EXACT <= acc + EXACT + TOLERANCE)[:, None]
                & (np.abs(area) >= AREA_MIN)
                & ((first >= 0) & (first < 1) & (second >= 0) & (second < 1))
                & ((third >= 0) & (third < 1))
                & (sign * height >= sign * mcc[:, None] - EXACT)
            )
        is_seen = is_within.any(axis=2).all(axis=0)
        return all(
            cells.is_possible(task, Triple(*found[:, regime, task].tolist()))
            for regime, task in np.argwhere(~is_seen).tolist()
        )

    def has_bounds(self) -> bool:
        """Whether each metric of tasks without two classes is in the bounds for any class sizes."""
        which = ~self.cells.two & ~np.isnan(self.cells.sizes)
        n, fits = self.cells.sizes[which], self.cells.fits
        mcc, _, f1 = (one[:, which] for one in self.scores)
        low, high, least, most = _bounds(n, fits, self.rights[:, :, which])
        return bool(
            ((low.min(axis=0) - EXACT <= mcc) & (mcc <= high.max(axis=0) + EXACT)).all()
            and ((least.min(axis=0) - EXACT <= f1) & (f1 <= most.max(axis=0) + EXACT)).all()
        )

    @property
    def differs(self) -> bool:
        """Whether no metric has one value in all tasks of a regime."""
        return bool((self.scores.min(axis=2) != self.scores.max(axis=2)).all())

    @property
    def doubtful(self) -> list[float]:
        """MCC and F1 of which `is_long` does not say that they were not rounded, without zeros."""
        values = self.scores[[MCC, F1]]
        return values[~_is_long(values) & (values != 0)].tolist()  # type: ignore[no-any-return]


def _bounds(n: Array, fits: Array, right: Array) -> tuple[Array, Array, Array, Array]:
    """Return the bounds that `metrics.single` and `metrics.mean` give of each cell."""
    total = n * fits
    errors, acc = total - right, right / total
    with np.errstate(all="ignore"):  # without test sequences
        kinds = n + errors
        mean = (acc - 1.0, (1.0 + acc) / 2, acc / (n * (2.0 - acc)), 1.0 - (1.0 - acc) / n)
        single = (-errors / n, n / (n + errors), right / n / kinds, 1.0 - 2 * errors / (kinds * n))
    found = (np.where(fits == 1, one, many) for one, many in zip(single, mean, strict=True))
    perfect, worst = metrics.single(1, 1), metrics.single(1, 0)
    low, high, least, most = (
        np.where(errors == 0, best, np.where(right == 0, none, usual))
        for usual, best, none in zip(found, perfect, worst, strict=True)
    )
    return low, high, least, most


def cells_of(
    benchmark: Benchmark, fits: Sequence[int], classes: Sequence[Classes | None]
) -> CellArrays | None:
    """Return the cells of a benchmark, with the fits of each regime and the classes of each task.

    None for a benchmark of too few or too large tasks.
    """
    sizes = [task.n_test or 0 for task in benchmark.tasks]
    sizes += [one.total for one in classes if one is not None]
    if len(classes) < 2 or max(sizes) > SIZE_MAX:  # noqa: PLR2004 (one task is not picked as a tuple)
        return None
    return CellArrays(benchmark, fits, classes)


def plain_row(cells: CellArrays | None, results: Any) -> PlainRow | None:
    """Return a table of results as a plain row; None if it is not one, or there are no cells."""
    scores = None if cells is None else cells.scores(results)
    if cells is None or scores is None:
        return None
    is_long = _is_long(scores)
    shown = scores[[MCC, F1]] != 0
    short = (shown & ~is_long[[MCC, F1]]).sum(axis=(0, 2))
    is_mixed = (short >= MIXED_SHARE * shown.sum(axis=(0, 2))).any()  # or nearly
    is_double = (scores.astype(np.float32) != scores).any(axis=2)
    if is_mixed or not (is_double & is_long.any(axis=2)).all():
        return None  # half-widths other than EXACT
    acc, total = scores[ACC], cells.sizes * cells.fits
    low = np.maximum(np.ceil((acc - EXACT) * cells.sizes * cells.fits), 0.0)
    high = np.minimum(np.floor((acc + EXACT) * cells.sizes * cells.fits), total)
    return PlainRow(cells, scores, np.array([low, high]))


def _is_long(values: Array) -> npt.NDArray[np.bool_]:
    """Return `metrics.is_long` of numbers from -1 to 1."""
    parts = values * SCALE % 1.0
    return (parts > OFF) & (parts < 1.0 - OFF)
