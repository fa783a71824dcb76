"""Decide a verdict from findings, and add the row's rank and the cost of its audit."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from geneb_ci.audit.sampling.design import (
    AuditPolicy,
    detection_probability,
    draw_population,
    strata_of,
)
from geneb_ci.board.means import mean, ranked_regimes, weighted_sums
from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.registry import BY_ID
from geneb_ci.check.rule import Context
from geneb_ci.common.errors import GenebError
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.github.fingerprints import pull_numbers
from geneb_ci.github.verdict.base_branch import BaseBranch, DecisionFunction
from geneb_ci.github.verdict.checker import CheckedPull, PullChecker, change_finding
from geneb_ci.github.verdict.model import (
    CRASH_RULE,
    SIMILAR_ROWS_COMPARED,
    AuditEstimate,
    CategoryScores,
    Fingerprint,
    Neighbour,
    PullHead,
    PullVerdict,
    RowComparison,
    RowStanding,
    counts_by_rule,
    counts_of,
    listed_findings,
    outcome_of,
)
from geneb_ci.github.verdict.verdict_line import require_consistent
from geneb_ci.statistics.neighbours import copy_cells_min, resemblances
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission
from reference_harness.formats.text import quoted

FABRICATED_SHARE = 0.2
"""Share of tasks with fabricated scores, for which the detection by an audit is estimated.

To raise the mean score by 0.02, with at most 0.1 on each task, takes a fifth of the tasks.
"""


class RankedRow(NamedTuple):
    """One row with its scores of one regime in the primary metric."""

    model: str
    categories: dict[str, float]
    """Mean score of each category, by its name."""
    score: float
    """Mean of the category means."""


def rank_rows(
    submissions: Iterable[Submission], regime: str, benchmark: Benchmark
) -> list[RankedRow]:
    """Return the rows ranked in a regime, the best first, then by id."""
    rows = []
    for submission in submissions:
        if regime in ranked_regimes(submission, benchmark):
            cells = submission.results[regime]
            scores = [
                float(getattr(cells[t], benchmark.primary_metric)) for t in benchmark.task_ids
            ]
            macro, _, *means = weighted_sums(scores, benchmark)
            categories = dict(zip(benchmark.category_order, means, strict=True))
            rows.append(RankedRow(submission.model_id, categories, macro))
    return sorted(rows, key=lambda row: (-row.score, row.model))


def rank_of(rows: Sequence[RankedRow], model: str) -> int | None:
    """Return the rank of a model's row, by the number of higher scores; None if not ranked."""
    model_row = next((row for row in rows if row.model == model), None)
    return None if model_row is None else 1 + sum(row.score > model_row.score for row in rows)


def row_standings(
    submission: Submission,
    board: Sequence[Submission],
    benchmark: Benchmark,
    decide_regime: DecisionFunction | None = None,
) -> list[RowStanding]:
    """Return the standing of a submission in each regime in which it is ranked.

    It has the rank of the row that the submission replaces, too, and what `decide_regime` returns
    of the regime.
    """
    other_rows = [row for row in board if row.model_id != submission.model_id]
    rows = []
    for regime in benchmark.regimes:
        ranked_rows = rank_rows([*other_rows, submission], regime, benchmark)
        rank = rank_of(ranked_rows, submission.model_id)
        if rank is None:
            continue
        rows.append(
            RowStanding(
                regime=regime,
                score=next(row.score for row in ranked_rows if row.model == submission.model_id),
                rank=rank,
                rows=len(ranked_rows),
                before=rank_of(rank_rows(board, regime, benchmark), submission.model_id),
                decided=None if decide_regime is None else decide_regime(regime),
            )
        )
    return rows


def row_comparison(
    submission: Submission, board: Sequence[Submission], benchmark: Benchmark
) -> RowComparison | None:
    """Return the comparison of a row with the best and the two most similar rows, by category.

    The most similar rows have the smallest root mean square difference of category means. Returns
    None if the row is not ranked.
    """
    regime = benchmark.regimes[0]
    other_rows = [row for row in board if row.model_id != submission.model_id]
    rows = rank_rows([*other_rows, submission], regime, benchmark)
    own_row = next((row for row in rows if row.model == submission.model_id), None)
    if own_row is None:
        return None
    similar_rows = sorted(
        (row for row in rows if row is not own_row),
        key=lambda row: (_category_distance(own_row, row), row.model),
    )[:SIMILAR_ROWS_COMPARED]
    best = rows[0]
    compared_rows = [own_row, *similar_rows]
    if best not in compared_rows:
        compared_rows.append(best)
    return RowComparison.model_validate(
        {
            "regime": regime,
            "metric": benchmark.primary_metric,
            "models": [row.model for row in compared_rows],
            "best": best.model,
            "categories": [
                CategoryScores(
                    category=category, scores=[row.categories[category] for row in compared_rows]
                )
                for category in benchmark.categories
            ],
        }
    )


def _category_distance(row: RankedRow, other_row: RankedRow) -> float:
    """Return the root mean square difference of the category means of two rows."""
    return math.sqrt(mean((x - other_row.categories[k]) ** 2 for k, x in row.categories.items()))


def neighbour(context: Context) -> Neighbour | None:
    """Return the other row with the most scores equal within rerun noise; None if there is none."""
    view = context.view
    nearest = next(iter(resemblances(view)), None)
    if nearest is None:
        return None
    model = view.table.models[nearest.number]
    return Neighbour(
        model=model,
        near=nearest.near_cells,
        cells=nearest.cells,
        limit=math.ceil(copy_cells_min(nearest.cells)),
    )


def audit_estimate(benchmark: Benchmark, policy: AuditPolicy) -> AuditEstimate:
    """Return the cost and detection probability of an audit under the policy."""
    tasks = list(benchmark.task_ids)
    fabricated = max(1, round(FABRICATED_SHARE * len(tasks)))
    population = draw_population(tasks, strata_of(benchmark, tasks) if policy.stratified else [])
    test_sizes = [task.n_test for task in benchmark.tasks if task.n_test is not None]
    return AuditEstimate(
        drawn=policy.drawn,
        tasks=len(tasks),
        sequences=round(policy.drawn * mean(test_sizes)) if test_sizes else 0,
        fabricated=fabricated,
        detection=float(detection_probability(population, fabricated, policy.drawn)),
    )


class PullDecision(NamedTuple):
    """The verdict on a pull request, with all findings."""

    verdict: PullVerdict
    findings: tuple[Finding, ...]
    checked_pull: CheckedPull | None
    """The results of the checks; None if geneb-ci crashed."""


def decide(
    pull_checker: PullChecker,
    pull: PullHead,
    other_fingerprints: Mapping[int, Fingerprint] | None = None,
    *,
    ranks: bool = True,
) -> PullDecision:
    """Check the head of a pull request, or of a branch that may become one, and return the verdict.

    The server and `geneb-ci check` in a clone both call this. `other_fingerprints` are those of
    open pull requests that pass. Without `ranks` the row is not ranked, which saves half a second
    and changes nothing else. A crash of geneb-ci gives a verdict that does not pass. Raises
    GitHubProblem if the head cannot be read, and Tampered if `report` would refuse the verdict.
    """
    try:
        checked_pull = pull_checker.judge(pull.head_sha, other_fingerprints)
        verdict = pull_verdict(
            pull, checked_pull, pull_checker.base, pull_checker.main.digest, ranks=ranks
        )
    except GenebError:
        raise
    except Exception as error:  # noqa: BLE001 (a bug that one pull request finds stops no other)
        message = f"reading the pull request failed: {type(error).__name__}: {quoted(str(error))}"
        crash = change_finding(BY_ID[CRASH_RULE], ChangeFault(CRASH_RULE, "", message))
        empty_check = CheckedPull(pull_checker.main.sha, Change(()), (crash,))
        return PullDecision(
            pull_verdict(pull, empty_check, pull_checker.base, pull_checker.main.digest),
            (crash,),
            None,
        )
    return PullDecision(verdict, checked_pull.findings, checked_pull)


def pull_verdict(
    pull: PullHead,
    checked_pull: CheckedPull,
    base: BaseBranch,
    main_digest: str | None = None,
    *,
    ranks: bool = True,
) -> PullVerdict:
    """Return the verdict that follows from the checks of a pull request.

    Raises Tampered if the command `report` would refuse the verdict.
    """
    file_result, context = checked_pull.result, checked_pull.context
    rule_counts = counts_by_rule(checked_pull.findings)
    is_sound = file_result is not None and not counts_of(rule_counts).error
    submission = file_result.submission if file_result is not None and is_sound else None
    level = None
    if submission is not None and file_result is not None:
        level = base.trust_level(submission.model_id, file_result.document)
    benchmark = base.benchmark
    model = checked_pull.change.model or None
    ranked_row = submission if ranks else None
    board = base.rows if ranked_row is not None else []
    verdict = PullVerdict(
        number=pull.number,
        head_sha=pull.head_sha,
        base_sha=checked_pull.merge_base,
        outcome=outcome_of(rule_counts, is_checked=bool(checked_pull.files and model)),
        model=model,
        level=level,
        is_edit=not checked_pull.change.is_evidence and model is not None and base.has_row(model),
        files=list(checked_pull.files),
        places=rule_counts,
        weight=weight_of(checked_pull.findings),
        findings=listed_findings(checked_pull.findings),
        comparison=(None if ranked_row is None else row_comparison(ranked_row, board, benchmark)),
        standings=(
            []
            if ranked_row is None
            else row_standings(ranked_row, board, benchmark, base.decision_function(ranked_row))
        ),
        neighbour=neighbour(context) if submission is not None and context is not None else None,
        audit=audit_estimate(benchmark, base.policy) if submission is not None else None,
        main_digest=main_digest,
        fingerprint=checked_pull.fingerprint,
        rivals=pull_numbers(checked_pull.change.rivals),
    )
    require_consistent(verdict)
    return verdict


def weight_of(findings: Sequence[Finding]) -> float:
    """Return the sum of the scores of all warnings; one without a score counts as 1."""
    warnings = (finding for finding in findings if finding.severity is Severity.WARNING)
    return round(math.fsum(max(1.0, finding.score) for finding in warnings), 1)
