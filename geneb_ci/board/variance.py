"""Variance of MCC over other test sequences, in closed form: one value for each cell.

    cell_variances(submission, "full", benchmark).variance      (tasks,), in squared MCC

docs/research/uncertainty.md has the formulas, their assumptions and their limits. Only the four
operations and the square root of IEEE 754 are used, and sums are exact, so results have the same
bytes on every machine.
"""

import functools
import math
import operator
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from geneb_ci.check.claims import Results, fit_count_of, reported_triples, results_of
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.statistics.binary import BinaryTable, Classes, binary_table, fitting_rho_ranges
from geneb_ci.statistics.metrics import ReportedTriple, Triple
from geneb_ci.statistics.student import Floats, Positions
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission, SubmissionV11

FloatOrMore = Floats | np.float64
"""One number, or an array of them."""

FIT_CORRELATION = 0.5
"""Assumed correlation of the correctness of predictions between two few-shot fits of one model.

With k-mers on six real tasks it is 0.11 on average and 0.49 at most in 10shot, and about 0 in 1shot
(benchmarks/bench_overlap.py). The maximum is used, since better models agree more with themselves;
if the true value is lower, intervals are too wide.
"""
DRAW_DEVIATION = 0.1
"""Assumed standard deviation of one fit's MCC between training draws, for a model without scores by
seed. With k-mers on six real tasks it is 0.085 in 10shot and 0.097 in 1shot, as a root mean square
(benchmarks/bench_overlap.py)."""
EQUAL_CLASSES_SLOPE = 2.0
"""Change of MCC per unit of accuracy for two equal classes, used if every prediction is right."""
EXACT_DIFFERENCE_MAX = 1e-12
"""Largest difference of a score from that of the integer matrix from which it was computed."""
_metrics_of_cell = operator.itemgetter("MCC", "Acc", "F1")
"""Returns MCC, accuracy and F1 of a cell."""


class CellVariances(NamedTuple):
    """The scores of a row in a regime with their variances."""

    scores: Floats
    """MCC as claimed; -0.0 is replaced by 0.0."""
    variance: Floats
    """Variance of the score, in squared MCC."""
    seed_variance: Floats
    """The part of `variance` that is estimated from scores by seed; 0 if these are unknown."""
    freedom: int
    """Degrees of freedom of `seed_variance`: the number of seeds minus one."""
    has_seeds: bool
    """Whether scores by seed are known for every task."""


class _TestSizes(NamedTuple):
    """Sizes of the test sets of a benchmark, as arrays."""

    two_class: Positions
    """Indices of the two-class tasks whose class sizes are known."""
    small: Floats
    """Numbers of sequences of these tasks in the smaller class."""
    large: Floats
    """Numbers of sequences of these tasks in the larger class."""
    multi_class: Positions
    """Indices of the other tasks: of more classes, or of two classes of unknown sizes."""
    total: Floats
    """Numbers of sequences of the tasks of `multi_class`."""


@functools.lru_cache(maxsize=4)
def _test_sizes(sizes: tuple[tuple[str, int | None, tuple[int, int] | None], ...]) -> _TestSizes:
    """Return sizes of test sets as arrays. Raises BadConfiguration for a task of unknown size."""
    for task, total, classes in sizes:
        if classes is None and total is None:
            raise BadConfiguration(
                f"the benchmark lacks the number of test sequences of {task}",
                "add n_test to the task in the benchmark definition",
            )
    two_class = [k for k, (_, _, classes) in enumerate(sizes) if classes is not None]
    multi_class = [k for k, (_, _, classes) in enumerate(sizes) if classes is None]
    class_sizes = np.array([sizes[k][2] for k in two_class], dtype=float).reshape(-1, 2)
    totals = np.array([sizes[k][1] for k in multi_class], dtype=float)
    small, large = class_sizes.T
    return _TestSizes(
        np.array(two_class, dtype=int), small, large, np.array(multi_class, dtype=int), totals
    )


def cell_variances(
    submission: Submission, regime: str, benchmark: Benchmark, results: Results | None = None
) -> CellVariances:
    """Return the scores of a row that has every task of a regime, and their variances.

    `results` are used instead of those of the submission, which may have been dropped.
    Raises BadConfiguration if the benchmark lacks the number of test sequences of a task.
    """
    sizes = _test_sizes(benchmark.test_sizes)
    cells = (results or results_of(submission))[regime]
    columns = np.array(
        [_metrics_of_cell(cells[task]) for task in benchmark.task_ids], dtype=float
    ).T
    mcc, acc, _ = columns
    fit_count = fit_count_of(benchmark, regime)
    variance = np.zeros(len(mcc))
    means = Triple(*columns[:, sizes.two_class])
    correct_counts = near_correct_counts(sizes.small, sizes.large, means)
    if fit_count == 1:
        correct_counts = _integer_counts(cells, benchmark, sizes, means, correct_counts)
    variance[sizes.two_class] = two_class_variance(sizes.small, sizes.large, *correct_counts)
    variance[sizes.multi_class] = _multi_class_variance(
        sizes.total, mcc[sizes.multi_class], acc[sizes.multi_class]
    )
    seed_variances, known_count = _seed_variances(submission, regime, benchmark)
    if fit_count > 1:
        # The factor is the variance of a mean of correlated fits divided by that of one fit. If
        # scores by seed are known, their spread already has the part that fits do not share.
        variance = (
            variance
            * np.where(
                seed_variances > 0,
                FIT_CORRELATION,
                FIT_CORRELATION + (1 - FIT_CORRELATION) / fit_count,
            )
            + seed_variances
        )
    return CellVariances(
        mcc + 0.0, variance, seed_variances, fit_count - 1, known_count == len(mcc)
    )


def near_correct_counts(
    small: FloatOrMore, large: FloatOrMore, mean: Triple
) -> tuple[Floats, Floats]:
    """Return the numbers of right predictions in the small and large class that fit scores best.

    The scores may be means over several fits, so the numbers need not be integers. All arguments
    and results are arrays of one shape. rho is the number of right predictions in the larger class
    minus that in the smaller one. Accuracy and macro-F1 allow two tables (the formula in
    `statistics.binary` solved for rho), of which the one with the closer MCC is chosen; results are
    limited by the sizes of the classes.
    """
    mcc, acc, f1 = (np.asarray(part, dtype=float) for part in mean)
    n = small + large
    correct = acc * n
    one_minus_f1 = np.where(f1 < 1, 1 - f1, 1.0)
    square = np.where(f1 < 1, n * (correct - f1 * n) / one_minus_f1, 0.0)
    rho_size = np.sqrt(np.maximum(square, 0.0))
    # The limits of statistics.binary.rho_limits, for means as well.
    rho_min = np.maximum(-correct, correct - 2 * small)
    rho_max = np.minimum(correct, 2 * large - correct)
    candidates = []
    for rho in (rho_size, -rho_size):
        limited_rho = np.minimum(np.maximum(rho, rho_min), rho_max)
        candidates.append((limited_rho, np.abs(_mcc(small, large, correct, limited_rho) - mcc)))
    (first, first_distance), (second, second_distance) = candidates
    rho = np.where(first_distance <= second_distance, first, second)
    return np.maximum((correct - rho) / 2, 0.0), np.maximum((correct + rho) / 2, 0.0)


def _mcc(small: FloatOrMore, large: FloatOrMore, correct: Floats, rho: Floats) -> Floats:
    """Return the MCC of confusion matrices; 0 where it is undefined.

    `statistics.binary.binary_metrics` has the formula.
    """
    n = small + large
    squared_denominator = small * large * (small + rho) * (large - rho)
    numerator = n * correct - 2 * small * large - rho * (large - small)
    return np.where(
        squared_denominator > 0,
        numerator / (2 * np.sqrt(np.where(squared_denominator > 0, squared_denominator, 1.0))),
        0.0,
    )


def _integer_counts(
    cells: Mapping[str, Mapping[str, float]],
    benchmark: Benchmark,
    sizes: _TestSizes,
    means: Triple,
    correct_counts: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Return the right predictions in both classes as integers, for scores of a single fit.

    If rounding `correct_counts` does not reproduce a score, `recovered_table` finds the matrix.
    """
    small, large = (np.rint(part) for part in correct_counts)
    mcc_of_counts = _mcc(sizes.small, sizes.large, small + large, large - small)
    n = sizes.small + sizes.large
    is_exact = np.abs(mcc_of_counts - means.mcc) <= EXACT_DIFFERENCE_MAX
    is_exact &= np.abs((small + large) / n - means.acc) <= EXACT_DIFFERENCE_MAX
    if not is_exact.all():
        reported_by_task = reported_triples(
            {task: Triple(*_metrics_of_cell(cells[task])) for task in benchmark.task_ids}, 1
        )
        for index in np.flatnonzero(~is_exact):
            classes = Classes(int(sizes.small[index]), int(sizes.large[index]))
            task = benchmark.task_ids[int(sizes.two_class[index])]
            confusion_matrix = recovered_table(classes, reported_by_task[task])
            small[index], large[index] = (
                confusion_matrix.small_correct,
                confusion_matrix.large_correct,
            )
    return small, large


def recovered_table(classes: Classes, reported: ReportedTriple) -> BinaryTable:
    """Return a confusion matrix with the reported scores, or a close one if there is none.

    If rounding allows several matrices, they differ by less than the rounding, which is far below
    the standard error; the middle one is returned.
    """
    first_run = next(fitting_rho_ranges(classes, reported), None)
    if first_run is not None:
        return binary_table(
            classes, first_run.correct, first_run.first_rho + (len(first_run) // 2) * 2
        )
    closest = near_correct_counts(
        np.float64(classes.small), np.float64(classes.large), reported.value
    )
    small, large = (round(float(count)) for count in closest)
    return BinaryTable(small, classes.small - small, large, classes.large - large)


def correct_share(correct: FloatOrMore, total: FloatOrMore) -> Floats:
    """Return the share of right predictions.

    If none or all are right, Jeffreys' estimate is used, which adds half a sequence to either side,
    since other sequences may have other results.
    """
    is_mixed = (correct > 0) & (correct < total)
    return np.where(is_mixed, correct / total, (np.minimum(correct, total) + 0.5) / (total + 1))


def two_class_variance(
    n1: FloatOrMore, n0: FloatOrMore, right1: FloatOrMore, right0: FloatOrMore
) -> Floats:
    """Return the variance of MCC of a two-class task by the delta method.

    `n1` and `n0` are the numbers of sequences in the classes, `right1` and `right0` the numbers of
    those predicted right; all arrays have one shape. MCC is a function of the recalls of both
    classes, which are independent binomial shares.
    """
    a, b = correct_share(right1, n1), correct_share(right0, n0)
    n = n1 + n0
    share1, share0 = n1 / n, n0 / n
    q = share1 * a + share0 * (1 - b)
    d = np.sqrt(q * (1 - q))
    kappa = np.sqrt(share1 * share0)
    j = (a + b - 1) * kappa * (1 - 2 * q) / (2 * (d * d * d))
    g1, g0 = kappa / d - j * share1, kappa / d + j * share0
    return np.asarray(g1 * g1 * a * (1 - a) / n1 + g0 * g0 * b * (1 - b) / n0)


def _multi_class_variance(total: Floats, mcc: Floats, acc: Floats) -> Floats:
    """Return the variance of MCC of tasks whose confusion matrix is unknown.

    If every class is predicted as often as it occurs, MCC = (A - e) / (1 - e), where e is the
    accuracy of chance (Gorodkin 2004); so dMCC/dA = 1 / (1 - e) = (1 - MCC) / (1 - A).
    """
    correct = np.rint(acc * total)
    is_imperfect = correct < total
    slope = np.where(
        is_imperfect, (1 - mcc) / np.where(is_imperfect, 1 - acc, 1.0), EQUAL_CLASSES_SLOPE
    )
    share = correct_share(correct, total)
    return np.asarray(slope * slope * share * (1 - share) / total)


def _seed_variances(
    submission: Submission, regime: str, benchmark: Benchmark
) -> tuple[Floats, int]:
    """Return the variance of each task's mean over seeds, and for how many tasks it is known.

    An unknown variance is 0.
    """
    evidence = submission.evidence if isinstance(submission, SubmissionV11) else {}
    variances, known_count = np.zeros(len(benchmark.tasks)), 0
    seed_count = fit_count_of(benchmark, regime)
    if seed_count == 1:
        return variances, known_count
    for index, task in enumerate(benchmark.task_ids):
        cell = evidence.get(regime, {}).get(task)
        seed_scores = cell.per_seed.MCC if cell else []
        if len(seed_scores) == seed_count:
            known_count += 1
            mean_score = math.fsum(seed_scores) / seed_count
            squares = math.fsum((mcc - mean_score) * (mcc - mean_score) for mcc in seed_scores)
            variances[index] = squares / (seed_count - 1) / seed_count
    return variances, known_count
