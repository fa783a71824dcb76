"""The scores of a board as one long list, from which every table and export of scores is made.

It is no DataFrame, since importing pandas would take a fifth of the time of a build. Scores are not
rounded here.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from geneb_ci.audit.trust.attestation import ScoreEvidence
from geneb_ci.board.columns import Row, in_board_order
from geneb_ci.board.means import ranked_regimes
from geneb_ci.board.rows import extra_required
from reference_harness.formats.benchmark import Benchmark, Task

SCORE_COLUMNS = (
    *("model", "task", "category", "regime", "metric"),
    *("value", "standard_error", "attested", "evidence", "level"),
)
"""Names of the values of a score, in the order of `ScoreLine`."""
ScoreLine = tuple[str, str, str, str, str, float, float | None, str, str, str]
"""Values of SCORE_COLUMNS; the standard error, in the unit of the value, is None if unknown."""


class ScoredCell(NamedTuple):
    """The scores of a model in one task and regime."""

    regime: str
    task: Task
    scores: tuple[float, ...]
    """One score for each metric, in the benchmark's order."""
    score_evidence: ScoreEvidence
    """Whether audits compared the scores, and what they found."""


def score_lines(
    rows: Iterable[Row], benchmark: Benchmark, *, has_errors: bool, ranked_only: bool = False
) -> Iterator[ScoreLine]:
    """Yield every score of a board, ordered by model, then as in the benchmark.

    With `has_errors`, MCC has standard errors, which need numpy and known sizes of all test sets;
    they are None in a regime in which the model lacks a task. With `ranked_only`, the scores of
    such a regime are left out. Raises UsageProblem if numpy is needed and not installed.
    """
    metrics = benchmark.metrics
    for row in in_board_order(rows):
        model, evidence, level = row.submission.model_id, str(row.evidence), str(row.level)
        complete_regimes = ranked_regimes(row.submission, benchmark)
        standard_errors = _standard_errors(row, complete_regimes, benchmark) if has_errors else {}
        for regime, task, scores, score_evidence in scored_cells(row, benchmark):
            if ranked_only and regime not in complete_regimes:
                continue
            task_error = standard_errors.get((regime, task.id))
            cell, audited = (
                (model, task.id, task.category, regime),
                (score_evidence, evidence, level),
            )
            for metric, score in zip(metrics, scores, strict=True):
                standard_error = task_error if metric == "MCC" else None
                yield (*cell, metric, score, standard_error, *audited)


def scored_cells(row: Row, benchmark: Benchmark) -> Iterator[ScoredCell]:
    """Yield the scores that a row has, by regime and task in the benchmark's order.

    A row with `numbers` only has the regimes in which it has every task.
    """
    score_evidence = row.attestation.score_evidence
    if row.numbers is not None:
        for regime, numbers in row.numbers.scores.items():
            count = len(benchmark.tasks)
            columns = [numbers[start : start + count] for start in range(0, len(numbers), count)]
            for task, *task_scores in zip(benchmark.tasks, *columns, strict=True):
                yield ScoredCell(regime, task, tuple(task_scores), score_evidence(regime, task.id))
        return
    for regime in benchmark.regimes:
        cells = row.submission.results.get(regime, {})
        for task in benchmark.tasks:
            if task.id in cells:
                # Adding 0.0 turns -0.0 into 0.0: a score has one way to be zero.
                scores = [getattr(cells[task.id], metric) + 0.0 for metric in benchmark.metrics]
                yield ScoredCell(regime, task, tuple(scores), score_evidence(regime, task.id))


def _standard_errors(
    row: Row, regimes: Iterable[str], benchmark: Benchmark
) -> dict[tuple[str, str], float]:
    """Return the standard errors of the MCC of a row, by regime and task."""
    with extra_required():
        from geneb_ci.board.uncertainty import task_errors  # numpy: 0.2 s
    return {
        (regime, task): error
        for regime in regimes
        for task, error in zip(benchmark.task_ids, task_errors(row, regime, benchmark), strict=True)
    }
