"""Relations between rows (near copies, linear functions) and between tasks (same sequences)."""

import bisect
import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import add, eq
from typing import NamedTuple

from geneb_ci.statistics.metrics import WHOLE_SCORES
from geneb_ci.statistics.reference import ScoreTable, Vector, dot, median_sorted
from geneb_ci.statistics.view import RowView
from reference_harness.formats.benchmark import Benchmark

NEAR_DISTANCE = 1e-3
"""Two scores are near if they differ by less than this.

A rerun of the same model moves a few-shot score by less, because a change of 1e-6 in an embedding
flips almost no prediction.
"""
COPY_SHARE_MIN = 0.12
"""Share of near cells from which a row counts as a copy.

The maximum of the 820 pairs of public rows is 0.05: JanusDNA with and without attention 0.04, the
two NT-v2 of 50M 0.03, GENA-LMs 0.01.
"""
COPY_CELLS_MIN = 8
"""Minimum number of near cells of a copy, which counts on small benchmarks."""
SEARCH_DISTANCE = 1.01 * NEAR_DISTANCE
"""Distance within which near scores are searched; their exact distance is computed afterwards."""
COARSE_DECIMALS = 2
"""Decimals of coarse scores: rounded to 0.01, two related models agree in a third of the cells."""
EXACT_RESIDUAL_MAX = 1e-7
"""Residual below which a linear fit is exact up to rounding."""


class Resemblance(NamedTuple):
    """Similarity to one other row: numbers of compared, near and equal scores.

    Scores of 0, 1 and -1 are neither near nor equal: every model that solves a task has them.
    """

    number: int
    """Index of the other row in the table."""
    cells: int
    """Number of cells in which both rows have a score."""
    near_cells: int
    """Number of these cells in which the scores differ by less than `NEAR_DISTANCE`."""
    equal_cells: int
    """Number of these cells in which the scores are equal."""


def copy_cells_min(cells: int) -> float:
    """Return the number of near cells, among `cells` compared ones, from which a row is a copy."""
    return max(COPY_CELLS_MIN, COPY_SHARE_MIN * cells)


def is_coarse(row: Vector) -> bool:
    """Whether every score is rounded to 0.01."""
    return all(math.isnan(x) or x == round(x, COARSE_DECIMALS) for x in row)


def resemblances(view: RowView) -> list[Resemblance]:
    """Return the similarity to the other rows, the most similar first."""
    near_counts = _near_cells_by_row(view)
    similar = [_resemblance(view.row, i, row, near_counts[i]) for i, row in view.other_rows]
    return sorted(similar, key=lambda near: (-near.near_cells, near.number))


def _near_cells_by_row(view: RowView) -> "Counter[int]":
    """Return the number of near cells of each row that has any, by its index in the table."""
    near_rows: list[list[int]] = []
    for score, (sorted_scores, rows) in zip(
        view.row, _sorted_scores_by_cell(view.table), strict=True
    ):
        if math.isnan(score) or score in WHOLE_SCORES:
            continue  # a solved task makes no two models alike
        # Wider than NEAR_DISTANCE by far more than a rounding error: the exact test follows.
        first, last = (
            bisect.bisect_left(sorted_scores, score - SEARCH_DISTANCE),
            bisect.bisect_right(sorted_scores, score + SEARCH_DISTANCE),
        )
        while first < last and not abs(score - sorted_scores[first]) < NEAR_DISTANCE:
            first += 1
        while first < last and not abs(score - sorted_scores[last - 1]) < NEAR_DISTANCE:
            last -= 1
        near_rows.append(rows[first:last])  # sorted, so near scores are consecutive
    return Counter(itertools.chain.from_iterable(near_rows))


@functools.lru_cache(maxsize=4)
def _sorted_scores_by_cell(table: ScoreTable) -> list[tuple[list[float], list[int]]]:
    """Return, for each cell, its scores in ascending order and the indices of their rows."""
    cells = []
    for column in zip(*table.vectors, strict=True):
        row_indices = [i for i, x in enumerate(column) if not math.isnan(x)]
        row_indices.sort(key=column.__getitem__)
        cells.append(([column[i] for i in row_indices], row_indices))
    return cells or [([], [])] * sum(regime.stop - regime.start for regime in table.regimes)


def near_copies(view: RowView) -> list[Resemblance]:
    """Return the rows that count as copies, the most similar first."""
    near_counts, cell_counts = _near_cells_by_row(view), _present_counts(view.table)
    own_count = _present_count(view.row)
    similar = [
        _resemblance(view.row, i, view.table.vectors[i], near)
        for i, near in near_counts.items()
        # A cheap test first, with a lower bound of the number of compared cells.
        if i != view.own_index
        and near >= copy_cells_min(own_count + cell_counts[i] - len(view.row))
    ]
    alike = [row for row in similar if row.near_cells >= copy_cells_min(row.cells)]
    return sorted(alike, key=lambda near: (-near.near_cells, near.number))


def _present_count(row: Vector) -> int:
    """Return the number of cells in which a row has a score."""
    return sum(map(eq, row, row))  # a NaN alone differs from itself


@functools.lru_cache(maxsize=4)
def _present_counts(table: ScoreTable) -> list[int]:
    """Return the number of cells with a score, of each row of a table."""
    return list(map(_present_count, table.vectors))


def is_near_copy(view: RowView, number: int) -> bool:
    """Whether another row is similar enough to count as a copy."""
    other = view.table.vectors[number]
    near_count = sum(
        abs(x - y) < NEAR_DISTANCE and x not in WHOLE_SCORES
        for x, y in zip(view.row, other, strict=True)
    )
    resemblance = _resemblance(view.row, number, other, near_count)
    return resemblance.near_cells >= copy_cells_min(resemblance.cells)


def _resemblance(row: Vector, number: int, other_row: Vector, near_cells: int) -> Resemblance:
    """Return the similarity of two rows, whose near cells are already counted."""
    if near_cells < COPY_CELLS_MIN:  # nearly always: skip the rest
        return Resemblance(number, len(row), near_cells, 0)
    cells = _present_count(tuple(map(add, row, other_row)))
    equal = sum(x == y and x not in WHOLE_SCORES for x, y in zip(row, other_row, strict=True))
    return Resemblance(number, cells, near_cells, equal)


class AffineFit(NamedTuple):
    """A fit of one row as a linear function of another: slope * score of the other row + offset."""

    number: int
    """Index of the other row in the table."""
    slope: float
    offset: float
    residual: float
    """Root mean square of the differences from the fit."""
    shift: float
    """Change of the mean plus change of the standard deviation; 0 for a plain copy."""


class _StandardisedScores(NamedTuple):
    """The scores of a row in one regime: mean, norm of the deviations, deviations over the norm."""

    mean: float
    norm: float
    """Root of the sum of the squared deviations."""
    unit_deviations: list[float]
    """Deviations from the mean, divided by the norm."""


def _standardised(row: Iterable[float]) -> _StandardisedScores | None:
    """Return scores with their mean and norm; None for constant or missing scores."""
    numbers = list(row)
    mean = math.fsum(numbers) / len(numbers)
    deviations = [x - mean for x in numbers]
    norm = math.sqrt(dot(deviations, deviations))
    if not norm > 0:  # also for NaN, a row with missing cells
        return None
    return _StandardisedScores(mean, norm, [x / norm for x in deviations])


_FIRST_CELLS = 16
"""Cells of a regime that are compared first: two rows that are no copies differ in them."""
_DISTANCE_ERROR_MAX = 1e-9
"""More than the rounding error of the distance of two vectors of length 1."""


@functools.lru_cache(maxsize=12)
def _complete_rows(
    table: ScoreTable, start: int, stop: int
) -> list[tuple[int, list[float], _StandardisedScores]]:
    """Return (index, first unit deviations, all scores) of the rows with all cells of a regime."""
    standardised = ((i, _standardised(row[start:stop])) for i, row in enumerate(table.vectors))
    return [
        (i, scores.unit_deviations[:_FIRST_CELLS], scores)
        for i, scores in standardised
        if scores is not None
    ]


def affine_copy(
    view: RowView, regime: slice, residual_max: float, shift_min: float = -1.0
) -> AffineFit | None:
    """Return the best linear fit of the checked row by another row, in the cells of a regime.

    Return None if no fit has a residual below `residual_max`. Rows that the fit shifts by
    `shift_min` or less are skipped, since such a copy would hide other fits.
    """
    own_row = _standardised(view.row[regime])
    if own_row is None:
        return None
    best_fit: AffineFit | None = None
    cell_count = regime.stop - regime.start
    residual_limit = residual_max * math.sqrt(cell_count) / own_row.norm
    first, last, first_cells = (
        own_row.unit_deviations[0],
        own_row.unit_deviations[-1],
        own_row.unit_deviations[:_FIRST_CELLS],
    )
    # The residual is below the limit L if 1 - r^2 < L^2 for the correlation r > 0; the squared
    # distance of the two vectors is 2 - 2 r, and that of their first cells is no larger.
    distance_max = (
        math.sqrt(2.0 - 2.0 * math.sqrt(max(0.0, 1.0 - residual_limit * residual_limit)))
        + _DISTANCE_ERROR_MAX
    )
    dist = math.dist
    rows = _complete_rows(view.table, regime.start, regime.stop)
    for number, _, other_row in [row for row in rows if dist(first_cells, row[1]) <= distance_max]:
        if number == view.own_index:
            continue
        # No single residual can exceed the root of the sum of squares: a cheap test first.
        scores = other_row.unit_deviations
        if abs(first - scores[0]) > residual_limit or abs(last - scores[-1]) > residual_limit:
            continue
        correlation = dot(own_row.unit_deviations, other_row.unit_deviations)
        residual = own_row.norm * math.sqrt(max(0.0, 1 - correlation * correlation) / cell_count)
        if (
            correlation > 0
            and residual < residual_max
            and (best_fit is None or residual < best_fit.residual)
        ):
            slope = correlation * own_row.norm / other_row.norm
            offset = own_row.mean - slope * other_row.mean
            shift = abs(own_row.mean - other_row.mean)
            shift += abs(own_row.norm - other_row.norm) / math.sqrt(cell_count)
            if shift <= shift_min:
                continue
            best_fit = AffineFit(number, slope, offset, residual, shift)
            if residual < EXACT_RESIDUAL_MAX:
                break
    return best_fit


_NO_SCORE = (-math.inf, -1)
"""Score and index of a row that stand for a missing row."""
_BEST_COUNT = 3
"""Number of scores kept of a cell: at most that of the checked row and those of two other rows."""


@functools.lru_cache(maxsize=4)
def _best_scores(table: ScoreTable) -> list[list[tuple[float, int]]]:
    """Return, for each cell, (score, index of the row) of the `_BEST_COUNT` best scores."""
    best = []
    for scores, rows in _sorted_scores_by_cell(table):
        ranked = list(zip(scores[-_BEST_COUNT:], rows[-_BEST_COUNT:], strict=True))[::-1]
        best.append(ranked + [_NO_SCORE] * (_BEST_COUNT - len(ranked)))
    return best


def lead_share(view: RowView, regime: slice) -> float:
    """Return the share of a regime's cells in which the row exceeds all other rows except one.

    The excepted row is the same in all cells: the one without which the share is largest. So no
    single row with high scores can end a lead.
    """
    best, own_index = _best_scores(view.table)[regime], view.own_index
    leading_cells = 0
    second_cells: Counter[int] = Counter()
    """By other row, the number of cells in which only that row is not exceeded."""
    for score, ((first, leader), (second, runner_up), (third, _)) in zip(
        view.row[regime], best, strict=True
    ):
        best_other, best_row = (second, runner_up) if leader == own_index else (first, leader)
        if score > best_other:
            leading_cells += 1
        elif score > (third if own_index in (leader, runner_up) else second):
            second_cells[best_row] += 1
    return (leading_cells + max(second_cells.values(), default=0)) / len(best)


RELATION_SCALE_MAX = 0.02
"""Largest scale of a relation that is used: others, such as promoters of 70 bp against those of
300 bp, vary too much between rows."""
RELATION_SCALE_MIN = 0.008
"""Lower bound of the scale: the sampling error, however closely the other rows agree."""
_TAIL, _NORMAL_TAIL = 0.8, 1.2816  # robust scale from the 80 % quantile of absolute deviations
CLASS_SHARE_DIFFERENCE_MAX = 0.02
"""Two splits of the same sequences differ by less than this in the share of a class."""


class Relation(NamedTuple):
    """A task whose score is nearly the weighted mean of the scores of other tasks."""

    task: int
    """Index of the task in the benchmark."""
    parts: tuple[tuple[int, float], ...]
    """Index and weight of each of the other tasks."""

    def difference(self, row: Vector, offset: int) -> float:
        """Return the task's score minus the weighted mean.

        The cells of the regime begin at index `offset` of the row.
        """
        return row[offset + self.task] - math.fsum(w * row[offset + k] for k, w in self.parts)


class UsualDifference(NamedTuple):
    """Median and scale over the other rows of `Relation.difference`, for one relation."""

    median: float
    scale: float
    """Robust standard deviation."""


class _TaskFacts(NamedTuple):
    """Facts about a task from which its relations to other tasks follow."""

    number: int
    """Index of the task in the benchmark."""
    id: str
    category: str
    size: int
    """Number of test sequences; 0 if unknown."""
    counts: tuple[int, ...]
    """Sizes of the classes, ascending; empty if unknown."""


def relations_of(benchmark: Benchmark) -> tuple[Relation, ...]:
    """Return the relations of a benchmark: unions of tasks, and splits of the same assay."""
    return _relations_between(
        tuple(
            _TaskFacts(i, t.id, t.category, t.n_test or 0, tuple(sorted(t.test_class_counts or ())))
            for i, t in enumerate(benchmark.tasks)
        )
    )


@functools.lru_cache(maxsize=4)
def _relations_between(tasks: tuple[_TaskFacts, ...]) -> tuple[Relation, ...]:
    """Return the relations of two-class tasks, cached by the facts about the tasks."""
    two_class = [t for t in tasks if len(t.counts) == 2]  # noqa: PLR2004 (two classes)
    return (*_unions(two_class), *_splits_of_one_assay(two_class))


def _unions(tasks: list[_TaskFacts]) -> Iterator[Relation]:
    """Yield the relation of each task `..._all` to the two tasks that it unites."""
    for whole in tasks:
        if not whole.id.endswith("_all"):
            continue
        stem = whole.id.removesuffix("all")
        family = [t for t in tasks if t is not whole and t.id.startswith(stem)]
        for a, b in itertools.combinations(family, 2):
            if a.size + b.size == whole.size and _has_class_counts_of_parts(whole, a, b):
                parts = ((a.number, a.size / whole.size), (b.number, b.size / whole.size))
                yield Relation(whole.number, parts)


def _has_class_counts_of_parts(whole: _TaskFacts, a: _TaskFacts, b: _TaskFacts) -> bool:
    """Whether the class sizes of two tasks sum to those of `whole`, with or without a swap."""
    sums = {a.counts[0] + b.counts[0], a.counts[0] + b.counts[1]}
    return bool(sums & set(whole.counts))


def _splits_of_one_assay(tasks: list[_TaskFacts]) -> Iterator[Relation]:
    """Yield the relation of each two tasks that are splits of the same assay."""
    groups: dict[tuple[str, int, str], list[_TaskFacts]] = {}
    for task in tasks:
        groups.setdefault((task.category, task.size, _last_word(task)), []).append(task)
    pairs = (pair for group in groups.values() for pair in itertools.combinations(group, 2))
    for first, second in sorted(pairs):
        if _is_split_of_same_assay(first, second):
            yield Relation(first.number, ((second.number, 1.0),))


def _last_word(task: _TaskFacts) -> str:
    """Return the part of a task's id after the last underscore, in lower case."""
    return task.id.rpartition("_")[2].casefold()


def _is_split_of_same_assay(first: _TaskFacts, second: _TaskFacts) -> bool:
    """Whether two tasks of different collections have nearly the same class shares."""
    has_similar_shares = (
        abs(first.counts[0] - second.counts[0]) <= CLASS_SHARE_DIFFERENCE_MAX * first.size
    )
    return has_similar_shares and first.id.partition("_")[0] != second.id.partition("_")[0]


@functools.lru_cache(maxsize=4)
def _relation_differences(
    table: ScoreTable, relations: tuple[Relation, ...]
) -> dict[tuple[int, int], list[float]]:
    """Return the sorted differences of all rows, by index of a relation and start of a regime."""
    differences_by_key = {}
    for number, relation in enumerate(relations):
        for regime in table.regimes:
            differences = (relation.difference(row, regime.start) for row in table.vectors)
            differences_by_key[number, regime.start] = sorted(
                difference for difference in differences if not math.isnan(difference)
            )
    return differences_by_key


def usual_difference_of(
    table: ScoreTable,
    relations: tuple[Relation, ...],
    number: int,
    offset: int,
    excluded: int | None,
    rows_min: int,
) -> UsualDifference | None:
    """Return the usual difference of relation `number` in the regime that starts at `offset`.

    Row `excluded` does not count. Return None if the differences vary too much, or if fewer than
    `rows_min` rows have one.
    """
    differences = _relation_differences(table, relations)[number, offset]
    if excluded is not None:
        own_difference = relations[number].difference(table.vectors[excluded], offset)
        if own_difference in differences:
            differences = differences.copy()
            differences.remove(own_difference)
    elif len(differences) >= rows_min:
        return _usual_differences(table, relations)[number, offset]
    return _usual_difference(differences) if len(differences) >= rows_min else None


@functools.lru_cache(maxsize=4)
def _usual_differences(
    table: ScoreTable, relations: tuple[Relation, ...]
) -> dict[tuple[int, int], UsualDifference | None]:
    """Return the usual difference over all rows, by index of a relation and start of a regime."""
    return {
        key: _usual_difference(differences)
        for key, differences in _relation_differences(table, relations).items()
        if differences
    }


def _usual_difference(differences: list[float]) -> UsualDifference | None:
    """Return median and scale of sorted differences; None above `RELATION_SCALE_MAX`."""
    usual = median_sorted(differences)
    # The k + 1 differences nearest to the median are consecutive; `reach` is the largest distance
    # of these from the median.
    k = int(_TAIL * (len(differences) - 1))
    reach = min(
        max(usual - low, high - usual)
        for low, high in zip(differences, differences[k:], strict=False)
    )
    scale = reach / _NORMAL_TAIL
    return (
        UsualDifference(usual, max(scale, RELATION_SCALE_MIN))
        if scale <= RELATION_SCALE_MAX
        else None
    )
