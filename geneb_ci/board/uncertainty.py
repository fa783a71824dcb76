"""How sure the board is: standard errors of MCC, ranks with their ranges, how far ranks agree.

    intervals(entries, benchmark).regimes["full"].macro["space"]
    {"score": 0.558, "error": 0.0041, "low": 0.55, "high": 0.566, "rank": 8, "rank_low": 6, ...}

Scores are MCC. Variances of cells come from `variance`, what follows from them from `decisions`.
The method, what it assumes and what it cannot know: docs/research/uncertainty.md.
"""

import array
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from geneb_ci.board.columns import Entry
from geneb_ci.board.decisions import (
    Positions,
    RankRanges,
    ScoreColumn,
    critical_value,
    intervals_of,
    ranks,
    rounded_up,
)
from geneb_ci.board.means import ranked_regimes, weighted_sums
from geneb_ci.board.variance import DRAW_SPREAD, Floats, cells_of
from geneb_ci.check.claims import Results, fits_of
from geneb_ci.receipt.seen import SharedErrors, Triangle
from geneb_ci.statistics.metrics import PackedNumbers, RowNumbers, Standings
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission

SUMMARIES = ("macro", "micro")
SHARED_DIGITS = 6
"""Significant digits of a covariance, as published: every view decides by the same number."""


class RowScores(NamedTuple):
    """One row in one regime, whatever other rows there are."""

    names: tuple[str, ...]
    """"macro", "micro", then the categories."""
    values: tuple[float, ...]
    variance: tuple[float, ...]
    freedom: tuple[float, ...]
    """Degrees of freedom of the variance; infinite where no seed has a part in it."""
    tasks: ScoreColumn
    """The tasks in board order."""
    has_seeds: bool
    """Whether scores by seed are known for every task: other training draws are then covered."""


class RegimeScores(NamedTuple):
    """All models that are ranked in one regime: what every decision is made from."""

    models: tuple[str, ...]
    """In the order of their ids; arrays of scores have one value for each."""
    params: tuple[int, ...]
    scores: dict[str, ScoreColumn]
    """By "macro", "micro" or category."""
    tasks: dict[str, ScoreColumn]
    rounded: int
    """M*: the number of models rounded up."""
    critical: float
    """Standard errors of a difference that make it significant; one for the whole board."""
    draws_covered: tuple[str, ...]
    """Models whose errors cover other training draws, too, since they give scores by seed."""

    def best_first(self, name: str) -> Positions:
        """Return the places of the models by one score; the smaller of equals first, then by id."""
        smallest = _smallest_first(self.models, self.params)
        order = np.argsort(-self.scores[name].values[smallest], kind="stable")
        return np.asarray(smallest[order])


@functools.lru_cache(maxsize=4)
def _smallest_first(models: tuple[str, ...], params: tuple[int, ...]) -> Positions:
    """Return the places of models by their parameters, of equals by id."""
    by_id = np.array(sorted(range(len(models)), key=models.__getitem__), dtype=np.intp)
    return np.asarray(by_id[np.argsort(np.array(params, dtype=float)[by_id], kind="stable")])


class RegimeIntervals(NamedTuple):
    """All scores of one regime, each by model id, best first."""

    board: RegimeScores
    macro: Standings
    micro: Standings
    categories: dict[str, Standings]
    tasks: dict[str, PackedNumbers]
    """Task to model to both ends of the interval, the standard error and `spread_of`, models in the
    order of their ids."""
    draw_variance: float
    """Variance of a task's score between training draws, assumed of a model without scores by
    seed; 0 where none are drawn."""


class Intervals(NamedTuple):
    """The result of `intervals`."""

    regimes: dict[str, RegimeIntervals]


def intervals(
    entries: Iterable[Entry],
    benchmark: Benchmark,
    *,
    regimes: Iterable[str] | None = None,
) -> Intervals:
    """Return errors, intervals and ranks of all models that are ranked, in some or all regimes.

    The order of the entries changes no number. One more entry changes no interval of
    another model's score, and no statement about two others unless M* grows.

    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    boards = all_scores(entries, benchmark, regimes)
    return ranked_intervals(
        boards, benchmark, {regime: all_ranks(board) for regime, board in boards.items()}
    )


def all_scores(
    entries: Iterable[Entry], benchmark: Benchmark, regimes: Iterable[str] | None = None
) -> dict[str, RegimeScores]:
    """Return scores and variances for decisions, by regime. Raises BadConfiguration."""
    listed = list(entries)
    numbers = {id(entry.submission): entry.numbers for entry in listed}
    rows = [entry.submission for entry in listed]
    noted = next((entry.shared_errors for entry in listed if entry.shared_errors is not None), None)
    packed = functools.partial(_kept_scores, numbers)
    return {
        regime: regime_scores(rows, regime, benchmark, noted, packed)
        for regime in (benchmark.regimes if regimes is None else regimes)
    }


def all_ranks(board: RegimeScores) -> dict[str, RankRanges]:
    """Return the ranks of a regime by every score: of all that `intervals` gives, most work."""
    return {name: ranks(scores, board.critical) for name, scores in board.scores.items()}


def ranked_intervals(
    boards: Mapping[str, RegimeScores],
    benchmark: Benchmark,
    ranks: Mapping[str, Mapping[str, RankRanges]],
) -> Intervals:
    """Return the result of `intervals`; `ranks` are those of each regime by score."""
    return Intervals(
        {
            regime: _regime_intervals(board, regime, benchmark, ranks[regime])
            for regime, board in boards.items()
        }
    )


def _regime_intervals(
    board: RegimeScores,
    regime: str,
    benchmark: Benchmark,
    ranks_by_score: Mapping[str, RankRanges],
) -> RegimeIntervals:
    places = {model: index for index, model in enumerate(board.models)}
    by_score = {name: standings(board, name, ranks) for name, ranks in ranks_by_score.items()}
    return RegimeIntervals(
        board=board,
        macro=by_score["macro"],
        micro=by_score["micro"],
        categories={name: by_score[name] for name in benchmark.category_order},
        tasks={task: _interval_limits(places, scores) for task, scores in board.tasks.items()},
        draw_variance=draw_variance(regime, benchmark),
    )


def draw_variance(regime: str, benchmark: Benchmark) -> float:
    """Return the assumed variance of a task's score between training draws; 0 without draws."""
    if regime not in benchmark.protocol.few_shot_k:
        return 0.0
    return DRAW_SPREAD * DRAW_SPREAD / fits_of(benchmark, regime)


def spread_of(scores: ScoreColumn) -> Floats:
    """Return the uncertainty of each variance: its square over its degrees of freedom."""
    return np.asarray(scores.variance * scores.variance / scores.freedom)


def task_numbers(
    board: RegimeScores, tasks: Sequence[str], positions: Positions, drawn: float = 0.0
) -> Floats:
    """Return score, variance and `spread_of` of some models in some tasks: (3, T, M).

    `drawn` is the variance between training draws that is added for a model whose errors do not
    cover them. Variances are squares of errors, which are what is published.
    """
    covered = [board.models[k] in board.draws_covered for k in positions.tolist()]
    added = np.where(covered, 0.0, drawn)
    parts = [board.tasks[task] for task in tasks]
    return np.array(
        [
            [part.values[positions] for part in parts],
            [np.square(np.sqrt(part.variance[positions])) + added for part in parts],
            [spread_of(part)[positions] for part in parts],
        ]
    )


def mean_of(sums: Floats, count: int) -> ScoreColumn:
    """Return the mean of a number of tasks from the sums (3, M) of their numbers.

    One weight for each task. Errors of two models count as independent.
    """
    values, variance, uncertain = sums / [[count], [count**2], [count**4]]
    variance, uncertain = np.maximum(variance, 0.0), np.maximum(uncertain, 0.0)
    is_estimated = uncertain > 0
    freedom = np.where(
        is_estimated, variance * variance / np.where(is_estimated, uncertain, 1.0), np.inf
    )
    return ScoreColumn(values, variance, freedom)


def regime_scores(
    rows: Iterable[Submission],
    regime: str,
    benchmark: Benchmark,
    shared_errors: SharedErrors | None = None,
    packed: Callable[[Submission, str, Benchmark], bytes] | None = None,
) -> RegimeScores:
    """Return the scores that decisions in a regime are made from: rows with every task of it.

    `shared_errors` is what errors of rows with published predictions share, `packed` gives the
    scores of a row as bytes where that is not `_packed_scores`.
    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    ranked = [row for row in rows if regime in ranked_regimes(row, benchmark)]
    ranked.sort(key=lambda row: (row.model_id.lower(), row.model_id))
    names, tasks = names_of(benchmark), benchmark.task_ids
    raw = b"".join((packed or _packed_scores)(row, regime, benchmark) for row in ranked)
    whole = np.frombuffer(raw, dtype=float).reshape(len(ranked), _width(benchmark)).T.copy()
    by_name, (has_seeds,), by_task = np.split(whole, [3 * len(names), 3 * len(names) + 1])
    places = (
        shared_errors.triangle_positions(ranked)
        if shared_errors is not None
        else [None] * len(ranked)
    )
    triangles = shared_errors.regimes.get(regime, {}) if shared_errors is not None else {}
    return RegimeScores(
        models=tuple(row.model_id for row in ranked),
        params=tuple(row.meta.params for row in ranked),
        scores={
            name: with_shared(
                ScoreColumn(*by_name[k :: len(names)]), triangles.get(name, []), places
            )
            for k, name in enumerate(names)
        },
        tasks={task: ScoreColumn(*by_task[k :: len(tasks)]) for k, task in enumerate(tasks)},
        rounded=rounded_up(len(ranked)),
        critical=critical_value(rounded_up(len(ranked))),
        draws_covered=tuple(
            row.model_id for row, has in zip(ranked, has_seeds, strict=True) if has
        ),
    )


def names_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Name the scores of a regime: macro, micro, categories."""
    return (*SUMMARIES, *benchmark.category_order)


def with_shared(
    scores: ScoreColumn, triangle: Triangle, positions: Sequence[int | None]
) -> ScoreColumn:
    """Return scores with the covariances of the models that have a place in a triangle.

    Errors correlate as the predictions say, as far as the variance that these show is part of the
    score's: what comes from training draws is shared by nobody, so an error is never too small.
    """
    known_rows = [k for k, index in enumerate(positions) if index is not None]
    if len(known_rows) < 2 or not triangle:  # noqa: PLR2004 (a pair)
        return scores
    covariances = [triangle[index] for index in positions if index is not None]
    size = {
        k: math.sqrt(min(covariances[n][-1], scores.variance[k])) for n, k in enumerate(known_rows)
    }
    shared = np.zeros((len(positions), len(positions)))
    for n, i in enumerate(known_rows):
        for m, j in enumerate(known_rows[:n]):
            low, high = sorted((int(positions[i] or 0), int(positions[j] or 0)))
            spread = math.sqrt(covariances[n][-1] * covariances[m][-1])
            like = max(-1.0, min(1.0, triangle[high][low] / spread)) if spread > 0 else 0.0
            shared[i, j] = shared[j, i] = float(f"{like * size[i] * size[j]:.{SHARED_DIGITS}g}")
    return scores._replace(shared=shared)


def row_scores(
    submission: Submission, regime: str, benchmark: Benchmark, results: Results | None = None
) -> RowScores:
    """Return the scores of one row that has every task of a regime, with their variances.

    `results` are those of the submission where it does not have them itself.
    Sums are exact (math.fsum), so that neither other rows nor the machine change a bit of them.

    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    cells = cells_of(submission, regime, benchmark, results)
    values = weighted_sums(cells.scores.tolist(), benchmark)
    variance = [
        _squared_error(part) for part in weighted_sums(cells.variance.tolist(), benchmark, 2)
    ]
    freedom, alone = [math.inf] * len(values), np.full(len(cells.seeds), np.inf)
    if cells.seeds.any():
        # Satterthwaite: what is uncertain of a variance adds up with the squares of its parts.
        spread = cells.seeds * cells.seeds / max(cells.freedom, 1)
        uncertain = zip(variance, weighted_sums(spread.tolist(), benchmark, 4), strict=True)
        freedom = [v * v / u if u > 0 else math.inf for v, u in uncertain]
        np.divide(cells.variance * cells.variance, spread, out=alone, where=spread > 0)
    return RowScores(
        names_of(benchmark),
        tuple(values),
        tuple(variance),
        tuple(freedom),
        ScoreColumn(cells.scores, cells.variance, alone),
        cells.has_seeds,
    )


def _kept_scores(
    numbers: Mapping[int, RowNumbers | None],
    submission: Submission,
    regime: str,
    benchmark: Benchmark,
) -> bytes:
    """Return the result of `_packed_scores` for a row, from its numbers if they have it."""
    row_numbers = numbers[id(submission)]
    if row_numbers is not None and regime in row_numbers.errors:
        return row_numbers.errors[regime]
    return _packed_scores(submission, regime, benchmark)


def task_errors(entry: Entry, regime: str, benchmark: Benchmark) -> list[float]:
    """Return the standard error of a row in each task of a regime in which it is ranked.

    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    row = entry.submission
    raw = np.frombuffer(_kept_scores({id(row): entry.numbers}, row, regime, benchmark))
    _, variance, _ = raw[-3 * len(benchmark.tasks) :].reshape(3, -1)
    errors: list[float] = np.sqrt(variance).tolist()
    return errors


def row_errors(submission: Submission, results: Results, benchmark: Benchmark) -> dict[str, bytes]:
    """Return the result of `row_scores` in every regime in which a row is ranked, as numbers."""
    regimes = ranked_regimes(submission, benchmark)
    return {regime: _packed_scores(submission, regime, benchmark, results) for regime in regimes}


def _packed_scores(
    submission: Submission, regime: str, benchmark: Benchmark, results: Results | None = None
) -> bytes:
    scores = row_scores(submission, regime, benchmark, results)
    numbers = [*scores.values, *scores.variance, *scores.freedom, float(scores.has_seeds)]
    return np.concatenate([numbers, *scores.tasks[:3]]).tobytes()


def _width(benchmark: Benchmark) -> int:
    """Return how many numbers `_packed_scores` writes of scores, of seeds, and of tasks."""
    return 3 * len(names_of(benchmark)) + 1 + 3 * len(benchmark.tasks)


def _squared_error(variance: float) -> float:
    """Return a variance as the square of the standard error, which is what is published."""
    error = math.sqrt(variance)
    return error * error


def standings(board: RegimeScores, name: str, stood: RankRanges | None = None) -> Standings:
    """Rank the models of a regime by one score, best first; `stood` are the ranks, if known."""
    scores, order = board.scores[name], board.best_first(name)
    (low, high), stood = intervals_of(scores), stood or ranks(scores, board.critical)
    freedom = scores.freedom[order]
    finite = freedom.astype(object)
    finite[np.isinf(freedom)] = None
    return Standings(
        models=list(map(board.models.__getitem__, order.tolist())),
        score=scores.values[order].tolist(),
        error=np.sqrt(scores.variance)[order].tolist(),
        freedom=finite.tolist(),
        low=low[order].tolist(),
        high=high[order].tolist(),
        rank=stood.rank[order].tolist(),
        rank_low=stood.low[order].tolist(),
        rank_high=stood.high[order].tolist(),
        could_be_best=(stood.low[order] == 1).tolist(),
    )


def _interval_limits(positions: Mapping[str, int], scores: ScoreColumn) -> PackedNumbers:
    numbers = np.stack((*intervals_of(scores), np.sqrt(scores.variance), spread_of(scores)), axis=1)
    return PackedNumbers(positions, array.array("d", numbers.tobytes()), width=numbers.shape[1])
