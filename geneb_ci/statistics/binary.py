"""Every 2x2 confusion matrix that gives a reported MCC, Acc and F1, or the nearest one.

A table of class sizes a <= b is described by the number of correct predictions c and by
rho = (correct of the large class) - (correct of the small class). With n = a + b:

    accuracy = c / n
    macro-F1 = (c n - rho^2) / (n^2 - rho^2)
    MCC      = (n c - 2 a b - rho (b - a)) / (2 sqrt(a b (a + rho) (b - rho)))
"""

import functools
import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from geneb_ci.statistics.metrics import ReportedTriple, Triple


def chebyshev_integers(first: int, last: int, steps: int) -> list[int]:
    """Return up to `steps` + 1 ascending integers from first to last, inclusive.

    They are spaced like Chebyshev points, denser at both ends, where MCC has the most curvature.
    """
    length = last - first
    return sorted({first + round(length * share / 2) for share in _chebyshev_positions(steps)})


@functools.cache
def _chebyshev_positions(steps: int) -> list[float]:
    """Return the `steps` + 1 Chebyshev points of the range from 0 to 2, ascending."""
    angle = math.pi / steps
    return [1 - math.cos(angle * k) for k in range(steps + 1)]


METRIC_ERROR_MAX = 1e-14
"""More than the rounding error of computed metrics, which is some units of the sixteenth digit."""
MCC_BOUND_ERROR_MAX = 1e-9
"""More than the rounding error of bounds of MCC, with a wide margin, since they need not be sharp.
"""
RHO_ERROR_MAX = 4
"""Upper bound of the error of |rho| computed from F1; ends of ranges are then adjusted exactly."""


class Classes(NamedTuple):
    """Sizes of the two classes of a test split, ascending, both at least 1."""

    small: int
    large: int

    @property
    def total(self) -> int:
        """Number of sequences."""
        return self.small + self.large


class BinaryTable(NamedTuple):
    """One 2x2 confusion matrix: correct and wrong predictions of the smaller and larger class."""

    small_correct: int
    """Number of sequences of the smaller class that are predicted correctly."""
    small_wrong: int
    """Number of sequences of the smaller class that are predicted wrongly."""
    large_correct: int
    """Number of sequences of the larger class that are predicted correctly."""
    large_wrong: int
    """Number of sequences of the larger class that are predicted wrongly."""


class RhoRange(NamedTuple):
    """The tables with one number of correct predictions and with each second rho of a range.

    rho is the number of correct predictions in the large class minus that in the small class.
    """

    correct: int
    """Number of correct predictions of each table."""
    first_rho: int
    """The smallest rho of the range."""
    last_rho: int
    """The greatest rho of the range; it is included."""

    def __len__(self) -> int:
        """Return the number of tables."""
        return (self.last_rho - self.first_rho) // 2 + 1


def binary_table(classes: Classes, correct: int, rho: int) -> BinaryTable:
    """Return the table with these numbers of correct predictions.

    `correct` is the number in both classes, `rho` that in the large class minus that in the small.
    """
    small, large = (correct - rho) // 2, (correct + rho) // 2
    return BinaryTable(small, classes.small - small, large, classes.large - large)


_make_triple = Triple._make
"""Makes a triple from a tuple, faster than a call of `Triple`."""


def binary_metrics(classes: Classes, correct: float, rho: float) -> Triple:
    """Return the metrics of `binary_table(classes, correct, rho)`, also for fractional numbers."""
    a, b = classes
    n = a + b
    square = rho * rho
    margin_product = a * b * (a + rho) * (b - rho)
    mcc = (
        (n * correct - 2 * a * b - rho * (b - a)) / (2 * math.sqrt(margin_product))
        if margin_product > 0
        else 0.0
    )
    return _make_triple((mcc, correct / n, (correct * n - square) / (n * n - square)))


def metrics_of_table(confusion: BinaryTable) -> Triple:
    """Return MCC, accuracy and macro-F1 of a table."""
    classes = Classes(
        confusion.small_correct + confusion.small_wrong,
        confusion.large_correct + confusion.large_wrong,
    )
    correct = confusion.small_correct + confusion.large_correct
    return binary_metrics(classes, correct, confusion.large_correct - confusion.small_correct)


def rho_limits(classes: Classes, correct: int) -> tuple[int, int]:
    """Return the least and greatest rho (see `RhoRange`) with which no count is negative."""
    a, b = classes
    return max(-correct, correct - 2 * a), min(correct, 2 * b - correct)


def fitting_rho_ranges(classes: Classes, reported: ReportedTriple) -> Iterator[RhoRange]:
    """Yield all tables whose metrics agree with the reported ones, as ranges of rho.

    Metrics agree if they differ by at most the half-widths. The numbers of correct predictions
    nearest to accuracy * n come first. For classes of equal size only tables with rho >= 0 are
    yielded.
    """
    correct_min, correct_max = correct_count_limits(classes.total, reported)
    for correct in _possible_correct_counts(classes, correct_min, correct_max, reported):
        for first, last in _rho_ranges_of_f1(classes, correct, reported):
            yield from _rho_ranges_of_mcc(classes, correct, first, last, reported)


TESTED_RANGE_MIN = 8
"""Smallest range of numbers of correct predictions that `_may_have_metrics` tests before it is
divided: the test would exclude few smaller ones."""


def _possible_correct_counts(
    classes: Classes, low: int, high: int, reported: ReportedTriple
) -> Iterator[int]:
    """Yield the numbers of correct predictions, from low to high, with which a table may agree.

    Those nearest to accuracy * n come first. `_may_have_metrics` excludes whole ranges, so that
    scores with few decimals take little longer than others.
    """
    middle = reported.value.acc * classes.total
    pieces = [(0.0, low, high)] if low <= high else []
    while pieces:
        _, first, last = heapq.heappop(pieces)
        if first == last:
            yield first
        elif last - first < TESTED_RANGE_MIN or _may_have_metrics(classes, first, last, reported):
            cut = (first + last) // 2
            for start, end in ((first, cut), (cut + 1, last)):
                heapq.heappush(pieces, (max(start - middle, middle - end, 0.0), start, end))


def _may_have_metrics(classes: Classes, low: int, high: int, reported: ReportedTriple) -> bool:
    """Whether some table with `low` to `high` correct predictions may have the reported metrics.

    False is certain; True is not.
    F1 grows with correct predictions and falls with |rho|, so its half-width bounds |rho|. In that
    range the numerator of MCC is linear, and its denominator greatest at rho = (b - a) / 2.
    """
    a, b = classes
    n = classes.total
    value, width = reported.value, reported.width
    rho_size_min = max(
        _absolute_rho(n, low, value.f1 + width.f1 + METRIC_ERROR_MAX) - RHO_ERROR_MAX, 0
    )
    rho_size_max = _absolute_rho(n, high, value.f1 - width.f1 - METRIC_ERROR_MAX) + RHO_ERROR_MAX
    rho_min, rho_max = max(-high, low - 2 * a), min(high, 2 * b - low)
    for start, end in ((-rho_size_max, -rho_size_min), (rho_size_min, rho_size_max)):
        first, last = max(start, rho_min), min(end, rho_max)
        if first > last:
            continue
        product_min = min((a + rho) * (b - rho) for rho in (first, last))
        widest_rho = min(max((b - a) / 2, first), last)
        product_max = (a + widest_rho) * (b - widest_rho)
        numerator_min = (n * low - 2 * a * b - last * (b - a)) / 2
        numerator_max = (n * high - 2 * a * b - first * (b - a)) / 2
        if product_min <= 0:
            return True
        mcc_min = numerator_min / math.sqrt(
            a * b * (product_max if numerator_min > 0 else product_min)
        )
        mcc_max = numerator_max / math.sqrt(
            a * b * (product_min if numerator_max > 0 else product_max)
        )
        if mcc_min - MCC_BOUND_ERROR_MAX <= value.mcc + width.mcc and (
            mcc_max + MCC_BOUND_ERROR_MAX >= value.mcc - width.mcc
        ):
            return True
    return False


def has_fitting_table(classes: Classes, reported: ReportedTriple) -> bool:
    """Whether any table has the reported metrics within their half-widths.

    The table nearest to accuracy and F1 is tried first.
    """
    n = classes.total
    correct_min, correct_max = correct_count_limits(n, reported)
    correct = round(reported.value.acc * n)
    if correct_min <= correct <= correct_max:
        least, most = rho_limits(classes, correct)
        rho_size = _absolute_rho(n, correct, reported.value.f1)
        rho_size += (rho_size - correct) % 2
        for rho in (rho_size, -rho_size):
            if least <= rho <= most and reported.agrees_with(binary_metrics(classes, correct, rho)):
                return True
    return next(fitting_rho_ranges(classes, reported), None) is not None


def fitting_table_count(classes: Classes, reported: ReportedTriple, limit: int) -> int:
    """Return the number of tables in `fitting_rho_ranges`; counting stops above `limit`."""
    matrices = 0
    for run in fitting_rho_ranges(classes, reported):
        matrices += len(run)
        if matrices > limit:
            break
    return matrices


def correct_count_limits(n: int, reported: ReportedTriple, repeats: int = 1) -> tuple[int, int]:
    """Return the least and greatest number of correct predictions with the reported accuracy.

    They count the predictions of `repeats` runs over n sequences together.
    """
    low = math.ceil((reported.value.acc - reported.width.acc) * n * repeats)
    high = math.floor((reported.value.acc + reported.width.acc) * n * repeats)
    return max(low, 0), min(high, n * repeats)


def _rho_ranges_of_f1(
    classes: Classes, correct: int, reported: ReportedTriple
) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of each range of rho (see `RhoRange`) with the reported macro-F1.

    There, |rho| is near n sqrt((accuracy - F1) / (1 - F1)).
    """
    rho_min, rho_max = rho_limits(classes, correct)
    f1_min = reported.value.f1 - reported.width.f1 - METRIC_ERROR_MAX
    f1_max = reported.value.f1 + reported.width.f1 + METRIC_ERROR_MAX
    # At most `rho_max`: the larger class leaves more room above 0 than the smaller one below.
    rho_size_min = max(_absolute_rho(classes.total, correct, f1_max) - RHO_ERROR_MAX, 0)
    rho_size_max = min(_absolute_rho(classes.total, correct, f1_min) + RHO_ERROR_MAX, rho_max)
    rho_size_min += (rho_size_min - correct) % 2
    rho_size_max -= (rho_size_max - correct) % 2
    while (
        rho_size_min <= rho_size_max and binary_metrics(classes, correct, rho_size_min).f1 > f1_max
    ):
        rho_size_min += 2
    while (
        rho_size_min <= rho_size_max and binary_metrics(classes, correct, rho_size_max).f1 < f1_min
    ):
        rho_size_max -= 2
    if rho_size_min > rho_size_max:
        return
    rho_ranges = (
        [(-rho_size_max, rho_size_max)]
        if rho_size_min <= 1
        else [(-rho_size_max, -rho_size_min), (rho_size_min, rho_size_max)]
    )
    if classes.small == classes.large:
        rho_ranges = [(rho_size_min, rho_size_max)]
    for start, end in rho_ranges:
        first, last = max(start, rho_min), min(end, rho_max)
        if first <= last:
            yield first, last


def _absolute_rho(n: int, correct: int, f1: float) -> int:
    """Return the |rho| that tables with this macro-F1 have; its error is at most `RHO_ERROR_MAX`.

    accuracy - F1 is computed from the number of errors, because near F1 = 1 the difference of the
    floats would be 0, while 1 - F1 is exact.
    """
    if f1 >= 1:
        return 0
    share = 1 - (n - correct) / (n * (1 - f1))
    return round(n * math.sqrt(max(0.0, share)))


def _rho_ranges_of_mcc(
    classes: Classes, correct: int, first: int, last: int, reported: ReportedTriple
) -> Iterator[RhoRange]:
    """Yield the parts of a range of rho in which MCC agrees with the reported one."""

    def mcc(rho: int) -> float:
        return binary_metrics(classes, correct, rho).mcc

    mcc_min = reported.value.mcc - reported.width.mcc - METRIC_ERROR_MAX
    mcc_max = reported.value.mcc + reported.width.mcc + METRIC_ERROR_MAX
    if first == last:  # nearly always, for unrounded scores
        if mcc_min <= mcc(first) <= mcc_max:
            yield RhoRange(correct, first, last)
        return
    for start, end in _monotone_ranges(classes, correct, first, last):
        mcc_at_start, mcc_at_end = mcc(start), mcc(end)
        if max(mcc_at_start, mcc_at_end) < mcc_min or min(mcc_at_start, mcc_at_end) > mcc_max:
            continue
        is_rising = mcc_at_start <= mcc_at_end
        first_inside = _first_where(
            start,
            end,
            (lambda rho: mcc(rho) >= mcc_min) if is_rising else (lambda rho: mcc(rho) <= mcc_max),
        )
        first_beyond = _first_where(
            start,
            end,
            (lambda rho: mcc(rho) > mcc_max) if is_rising else (lambda rho: mcc(rho) < mcc_min),
        )
        if first_inside < first_beyond:
            yield RhoRange(correct, first_inside, first_beyond - 2)


def _monotone_ranges(
    classes: Classes, correct: int, first: int, last: int
) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of each part of a range of rho in which MCC only rises or only falls."""
    cuts = {first, last + 2}
    excess = 2 * correct - classes.total
    if excess:
        turning_rho = correct * (classes.large - classes.small) / excess
        if first < turning_rho < last:
            cuts.add(first + 2 * (math.floor((turning_rho - first) / 2) + 1))
    yield from ((start, end - 2) for start, end in itertools.pairwise(sorted(cuts)))


def _first_where(start: int, end: int, condition: Callable[[int], bool]) -> int:
    """Return the first of start, start + 2, ..., end that meets a condition; end + 2 if none does.

    All numbers after the first one must meet it, too.
    """
    low, high = 0, (end - start) // 2 + 1
    while low < high:
        middle = (low + high) // 2
        if condition(start + 2 * middle):
            high = middle
        else:
            low = middle + 1
    return start + 2 * low


COARSE_RHO_STEPS = 96
"""Number of steps in which all values of rho are searched at first: the distance from the scores
has a few local minima, narrow ones near the ends."""
NEARBY_RHOS = 24
"""Number of values of rho tried on each side of a local minimum of the distance, since numbers of
correct predictions are integers."""


class NearestTable(NamedTuple):
    """The possible table whose metrics are nearest to given ones, and its metrics."""

    table: BinaryTable
    """The possible table."""
    scores: Triple
    """The metrics of the table."""


def nearest_table(classes: Classes, target: Triple) -> NearestTable:
    """Return the table whose metrics are nearest to `target`, up to 1 % of the distance.

    For fixed rho all metrics are linear in the number of correct predictions, so only rho is
    searched: first coarsely, then around every local minimum.
    """
    coarse_rhos = chebyshev_integers(-classes.small, classes.large, COARSE_RHO_STEPS)
    distance = {rho: _distance_with_rho(classes, target, rho) for rho in coarse_rhos}
    neighbours = [coarse_rhos[0], *coarse_rhos, coarse_rhos[-1]]
    valleys = [
        (before, after)
        for before, rho, after in zip(neighbours, coarse_rhos, neighbours[2:], strict=False)
        if distance[rho] <= min(distance[before], distance[after])
    ]
    _, correct, rho = min(
        _tables_in_valleys(classes, target, valleys), key=lambda bottom: bottom[0]
    )
    if classes.small == classes.large:
        rho = abs(rho)  # the same table with swapped classes
    return NearestTable(binary_table(classes, correct, rho), binary_metrics(classes, correct, rho))


def _tables_in_valleys(
    classes: Classes, target: Triple, valleys: list[tuple[int, int]]
) -> Iterator[tuple[float, int, int]]:
    """Yield (distance, correct predictions, rho) of the tables near the minimum of each valley.

    A valley is a range of rho in which the distance to `target` has a local minimum.
    """
    for low, high in valleys:
        left, right = low, high
        while right - left > 2 * NEARBY_RHOS:
            third = (right - left) // 3
            if _distance_with_rho(classes, target, left + third) <= _distance_with_rho(
                classes, target, right - third
            ):
                right -= third
            else:
                left += third
        for rho in range(
            max(left - NEARBY_RHOS, -classes.small), min(right + NEARBY_RHOS, classes.large) + 1
        ):
            yield from _nearest_tables_with_rho(classes, target, rho)


def _nearest_tables_with_rho(
    classes: Classes, target: Triple, rho: int
) -> Iterator[tuple[float, int, int]]:
    """Yield (distance, correct predictions, rho) of the one or two nearest tables with this rho."""
    correct_min, correct_max = abs(rho), min(2 * classes.small + rho, 2 * classes.large - rho)
    ideal = _ideal_correct(classes, target, rho, correct_min, correct_max)
    lower = correct_min + (math.floor(ideal) - correct_min) // 2 * 2
    for correct in {lower, min(lower + 2, correct_max)}:
        yield math.dist(binary_metrics(classes, correct, rho), target), correct, rho


def _distance_with_rho(classes: Classes, target: Triple, rho: int) -> float:
    """Return the distance from `target` to the nearest table with this rho.

    Its number of correct predictions need not be an integer.
    """
    least, most = abs(rho), min(2 * classes.small + rho, 2 * classes.large - rho)
    return math.dist(
        binary_metrics(classes, _ideal_correct(classes, target, rho, least, most), rho), target
    )


def _ideal_correct(
    classes: Classes, target: Triple, rho: int, correct_min: int, correct_max: int
) -> float:
    """Return the number of correct predictions with which a table is nearest to `target`.

    It is between `correct_min` and `correct_max`, and need not be an integer.
    """
    if correct_min == correct_max:
        return correct_min
    start, end = (
        binary_metrics(classes, correct_min, rho),
        binary_metrics(classes, correct_max, rho),
    )
    direction = [last - first for first, last in itertools.zip_longest(start, end)]
    length = math.fsum(change * change for change in direction)
    share = math.fsum(
        change * (target_value - first)
        for change, target_value, first in zip(direction, target, start, strict=True)
    )
    return correct_min + (correct_max - correct_min) * min(1.0, max(0.0, share / length))


LISTED_TABLES_MAX = 100
"""Maximum number of fitting tables that `RecoveredCell` lists; if there are more, it has none."""
COUNTED_TABLES_MAX = 70_000**2
"""Number of fitting tables above which counting stops: 70,000 sequences have no more tables."""


class RecoveredCell(NamedTuple):
    """The confusion matrices that fit the reported scores of one cell, or of one seed of it."""

    regime: str
    task: str
    seed: int | None
    """None for a regime with a single fit of the probe."""
    classes: Classes
    reported: Triple
    """The scores as the submission reports them."""
    table_count: int
    """Number of tables with the reported scores; 0 if the scores are impossible."""
    table: BinaryTable | None
    """The table whose metrics are nearest to the reported scores; None if they are impossible."""
    tables: tuple[BinaryTable, ...]
    """All tables with the reported scores; empty if there are more than `LISTED_TABLES_MAX`."""

    @property
    def scores(self) -> Triple | None:
        """The metrics of `table`; None if the reported scores are impossible."""
        return metrics_of_table(self.table) if self.table else None


def recovered_cell(
    regime: str, task: str, seed: int | None, classes: Classes, reported: ReportedTriple
) -> RecoveredCell:
    """Return the confusion matrices that fit the reported scores of one cell, or of one seed."""
    cell_runs: list[RhoRange] = []
    matrices = 0
    for run in fitting_rho_ranges(classes, reported):
        cell_runs.append(run)
        matrices += len(run)
        if matrices > COUNTED_TABLES_MAX:
            break
    fitting_tables = (
        binary_table(classes, run.correct, rho)
        for run in cell_runs
        for rho in range(run.first_rho, run.last_rho + 1, 2)
    )
    tables = tuple(fitting_tables) if matrices <= LISTED_TABLES_MAX else ()
    nearest = tables[0] if matrices == 1 else None
    if matrices > 1:
        nearest = nearest_table(classes, reported.value).table
    return RecoveredCell(regime, task, seed, classes, reported.value, matrices, nearest, tables)


def recovered_counts(classes: Classes, reported: ReportedTriple) -> list[int]:
    """Return the number of tables that fit a cell, and two counts of the nearest table.

    The counts are the correct predictions of the small and of the large class; 0 without a table.
    """
    cell = recovered_cell("", "", None, classes, reported)
    correct_counts = (cell.table.small_correct, cell.table.large_correct) if cell.table else (0, 0)
    return [cell.table_count, *correct_counts]
