"""The numbers of one row: scores, means, and what is recovered of its confusion matrices."""

import array
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from geneb_ci.check.claims import Results, readings, two_classes
from geneb_ci.check.rule import Context
from geneb_ci.statistics.binary import Classes, RecoveredCell, counts_of, recovered_cell
from geneb_ci.statistics.metrics import RowNumbers, Triple
from reference_harness.formats.base import Scores
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.submission import Submission, SubmissionV11


def recovered_tables(context: Context, regime: str) -> Iterator[RecoveredCell]:
    """Recover the tables of a regime's two-class cells; of a mean, those of its seeds if given."""
    for claim in context.claims:
        if claim.path[:2] == ("results", regime) and claim.classes and claim.fits == 1:
            yield recovered_cell(regime, claim.task.id, None, claim.classes, claim.reading)
    if regime in context.benchmark.protocol.few_shot_k:
        seeds = context.benchmark.protocol.seeds
        for claims in context.seed_claims:
            classes = two_classes(claims.task)
            if claims.regime == regime and classes:
                for seed, reading in zip(seeds, claims.readings, strict=True):
                    yield recovered_cell(regime, claims.task.id, seed, classes, reading)


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
    every: dict[str, array.array[float]] = {}
    means: dict[str, array.array[float]] = {}
    for regime in ranked_regimes(submission, benchmark):
        cells = [results[regime][task] for task in benchmark.task_ids]
        every[regime], means[regime] = array.array("d"), array.array("d")
        for metric in benchmark.metrics:
            # Adding 0.0 turns -0.0 into 0.0: a score has one way to be zero.
            values = [cell[metric] + 0.0 for cell in cells]
            macro, micro, *categories = weighted_sums(values, benchmark)
            every[regime].extend(values)
            means[regime].extend([micro, macro, *categories])
    return RowNumbers(every, means)


def weighted_sums(values: Sequence[float], benchmark: Benchmark, power: int = 1) -> list[float]:
    """Return what tasks add up to in macro, micro and each category, in board order.

    Each value is multiplied with the weight of its task to a power: 1 gives means, 2 variances.
    Sums are rounded once (math.fsum), so that no order of their parts changes a bit.
    """
    by_category = [
        math.fsum(map(values.__getitem__, places)) / len(places) ** power
        for places in benchmark.category_places
    ]
    macro = math.fsum(by_category) / len(by_category) ** power
    return [macro, math.fsum(values) / len(values) ** power, *by_category]


def single_fits(benchmark: Benchmark) -> list[str]:
    """Return the regimes in which one fit stands for all seeds."""
    return [r for r in benchmark.regimes if r not in benchmark.protocol.few_shot_k]


def row_matrices(_: Submission, results: Results, benchmark: Benchmark) -> dict[str, list[int]]:
    """Return a model's list of each regime of one fit, as `page_data.matrices` has it."""
    return {r: _row_matrices(results.get(r, {}), benchmark) for r in single_fits(benchmark)}


def _row_matrices(cells: Mapping[str, Mapping[str, float]], benchmark: Benchmark) -> list[int]:
    listed = ((task, cells.get(task)) for task in benchmark.task_ids)
    read = readings({t: Triple(c["MCC"], c["Acc"], c["F1"]) for t, c in listed if c}, 1)
    return [
        number
        for task, _, sizes in benchmark.test_sizes
        if sizes
        for number in (counts_of(Classes(*sizes), read[task]) if task in read else (0, 0, 0))
    ]


def ranked_regimes(submission: Submission, benchmark: Benchmark) -> list[str]:
    """Name the regimes in which a submission has every task."""
    gaps = submission.gaps if isinstance(submission, SubmissionV11) else {}
    return [regime for regime in benchmark.regimes if not gaps.get(regime)]


def scored_cells(
    submission: Submission, benchmark: Benchmark
) -> Iterator[tuple[str, Task, Scores]]:
    """Yield regime, task and scores of each cell that a row has, in the benchmark's order."""
    for regime in benchmark.regimes:
        cells = submission.results.get(regime, {})
        for task in benchmark.tasks:
            if task.id in cells:
                yield regime, task, cells[task.id]


def category_means(scores: Mapping[str, float], benchmark: Benchmark) -> dict[str, float]:
    """Return the mean score of each category, in board order, from the score of each task."""
    return {
        name: mean(scores[task] for task in tasks) for name, tasks in benchmark.categories.items()
    }
