"""How certain the board is: standard errors of MCC, intervals, ranks and ranges of ranks.

    ranked_intervals(boards, benchmark, ranks)["full"].macro["space"]
    {"score": 0.558, "error": 0.0041, "low": 0.55, "high": 0.566, "rank": 8, "rank_low": 6, ...}

Scores are MCC. `variance` computes the variances of cells, `decisions` intervals and ranks.
docs/research/uncertainty.md describes the method, its assumptions and its limits.
"""

import array
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from geneb_ci.board.columns import Row
from geneb_ci.board.decisions import (
    RankRanges,
    ScoreColumn,
    critical_value,
    freedom_of,
    intervals_of,
    rank_ranges,
    rounded_model_count,
)
from geneb_ci.board.means import ranked_regimes, weighted_sums
from geneb_ci.board.variance import DRAW_DEVIATION, cell_variances
from geneb_ci.check.claims import Results, fit_count_of
from geneb_ci.receipt.seen import SharedErrors, Triangle
from geneb_ci.statistics.metrics import ModelRanking, PackedNumbers, RowStatistics
from geneb_ci.statistics.student import Floats, Positions
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission

OVERALL_MEANS = ("macro", "micro")
"""Names of the two means over all tasks."""
COVARIANCE_DIGITS = 6
"""Significant digits of a published covariance; decisions use the rounded number as well."""


class RowScores(NamedTuple):
    """The scores of one row in one regime; they do not depend on other rows."""

    names: tuple[str, ...]
    """Names of the scores: "macro", "micro", then the categories."""
    values: tuple[float, ...]
    variance: tuple[float, ...]
    freedom: tuple[float, ...]
    """Degrees of freedom of each variance; infinite if it does not depend on scores by seed."""
    tasks: ScoreColumn
    """The scores of the row in each task, in board order."""
    has_seeds: bool
    """Whether scores by seed are known for every task, so that errors cover other training
    draws."""


class RegimeScores(NamedTuple):
    """The scores of all models that are ranked in one regime, from which decisions are made."""

    models: tuple[str, ...]
    """Ids in lower-case order; arrays of scores have one value for each model."""
    params: tuple[int, ...]
    scores: dict[str, ScoreColumn]
    """Scores of all models by "macro", "micro" or category."""
    tasks: dict[str, ScoreColumn]
    """Scores of all models by task."""
    rounded: int
    """The number of models, rounded up by `rounded_model_count`."""
    critical: float
    """Number of standard errors from which a difference is significant; the same for all pairs."""
    draws_covered: tuple[str, ...]
    """Models that give scores by seed, so that their errors cover other training draws, too."""

    def best_first(self, score_name: str) -> Positions:
        """Return the models' indices by descending score; equal scores by size, then by id."""
        smallest = _smallest_first(self.models, self.params)
        order = np.argsort(-self.scores[score_name].values[smallest], kind="stable")
        return np.asarray(smallest[order])


@functools.lru_cache(maxsize=4)
def _smallest_first(models: tuple[str, ...], params: tuple[int, ...]) -> Positions:
    """Return the models' indices by ascending number of parameters; equal sizes by id."""
    by_id = np.array(sorted(range(len(models)), key=models.__getitem__), dtype=np.intp)
    return np.asarray(by_id[np.argsort(np.array(params, dtype=float)[by_id], kind="stable")])


class RegimeIntervals(NamedTuple):
    """Intervals and ranks of all scores of one regime."""

    board: RegimeScores
    macro: ModelRanking
    micro: ModelRanking
    categories: dict[str, ModelRanking]
    tasks: dict[str, PackedNumbers]
    """By task and model: both ends of the interval, standard error and `satterthwaite_terms`."""
    draw_variance: float
    """Assumed variance of a task's score between training draws, for models without scores by
    seed; 0 if the regime draws no training examples."""


def scores_by_regime(
    rows: Iterable[Row], benchmark: Benchmark, regimes: Iterable[str] | None = None
) -> dict[str, RegimeScores]:
    """Return the scores of ranked models, with variances, by regime.

    The order of the rows changes no number. An additional row changes no interval of the others.
    Which of them differ significantly changes only if `rounded_model_count` grows.

    Raises BadConfiguration if the benchmark lacks the number of test sequences of a task.
    """
    rows = list(rows)
    numbers = {id(row.submission): row.numbers for row in rows}
    submissions = [row.submission for row in rows]
    shared_errors = next((row.shared_errors for row in rows if row.shared_errors is not None), None)
    scores_of = functools.partial(_known_or_computed_scores, numbers)
    return {
        regime: regime_scores(submissions, regime, benchmark, shared_errors, scores_of)
        for regime in (benchmark.regimes if regimes is None else regimes)
    }


def ranks_by_score_name(board: RegimeScores) -> dict[str, RankRanges]:
    """Return the ranks and rank ranges of the models of a regime, by name of the score.

    This takes most of the time in which intervals are computed.
    """
    return {name: rank_ranges(scores, board.critical) for name, scores in board.scores.items()}


def ranked_intervals(
    boards: Mapping[str, RegimeScores],
    benchmark: Benchmark,
    ranks: Mapping[str, Mapping[str, RankRanges]],
) -> dict[str, RegimeIntervals]:
    """Return the intervals of all scores by regime; `ranks` has the rank ranges of each score."""
    return {
        regime: _regime_intervals(board, regime, benchmark, ranks[regime])
        for regime, board in boards.items()
    }


def _regime_intervals(
    board: RegimeScores,
    regime: str,
    benchmark: Benchmark,
    ranks_by_score: Mapping[str, RankRanges],
) -> RegimeIntervals:
    """Return the intervals and ranks of one regime."""
    position_by_model = {model: index for index, model in enumerate(board.models)}
    by_score = {name: model_ranking(board, name, ranks) for name, ranks in ranks_by_score.items()}
    return RegimeIntervals(
        board=board,
        macro=by_score["macro"],
        micro=by_score["micro"],
        categories={name: by_score[name] for name in benchmark.category_order},
        tasks={
            task: _interval_limits(position_by_model, scores)
            for task, scores in board.tasks.items()
        },
        draw_variance=draw_variance(regime, benchmark),
    )


def draw_variance(regime: str, benchmark: Benchmark) -> float:
    """Return the assumed variance of a task's score between training draws; 0 without draws."""
    if regime not in benchmark.protocol.few_shot_k:
        return 0.0
    return DRAW_DEVIATION * DRAW_DEVIATION / fit_count_of(benchmark, regime)


def satterthwaite_terms(scores: ScoreColumn) -> Floats:
    """Return the square of each variance divided by its degrees of freedom (Satterthwaite).

    The sum of these terms gives the degrees of freedom of a sum of scores.
    """
    return np.asarray(scores.variance * scores.variance / scores.freedom)


def task_numbers(
    board: RegimeScores, tasks: Sequence[str], positions: Positions, draw_variance: float = 0.0
) -> Floats:
    """Return an array (3, tasks, models) of scores, variances and `satterthwaite_terms`.

    `draw_variance` is added to the variances of models whose errors do not cover other training
    draws. Variances are squares of the standard errors, as the page computes them.
    """
    is_covered = [board.models[k] in board.draws_covered for k in positions.tolist()]
    added_variance = np.where(is_covered, 0.0, draw_variance)
    columns = [board.tasks[task] for task in tasks]
    return np.array(
        [
            [column.values[positions] for column in columns],
            [np.square(np.sqrt(column.variance[positions])) + added_variance for column in columns],
            [satterthwaite_terms(column)[positions] for column in columns],
        ]
    )


def mean_over_tasks(sums: Floats, count: int) -> ScoreColumn:
    """Return the mean score of each model over `count` tasks.

    `sums` (3, M) are the sums of `task_numbers` over the tasks, which weigh the same. The errors of
    two models count as independent.
    """
    means, variance, spread = sums / [[count], [count**2], [count**4]]
    variance = np.maximum(variance, 0.0)
    return ScoreColumn(means, variance, freedom_of(variance, np.maximum(spread, 0.0)))


def regime_scores(
    rows: Iterable[Submission],
    regime: str,
    benchmark: Benchmark,
    shared_errors: SharedErrors | None = None,
    scores_of: Callable[[Submission, str, Benchmark], RowScores] | None = None,
) -> RegimeScores:
    """Return the scores of the rows that have every task of a regime.

    `shared_errors` has the covariances of rows with published predictions; `scores_of` returns the
    scores of a row, by default `row_scores`.
    Raises BadConfiguration if the benchmark lacks the number of test sequences of a task.
    """
    ranked_rows = [row for row in rows if regime in ranked_regimes(row, benchmark)]
    ranked_rows.sort(key=lambda row: (row.model_id.lower(), row.model_id))
    mean_names, tasks = score_names_of(benchmark), benchmark.task_ids
    row_results = [(scores_of or row_scores)(row, regime, benchmark) for row in ranked_rows]
    by_name = _score_columns(
        [(row.values, row.variance, row.freedom) for row in row_results], mean_names
    )
    by_task = _score_columns([row.tasks[:3] for row in row_results], tasks)
    positions = (
        shared_errors.triangle_positions(ranked_rows)
        if shared_errors is not None
        else [None] * len(ranked_rows)
    )
    triangles = shared_errors.regimes.get(regime, {}) if shared_errors is not None else {}
    return RegimeScores(
        models=tuple(row.model_id for row in ranked_rows),
        params=tuple(row.meta.params for row in ranked_rows),
        scores={
            name: with_covariances(column, triangles.get(name, []), positions)
            for name, column in by_name.items()
        },
        tasks=by_task,
        rounded=rounded_model_count(len(ranked_rows)),
        critical=critical_value(rounded_model_count(len(ranked_rows))),
        draws_covered=tuple(
            row.model_id
            for row, scores in zip(ranked_rows, row_results, strict=True)
            if scores.has_seeds
        ),
    )


def _score_columns(
    rows: Sequence[Sequence[Any]], column_names: Sequence[str]
) -> dict[str, ScoreColumn]:
    """Return score columns by name; a row has lists of scores, variances and freedoms."""
    columns = np.array(rows, dtype=float).reshape(len(rows), 3, len(column_names)).T.copy()
    return {name: ScoreColumn(*column) for name, column in zip(column_names, columns, strict=True)}


def score_names_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the names of the scores of a regime: macro, micro, then the categories."""
    return (*OVERALL_MEANS, *benchmark.category_order)


def with_covariances(
    scores: ScoreColumn, triangle: Triangle, positions: Sequence[int | None]
) -> ScoreColumn:
    """Return scores with the covariances of models with published predictions.

    `triangle` has the covariances of each such model with those before it; `positions` has for each
    model its index there, or None without predictions. The triangle covers errors from test
    sequences only. A score's variance may be larger, since training draws add to it; the part of
    the draws is taken as independent.
    """
    known_rows = [k for k, index in enumerate(positions) if index is not None]
    if len(known_rows) < 2 or not triangle:  # noqa: PLR2004 (a pair)
        return scores
    covariances = [triangle[index] for index in positions if index is not None]
    known_errors = {
        k: math.sqrt(min(covariances[n][-1], scores.variance[k])) for n, k in enumerate(known_rows)
    }
    shared = np.zeros((len(positions), len(positions)))
    for n, i in enumerate(known_rows):
        for m, j in enumerate(known_rows[:n]):
            column, row = sorted((int(positions[i] or 0), int(positions[j] or 0)))
            triangle_error = math.sqrt(covariances[n][-1] * covariances[m][-1])
            correlation = (
                max(-1.0, min(1.0, triangle[row][column] / triangle_error))
                if triangle_error > 0
                else 0.0
            )
            shared[i, j] = shared[j, i] = float(
                f"{correlation * known_errors[i] * known_errors[j]:.{COVARIANCE_DIGITS}g}"
            )
    return scores._replace(shared=shared)


def row_scores(
    submission: Submission, regime: str, benchmark: Benchmark, results: Results | None = None
) -> RowScores:
    """Return the scores of one row that has every task of a regime, with their variances.

    `results` are used instead of those of the submission, which may have been dropped. Sums are
    exact (math.fsum), so they depend neither on other rows nor on the machine.

    Raises BadConfiguration if the benchmark lacks the number of test sequences of a task.
    """
    cells = cell_variances(submission, regime, benchmark, results)
    means = weighted_sums(cells.scores.tolist(), benchmark)
    variance = [
        _published_variance(summed)
        for summed in weighted_sums(cells.variance.tolist(), benchmark, 2)
    ]
    freedom, task_freedom = [math.inf] * len(means), np.full(len(cells.seed_variance), np.inf)
    if cells.seed_variance.any():
        # Satterthwaite: V * V / f of a weighted sum is the sum of its parts' with weights ** 4.
        spread = cells.seed_variance * cells.seed_variance / max(cells.freedom, 1)
        uncertain = zip(variance, weighted_sums(spread.tolist(), benchmark, 4), strict=True)
        freedom = [v * v / u if u > 0 else math.inf for v, u in uncertain]
        np.divide(cells.variance * cells.variance, spread, out=task_freedom, where=spread > 0)
    return RowScores(
        score_names_of(benchmark),
        tuple(means),
        tuple(variance),
        tuple(freedom),
        ScoreColumn(cells.scores, cells.variance, task_freedom),
        cells.has_seeds,
    )


def _known_or_computed_scores(
    statistics_by_id: Mapping[int, RowStatistics | None],
    submission: Submission,
    regime: str,
    benchmark: Benchmark,
) -> RowScores:
    """Return the scores of a row from its statistics, or computed where these lack them."""
    statistics = statistics_by_id[id(submission)]
    if statistics is not None and regime in statistics.errors:
        scores: RowScores = statistics.errors[regime]
        return scores
    return row_scores(submission, regime, benchmark)


def task_errors(row: Row, regime: str, benchmark: Benchmark) -> list[float]:
    """Return the standard error of a row in each task of a regime in which it is ranked.

    Raises BadConfiguration if the benchmark lacks the number of test sequences of a task.
    """
    scores = _known_or_computed_scores(
        {id(row.submission): row.numbers}, row.submission, regime, benchmark
    )
    standard_errors: list[float] = np.sqrt(scores.tasks.variance).tolist()
    return standard_errors


def row_scores_by_regime(
    submission: Submission, results: Results, benchmark: Benchmark
) -> dict[str, RowScores]:
    """Return the `row_scores` of a row, by regime in which the row is ranked."""
    regimes = ranked_regimes(submission, benchmark)
    return {regime: row_scores(submission, regime, benchmark, results) for regime in regimes}


def _published_variance(variance: float) -> float:
    """Return a variance as readers compute it: the square of the rounded root."""
    standard_error = math.sqrt(variance)
    return standard_error * standard_error


def model_ranking(
    board: RegimeScores, score_name: str, known_ranks: RankRanges | None = None
) -> ModelRanking:
    """Return scores, intervals and ranks of the models of a regime by one score, best first.

    `known_ranks` are the ranks by this score, if the caller has computed them already.
    """
    scores, order = board.scores[score_name], board.best_first(score_name)
    (low, high), known_ranks = (
        intervals_of(scores),
        known_ranks or rank_ranges(scores, board.critical),
    )
    freedom = scores.freedom[order]
    freedom_or_none = freedom.astype(object)
    freedom_or_none[np.isinf(freedom)] = None
    return ModelRanking(
        models=list(map(board.models.__getitem__, order.tolist())),
        score=scores.values[order].tolist(),
        error=np.sqrt(scores.variance)[order].tolist(),
        freedom=freedom_or_none.tolist(),
        low=low[order].tolist(),
        high=high[order].tolist(),
        rank=known_ranks.rank[order].tolist(),
        rank_low=known_ranks.low[order].tolist(),
        rank_high=known_ranks.high[order].tolist(),
        could_be_best=(known_ranks.low[order] == 1).tolist(),
    )


def _interval_limits(positions: Mapping[str, int], scores: ScoreColumn) -> PackedNumbers:
    """Return the four numbers of each model that `RegimeIntervals.tasks` has of a task."""
    numbers = np.stack(
        (*intervals_of(scores), np.sqrt(scores.variance), satterthwaite_terms(scores)), axis=1
    )
    return PackedNumbers(positions, array.array("d", numbers.tobytes()), width=numbers.shape[1])
