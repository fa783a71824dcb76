"""How far MCC would move on other test sequences, in closed form: one variance for each cell.

    cells_of(submission, "full", benchmark).variance      (tasks,), in squared MCC

The formulas, what they assume and what they cannot know: docs/research/uncertainty.md. Only the
four operations and the square root of IEEE 754 are used, and sums are exact: the same bytes
everywhere.
"""

import functools
import math
import operator
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.check.claims import Results, fits_of, readings, results_of
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.statistics.binary import BinaryTable, Classes, fitting_runs, table
from geneb_ci.statistics.metrics import ReportedTriple, Triple
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission, SubmissionV11

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]
FloatOrMore = Floats | np.float64

# How alike the right and wrong predictions of two few-shot fits of one model are, as a correlation:
# 1 would be the same predictions, 0 unrelated ones. With k-mers on six real tasks it is 0.11 on
# average and 0.49 at most in 10shot, and about 0 in 1shot (benchmarks/bench_overlap.py). The
# greatest is taken, since better models agree more with themselves; with less of it, intervals are
# too wide.
OVERLAP = 0.5
# Standard deviation of one fit's MCC between training draws, assumed of a model that gives no
# scores by seed: with k-mers on six real tasks it is 0.085 in 10shot and 0.097 in 1shot, as a root
# mean square (benchmarks/bench_overlap.py).
DRAW_SPREAD = 0.1
# MCC per unit of accuracy of two even classes: taken where every prediction is right.
SLOPE_EVEN = 2.0
EXACT = 1e-12
"""Scores this near to those of an integer matrix were computed from it: 16 digits leave 1e-16."""
_SCORES = operator.itemgetter("MCC", "Acc", "F1")


class Cells(NamedTuple):
    """One row in one regime, task by task in board order; each array has one value a task."""

    scores: Floats
    """MCC as claimed; -0.0 is 0.0."""
    variance: Floats
    """Variance of the score, in squared MCC."""
    seeds: Floats
    """The part of the variance that the spread of the seeds tells; 0 where they are not known."""
    freedom: int
    """Degrees of freedom of that part: seeds less one."""
    has_seeds: bool
    """Whether scores by seed are known for every task."""


class _Sizes(NamedTuple):
    """Test sets of a benchmark as arrays."""

    two_class: npt.NDArray[np.intp]
    """Positions of the tasks of two classes whose sizes are known."""
    small: Floats
    large: Floats
    """Sizes of the larger class; `small` has those of the smaller one."""
    multi_class: npt.NDArray[np.intp]
    """Positions of the others."""
    total: Floats
    """Numbers of sequences of the other tasks."""


@functools.lru_cache(maxsize=4)
def _sizes_of(sizes: tuple[tuple[str, int | None, tuple[int, int] | None], ...]) -> _Sizes:
    for task, total, classes in sizes:
        if classes is None and total is None:
            raise BadConfiguration(
                f"the benchmark does not know how many test sequences {task} has",
                "add n_test to the task in the benchmark definition",
            )
    two = [k for k, (_, _, classes) in enumerate(sizes) if classes is not None]
    more = [k for k, (_, _, classes) in enumerate(sizes) if classes is None]
    class_sizes = np.array([sizes[k][2] for k in two], dtype=float).reshape(-1, 2)
    totals = np.array([sizes[k][1] for k in more], dtype=float)
    small, large = class_sizes.T
    return _Sizes(np.array(two, dtype=int), small, large, np.array(more, dtype=int), totals)


def cells_of(
    submission: Submission, regime: str, benchmark: Benchmark, results: Results | None = None
) -> Cells:
    """Return the scores of a row that has every task of a regime, and their variances.

    `results` are those of the submission where it does not have them itself.
    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    sizes = _sizes_of(benchmark.test_sizes)
    cells = (results or results_of(submission))[regime]
    columns = np.array([_SCORES(cells[task]) for task in benchmark.task_ids], dtype=float).T
    mcc, acc, _ = columns
    fits = fits_of(benchmark, regime)
    variance = np.zeros(len(mcc))
    means = Triple(*columns[:, sizes.two_class])
    rights = near_mean(sizes.small, sizes.large, means)
    if fits == 1:
        rights = _whole(cells, benchmark, sizes, means, rights)
    variance[sizes.two_class] = variance_of_two(sizes.small, sizes.large, *rights)
    variance[sizes.multi_class] = _variance_of_more(
        sizes.total, mcc[sizes.multi_class], acc[sizes.multi_class]
    )
    seeds, degrees = _spread(submission, regime, benchmark)
    if fits > 1:
        # Of a mean of fits whose errors correlate, over that of one fit. What the fits do not share
        # is part of the spread of the seeds, where that is known.
        variance = variance * np.where(seeds > 0, OVERLAP, OVERLAP + (1 - OVERLAP) / fits) + seeds
    return Cells(mcc + 0.0, variance, seeds, fits - 1, degrees == len(mcc))


def near_mean(small: FloatOrMore, large: FloatOrMore, mean: Triple) -> tuple[Floats, Floats]:
    """Return how many of each class are right, as fractions, in the table that fits a mean best.

    Sizes, means (MCC, accuracy, macro-F1) and results are arrays of one shape. Accuracy and
    macro-F1 leave two tables (inverted from the formula in `statistics.binary`), of which MCC
    chooses the nearer one; the result is cut to what the sizes of the classes allow.
    """
    mcc, acc, f1 = (np.asarray(part, dtype=float) for part in mean)
    n = small + large
    right = acc * n
    below = np.where(f1 < 1, 1 - f1, 1.0)
    square = np.where(f1 < 1, n * (right - f1 * n) / below, 0.0)
    size = np.sqrt(np.maximum(square, 0.0))
    # The limits of statistics.binary.rho_limits, for means as well.
    least = np.maximum(-right, right - 2 * small)
    most = np.minimum(right, 2 * large - right)
    candidates = []
    for rho in (size, -size):
        placed = np.minimum(np.maximum(rho, least), most)
        candidates.append((placed, np.abs(_mcc(small, large, right, placed) - mcc)))
    (first, far), (second, near) = candidates
    rho = np.where(far <= near, first, second)
    return np.maximum((right - rho) / 2, 0.0), np.maximum((right + rho) / 2, 0.0)


def _mcc(small: FloatOrMore, large: FloatOrMore, correct: Floats, rho: Floats) -> Floats:
    """Return MCC of tables as `statistics.binary.scores` does, 0 where it is not defined."""
    n = small + large
    spread = small * large * (small + rho) * (large - rho)
    top = n * correct - 2 * small * large - rho * (large - small)
    return np.where(spread > 0, top / (2 * np.sqrt(np.where(spread > 0, spread, 1.0))), 0.0)


def _whole(
    cells: Mapping[str, Mapping[str, float]],
    benchmark: Benchmark,
    sizes: _Sizes,
    means: Triple,
    correct_counts: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Return the integer tables of one fit: those with its scores, or else the likeliest ones."""
    small, large = (np.rint(part) for part in correct_counts)
    reached = _mcc(sizes.small, sizes.large, small + large, large - small)
    n = sizes.small + sizes.large
    exact = np.abs(reached - means.mcc) <= EXACT
    exact &= np.abs((small + large) / n - means.acc) <= EXACT
    if not exact.all():
        widths = readings({task: Triple(*_SCORES(cells[task])) for task in benchmark.task_ids}, 1)
        for k in np.flatnonzero(~exact):
            classes = Classes(int(sizes.small[k]), int(sizes.large[k]))
            table = recovered_table(classes, widths[benchmark.task_ids[int(sizes.two_class[k])]])
            small[k], large[k] = table.small_correct, table.large_correct
    return small, large


def recovered_table(classes: Classes, reported: ReportedTriple) -> BinaryTable:
    """Return the likeliest table that may have been printed so, or one near it where there is none.

    Where rounding leaves several, they differ by less than the rounding, which is far below the
    standard error.
    """
    first = next(fitting_runs(classes, reported), None)
    if first is not None:
        return table(classes, first.right, first.first + (len(first) // 2) * 2)
    near = near_mean(np.float64(classes.small), np.float64(classes.large), reported.value)
    small, large = (round(float(count)) for count in near)
    return BinaryTable(small, classes.small - small, large, classes.large - large)


def rate(right: FloatOrMore, total: FloatOrMore) -> Floats:
    """Return shares of right predictions; none or all of them need not be so on other sequences.

    Then it is Jeffreys' estimate, which adds half a sequence to either side.
    """
    inside = (right > 0) & (right < total)
    return np.where(inside, right / total, (np.minimum(right, total) + 0.5) / (total + 1))


def variance_of_two(
    n1: FloatOrMore, n0: FloatOrMore, right1: FloatOrMore, right0: FloatOrMore
) -> Floats:
    """Return the variance of MCC of two classes by the delta method; arrays of one shape.

    MCC moves with the recall of either class; each recall is a binomial share of its class.
    """
    a, b = rate(right1, n1), rate(right0, n0)
    n = n1 + n0
    share1, share0 = n1 / n, n0 / n
    q = share1 * a + share0 * (1 - b)
    d = np.sqrt(q * (1 - q))
    kappa = np.sqrt(share1 * share0)
    j = (a + b - 1) * kappa * (1 - 2 * q) / (2 * (d * d * d))
    g1, g0 = kappa / d - j * share1, kappa / d + j * share0
    return np.asarray(g1 * g1 * a * (1 - a) / n1 + g0 * g0 * b * (1 - b) / n0)


def _variance_of_more(total: Floats, mcc: Floats, acc: Floats) -> Floats:
    """Return the variance of MCC where no matrix is known.

    Where a class is predicted as often as it occurs, MCC = (A - e) / (1 - e) with e the accuracy of
    chance (Gorodkin 2004), so MCC moves with accuracy by 1 / (1 - e) = (1 - MCC) / (1 - A).
    """
    right = np.rint(acc * total)
    below = right < total
    slope = np.where(below, (1 - mcc) / np.where(below, 1 - acc, 1.0), SLOPE_EVEN)
    share = rate(right, total)
    return np.asarray(slope * slope * share * (1 - share) / total)


def _spread(submission: Submission, regime: str, benchmark: Benchmark) -> tuple[Floats, int]:
    """Return the variance of each task's mean over seeds, 0 where not known, and of how many."""
    evidence = submission.evidence if isinstance(submission, SubmissionV11) else {}
    variances, degrees = np.zeros(len(benchmark.tasks)), 0
    seeds = fits_of(benchmark, regime)
    if seeds == 1:
        return variances, degrees
    for index, task in enumerate(benchmark.task_ids):
        cell = evidence.get(regime, {}).get(task)
        values = cell.per_seed.MCC if cell else []
        if len(values) == seeds:
            degrees += 1
            middle = math.fsum(values) / seeds
            squares = math.fsum((value - middle) * (value - middle) for value in values)
            variances[index] = squares / (seeds - 1) / seeds
    return variances, degrees
