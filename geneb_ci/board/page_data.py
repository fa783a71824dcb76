"""The data of the page as scripts: scores, ranks, advice and confusion matrices."""

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from geneb_ci import __version__
from geneb_ci.board.advice import Advice, AdvisedModel
from geneb_ci.board.baselines import baseline_scores_by_column
from geneb_ci.board.columns import COLUMNS, Row, facts_of, in_board_order, page_columns
from geneb_ci.board.confusion import row_matrices, single_fit_regimes
from geneb_ci.board.page import BASE
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TASKS
from geneb_ci.board.site.inputs import file_names_of
from geneb_ci.board.texts import (
    DIGEST_DIGITS,
    Texts,
    ascii_text,
    script_name,
    script_of,
)
from geneb_ci.check.claims import results_of
from geneb_ci.common.json_text import json_text
from geneb_ci.statistics.metrics import ModelRanking
from reference_harness.formats.benchmark import Benchmark

if TYPE_CHECKING:
    from geneb_ci.common.files import ChunkedText

SCORE_UNIT = 10**6
"""Scores in the page's data are whole numbers: MCC times this."""
NORMAL_QUANTILE = 1.96
"""Standard errors from a score to the ends of its 95 % interval, as `decisions.NORMAL_QUANTILE`."""
FIGURE_PARTS_MAX = 30
"""Maximum number of parts of a figure on the page: some figures have 100,000 parts."""
SCORE_DECIMALS = 3
"""Decimals of scores on the page."""
CURRENT_SCRIPT = "board-current.js"
"""Name of the script that contains the digest of the newest board."""
_STANDING_KEYS = ("score", "error", "freedom", "rank", "rank_low", "rank_high")
"""The numbers of a model in a ranking that the page's data contains, in their order."""
_MEAN_KEYS = ("macro", "micro")
"""The means over all tasks, in their order in the page's data."""
DATA_ENCODING = {"score": SCORE_UNIT, "standing": _STANDING_KEYS, "means": _MEAN_KEYS}
"""The unit of scores in the page's data, and the order of numbers in its lists."""
ParsedFiles = Mapping[str, Mapping[str, Any]]
"""Parsed contents of the board's files, by name."""
ModelIds = Sequence[str]
"""Ids of models, in the order in which the page's data refers to them."""
DiagnosticsOrNone = Mapping[str, Any] | None
"""The content of diagnostics.json; None if it was not made."""
_THOUSANDTH = SCORE_UNIT // 10**SCORE_DECIMALS
"""The smallest difference of scores that the page shows, in units of `SCORE_UNIT`."""


def recovered_matrices(rows: Iterable[Row], benchmark: Benchmark) -> dict[str, Any]:
    """Return the recovered confusion matrices of all models, and the indices of their tasks.

    `regimes` maps each regime of a single fit to a list per model, with three numbers per task: how
    many matrices have the reported scores, then the right predictions in the minority and in the
    majority class of the closest matrix.
    """
    regimes: dict[str, list[Sequence[int]]] = {
        regime: [] for regime in single_fit_regimes(benchmark)
    }
    for row in rows:
        matrices_by_regime = (
            row.numbers.matrices
            if row.numbers
            else row_matrices(row.submission, results_of(row.submission), benchmark)
        )
        for regime, matrices_of_rows in regimes.items():
            matrices_of_rows.append(matrices_by_regime[regime])
    recoverable = [index for index, task in enumerate(benchmark.tasks) if task.two_class_sizes]
    return {"tasks": recoverable, "regimes": regimes}


def page_scripts(
    parsed_files: ParsedFiles,
    rows: Iterable[Row],
    benchmark: Benchmark,
    events: Sequence[Mapping[str, Any]] | None = None,
    first_advice: Advice | None = None,
) -> Texts:
    """Return the generated scripts of the page by file name.

    `parsed_files` are the parsed leaderboard.json, leaderboard_tasks.json and, if it was made,
    diagnostics.json; without it and `first_advice`, the advice that the page shows at first, the
    page has neither intervals nor advice. `events` are those of ledger.json; None without a ledger.

    Parts refer to models by index. So that parts of two boards are never combined, the digest of
    all parts is in the name of each script and in its key. Only CURRENT_SCRIPT has a fixed name.
    """
    ordered_rows = in_board_order(rows)
    ids = [row.submission.model_id for row in ordered_rows]
    # Text chunks, which are hashed first and then written.
    texts_by_part: dict[str, list[bytes]] = {}
    for index in range(len(benchmark.regimes)):
        texts_by_part[f"scores-{index}"] = [
            json_text(_regime_score_data(parsed_files, index, ids, benchmark))
        ]
        texts_by_part[f"tasks-{index}"] = [
            json_text(_regime_task_data(parsed_files, index, ids, benchmark))
        ]
    texts_by_part["matrices"] = [ascii_text(recovered_matrices(ordered_rows, benchmark))]
    texts_by_part["history"] = [ascii_text(events)]
    base = _first_view_data(parsed_files, ordered_rows, ids, benchmark, first_advice)
    digest = _digest(texts_by_part | {BASE: [ascii_text(base)]})
    base_text: list[bytes] = [ascii_text({"digest": digest} | base)]
    keys_by_part = {part: f"{part}.{digest}" for part in texts_by_part}
    partial = functools.partial
    scripts: dict[str, ChunkedText] = {
        script_name(part, digest): partial(script_of, keys_by_part[part], chunks)
        for part, chunks in texts_by_part.items()
    }
    scripts[script_name(BASE, digest)] = partial(script_of, "base", base_text)
    scripts[CURRENT_SCRIPT] = partial(script_of, "current", [ascii_text(digest)])
    return Texts(dict(sorted(scripts.items())))


def _digest(texts_by_part: Mapping[str, list[bytes]]) -> str:
    """Return the digest of the texts, of their names and of the version of geneb-ci."""
    digest = hashlib.sha256(__version__.encode())
    for part, chunks in texts_by_part.items():
        digest.update(f"\0{part}\0".encode())
        for chunk in chunks:
            digest.update(chunk)
    return digest.hexdigest()[:DIGEST_DIGITS]


def _first_view_data(
    parsed_files: ParsedFiles,
    rows: Sequence[Row],
    ids: ModelIds,
    benchmark: Benchmark,
    advice: Advice | None,
) -> dict[str, Any]:
    """Return the data that the page needs at first; of standings only those by micro."""
    index_of = {model: index for index, model in enumerate(ids)}
    diagnostics, first_regime = parsed_files.get(DIAGNOSTICS), benchmark.regimes[0]
    columns = _rankings_of(diagnostics, first_regime, benchmark)
    rows_of = parsed_files[LEADERBOARD]["data"]
    ranked_models = [{row["model"] for row in rows_of[regime]} for regime in benchmark.regimes]
    return {
        "benchmark": _benchmark_data(benchmark, parsed_files[TASKS]["tasks"]),
        "encoding": DATA_ENCODING,
        "columns": page_columns(),
        "models": [facts_of(row, COLUMNS) for row in rows],
        "decisions": _decision_constants(diagnostics, benchmark),
        # The first view needs only these; all standings of a thousand models are 20 times as large.
        "ranked": [[int(model in models) for model in ids] for models in ranked_models],
        "overall": [_standing_numbers(columns[1], model, 3) for model in ids] if columns else None,
        "facts": _overview_figures(diagnostics, index_of, benchmark),
        "baselines": baseline_scores_by_column(benchmark),
        "first": None if advice is None else _advised_models(advice, index_of),
    }


def millionths(score: float) -> int:
    """Return a score as an integer number of millionths that rounds to the same three decimals."""
    rounded = round(score * SCORE_UNIT)
    # A number ending in 500 could be rounded either way, so it is moved towards the exact score.
    if rounded % _THOUSANDTH == _THOUSANDTH // 2:
        thousandths = round(float(f"{score:.{SCORE_DECIMALS}f}") * 10**SCORE_DECIMALS)
        rounded += 1 if rounded < thousandths * _THOUSANDTH else -1
    return rounded


def _benchmark_data(benchmark: Benchmark, published: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts about the benchmark and its tasks that the page shows."""
    categories = benchmark.category_order
    tasks = ({key: task[key] for key in task if key != "cat"} for task in published)
    return {
        "name": benchmark.name,
        "sha256": benchmark.sha256,
        "harness": benchmark.harness_version,
        "primary": benchmark.primary_metric,
        "regimes": benchmark.regimes,
        "few": [regime for regime in benchmark.regimes if regime in benchmark.protocol.few_shot_k],
        "fits": len(benchmark.protocol.seeds),
        "metrics": benchmark.metrics,
        "categories": categories,
        "pages": list(file_names_of(categories).values()),
        "tasks": [
            {
                **task_facts,
                "category": categories.index(task.category),
                "n": task.n_test,
                "counts": task.test_class_counts,
            }
            for task, task_facts in zip(benchmark.tasks, tasks, strict=True)
        ],
    }


def _regime_score_data(
    files: ParsedFiles, index: int, ids: ModelIds, benchmark: Benchmark
) -> dict[str, Any]:
    """Return the means and rankings of a regime: by metric and model, and by mean and model.

    The scores of a model are macro, micro, then the categories; null if it has missing cells.
    Standings are not rounded, since decisions use them; null without diagnostics.
    """
    regime, diagnostics = benchmark.regimes[index], files.get(DIAGNOSTICS)
    rows = {row["model"]: row for row in files[LEADERBOARD]["data"][regime]}

    def means(model: str, metric: str) -> list[int] | None:
        if model not in rows:
            return None
        row = rows[model]
        categories = map(row[f"cat_{metric}"].__getitem__, benchmark.category_order)
        return [*map(millionths, (*(row[f"{mean}_{metric}"] for mean in _MEAN_KEYS), *categories))]

    columns = _rankings_of(diagnostics, regime, benchmark)
    index_of = {model: k for k, model in enumerate(ids)}
    score_names = [*_MEAN_KEYS, *benchmark.category_order]
    return {
        "scores": {metric: [means(model, metric) for model in ids] for metric in benchmark.metrics},
        "standings": [[_standing_numbers(column, model) for model in ids] for column in columns]
        or None,
        **_covariance_data(diagnostics, regime, index_of, score_names),
    }


def _regime_task_data(
    files: ParsedFiles, index: int, ids: ModelIds, benchmark: Benchmark
) -> dict[str, Any]:
    """Return the task scores of a regime, by metric and model in board order.

    With diagnostics, scores of the primary metric and their standard errors are not rounded, since
    the page computes advice from them. A model with missing cells has null.
    """
    regime, diagnostics = benchmark.regimes[index], files.get(DIAGNOSTICS)
    rows = {row["model"]: row for row in files[TASKS]["data"][regime]}

    def scores(model: str, metric: str) -> list[float] | None:
        if model not in rows:
            return None
        numbers = rows[model][f"task_{metric}"].numbers.tolist()
        is_exact = diagnostics is not None and metric == benchmark.primary_metric
        return numbers if is_exact else [*map(millionths, numbers)]

    content: dict[str, Any] = {
        "scores": {metric: [scores(model, metric) for model in ids] for metric in benchmark.metrics}
    }
    if diagnostics is not None:
        tasks = diagnostics["ranks"][regime]["tasks"]
        columns = [tasks[task] for task in benchmark.task_ids]
        for member, offset in (("errors", 2), ("spreads", 3)):
            task_numbers = [column.numbers[offset :: column.width] for column in columns]
            numbers_by_model = dict(zip(columns[0], zip(*task_numbers, strict=True), strict=True))
            is_known = any(map(any, numbers_by_model.values()))
            content[member] = [numbers_by_model.get(model) for model in ids] if is_known else None
    return content


def _rankings_of(
    diagnostics: DiagnosticsOrNone, regime: str, benchmark: Benchmark
) -> list[ModelRanking]:
    """Return the rankings by macro, micro and each category; [] without diagnostics."""
    if diagnostics is None:
        return []
    ranks = diagnostics["ranks"][regime]
    return [ranks[key] for key in _MEAN_KEYS] + [
        ranks["categories"][category] for category in benchmark.category_order
    ]


def _standing_numbers(
    standings: ModelRanking, model: str, count: int = len(_STANDING_KEYS)
) -> list[float | None] | None:
    """Return the first `count` of a model's numbers named in `_STANDING_KEYS`; None if unranked."""
    if model not in standings.positions:
        return None
    return [*map(standings[model].__getitem__, _STANDING_KEYS[:count])]


def _advised_models(advice: Advice, index_of: Mapping[str, int]) -> dict[str, Any]:
    """Return the models that the first advice names, with the tasks that each wins."""

    def members(advised_model: AdvisedModel) -> dict[str, Any]:
        return {
            "at": index_of[advised_model.model],
            "wins": list(advised_model.wins.values()),
            "without": len(advised_model.without),
        }

    return {
        "highest": [members(regime_advice.highest) for regime_advice in advice.regimes],
        "smallest": None if advice.smallest is None else members(advice.smallest),
    }


def _covariance_data(
    diagnostics: DiagnosticsOrNone,
    regime: str,
    index_of: Mapping[str, int],
    score_names: Sequence[str],
) -> dict[str, Any]:
    """Return the covariances of models by score, under `shared`; {} if errors are independent."""
    shared = None if diagnostics is None else diagnostics["ranks"][regime].get("shared")
    if shared is None:
        return {}
    models = [index_of[model] for model in shared["models"]]
    return {
        "shared": {"models": models, "columns": [shared["scores"][name] for name in score_names]}
    }


def _decision_constants(
    diagnostics: DiagnosticsOrNone, benchmark: Benchmark
) -> dict[str, Any] | None:
    """Return the numbers by which the page decides: critical values, quantile and margin."""
    if diagnostics is None:
        return None
    ranks = diagnostics["ranks"]
    return {
        "critical": [ranks[regime]["critical"] for regime in benchmark.regimes],
        "drawn": [ranks[regime]["draw_variance"] for regime in benchmark.regimes],
        "normal": NORMAL_QUANTILE,
        "margin": diagnostics["method"]["margin"],
    }


def _overview_figures(
    diagnostics: DiagnosticsOrNone, index_of: Mapping[str, int], benchmark: Benchmark
) -> dict[str, Any] | None:
    """Return the figures about differences between regimes, which the overview shows."""
    if diagnostics is None:
        return None
    stability = diagnostics["stability"]
    return {
        "pairs": [
            {key: pair[key] for key in ("regimes", "macro_tau", "categories")}
            | {
                "changed": pair["winners_changed"],
                "significant": pair["winners_significantly_changed"],
            }
            for pair in stability["regime_pairs"]
        ],
        "findings": [
            finding | {"parts": finding["parts"][:FIGURE_PARTS_MAX], "count": len(finding["parts"])}
            for finding in diagnostics["findings"]
        ],
        "covered": [
            [index_of[model] for model in diagnostics["ranks"][regime]["draws_covered"]]
            for regime in benchmark.regimes
        ],
    }
