"""Means of the scores of one row: macro, micro and of each category."""

import array
import math
from collections.abc import Iterable, Sequence

from geneb_ci.check.claims import Results
from geneb_ci.statistics.metrics import RowStatistics
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission, SubmissionV11


def mean(values: Iterable[float]) -> float:
    """Return the mean, whose sum is rounded once (math.fsum), so every machine returns the same.

    Raises ZeroDivisionError if there is no value.
    """
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)


def row_statistics(submission: Submission, results: Results, benchmark: Benchmark) -> RowStatistics:
    """Return scores and means of a row, in the regimes of which it has every task.

    `results` are the scores of the submission, which may no longer contain them itself.
    """
    score_arrays: dict[str, array.array[float]] = {}
    means: dict[str, array.array[float]] = {}
    for regime in ranked_regimes(submission, benchmark):
        cells = [results[regime][task] for task in benchmark.task_ids]
        score_arrays[regime], means[regime] = array.array("d"), array.array("d")
        for metric in benchmark.metrics:
            # Adding 0.0 turns -0.0 into 0.0.
            task_scores = [cell[metric] + 0.0 for cell in cells]
            macro, micro, *categories = weighted_sums(task_scores, benchmark)
            score_arrays[regime].extend(task_scores)
            means[regime].extend([micro, macro, *categories])
    return RowStatistics(score_arrays, means)


def weighted_sums(numbers: Sequence[float], benchmark: Benchmark, power: int = 1) -> list[float]:
    """Return the sums over tasks with the weights of macro, micro and each category.

    The weight of a task is raised to `power`: 1 gives means, 2 the variances of means. Sums are
    rounded once (math.fsum), so that they do not depend on the order of tasks.
    """
    by_category = [
        math.fsum(map(numbers.__getitem__, indices)) / len(indices) ** power
        for indices in benchmark.category_indices
    ]
    macro = math.fsum(by_category) / len(by_category) ** power
    return [macro, math.fsum(numbers) / len(numbers) ** power, *by_category]


def ranked_regimes(submission: Submission, benchmark: Benchmark) -> list[str]:
    """Return the regimes in which a submission has every task."""
    gaps = submission.gaps if isinstance(submission, SubmissionV11) else {}
    return [regime for regime in benchmark.regimes if not gaps.get(regime)]
