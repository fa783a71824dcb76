"""How sure the board is: intervals of every MCC, of ranks, and groups of models that tie.

    intervals(entries, benchmark).regimes["full"].macro["space"]
    Standing(score=0.5581, low=0.5529, high=0.5632, rank=1, rank_low=1, rank_high=3, group=1)

Scores are MCC. The method, what it assumes and what it cannot know: docs/uncertainty.md.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from geneb_ci.board.columns import Entry
from geneb_ci.board.noise import DRAWS, Floats, Noise, Spread, noise_of
from geneb_ci.board.rows import category_means, mean, ranked_regimes
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.submission.models import Submission

CONFIDENCE = 0.95
# Scores are published so: the fifth decimal of an interval changes with the seed.
DECIMALS = 4


class RankedScore(NamedTuple):
    """One score of one model, as sure as it is known, among the models it is ranked with."""

    score: float
    low: float
    high: float
    """Interval of the score, for the model alone."""
    rank: int
    """1 is best; equal scores share the better rank."""
    rank_low: int
    rank_high: int
    """The rank lies between these: one more than the models that are significantly better, and the
    number of models less those that are significantly worse."""
    group: int
    """1 holds the best model and all that do not differ significantly from it, 2 the best of the
    rest and those that do not differ from that one, ..."""


class Estimate(NamedTuple):
    """One score of one model before it is compared with others."""

    score: float
    error: float
    """Standard error."""
    low: float
    high: float


ByModel = dict[str, RankedScore]


class RegimeIntervals(NamedTuple):
    """All scores of one regime, each by model id, best first."""

    macro: ByModel
    micro: ByModel
    categories: dict[str, ByModel]
    tasks: dict[str, dict[str, tuple[float, float]]]
    """Task to model to interval, models in the order of their ids."""
    is_drawn: bool
    """Whether training examples are drawn: then intervals may or may not cover other draws."""
    draws_covered: tuple[str, ...]
    """Models whose intervals cover other training draws, too, since they give scores by seed."""


class Intervals(NamedTuple):
    """What `intervals` gives."""

    regimes: dict[str, RegimeIntervals]
    estimates: dict[str, dict[str, dict[str, Estimate]]]
    """Regime to score ("macro", "micro" or a category) to model."""


def intervals(
    entries: Iterable[Entry],
    benchmark: Benchmark,
    *,
    regimes: Iterable[str] | None = None,
    draws: int = DRAWS,
) -> Intervals:
    """Return intervals, ranks and tie groups of all models that are ranked, in some or all regimes.

    The same entries in any order give the same numbers, and one more entry changes no interval of
    another model's score, though it may change ranks. Takes about 0.1 s a model.

    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    found_regimes, estimates = {}, {}
    for regime in benchmark.regimes if regimes is None else regimes:
        rows = [e.submission for e in ordered if regime in ranked_regimes(e.submission, benchmark)]
        found = {row.model_id: _row(row, regime, benchmark, draws) for row in rows}
        by_score: dict[str, dict[str, Estimate]] = {
            name: {model: scores[name] for model, (scores, _, _) in found.items()}
            for name in ("macro", "micro", *benchmark.category_order)
        }
        stood = {name: standings(scores) for name, scores in by_score.items()}
        tasks = {
            task: {model: limits[place] for model, (_, limits, _) in found.items()}
            for place, task in enumerate(benchmark.task_ids)
        }
        covered = tuple(model for model, (_, _, seeds) in found.items() if seeds)
        categories = {name: stood[name] for name in benchmark.category_order}
        is_drawn = regime in benchmark.protocol.few_shot_k
        found_regimes[regime] = RegimeIntervals(
            stood["macro"], stood["micro"], categories, tasks, is_drawn, covered
        )
        estimates[regime] = by_score
    return Intervals(found_regimes, estimates)


def macro_estimate(
    submission: Submission, regime: str, benchmark: Benchmark, *, draws: int = DRAWS
) -> Estimate:
    """Estimate macro MCC of one row alone, as `intervals` does.

    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    cells = submission.results[regime]
    scores = {task: float(cells[task].MCC) + 0.0 for task in benchmark.task_ids}
    score = mean(category_means(scores, benchmark).values())
    return estimate(score, weights_of(benchmark)[0], noise_of(submission, regime, benchmark, draws))


def _row(
    submission: Submission, regime: str, benchmark: Benchmark, draws: int
) -> tuple[dict[str, Estimate], list[tuple[float, float]], bool]:
    """Estimate the scores of one row, and the limits of its tasks; tell whether seeds are known."""
    cells = submission.results[regime]
    scores = {task: float(cells[task].MCC) + 0.0 for task in benchmark.task_ids}
    noise = noise_of(submission, regime, benchmark, draws)
    means = category_means(scores, benchmark)
    values = [mean(means.values()), mean(scores.values()), *means.values()]
    names = ("macro", "micro", *benchmark.category_order)
    found = {
        name: estimate(value, weights, noise)
        for name, value, weights in zip(names, values, weights_of(benchmark), strict=True)
    }
    return found, _task_limits(list(scores.values()), noise), all(noise.spreads)


def _task_limits(scores: list[float], noise: Noise) -> list[tuple[float, float]]:
    """Return what `estimate` says of each task alone; at once, which takes a tenth of the time."""
    drawn = noise.test + noise.seeds
    stretch = np.array(
        [
            _stretch(draws, np.ones(1), [spread])
            for draws, spread in zip(drawn, noise.spreads, strict=True)
        ]
    )
    tail = (1 - CONFIDENCE) / 2
    limits = np.clip(
        np.array(scores) + stretch * np.quantile(drawn, (tail, 1 - tail), axis=1), -1.0, 1.0
    )
    return [(round(low, DECIMALS), round(high, DECIMALS)) for low, high in limits.T.tolist()]


@functools.lru_cache(maxsize=4)
def _score_weights(categories: tuple[tuple[int, ...], ...], tasks: int) -> Floats:
    by_category = np.zeros((len(categories), tasks))
    for row, places in zip(by_category, categories, strict=True):
        row[list(places)] = 1 / len(places)
    return np.vstack([by_category.mean(axis=0), np.full(tasks, 1 / tasks), by_category])


def weights_of(benchmark: Benchmark) -> Floats:
    """Return the weight of each task in macro, micro and each category: (2 + categories, tasks)."""
    at = {task: place for place, task in enumerate(benchmark.task_ids)}
    categories = tuple(tuple(at[task] for task in part) for part in benchmark.categories.values())
    return _score_weights(categories, len(at))


def estimate(score: float, weights: Floats, noise: Noise) -> Estimate:
    """Return a weighted sum of tasks its standard error and interval: quantiles of its draws.

    Five seeds tell their own spread badly, so where they have a part the draws are stretched as
    Student's t is wider than the normal, at Satterthwaite's degrees of freedom.
    """
    used = np.flatnonzero(weights)
    drawn = weights[used] @ (noise.test[used] + noise.seeds[used])
    stretch = _stretch(drawn, weights[used], [noise.spreads[k] for k in used])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.clip(score + stretch * np.quantile(drawn, (tail, 1 - tail)), -1.0, 1.0)
    return Estimate(score, float(stretch * np.std(drawn, ddof=1)), float(low), float(high))


def _stretch(drawn: Floats, weights: Floats, spreads: Sequence[Spread | None]) -> float:
    parts = [
        ((weight * spread.deviation) ** 2, spread.freedom)
        for weight, spread in zip(weights, spreads, strict=True)
        if spread
    ]
    uncertain = math.fsum(part * part / freedom for part, freedom in parts)
    if not uncertain:
        return 1.0
    freedom = float(np.var(drawn, ddof=1)) ** 2 / uncertain
    tail = (1 + CONFIDENCE) / 2
    return float(stdtrit(freedom, tail) / ndtri(tail))


def standings(estimates: Mapping[str, Estimate]) -> ByModel:
    """Rank models by one score, best first, with rank intervals and tie groups.

    Two models differ significantly when their scores differ by more than `critical` standard errors
    of the difference, as if errors were independent. On one test set they are alike instead, which
    makes differences more precise: so intervals of ranks are too wide rather than too narrow.
    """
    models = sorted(estimates, key=lambda model: (-estimates[model].score, model))
    if not models:
        return {}
    scores = np.array([estimates[model].score for model in models])
    above = _significantly_above(scores, np.array([estimates[model].error for model in models]))
    ranks = 1 + np.sum(scores[:, None] > scores[None, :], axis=0)
    lows, highs = 1 + above.sum(axis=0), len(models) - above.sum(axis=1)
    groups = tie_groups(above)
    found = {}
    for k, model in enumerate(models):
        one = estimates[model]
        score, low, high = (round(x, DECIMALS) + 0.0 for x in (one.score, one.low, one.high))
        rank, rank_low, rank_high = (int(part[k]) for part in (ranks, lows, highs))
        found[model] = RankedScore(score, low, high, rank, rank_low, rank_high, groups[k])
    return found


def critical(models: int) -> float:
    """Return how many standard errors tell one model from any of the others, 95 times in 100.

    Sidak's inequality (1967): it holds for all comparisons of one model together, however they
    hang together.
    """
    return float(ndtri((1 + CONFIDENCE ** (1 / max(models - 1, 1))) / 2))


def differ_significantly(one: Estimate, other: Estimate, models: int) -> bool:
    """Whether two scores differ by more than their uncertainty, among so many models."""
    error = math.hypot(one.error, other.error)
    return abs(one.score - other.score) > critical(models) * error


def _significantly_above(scores: Floats, errors: Floats) -> npt.NDArray[np.bool_]:
    """Tell for each pair whether the first model is significantly better than the second."""
    limit = critical(len(scores)) * np.hypot(errors[:, None], errors[None, :])
    return np.asarray(scores[:, None] - scores[None, :] > limit)


def tie_groups(above: npt.NDArray[np.bool_]) -> list[int]:
    """Return each model, best first, the number of its tie group.

    The best model without a group leads the next one, and takes in all without a group that it is
    not significantly above. Members of one group tie with its leader; not each with each other.
    """
    groups = [0] * len(above)
    number = 0
    while 0 in groups:
        number += 1
        leader = groups.index(0)
        for member in range(leader, len(groups)):
            if not groups[member] and not above[leader, member]:
                groups[member] = number
    return groups
