"""The paper's figures as functions of rows and parameters: the defaults reproduce the paper.

    figures_of(rows, regimes, "board", models)     # every figure, from all rows of the board

A scope chooses rows and parameter counts: `paper` has the authors' rows with the paper's counts,
`board` all rows with the board's counts, and `exclusions` those of `paper` without rows whose
extractor has a published defect. docs/reader/diagnostics.md lists the figures.
"""

import bisect
import math
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from geneb_ci.board.diagnostics.document import Figure, FigurePart
from geneb_ci.board.means import mean
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TASKS
from geneb_ci.statistics.metrics import PackedNumbers

Scope = Literal["paper", "board", "exclusions"]
"""Which rows and parameter counts a figure uses: those of the paper, those of the board, or those
of the paper without rows whose extractors have known defects."""
SCOPES: tuple[Scope, ...] = ("paper", "board", "exclusions")
"""All scopes of figures."""
ParameterValue = float | int | str | list[str]
"""Value of a setting that a figure depends on."""
Parameters = dict[str, ParameterValue]
"""Values of the settings of a figure, by name."""
CORRELATED_MODELS_MIN = 3
"""Minimum number of models for a correlation: two points always lie on a line."""
DEVIATION_SCORES_MIN = 2
"""Minimum number of scores for a standard deviation."""
FigureValue = tuple[float | None, list[FigurePart]]
"""The value of a figure, or None if it is undefined, and its parts."""
DEVIATION_ROUNDING_MAX = 1e-6
"""More than the rounding error of a standard deviation."""
MODEL_PARAMETERS = ("first", "second")
"""Names of the parameters whose value is a model."""
LISTED_PAIRS_MAX = 10_000
"""Maximum number of pairs that a figure lists; ten thousand models have ten million pairs."""


class FigureRow(NamedTuple):
    """The facts and scores of a row from which figures are computed."""

    model: str
    """Id of the model."""
    params: float | None
    """Number of parameters by the scope's counts; None if unknown, 0 for a method without any."""
    macro: dict[str, float]
    """Macro MCC by regime, without regimes in which the model is not ranked."""
    categories: dict[str, Mapping[str, float]]
    """Mean MCC by regime and category."""
    tasks: dict[str, Mapping[str, float]]
    """MCC by regime and task."""


FigureRows = Sequence[FigureRow]
"""The rows that a figure is computed from."""


class FigureDefinition(NamedTuple):
    """The definition of a figure, with the function that computes it."""

    id: str
    definition: str
    unit: str
    defaults: Parameters
    """The parameters with which the paper computed the figure."""
    compute: Callable[[FigureRows, Mapping[str, Any]], FigureValue]
    """Returns the figure for some rows and values of its parameters."""
    exclude: tuple[str, ...] = ()
    """Models that the paper leaves out of the figure."""


def figure_rows(parsed_files: Mapping[str, Mapping[str, Any]], scope: Scope) -> list[FigureRow]:
    """Return the rows of a scope ordered by id, from the parsed files of a board by name.

    Of `diagnostics.json` only the member `models` is needed.
    """
    return figure_rows_by_scope(parsed_files, [scope])[scope]


def figure_rows_by_scope(
    parsed_files: Mapping[str, Mapping[str, Any]], scopes: Iterable[Scope]
) -> dict[Scope, list[FigureRow]]:
    """Return the rows of each scope, ordered by id; `parsed_files` as in `figure_rows`."""
    figure_row_by_model: dict[str, FigureRow] = {}
    facts_by_model: dict[str, Mapping[str, Any]] = {}
    paper_params_by_model = {
        row["model"]: row["params_in_paper"] for row in parsed_files[DIAGNOSTICS]["models"]
    }
    for regime, rows in parsed_files[LEADERBOARD]["data"].items():
        for row in rows:
            model = row["model"]
            if model not in figure_row_by_model:
                figure_row_by_model[model], facts_by_model[model] = (
                    FigureRow(model, None, {}, {}, {}),
                    row,
                )
            figure_row_by_model[model].macro[regime] = row["macro_MCC"]
            figure_row_by_model[model].categories[regime] = row["cat_MCC"]
    for regime, rows in parsed_files[TASKS]["data"].items():
        for row in rows:
            figure_row_by_model[row["model"]].tasks[regime] = row["task_MCC"]
    rows_by_scope: dict[Scope, list[FigureRow]] = {scope: [] for scope in scopes}
    for model, figure_row in sorted(figure_row_by_model.items()):
        model_facts = facts_by_model[model]
        for scope, scope_rows in rows_by_scope.items():
            if scope != "board" and not model_facts["official"]:
                continue
            if scope == "exclusions" and model_facts.get("defects"):
                continue
            params = model_facts["params"] if scope == "board" else paper_params_by_model[model]
            scope_rows.append(figure_row._replace(params=params))
    return rows_by_scope


def figures_of(
    rows: FigureRows, regimes: Sequence[str], scope: Scope, models: Container[str]
) -> list[Figure]:
    """Return the paper's figures, computed from `rows` with their default parameters.

    `models` are the ids on the board; a figure whose parameters name another is left out.
    """
    return [figure_of(kind, rows, scope) for kind in figure_definitions_on(regimes, models)]


def figure_of(
    figure_kind: FigureDefinition,
    rows: FigureRows,
    scope: Scope,
    parameters: Mapping[str, ParameterValue] | None = None,
    exclude: Sequence[str] = (),
) -> Figure:
    """Return one figure; `parameters` replace defaults, `exclude` excludes further models."""
    excluded_models = {*exclude, *(() if scope == "board" else figure_kind.exclude)}
    included = [row for row in rows if row.model not in excluded_models]
    settings = figure_kind.defaults | dict(parameters or {})
    value, parts = figure_kind.compute(included, settings)
    return Figure(
        id=figure_kind.id,
        scope=scope,
        definition=figure_kind.definition,
        parameters=settings | {"exclude": sorted(excluded_models)},
        rows=len(included),
        value=value,
        unit=figure_kind.unit,
        parts=parts,
    )


def figure_definitions_on(regimes: Sequence[str], models: Container[str]) -> list[FigureDefinition]:
    """Return the definitions of the figures whose parameters name only models of a board.

    Models of the paper have no meaning on the board of another benchmark.
    """
    return [
        kind._replace(exclude=tuple(model for model in kind.exclude if model in models))
        for kind in figure_definitions(regimes)
        if all(kind.defaults[side] in models for side in MODEL_PARAMETERS if side in kind.defaults)
    ]


def figure_definitions(regimes: Sequence[str]) -> tuple[FigureDefinition, ...]:
    """Return the definition of every figure; the first of `regimes` has all training data."""
    full, *few = regimes
    return (
        FigureDefinition(
            "size-correlation",
            "Spearman's rho, equal values with their mean rank, of parameter counts and MCC: "
            "macro, and each category. Rows without a count are left out.",
            "rho",
            {"regime": full},
            _size_correlation,
        ),
        FigureDefinition(
            "hard-tasks",
            "Tasks whose mean MCC over the rows is below the threshold, hardest first.",
            "tasks",
            {"regime": full, "threshold": 0.35},
            _hard_tasks,
        ),
        FigureDefinition(
            "high-variance-tasks",
            "Tasks whose standard deviation of MCC over the rows (n - 1) is above the threshold, "
            "widest first.",
            "tasks",
            {"regime": full, "threshold": 0.12},
            _high_variance_tasks,
        ),
        *(
            FigureDefinition(
                "winner-changes",
                "Categories whose row with the highest mean MCC differs between two regimes.",
                "categories",
                {"before": full, "after": regime},
                _winner_changes,
            )
            for regime in few[:1]
        ),
        FigureDefinition(
            "small-beats-large",
            "Ordered pairs of rows: the first has at most 1/times of the parameters of the second, "
            "and a higher macro MCC. Pairs are counted, not models.",
            "pairs",
            {"regime": full, "times": 5.0},
            _small_beats_large,
            ("PlantCaduceus_l32", "DNABERT-S", "agro-nucleotide-transformer-1b", "evo-1-131k-base"),
        ),
        *(
            FigureDefinition(
                "retention",
                "Mean over the rows of the few-shot category mean, divided by the same with all "
                "data: a ratio of means. The value is the ratio for macro.",
                "ratio",
                {"regime": regime, "whole": full},
                _retention,
            )
            for regime in few
        ),
        *(
            FigureDefinition(
                "controlled-pair",
                "Macro MCC of the first model less that of the second.",
                "MCC",
                {"regime": full, "first": first, "second": "eccdnamamba_weights"},
                _macro_difference,
            )
            for first in ("MutBERT", "Omni-DNA-1B")
        ),
        *(
            FigureDefinition(
                "mean-macro",
                "Mean over the rows of macro MCC.",
                "MCC",
                {"regime": regime},
                _mean_macro,
            )
            for regime in regimes
        ),
        FigureDefinition(
            "kmer-baseline",
            "MCC of overlapping forward k-mer frequencies, which sum to 1, with the unscaled "
            "probe. It needs the task data: `geneb-harness run --extractor builtin:kmer`.",
            "MCC",
            {"regime": full, "k": 4},
            lambda _rows, _used: (None, []),
        ),
    )


def _size_correlation(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return the rank correlation of score and number of parameters; parts: each category."""
    regime = parameters["regime"]
    rows_with_size = [row for row in rows if row.params and regime in row.macro]
    if len(rows_with_size) < CORRELATED_MODELS_MIN:
        categories = rows_with_size[0].categories[regime] if rows_with_size else ()
        return None, [FigurePart(name=category, value=None) for category in categories]
    counts = _centred_ranks([float(row.params or 0) for row in rows_with_size])
    correlations = [
        FigurePart(name=category, value=_correlation(counts, _centred_ranks(scores)))
        for category, scores in _scores_by_category(rows_with_size, regime)
    ]
    macro = _centred_ranks([row.macro[regime] for row in rows_with_size])
    return _correlation(counts, macro), correlations


def _correlation(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Return Spearman's rho of two lists of `_centred_ranks`; None if one of them is constant.

    The ranks are integers, so every sum is exact and the result is the same on every machine.
    """
    spread = sum(a * a for a in first) * sum(b * b for b in second)
    return sum(map(operator.mul, first, second)) / math.sqrt(spread) if spread else None


def _centred_ranks(numbers: Sequence[float]) -> list[int]:
    """Return for each number twice the difference of its mid-rank from the mean rank: integers."""
    counts, rank_by_value, lower_count = Counter(numbers), {}, 0
    for number in sorted(counts):
        rank_by_value[number] = 2 * lower_count + counts[number] - len(numbers)
        lower_count += counts[number]
    return [rank_by_value[number] for number in numbers]


def _scores_by_category(rows: FigureRows, regime: str) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield each category with the scores of the rows, which must be ranked in the regime."""
    scores_by_row = [row.categories[regime] for row in rows]
    categories = list(scores_by_row[0]) if scores_by_row else []
    if len(categories) == 1:
        yield categories[0], [scores[categories[0]] for scores in scores_by_row]
    elif categories:
        columns = zip(*map(operator.itemgetter(*categories), scores_by_row), strict=True)
        yield from zip(categories, columns, strict=True)


def _scores_by_task(rows: FigureRows, regime: str) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield each task with the scores of the rows that are ranked in the regime."""
    scores_by_row = [row.tasks[regime] for row in rows if regime in row.tasks]
    if not scores_by_row:
        return
    packed = [
        column
        for column in scores_by_row
        if isinstance(column, PackedNumbers) and column.is_like(scores_by_row[0])
    ]
    if len(packed) == len(scores_by_row):
        yield from zip(
            packed[0], zip(*(column.numbers for column in packed), strict=True), strict=True
        )
        return
    for task in scores_by_row[0]:
        yield task, [scores[task] for scores in scores_by_row]


def _hard_tasks(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return the number of tasks whose mean score is below the threshold; parts: these tasks."""
    means = [(mean(scores), task) for task, scores in _scores_by_task(rows, parameters["regime"])]
    tasks = sorted((score, task) for score, task in means if score < parameters["threshold"])
    return len(tasks), [FigurePart(name=task, value=score) for score, task in tasks]


def _high_variance_tasks(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return how many tasks have scores that deviate above the threshold; parts: these tasks."""
    tasks = sorted(
        (-deviation, task)
        for task, scores in _scores_by_task(rows, parameters["regime"])
        if _may_deviate(scores, parameters["threshold"])
        and (deviation := statistics.stdev(scores)) > parameters["threshold"]
    )
    return len(tasks), [
        FigurePart(name=task, value=-negative_deviation) for negative_deviation, task in tasks
    ]


def _may_deviate(scores: Sequence[float], threshold: float) -> bool:
    """Whether scores may deviate more than a threshold, by a fast estimate; False is certain."""
    if len(scores) < DEVIATION_SCORES_MIN:
        return False
    mean_score = sum(scores) / len(scores)
    distance = math.dist(scores, [mean_score] * len(scores))
    return distance / math.sqrt(len(scores) - 1) > threshold - DEVIATION_ROUNDING_MAX


def _winner_changes(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return the number of categories with another winner in a second regime; parts: these."""
    before, after = parameters["before"], parameters["after"]
    winners_before, winners_after = _winners(rows, before), _winners(rows, after)
    if not winners_before or not winners_after:
        return None, []
    changes = [
        FigurePart(name=f"{category}: {winner}, then {winners_after[category]}", value=None)
        for category, winner in winners_before.items()
        if winner != winners_after[category]
    ]
    return len(changes), changes


def _winners(rows: FigureRows, regime: str) -> dict[str, str]:
    """Return the model with the highest mean of each category, the first of equal ones."""
    ranked_rows = [row for row in rows if regime in row.categories]
    return {
        category: ranked_rows[scores.index(max(scores))].model
        for category, scores in _scores_by_category(ranked_rows, regime)
    }


def _small_beats_large(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return the number of pairs in which a far smaller model scores higher; parts: such pairs."""
    regime, size_ratio = parameters["regime"], parameters["times"]
    rows_with_size = sorted(
        (row for row in rows if row.params and regime in row.macro),
        key=lambda row: row.params or 0,
    )
    count, min_lead, rows_by_size = 0, 0.0, iter(rows_with_size)
    # `smaller`: scores and ids of the rows with at most 1/size_ratio of the parameters of `large`.
    smaller: list[tuple[float, str]] = []
    next_row = next(rows_by_size, None)
    leads: list[tuple[float, str]] = []
    for large in rows_with_size:
        while next_row is not None and size_ratio * (next_row.params or 0) <= (large.params or 0):
            bisect.insort(smaller, (next_row.macro[regime], next_row.model))
            next_row = next(rows_by_size, None)
        first_better = bisect.bisect_right(smaller, large.macro[regime], key=operator.itemgetter(0))
        count += len(smaller) - first_better
        for macro, model in reversed(smaller[first_better:]):
            lead = macro - large.macro[regime]
            if lead < min_lead:
                break
            leads.append((-lead, f"{model} over {large.model}"))
        if len(leads) > 2 * LISTED_PAIRS_MAX:
            leads = sorted(leads)[:LISTED_PAIRS_MAX]
            min_lead = -leads[-1][0]
    largest_leads = [
        FigurePart(name=name, value=-negative_lead)
        for negative_lead, name in sorted(leads)[:LISTED_PAIRS_MAX]
    ]
    return count, largest_leads


def _retention(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return the few-shot mean as a share of the mean with all data; parts: each category."""
    few, full = parameters["regime"], parameters["whole"]
    rows_with_both = [row for row in rows if few in row.macro and full in row.macro]
    few_shot_scores = dict(_scores_by_category(rows_with_both, few))
    ratios = [
        FigurePart(name=category, value=_ratio_of_means(few_shot_scores[category], scores))
        for category, scores in _scores_by_category(rows_with_both, full)
    ]
    return _ratio_of_means(
        [row.macro[few] for row in rows_with_both], [row.macro[full] for row in rows_with_both]
    ), ratios


def _ratio_of_means(few_shot_scores: Sequence[float], full_scores: Sequence[float]) -> float | None:
    """Return the mean of the first scores over that of the second; None where it is undefined."""
    if not full_scores or mean(full_scores) <= 0:
        return None
    return mean(few_shot_scores) / mean(full_scores)


def _macro_difference(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return the macro score of one model minus that of another."""
    macro = {row.model: row.macro.get(parameters["regime"]) for row in rows}
    first, second = macro.get(parameters["first"]), macro.get(parameters["second"])
    return (None if first is None or second is None else first - second), []


def _mean_macro(rows: FigureRows, parameters: Mapping[str, Any]) -> FigureValue:
    """Return the mean of the macro scores."""
    macros = [row.macro[parameters["regime"]] for row in rows if parameters["regime"] in row.macro]
    return (mean(macros) if macros else None), []
