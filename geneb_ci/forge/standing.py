"""Where a row would stand on the board, beside which rows, and what an audit of it would take."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from geneb_ci.audit.policy import AuditPolicy
from geneb_ci.audit.power import detection
from geneb_ci.audit.size import design_of
from geneb_ci.audit.strata import strata_of
from geneb_ci.benchmark import Benchmark
from geneb_ci.build.rows import category_means, mean, ranked_regimes
from geneb_ci.check.context import Context
from geneb_ci.forge.base import Ties
from geneb_ci.forge.verdict import (
    TIES_MAX,
    AuditEstimate,
    CategoryScores,
    Comparison,
    Neighbour,
    Standing,
)
from geneb_ci.plausibility.neighbours import needed, resemblances
from geneb_ci.read.submission import Submission

NEAREST = 2
# The example of made-up scores: to raise the mean by 0.02 with at most 0.1 a task takes 20 of 100.
FABRICATED_SHARE = 0.2


class Ranked(NamedTuple):
    """One row in one regime."""

    model: str
    categories: dict[str, float]
    score: float
    """Mean of the category means, of the primary metric."""


def ranked(submissions: Iterable[Submission], regime: str, benchmark: Benchmark) -> list[Ranked]:
    """Order the rows that have a place in a regime, the best first, then by id."""
    rows = []
    for submission in submissions:
        if regime in ranked_regimes(submission, benchmark):
            cells = submission.results[regime]
            scores = {
                t: float(getattr(cells[t], benchmark.primary_metric)) for t in benchmark.task_ids
            }
            categories = category_means(scores, benchmark)
            rows.append(Ranked(submission.model_id, categories, mean(categories.values())))
    return sorted(rows, key=lambda row: (-row.score, row.model))


def rank_of(rows: Sequence[Ranked], model: str) -> int | None:
    """Give a row's rank: one more than the number of rows above it; equal scores share one."""
    own = next((row for row in rows if row.model == model), None)
    return None if own is None else 1 + sum(row.score > own.score for row in rows)


def standings(
    own: Submission, board: Sequence[Submission], benchmark: Benchmark, ties: Ties | None = None
) -> list[Standing]:
    """Give the rank in each regime, and that of the row which it replaces."""
    others = [row for row in board if row.model_id != own.model_id]
    found = []
    for regime in benchmark.regimes:
        after = ranked([*others, own], regime, benchmark)
        rank = rank_of(after, own.model_id)
        if rank is None:
            continue
        tied = ties(regime, own.model_id) if ties is not None else None
        found.append(
            Standing(
                regime=regime,
                score=next(row.score for row in after if row.model == own.model_id),
                rank=rank,
                rows=len(after),
                before=rank_of(ranked(board, regime, benchmark), own.model_id),
                ties=None if tied is None else len(tied),
                tied_with=(tied or [])[:TIES_MAX],
            )
        )
    return found


def comparison(
    own: Submission, board: Sequence[Submission], benchmark: Benchmark
) -> Comparison | None:
    """Set the row beside the two rows that are nearest by category, and the best.

    Nearest by root mean square over the category means. None where the row is not ranked.
    """
    regime = benchmark.regimes[0]
    others = [row for row in board if row.model_id != own.model_id]
    rows = ranked([*others, own], regime, benchmark)
    this = next((row for row in rows if row.model == own.model_id), None)
    if this is None:
        return None
    beside = sorted(
        (row for row in rows if row is not this), key=lambda row: (_distance(this, row), row.model)
    )[:NEAREST]
    best = rows[0]
    chosen = [this, *beside]
    if best not in chosen:
        chosen.append(best)
    return Comparison.model_validate(
        {
            "regime": regime,
            "metric": benchmark.primary_metric,
            "models": [row.model for row in chosen],
            "best": best.model,
            "categories": [
                CategoryScores(category=name, scores=[row.categories[name] for row in chosen])
                for name in benchmark.categories
            ],
        }
    )


def _distance(one: Ranked, other: Ranked) -> float:
    return math.sqrt(mean((x - other.categories[k]) ** 2 for k, x in one.categories.items()))


def neighbour(context: Context) -> Neighbour | None:
    """Find the row on the board that shares most scores, within the noise of a rerun."""
    view = context.view
    near = next(iter(resemblances(view)), None)
    if near is None:
        return None
    name = view.table.names[near.number]
    return Neighbour(
        model=name, near=near.near, cells=near.cells, limit=math.ceil(needed(near.cells))
    )


def audit_estimate(benchmark: Benchmark, policy: AuditPolicy) -> AuditEstimate:
    """Say what drawing tasks by the policy takes, and how likely it finds made-up ones."""
    tasks = list(benchmark.task_ids)
    drawn = min(policy.drawn, len(tasks))
    fabricated = max(1, round(FABRICATED_SHARE * len(tasks)))
    design = design_of(tasks, strata_of(benchmark, tasks) if policy.stratified else [])
    known = [task.n_test for task in benchmark.tasks if task.n_test is not None]
    return AuditEstimate(
        drawn=drawn,
        tasks=len(tasks),
        sequences=round(drawn * mean(known)) if known else 0,
        fabricated=fabricated,
        detection=float(detection(design, fabricated, drawn)),
    )
