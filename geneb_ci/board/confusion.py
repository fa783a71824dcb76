"""Confusion matrices of two-class tasks, recovered from the scores of a row."""

from collections.abc import Iterator, Mapping

from geneb_ci.check.claims import Results, reported_triples, two_class_sizes
from geneb_ci.check.rule import Context
from geneb_ci.statistics.binary import Classes, RecoveredCell, recovered_cell, recovered_counts
from geneb_ci.statistics.metrics import Triple
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission


def recovered_cells(context: Context, regime: str) -> Iterator[RecoveredCell]:
    """Yield the matrices that fit the scores of each two-class task, in few-shot of each seed."""
    for claim in context.claims:
        if claim.path[:2] == ("results", regime) and claim.classes and claim.fit_count == 1:
            yield recovered_cell(regime, claim.task.id, None, claim.classes, claim.reported)
    if regime in context.benchmark.protocol.few_shot_k:
        seeds = context.benchmark.protocol.seeds
        for claims in context.seed_claims:
            classes = two_class_sizes(claims.task)
            if claims.regime == regime and classes:
                for seed, reported in zip(seeds, claims.seed_triples, strict=True):
                    yield recovered_cell(regime, claims.task.id, seed, classes, reported)


def single_fit_regimes(benchmark: Benchmark) -> list[str]:
    """Return the regimes whose scores are of a single fit: all except the few-shot ones."""
    few_shot_regimes = benchmark.protocol.few_shot_k
    return [regime for regime in benchmark.regimes if regime not in few_shot_regimes]


def row_matrices(_: Submission, results: Results, benchmark: Benchmark) -> dict[str, list[int]]:
    """Return the matrices of one model by regime, as `page_data.recovered_matrices` lists them."""
    return {
        regime: _row_matrices(results.get(regime, {}), benchmark)
        for regime in single_fit_regimes(benchmark)
    }


def _row_matrices(cells: Mapping[str, Mapping[str, float]], benchmark: Benchmark) -> list[int]:
    """Return three numbers for each two-class task, as in `page_data.recovered_matrices`."""
    cells_by_task = ((task, cells.get(task)) for task in benchmark.task_ids)
    reported_by_task = reported_triples(
        {
            task: Triple(cell["MCC"], cell["Acc"], cell["F1"])
            for task, cell in cells_by_task
            if cell
        },
        1,
    )
    return [
        number
        for task, _, sizes in benchmark.test_sizes
        if sizes
        for number in (
            recovered_counts(Classes(*sizes), reported_by_task[task])
            if task in reported_by_task
            else (0, 0, 0)
        )
    ]
