"""Rank of a submitted row on the board of the base branch, and the cost of its audit."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from geneb_ci.audit.policy import AuditPolicy, audit_policy
from geneb_ci.audit.power import design_of, detection
from geneb_ci.audit.sampling import strata_of
from geneb_ci.audit.trust_evidence import gather
from geneb_ci.board.board import unknown_sizes
from geneb_ci.board.ranks import Estimates
from geneb_ci.board.rows import category_means, mean, ranked_regimes
from geneb_ci.check.context import Context
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.types import TrustLevel
from geneb_ci.github.verdict import (
    TIES_MAX,
    AuditEstimate,
    CategoryScores,
    Neighbour,
    RowComparison,
    RowStanding,
)
from geneb_ci.statistics.neighbours import needed, resemblances
from geneb_ci.submission.models import Submission, SubmissionV11
from geneb_ci.submission.paths import files_in

Ties = Callable[[str, str], list[str] | None]
"""Returns the models from which a model does not differ significantly in a regime."""
# The board computes intervals, tie groups and macro means for this metric.
METRIC = "MCC"


class BaseBranch:
    """Rows, benchmark, policy and evidence of the base branch."""

    def __init__(self, layout: Layout) -> None:
        self.benchmark = benchmark_of(layout)
        self.policy = audit_policy(layout)
        self.rows = _rows(layout)
        self.modules = {
            row.model_id: row.run.extractor.path.rsplit("/", 1)[-1]
            for row in self.rows
            if isinstance(row, SubmissionV11)
        }
        """Model id to the file name of the extractor that the row names."""
        self._layout = layout
        self._estimates = Estimates()

    def level(self, own: Submission, sha256: str) -> TrustLevel:
        """Return the trust level that a row would have, from audits of the same bytes."""
        return gather(self._layout, own.model_id).decide(sha256).level

    def ties(self, own: Submission) -> Ties | None:
        """Return the function for the ties of a board with `own`; None if it cannot be computed.

        It needs the extra `build`, n_test of every task, and MCC as primary metric.
        """
        if self.benchmark.primary_metric != METRIC or unknown_sizes(self.benchmark):
            return None
        try:
            from geneb_ci.board.uncertainty import differ_significantly  # noqa: PLC0415 (of the extra)
        except ModuleNotFoundError:
            return None
        board = {row.model_id: row for row in self.rows} | {own.model_id: own}
        estimate = functools.partial(self._estimates.of, benchmark=self.benchmark)

        def tied(regime: str, model: str) -> list[str]:
            ranked = {m: r for m, r in board.items() if regime in ranked_regimes(r, self.benchmark)}
            this = estimate(ranked[model], regime)
            return sorted(
                other
                for other, row in ranked.items()
                if other != model
                and not differ_significantly(this, estimate(row, regime), len(ranked))
            )

        return tied


def _rows(layout: Layout) -> list[Submission]:
    """Return the rows that can be read."""
    checker = Checker(())
    rows = []
    for path in sorted(files_in(layout.submissions)) if layout.submissions else ():
        try:
            submission = checker.context(path).submission
        except NothingChecked:
            continue
        if submission is not None:
            rows.append(submission)
    return rows


NEAREST = 2
# Example of fabrication: to raise the mean by 0.02, with at most 0.1 per task, takes 20 of 100.
FABRICATED_SHARE = 0.2


class Ranked(NamedTuple):
    """One row in one regime."""

    model: str
    categories: dict[str, float]
    score: float
    """Mean over the category means of the primary metric."""


def ranked(submissions: Iterable[Submission], regime: str, benchmark: Benchmark) -> list[Ranked]:
    """Return the rows that are ranked in a regime, the best first, then by id."""
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
    """Return 1 + the number of rows with a higher score; None if the row is not ranked."""
    own = next((row for row in rows if row.model == model), None)
    return None if own is None else 1 + sum(row.score > own.score for row in rows)


def standings(
    own: Submission, board: Sequence[Submission], benchmark: Benchmark, ties: Ties | None = None
) -> list[RowStanding]:
    """Return the rank in each regime, with the rank of the row that it replaces."""
    others = [row for row in board if row.model_id != own.model_id]
    found = []
    for regime in benchmark.regimes:
        after = ranked([*others, own], regime, benchmark)
        rank = rank_of(after, own.model_id)
        if rank is None:
            continue
        tied = ties(regime, own.model_id) if ties is not None else None
        found.append(
            RowStanding(
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
) -> RowComparison | None:
    """Compare the row with the best row and the two most similar rows.

    Similarity is the root mean square difference of category means. None if it is not ranked.
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
    return RowComparison.model_validate(
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
    """Return the row with the most scores equal to this row's within rerun noise."""
    view = context.view
    near = next(iter(resemblances(view)), None)
    if near is None:
        return None
    name = view.table.names[near.number]
    return Neighbour(
        model=name, near=near.near, cells=near.cells, limit=math.ceil(needed(near.cells))
    )


def audit_estimate(benchmark: Benchmark, policy: AuditPolicy) -> AuditEstimate:
    """Return cost and detection probability of an audit according to the policy."""
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
