"""Means by category: where a row leads, and how far that is from what its other categories predict.

A model may be a specialist. How much of one is seen from the other rows: each row's category means
are predicted from its other twelve, by a ridge regression on the rows beside it, and what is left
is compared with what is left of those.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from geneb_ci.statistics.reference import ROWS_MIN, dot, gram, inverse, median
from geneb_ci.statistics.table import ScoreTable, Vector
from geneb_ci.statistics.view import RowView

RIDGE = 3.0
"""Penalty. Values from 3 to 30 predict the 41 public rows about equally well."""
CLIP = 5.0
"""Robust standard deviations at which a mean is clipped in the fit, so that no row turns it."""
SCALE_FLOOR = 0.005
"""Lower bound of a scale, as of cells."""
TAIL, NORMAL_TAIL = 0.8, 1.2816
"""A scale is the 80 % quantile of absolute residuals, which one row in five cannot raise."""
ABOVE_MAX = 1
"""Other rows that may be above a leader: so no single row in the folder takes a lead from it."""
_MAD = 1.4826  # makes a median absolute deviation a standard deviation, for normal noise

Parts = tuple[tuple[str, tuple[int, ...]], ...]


class Crown(NamedTuple):
    """A category in which a row leads."""

    category: str
    mean: float
    """Of the primary metric in the regime of all training data."""
    expected: float
    """The mean that the row's other categories predict."""
    size: float
    """Difference in standard deviations of the other rows."""
    cells: tuple[int, ...]
    """Cells of the category, the most surprising first."""


class _Profiles(NamedTuple):
    """Category means of the rows of a table that have all cells of the regime."""

    rows: tuple[int, ...]
    usual: list[float]
    spread: list[float]
    standard: list[list[float]]
    """One list a row: its means, standardised and clipped."""
    residuals: list[list[float]]
    """Of each row from a fit without it."""

    def of(self, means: Sequence[float], without: int | None) -> list[float]:
        """Return the residuals of a row's means, by a fit without row `without`."""
        fit = [row for i, row in enumerate(self.standard) if i != without]
        return _residuals(fit, means, self.usual, self.spread)

    def scale(self, category: int, without: int | None) -> float:
        """Return the scale of a category's residuals, without those of a row."""
        sizes = sorted(abs(r[category]) for i, r in enumerate(self.residuals) if i != without)
        return max(SCALE_FLOOR, sizes[int(TAIL * (len(sizes) - 1))] / NORMAL_TAIL)


def crowns(view: RowView) -> list[Crown]:
    """Return the categories in which a row is first, or second to one row; the oddest first."""
    if math.inf not in view.shots or len(view.benchmark.categories) < 2:  # noqa: PLR2004
        return []
    start = view.shots.index(math.inf) * len(view.benchmark.task_ids)
    place = {task: start + number for number, task in enumerate(view.benchmark.task_ids)}
    parts = _parts(view.benchmark.categories, place)
    profiles = _profiles(view.table, parts)
    if profiles is None or view.others_count < ROWS_MIN:
        return []
    means = _means(view.row, parts)
    if any(map(math.isnan, means)):
        return []
    without = profiles.rows.index(view.own) if view.own in profiles.rows else None
    residuals = profiles.of(means, without)
    found = []
    for number, (category, cells) in enumerate(parts):
        others = (_mean(row, cells) for _, row in view.others)
        if sum(other >= means[number] for other in others) > ABOVE_MAX:
            continue
        size = residuals[number] / profiles.scale(number, without)
        expected = means[number] - residuals[number]
        found.append(Crown(category, means[number], expected, size, _oddest(view, cells)))
    return sorted(found, key=lambda crown: -crown.size)


def _oddest(view: RowView, cells: tuple[int, ...]) -> tuple[int, ...]:
    if view.standing is None:
        return cells
    distance = view.distances
    return tuple(sorted(cells, key=lambda cell: -distance[cell]))


def _parts(categories: Mapping[str, Sequence[str]], place: Mapping[str, int]) -> Parts:
    return tuple((name, tuple(place[task] for task in ids)) for name, ids in categories.items())


def _mean(row: Vector, cells: Sequence[int]) -> float:
    return math.fsum(row[cell] for cell in cells) / len(cells)


def _means(row: Vector, parts: Parts) -> list[float]:
    return [_mean(row, cells) for _, cells in parts]


@functools.lru_cache(maxsize=4)
def _profiles(table: ScoreTable, parts: Parts) -> _Profiles | None:
    means = {i: _means(row, parts) for i, row in enumerate(table.vectors)}
    whole = {i: row for i, row in means.items() if not any(map(math.isnan, row))}
    if len(whole) < ROWS_MIN:
        return None
    columns = list(zip(*whole.values(), strict=True))
    usual = [median(column) for column in columns]
    spread = [
        max(SCALE_FLOOR, _MAD * median([abs(x - m) for x in column]))
        for column, m in zip(columns, usual, strict=True)
    ]
    standard = [_standardised(row, usual, spread, CLIP) for row in whole.values()]
    residuals = [
        _residuals([*standard[:i], *standard[i + 1 :]], row, usual, spread)
        for i, row in enumerate(whole.values())
    ]
    return _Profiles(tuple(whole), usual, spread, standard, residuals)


def _standardised(
    row: Sequence[float], usual: Sequence[float], spread: Sequence[float], clip: float
) -> list[float]:
    return [max(-clip, min(clip, (x - m) / s)) for x, m, s in zip(row, usual, spread, strict=True)]


def _residuals(
    rows: Sequence[Sequence[float]],
    means: Sequence[float],
    usual: Sequence[float],
    spread: Sequence[float],
) -> list[float]:
    """Return each mean minus its prediction from the others, by the precision matrix of `rows`."""
    precision = inverse(gram(list(zip(*rows, strict=True)), RIDGE))
    clipped = _standardised(means, usual, spread, CLIP)
    left = [dot(line, clipped) / line[k] for k, line in enumerate(precision)]
    return [
        x - m - s * (z - r)
        for x, m, s, z, r in zip(means, usual, spread, clipped, left, strict=True)
    ]
