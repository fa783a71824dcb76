"""Compute diagnostics.json: agreement of rankings, controlled pairs, size, and figures."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from geneb_ci.board.advice import DEFAULT_MARGIN
from geneb_ci.board.agreement import kendall_taus
from geneb_ci.board.columns import Row, in_board_order
from geneb_ci.board.decisions import CONFIDENCE, compare_pair
from geneb_ci.board.diagnostics import document
from geneb_ci.board.diagnostics.findings import SCOPES, figure_rows_by_scope, figures_of
from geneb_ci.board.means import mean
from geneb_ci.board.rows import params_in_paper
from geneb_ci.board.uncertainty import RegimeIntervals, RegimeScores
from geneb_ci.board.variance import FIT_CORRELATION
from geneb_ci.statistics.metrics import ModelRanking
from geneb_ci.statistics.student import Floats
from reference_harness.formats.benchmark import Benchmark

METRIC: Final = "MCC"
"""The metric by which models are ranked."""
FIGURE_DECIMALS = 4
"""Decimals of published numbers that no decision uses: mean differences, Kendall's tau."""
DiagnosticSteps = dict[str, Callable[[], Any]]
"""By name: a slow computation that can run on its own, in any process."""
COMPARED_ATTRIBUTES = ("size", "architecture", "tokenization", "pretraining", "pooling")
"""Attributes of models of which a controlled comparison varies one."""
SAME_SIZE_RATIO_MAX = 1.25
"""Models count as equally large if one has at most this many times the parameters of the other."""


class RankedModels(NamedTuple):
    """The ranked models of a regime, and their scores by "macro" and category."""

    positions: Mapping[str, int]
    """By model id: the index of its score in each column."""
    columns: Mapping[str, Floats]
    """Scores of these models, by "macro" or category."""


@dataclass(frozen=True)
class DiagnosticInputs:
    """The rows, scores and intervals from which every diagnostic is computed."""

    benchmark: Benchmark
    models: list[document.ModelFacts]
    """In the order of their ids."""
    ranked_models: dict[str, RankedModels]
    """The ranked models and their scores, by regime."""
    intervals: Mapping[str, RegimeIntervals]
    """Intervals and ranks, by regime."""
    results: Mapping[str, Any]
    """Results of the functions of `diagnostic_steps`, by name."""
    attributes: Mapping[str, Mapping[str, Any]]
    """Facts from the model registry, by model id."""


def inputs_of(
    rows: Iterable[Row],
    benchmark: Benchmark,
    intervals: Mapping[str, RegimeIntervals],
    step_results: Mapping[str, Any],
) -> DiagnosticInputs:
    """Return the inputs of diagnostics; `intervals` and `step_results` are of the same rows."""
    ordered_rows = in_board_order(rows)
    ranked_by_regime = {
        regime: _ranked_models(regime_intervals.board)
        for regime, regime_intervals in intervals.items()
    }
    models = [_model_facts(row, ranked_by_regime) for row in ordered_rows]
    attributes = {row.submission.model_id: row.attributes for row in ordered_rows}
    return DiagnosticInputs(
        benchmark, models, ranked_by_regime, intervals, step_results, attributes
    )


def diagnostic_steps(
    boards: Mapping[str, RegimeScores],
    figure_inputs: Mapping[str, Mapping[str, Any]],
    benchmark: Benchmark,
) -> DiagnosticSteps:
    """Return the slow computations of diagnostics, by name."""
    ranked_by_regime = {regime: _ranked_models(board) for regime, board in boards.items()}
    partial = functools.partial
    steps_by_name: DiagnosticSteps = {"findings": partial(_findings, figure_inputs, benchmark)}
    for pair in itertools.combinations(ranked_by_regime, 2):
        steps_by_name[f"taus {pair}"] = partial(
            _taus_between_regimes, *map(ranked_by_regime.__getitem__, pair)
        )
    for regime, ranked_models in ranked_by_regime.items():
        steps_by_name[f"taus {regime}"] = partial(
            kendall_taus, list(ranked_models.columns.values())
        )
    return steps_by_name


def _findings(
    figure_inputs: Mapping[str, Mapping[str, Any]], benchmark: Benchmark
) -> list[document.Figure]:
    """Return all figures of the paper and of the board."""
    rows_by_scope = figure_rows_by_scope(figure_inputs, SCOPES)
    models = {row.model for row in rows_by_scope["board"]}
    return [
        figure
        for scope, rows in rows_by_scope.items()
        for figure in figures_of(rows, benchmark.regimes, scope, models)
    ]


def _taus_between_regimes(
    left: RankedModels, right: RankedModels
) -> tuple[int, dict[str, float | None]]:
    """Return how many models are ranked in both regimes, and Kendall's tau by name of score."""
    index_pairs = [
        (index, right.positions[m]) for m, index in left.positions.items() if m in right.positions
    ]
    left_indices, right_indices = np.array(index_pairs, dtype=int).reshape(-1, 2).T
    return len(index_pairs), {
        score_name: rounded_or_none(
            kendall_taus([column[left_indices], right.columns[score_name][right_indices]])[0, 1]
        )
        for score_name, column in left.columns.items()
    }


def _ranked_models(board: RegimeScores) -> RankedModels:
    """Return the ranked models of a regime, with all their scores except "micro"."""
    positions = {model: index for index, model in enumerate(board.models)}
    columns = {name: column.values for name, column in board.scores.items() if name != "micro"}
    return RankedModels(positions, columns)


def _model_facts(row: Row, ranked_by_regime: Mapping[str, RankedModels]) -> document.ModelFacts:
    """Return the facts about the model of a row."""
    submission = row.submission
    model, paper_params = submission.model_id, params_in_paper(row)
    return document.ModelFacts(
        model=model,
        display=submission.meta.display,
        authorship=str(row.authorship),
        evidence=str(row.evidence),
        params=submission.meta.params,
        params_in_paper=None if paper_params is None else int(paper_params),
        regimes=[
            regime
            for regime, ranked_models in ranked_by_regime.items()
            if model in ranked_models.positions
        ],
    )


def rounded(number: float, decimals: int = FIGURE_DECIMALS) -> float:
    """Return a number rounded to `decimals`; -0.0 becomes 0.0."""
    return round(float(number), decimals) + 0.0


def rounded_or_none(number: float) -> float | None:
    """Return a number rounded to FIGURE_DECIMALS; None for NaN."""
    return None if math.isnan(number) else rounded(number)


def scores_by_size(inputs: DiagnosticInputs) -> dict[str, document.ScoresBySize]:
    """Return, by regime, the Pareto front of macro score against number of parameters."""
    return {
        regime: document.ScoresBySize(pareto=pareto_models(_models_by_size(inputs, ranked_models)))
        for regime, ranked_models in inputs.ranked_models.items()
    }


def _models_by_size(
    inputs: DiagnosticInputs, ranked_models: RankedModels
) -> Iterator[tuple[str, int, float]]:
    """Yield id, parameter count and macro score of ranked models, by size, then best first."""
    macro = ranked_models.columns["macro"].tolist()
    order = [
        (model.params, -macro[ranked_models.positions[model.model]], number)
        for number, model in enumerate(inputs.models)
        if model.model in ranked_models.positions
    ]
    return (
        (inputs.models[number].model, params, -negative_macro)
        for params, negative_macro, number in sorted(order)
    )


def pareto_models(models_by_size: Iterable[tuple[str, int, float]]) -> list[document.ParetoModel]:
    """Return the models that score higher than all that are not larger, smallest first.

    `models_by_size` are the results of `_models_by_size`.
    """
    front: list[document.ParetoModel] = []
    for model, params, macro in models_by_size:
        if not front or macro > front[-1].macro:
            front.append(document.ParetoModel(model=model, params=params, macro=macro))
    return front


class _ComparedModel(NamedTuple):
    """A model, with the attributes in which the two models of a pair may differ."""

    model: str
    params: float
    """Number of parameters in the paper."""
    value_by_attribute: Mapping[str, str]


def controlled_comparisons(
    inputs: DiagnosticInputs,
) -> dict[str, dict[str, document.AttributeComparison]]:
    """Return by regime and attribute the comparisons of pairs that differ only in it."""
    facts = list(_compared_models(inputs))
    controlled_pairs = list(pairs_with_one_difference(facts))
    return {
        regime: _comparisons_by_attribute(inputs, regime, controlled_pairs)
        for regime in inputs.ranked_models
    }


def _compared_models(inputs: DiagnosticInputs) -> Iterator[_ComparedModel]:
    """Yield the models of the paper whose attributes are all known."""
    for model in inputs.models:
        paper_params, attributes = model.params_in_paper, inputs.attributes.get(model.model, {})
        value_by_attribute = {
            attribute: attributes.get(attribute) for attribute in COMPARED_ATTRIBUTES[1:]
        }
        if (
            paper_params
            and paper_params > 0
            and all(isinstance(word, str) for word in value_by_attribute.values())
        ):
            yield _ComparedModel(
                model.model, float(paper_params), {k: str(v) for k, v in value_by_attribute.items()}
            )


def pairs_with_one_difference(
    facts: list[_ComparedModel],
) -> Iterator[tuple[str, _ComparedModel, _ComparedModel]]:
    """Yield attribute, first and second model of each pair that differs only in this attribute.

    If it is the size, the first model is the larger one; else its value is alphabetically later.
    """
    for left, right in itertools.combinations(facts, 2):
        ratio = max(left.params, right.params) / min(left.params, right.params)
        differing = [
            attribute
            for attribute in COMPARED_ATTRIBUTES[1:]
            if left.value_by_attribute[attribute] != right.value_by_attribute[attribute]
        ]
        differing += ["size"] if ratio > SAME_SIZE_RATIO_MAX else []
        if len(differing) == 1:
            attribute = differing[0]
            first, second = sorted(
                (left, right), key=lambda f: _attribute_value(f, attribute), reverse=True
            )
            yield attribute, first, second


def _attribute_value(facts: _ComparedModel, attribute: str) -> float | str:
    """Return the value of an attribute of a model: a number for its size, else a word."""
    return facts.params if attribute == "size" else facts.value_by_attribute[attribute]


def _comparisons_by_attribute(
    inputs: DiagnosticInputs,
    regime: str,
    controlled_pairs: list[tuple[str, _ComparedModel, _ComparedModel]],
) -> dict[str, document.AttributeComparison]:
    """Return the comparisons of a regime by attribute, from pairs that differ in one attribute."""
    board = inputs.intervals[regime].board
    index_by_model = {model: k for k, model in enumerate(board.models)}
    macro = board.scores["macro"]
    pairs_by_attribute: dict[str, list[document.ModelPair]] = {
        attribute: [] for attribute in COMPARED_ATTRIBUTES
    }
    for attribute, first, second in controlled_pairs:
        if first.model in index_by_model and second.model in index_by_model:
            comparison = compare_pair(
                macro, index_by_model[first.model], index_by_model[second.model], board.critical
            )
            pairs_by_attribute[attribute].append(
                document.ModelPair(
                    first=first.model,
                    second=second.model,
                    values=(_value_text(first, attribute), _value_text(second, attribute)),
                    difference=rounded(comparison.difference),
                    significant=comparison.is_significant,
                )
            )
    return {
        attribute: document.AttributeComparison(
            contrasts=list(_contrasts(attribute, pairs)), pairs=pairs
        )
        for attribute, pairs in pairs_by_attribute.items()
    }


def _value_text(facts: _ComparedModel, attribute: str) -> str:
    """Return the value of an attribute of a model as text."""
    return f"{facts.params:.0f}" if attribute == "size" else facts.value_by_attribute[attribute]


def _contrasts(attribute: str, pairs: list[document.ModelPair]) -> Iterator[document.ValueContrast]:
    """Yield a summary of the pairs with the same values; for size, one of all pairs."""
    differences_by_values: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        attribute_values = ("larger", "smaller") if attribute == "size" else pair.values
        differences_by_values.setdefault(attribute_values, []).append(pair.difference)
    for attribute_values, differences in sorted(differences_by_values.items()):
        yield document.ValueContrast(
            values=attribute_values,
            pairs=len(differences),
            mean_difference=rounded(mean(differences)),
            first_better=sum(difference > 0 for difference in differences),
        )


def ranking_stability(inputs: DiagnosticInputs) -> document.RankingStability:
    """Return the agreement of rankings between categories and between regimes."""
    categories = list(inputs.benchmark.category_order)
    agreement: dict[str, dict[str, dict[str, float | None]]] = {}
    with_macro: dict[str, dict[str, float | None]] = {}
    for regime, ranked_models in inputs.ranked_models.items():
        score_names, matrix = list(ranked_models.columns), inputs.results[f"taus {regime}"]
        by_name = {
            a: {b: rounded_or_none(matrix[i, j]) for j, b in enumerate(score_names)}
            for i, a in enumerate(score_names)
        }
        with_macro[regime] = {a: by_name[a].pop("macro") for a in categories}
        agreement[regime] = {a: by_name[a] for a in categories}
    return document.RankingStability(
        category_tau=agreement,
        macro_tau=with_macro,
        winners={regime: _winners(inputs, regime) for regime in inputs.ranked_models},
        regime_pairs=[
            _regime_pair(inputs, *pair) for pair in itertools.combinations(inputs.ranked_models, 2)
        ],
    )


def _winners(inputs: DiagnosticInputs, regime: str) -> dict[str, document.CategoryWinner]:
    """Return the first model of each category of a regime."""
    standings_by_category = inputs.intervals[regime].categories
    return {
        name: _winner(standings) for name, standings in standings_by_category.items() if standings
    }


def _winner(standings: ModelRanking) -> document.CategoryWinner:
    """Return the first model of a ranking."""
    count = sum(standings.could_be_best)
    return document.CategoryWinner(
        model=standings.models[0], score=standings.score[0], could_be_best=count
    )


def _regime_pair(inputs: DiagnosticInputs, before: str, after: str) -> document.RegimePair:
    """Return how the ranks in two regimes agree."""
    models, tau = inputs.results[f"taus {before, after}"]
    categories = inputs.benchmark.category_order
    changes = _winner_changes(inputs, before, after)
    return document.RegimePair(
        regimes=(before, after),
        models=models,
        macro_tau=tau["macro"],
        category_tau={category: tau[category] for category in categories},
        winners_changed=len(changes),
        winners_significantly_changed=sum(change.significant for change in changes),
        categories=len(categories),
        changes=changes,
    )


def _winner_changes(
    inputs: DiagnosticInputs, before: str, after: str
) -> list[document.WinnerChange]:
    """Return the categories whose first models differ between two regimes."""
    changes = []
    for category in inputs.benchmark.category_order:
        standings_before, standings_after = (
            inputs.intervals[regime].categories[category] for regime in (before, after)
        )
        if not standings_before or not standings_after:
            continue
        winner_before, winner_after = standings_before.models[0], standings_after.models[0]
        if winner_before != winner_after:
            is_open = _could_be_best(standings_before, winner_after) or _could_be_best(
                standings_after, winner_before
            )
            change = document.WinnerChange(
                category=category, before=winner_before, after=winner_after, significant=not is_open
            )
            changes.append(change)
    return changes


def _could_be_best(standings: ModelRanking, model: str) -> bool:
    """Whether a model could be best; also true for a model that is not ranked."""
    return model not in standings.models or standings.could_be_best[standings.models.index(model)]


def diagnostics(
    rows: Iterable[Row],
    benchmark: Benchmark,
    intervals: Mapping[str, RegimeIntervals],
    step_results: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the content of diagnostics.json.

    `intervals` and `step_results`, the results of `diagnostic_steps` by name, are of the same rows.
    """
    inputs = inputs_of(rows, benchmark, intervals, step_results)
    document_value = document.Diagnostics(
        schema_version="2.0",
        benchmark=document.ScoredBenchmark(name=benchmark.name, sha256=benchmark.sha256),
        method=document.StatisticalMethod(
            metric=METRIC,
            confidence=CONFIDENCE,
            overlap=FIT_CORRELATION,
            dependence=(
                "predictions"
                if any(
                    error_covariances(regime_intervals.board)
                    for regime_intervals in intervals.values()
                )
                else "none"
            ),
            margin=DEFAULT_MARGIN,
        ),
        models=inputs.models,
        ranks={},
        stability=ranking_stability(inputs),
        size=scores_by_size(inputs),
        pairs=controlled_comparisons(inputs),
        findings=step_results["findings"],
    ).model_dump(mode="json")
    return document_value | {
        "ranks": {
            name: _regime_ranks(regime_intervals) for name, regime_intervals in intervals.items()
        }
    }


def _regime_ranks(intervals: RegimeIntervals) -> dict[str, Any]:
    """Return the members of `document.RegimeRanks`; validating every score would take seconds."""
    members = document.RegimeRanks(
        models=len(intervals.board.models),
        rounded=intervals.board.rounded,
        critical=intervals.board.critical,
        macro={},
        micro={},
        categories={},
        tasks={},
        is_drawn=intervals.draw_variance > 0,
        draw_variance=intervals.draw_variance,
        draws_covered=list(intervals.board.draws_covered),
        shared=error_covariances(intervals.board),
    )
    return members.model_dump(mode="json") | {
        "macro": intervals.macro,
        "micro": intervals.micro,
        "categories": intervals.categories,
        "tasks": intervals.tasks,
    }


def error_covariances(board: RegimeScores) -> document.ErrorCovariances | None:
    """Return the covariances of errors between models; None if all errors are independent."""
    matrices = {
        name: column.shared for name, column in board.scores.items() if column.shared is not None
    }
    if not matrices:
        return None
    indices = [
        k for k in range(len(board.models)) if any(matrix[k].any() for matrix in matrices.values())
    ]
    return document.ErrorCovariances(
        models=[board.models[k] for k in indices],
        scores={
            name: [matrix[k, indices[:n]].tolist() for n, k in enumerate(indices)]
            for name, matrix in matrices.items()
        },
    )
