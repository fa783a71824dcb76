"""Means of the scores of one row: macro, micro and by category."""

import array
import math
from collections.abc import Iterable, Mapping, Sequence

from geneb_ci.check.claims import Results
from geneb_ci.statistics.metrics import RowNumbers
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission, SubmissionV11


def mean(values: Iterable[float]) -> float:
    """Return the mean, from a sum that is rounded once (math.fsum): equal on every Python.

    Raises ZeroDivisionError when there is no value: the mean of nothing is not a score.
    """
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)


def numbers_of(submission: Submission, results: Results, benchmark: Benchmark) -> RowNumbers:
    """Return scores and means of a row, of the regimes in which it has every task.

    `results` are those of the submission, which need not have them.
    """
    score_arrays: dict[str, array.array[float]] = {}
    means: dict[str, array.array[float]] = {}
    for regime in ranked_regimes(submission, benchmark):
        cells = [results[regime][task] for task in benchmark.task_ids]
        score_arrays[regime], means[regime] = array.array("d"), array.array("d")
        for metric in benchmark.metrics:
            # Adding 0.0 turns -0.0 into 0.0: a score has one way to be zero.
            values = [cell[metric] + 0.0 for cell in cells]
            macro, micro, *categories = weighted_sums(values, benchmark)
            score_arrays[regime].extend(values)
            means[regime].extend([micro, macro, *categories])
    return RowNumbers(score_arrays, means)


def weighted_sums(values: Sequence[float], benchmark: Benchmark, power: int = 1) -> list[float]:
    """Return the weighted sums over tasks of macro, micro and each category, in board order.

    Each value is multiplied with the weight of its task to a power: 1 gives means, 2 variances.
    Sums are rounded once (math.fsum), so that no order of their parts changes a bit.
    """
    by_category = [
        math.fsum(map(values.__getitem__, places)) / len(places) ** power
        for places in benchmark.category_places
    ]
    macro = math.fsum(by_category) / len(by_category) ** power
    return [macro, math.fsum(values) / len(values) ** power, *by_category]


def ranked_regimes(submission: Submission, benchmark: Benchmark) -> list[str]:
    """Name the regimes in which a submission has every task."""
    gaps = submission.gaps if isinstance(submission, SubmissionV11) else {}
    return [regime for regime in benchmark.regimes if not gaps.get(regime)]


def category_means(scores: Mapping[str, float], benchmark: Benchmark) -> dict[str, float]:
    """Return the mean score of each category, in board order, from the score of each task."""
    return {
        name: mean(scores[task] for task in tasks) for name, tasks in benchmark.categories.items()
    }
