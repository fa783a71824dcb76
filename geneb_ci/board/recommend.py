"""Advice: the models that meet a request on the matching tasks, from rows or published files.

    advise(ModelRequest(species="plants", ...), facts, margin)

Models are ordered by their mean over exactly the matching tasks, which all have the same weight.
Intervals cover other training draws. A smaller model is named if its loss is bounded by the margin:
docs/research/uncertainty.md. The page has the same arithmetic in leaderboard/src/pure/choose.js.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geneb_ci.board.advice import (
    Advice,
    AdviceFacts,
    AdvisedModel,
    Choice,
    ModelRequest,
    RegimeAdvice,
    matching_tasks,
    read_built_files,
    requested_regimes,
    with_board_names,
)
from geneb_ci.board.columns import PUBLISHED_COLUMNS, Row, facts_of
from geneb_ci.board.decisions import ScoreColumn, freedom_of, intervals_of, possible_losses
from geneb_ci.board.reasons import reasons_of
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TASKS, published_tasks
from geneb_ci.board.uncertainty import (
    RegimeScores,
    draw_variance,
    mean_over_tasks,
    scores_by_regime,
    task_numbers,
)
from geneb_ci.common.types import Evidence, has_evidence
from geneb_ci.models.tasks import TaskNotes
from geneb_ci.statistics.student import Floats
from reference_harness.formats.benchmark import Benchmark


def advice_facts_of(
    rows: Iterable[Row],
    boards: Mapping[str, RegimeScores],
    benchmark: Benchmark,
    notes: TaskNotes,
) -> AdviceFacts:
    """Return the inputs of advice; `boards` maps regimes to scores and may lack some regimes."""
    return AdviceFacts(
        boards,
        {regime: draw_variance(regime, benchmark) for regime in benchmark.regimes},
        published_tasks(benchmark, notes),
        {row.submission.model_id: facts_of(row, PUBLISHED_COLUMNS) for row in rows},
    )


def built_advice_facts(parsed_files: Mapping[str, Mapping[str, Any]]) -> AdviceFacts:
    """Return the inputs of advice from the parsed files of a built board."""
    tasks = [task["id"] for task in parsed_files[TASKS]["tasks"]]
    ranks = parsed_files[DIAGNOSTICS]["ranks"]
    boards = {}
    for regime, regime_ranks in ranks.items():
        rows = {row["model"]: row for row in parsed_files[TASKS]["data"][regime]}
        boards[regime] = RegimeScores(
            models=tuple(rows),
            params=tuple(row["params"] for row in rows.values()),
            scores={},
            tasks={
                task: _built_scores(
                    [row["task_MCC"][task] for row in rows.values()],
                    [regime_ranks["tasks"][task][model][2:] for model in rows],
                )
                for task in tasks
            },
            rounded=regime_ranks["rounded"],
            critical=regime_ranks["critical"],
            draws_covered=tuple(regime_ranks["draws_covered"]),
        )
    rows_by_regime = parsed_files[LEADERBOARD]["data"]
    return AdviceFacts(
        boards,
        {regime: regime_ranks["draw_variance"] for regime, regime_ranks in ranks.items()},
        parsed_files[TASKS]["tasks"],
        {row["model"]: row for regime in rows_by_regime for row in rows_by_regime[regime]},
    )


def _built_scores(scores: Sequence[float], numbers: Sequence[Sequence[float]]) -> ScoreColumn:
    """Return the scores of one task from the numbers in diagnostics.json."""
    errors, spreads = np.array(numbers, dtype=float).reshape(-1, 2).T
    variance = errors * errors
    return ScoreColumn(np.array(scores, dtype=float), variance, freedom_of(variance, spreads))


def advise_built(folder: Path, request: ModelRequest, margin: float) -> Advice:
    """Return advice from a built board. Raises UsageProblem for unusable files or unknown names."""
    advice_facts = built_advice_facts(read_built_files(folder, DIAGNOSTICS, LEADERBOARD, TASKS))
    return advise(with_board_names(request, advice_facts), advice_facts, margin)


def advise_rows(
    rows: Iterable[Row],
    benchmark: Benchmark,
    notes: TaskNotes,
    request: ModelRequest,
    margin: float,
) -> Advice:
    """Return advice from rows. Raises UsageProblem for a name that the board lacks."""
    rows = list(rows)
    advice_facts = advice_facts_of(rows, {}, benchmark, notes)
    exact_request = with_board_names(request, advice_facts)
    boards = scores_by_regime(
        rows, benchmark, requested_regimes(exact_request.regime, advice_facts)
    )
    return advise(exact_request, advice_facts._replace(boards=boards), margin)


class RegimeCandidates(NamedTuple):
    """The models that meet a request in one regime, in the order of their ids."""

    models: Sequence[str]
    params: Sequence[int]
    critical: float
    tasks: Sequence[str]
    numbers: Floats
    """The result of `uncertainty.task_numbers`, with the shape (3, tasks, models)."""

    def mean(self, without: int | None = None) -> ScoreColumn:
        """Return the mean of each model over all tasks, except the one of index `without`."""
        sums, count = self.numbers.sum(axis=1), len(self.tasks)
        if without is None:
            return mean_over_tasks(sums, count)
        return mean_over_tasks(sums - self.numbers[:, without], count - 1)

    def best_first(self, scores: ScoreColumn) -> list[int]:
        """Return the models' indices by descending score; equal scores by size, then by id."""
        return sorted(
            range(len(self.models)),
            key=lambda k: (-scores.values[k], self.params[k], self.models[k]),
        )

    def wins(self, model: int) -> int:
        """Return the number of tasks on which no model scores higher than the given one."""
        scores = self.numbers[0]
        return int((scores[:, model] == scores.max(axis=1)).sum())


def advise(request: ModelRequest, facts: AdviceFacts, margin: float) -> Advice:
    """Return the advice for a request whose names are spelled as on the board."""
    task_records = matching_tasks(request, facts.tasks)
    tasks = [task["id"] for task in task_records]
    regimes = requested_regimes(request.regime, facts)
    models = _qualifying_models(request, facts, regimes)
    advice = Advice(
        need=request,
        margin=margin,
        tasks=tasks,
        labels=[task["label"] for task in task_records],
        considered=len(models) if tasks else 0,
        regimes=[],
        smaller=[],
        smallest=None,
        why=[],
    )
    if models and tasks:
        groups = [_candidates(facts, regime, tasks, models) for regime in regimes]
        columns = [group.mean() for group in groups]
        smaller = _smaller_choices(groups, columns, margin)
        regime_groups = zip(regimes, groups, columns, strict=True)
        advice = advice.model_copy(
            update={
                "regimes": [
                    _regime_advice(regime, group, column, margin, facts)
                    for regime, group, column in regime_groups
                ],
                "smaller": [groups[0].models[k] for k in smaller],
                "smallest": _smallest_advised(groups, regimes, smaller, margin),
            }
        )
    return advice.model_copy(update={"why": reasons_of(advice, facts)})


def _qualifying_models(
    request: ModelRequest, facts: AdviceFacts, regimes: Sequence[str]
) -> list[str]:
    """Return the models with the requested size and evidence that are ranked in all `regimes`."""
    min_evidence = None if request.evidence is None else Evidence(request.evidence)
    models_by_regime = [set(facts.boards[regime].models) for regime in regimes]
    return [
        model
        for model in facts.boards[regimes[0]].models
        if all(model in ranked_models for ranked_models in models_by_regime)
        and (request.max_params is None or _limited_size(facts.rows[model]) <= request.max_params)
        and has_evidence(Evidence(facts.rows[model]["evidence"]), min_evidence)
    ]


def _limited_size(row: Mapping[str, Any]) -> int:
    """Return the size that a request limits: trained weights without tables, or all parameters."""
    size: int = row.get("params_trained", row["params"])
    return size


def _candidates(
    facts: AdviceFacts, regime: str, tasks: Sequence[str], models: Sequence[str]
) -> RegimeCandidates:
    """Return the given models as candidates, with their scores on the given tasks."""
    board = facts.boards[regime]
    index_of = {model: k for k, model in enumerate(board.models)}
    positions = np.array([index_of[model] for model in models], dtype=np.intp)
    params = [board.params[k] for k in positions.tolist()]
    numbers = task_numbers(board, tasks, positions, facts.draw_variances[regime])
    return RegimeCandidates(models, params, board.critical, tasks, numbers)


def _smaller_choices(
    groups: Sequence[RegimeCandidates], columns: Sequence[ScoreColumn], margin: float
) -> list[int]:
    """Return the indices of smaller models with an acceptable loss, smallest first."""
    params = groups[0].params
    candidates = np.arange(len(params))
    is_within = np.ones(len(params), dtype=bool)
    max_params = 0
    for group, scores in zip(groups, columns, strict=True):
        is_within &= possible_losses(scores, candidates, group.critical, margin).bound <= margin
        max_params = max(max_params, params[group.best_first(scores)[0]])
    smaller = [k for k in np.flatnonzero(is_within).tolist() if params[k] < max_params]
    first_scores = columns[0].values
    return sorted(smaller, key=lambda k: (params[k], -first_scores[k], groups[0].models[k]))


def _decisive_tasks(
    groups: Sequence[RegimeCandidates], choice: Callable[[list[ScoreColumn]], object]
) -> list[str]:
    """Return the tasks without any one of which another model would be chosen."""
    tasks = groups[0].tasks
    choice_of_all = choice([group.mean() for group in groups])
    if len(tasks) == 1:
        return []
    return [
        task
        for k, task in enumerate(tasks)
        if choice([group.mean(k) for group in groups]) != choice_of_all
    ]


def _regime_advice(
    regime: str, group: RegimeCandidates, scores: ScoreColumn, margin: float, facts: AdviceFacts
) -> RegimeAdvice:
    """Return the candidates of a regime with their scores and possible losses."""
    order = group.best_first(scores)
    candidates = np.arange(len(order))
    bounds = possible_losses(scores, candidates, group.critical, margin).bound
    low, high = intervals_of(scores)
    choices = []
    for index in order:
        model, bound = group.models[index], float(bounds[index])
        row = facts.rows[model]
        choices.append(
            Choice(
                model=model,
                params=row["params"],
                authorship=row["authorship"],
                evidence=row["evidence"],
                score=float(scores.values[index]),
                low=float(low[index]),
                high=float(high[index]),
                below=float(scores.values[order[0]] - scores.values[index]),
                loss_bound=bound if np.isfinite(bound) else None,
                warnings=list(row.get("warnings", {})),
                defects=[defect["id"] for defect in row.get("defects", ())],
            )
        )
    highest = AdvisedModel(
        model=group.models[order[0]],
        wins={regime: group.wins(order[0])},
        without=_decisive_tasks([group], lambda columns: group.best_first(columns[0])[0]),
    )
    return RegimeAdvice(regime=regime, choices=choices, highest=highest)


def _smallest_advised(
    groups: Sequence[RegimeCandidates],
    regimes: Sequence[str],
    smaller: Sequence[int],
    margin: float,
) -> AdvisedModel | None:
    """Return the smallest acceptable model and the tasks it depends on; None without one."""
    if not smaller:
        return None
    first_smaller = functools.partial(_first_smaller, groups, margin)
    return AdvisedModel(
        model=groups[0].models[smaller[0]],
        wins={
            regime: group.wins(smaller[0]) for regime, group in zip(regimes, groups, strict=True)
        },
        without=_decisive_tasks(groups, first_smaller),
    )


def _first_smaller(
    groups: Sequence[RegimeCandidates], margin: float, columns: Sequence[ScoreColumn]
) -> int | None:
    """Return the index of the smallest acceptable model; None without one."""
    return next(iter(_smaller_choices(groups, columns, margin)), None)
