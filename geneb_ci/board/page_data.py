"""Confusion matrices of regimes of one fit, as the page shows them."""

import itertools
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from geneb_ci.board.columns import COLUMNS, Entry, facts_of, page_columns
from geneb_ci.board.parts import RowPart
from geneb_ci.board.site.inputs import slugs
from geneb_ci.check.claims import claims_of, two_classes
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.statistics.binary import recovered_cell
from geneb_ci.submission.models import Submission


def matrices(entries: Iterable[Entry], benchmark: Benchmark) -> dict[str, Any]:
    """Return the two-class tasks of such regimes, and of every model what was recovered in each.

    A model's list has three numbers a task: how many matrices give the scores as printed, then the
    right predictions in the minority and in the majority class of the one that comes nearest.
    """
    tasks = _recoverable(benchmark)
    found: dict[str, list[Sequence[int]]] = {regime: [] for regime in single_fits(benchmark)}
    for entry in entries:
        own = entry.numbers.matrices if entry.numbers else row_matrices(entry.submission, benchmark)
        for regime, rows in found.items():
            rows.append(own[regime])
    return {"tasks": tasks, "regimes": found}


def single_fits(benchmark: Benchmark) -> list[str]:
    """Name the regimes of one fit."""
    return [r for r in benchmark.regimes if r not in benchmark.protocol.few_shot_k]


def _recoverable(benchmark: Benchmark) -> list[int]:
    return [index for index, task in enumerate(benchmark.tasks) if two_classes(task)]


def row_matrices(submission: Submission, benchmark: Benchmark) -> dict[str, list[int]]:
    """Return a model's list of each regime of one fit, as `matrices` has it."""
    return {regime: _row(submission, regime, benchmark) for regime in single_fits(benchmark)}


def _are_matrices(kept: Mapping[str, Any], benchmark: Benchmark) -> bool:
    """Whether kept values can be a model's lists."""
    numbers = 3 * len(_recoverable(benchmark))
    return list(kept) == single_fits(benchmark) and all(
        type(row) is list
        and len(row) == numbers
        and all(type(one) is int and one >= 0 for one in row)
        for row in kept.values()
    )


ROW_MATRICES = RowPart(row_matrices, _are_matrices)


def _row(submission: Submission, regime: str, benchmark: Benchmark) -> list[int]:
    cells = {
        task: scores.model_dump() for task, scores in submission.results.get(regime, {}).items()
    }
    claims = {claim.task.id: claim for claim in claims_of({regime: cells}, {}, benchmark)}
    found: list[int] = []
    for index in _recoverable(benchmark):
        claim = claims.get(benchmark.tasks[index].id)
        if claim is None or claim.classes is None:
            found += [0, 0, 0]
            continue
        one = recovered_cell(regime, claim.task.id, None, claim.classes, claim.reading)
        right = (one.table.small_right, one.table.large_right) if one.table else (0, 0)
        found += [one.matrices, *right]
    return found


SCORE_UNIT = 10**6
NORMAL = 1.96
"""Standard errors from a score to the ends of its 95 % interval, as `decisions.NORMAL`."""
FIGURE_PARTS = 30
"""Parts of a figure that the page has: a thousand models have a hundred thousand pairs."""
SHOWN = 3
"""Decimals on the page."""
BASE, MATRICES, HISTORY = "board-data.js", "board-matrices.js", "board-history.js"

_STANDING = ("score", "error", "freedom", "rank", "rank_low", "rank_high")
_MEANS = ("macro", "micro")
ENCODING = {
    "score": SCORE_UNIT,
    "standing": _STANDING,
    "means": _MEANS,
}
"""What the page must know to read its numbers: units, and the order in which they stand."""


def page_scripts(
    values: Mapping[str, Mapping[str, Any]],
    entries: Iterable[Entry],
    benchmark: Benchmark,
) -> dict[str, bytes]:
    """Return the generated scripts of the page by file name.

    `values` are those of leaderboard.json and leaderboard_tasks.json and, where they were made, of
    diagnostics.json and recommendations.json: without these there are neither intervals nor advice.
    """
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    ids = [entry.submission.model_id for entry in ordered]
    place = {model: index for index, model in enumerate(ids)}
    diagnostics = values.get("diagnostics.json")
    scores = _scores(values["leaderboard.json"]["data"], ids, benchmark)
    standings = _standings(diagnostics, ids, benchmark)
    advice = _advice(values.get("recommendations.json"), place)
    base = {
        "benchmark": _benchmark(benchmark),
        "encoding": ENCODING,
        "columns": page_columns(),
        "models": [facts_of(entry, COLUMNS) for entry in ordered],
        "decisions": _decisions(diagnostics, benchmark),
        # What the first view shows; with a thousand models the rest is twenty times as much.
        "ranked": [
            [int(row is not None) for row in one[benchmark.primary_metric]] for one in scores
        ],
        "overall": None if standings is None else standings[0][0],
        **_shared(diagnostics, benchmark.regimes[0], place, _MEANS[:1]),
        "facts": _facts(diagnostics, place, benchmark),
        "advised": None if standings is None else _advised(advice or [], standings[0]),
        "advice": advice,
    }
    made: dict[str, bytes] = {}
    for index, regime in enumerate(benchmark.regimes):
        told = {
            "scores": scores[index],
            "standings": None if standings is None else standings[index],
            **_shared(diagnostics, regime, place, [*_MEANS, *benchmark.category_order]),
        }
        made[scores_name(index)] = script(f"scores{index}", told)
        tasks = _tasks(values["leaderboard_tasks.json"]["data"][regime], ids, benchmark)
        limits = _task_intervals(diagnostics, regime, ids, benchmark)
        made[tasks_name(index)] = script(f"tasks{index}", {**tasks, **limits})
    return {
        BASE: script("base", base),
        **made,
        MATRICES: script("matrices", matrices(ordered, benchmark)),
        HISTORY: history_script(None),
    }


def scores_name(regime: int) -> str:
    """Name the script with the means of a regime, by its place among the regimes."""
    return f"board-scores-{regime}.js"


def tasks_name(regime: int) -> str:
    """Name the script with the task scores of a regime, by its place among the regimes."""
    return f"board-tasks-{regime}.js"


def history_script(ledger: Mapping[str, Any] | None) -> bytes:
    """Return the script with the history of every row: ledger.json as a value, or None."""
    return script("history", None if ledger is None else ledger["events"])


def script(name: str, value: object) -> bytes:
    """Return a script that holds a value; ASCII, and a text for JSON.parse, so nothing in it runs.

    Parsing a text is also faster than reading a literal, and `__proto__` is a key like any other.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f'(globalThis.geneb??={{}})["{name}"]=JSON.parse({json.dumps(text)});\n'.encode()


def millionths(score: float) -> int:
    """Return a score as a whole number of millionths that rounds to the same three decimals."""
    near = round(score * SCORE_UNIT)
    # What ends in 500 could be rounded either way: it is moved to the side of the exact score.
    if near % _STEP == _STEP // 2:
        wanted = round(float(f"{score:.{SHOWN}f}") * 10**SHOWN)
        near += 1 if near < wanted * _STEP else -1
    return near


_STEP = SCORE_UNIT // 10**SHOWN


def all_millionths(scores: Sequence[float]) -> list[int]:
    """Return `millionths` of each score; all at once where numpy is at work anyway."""
    if sys.modules.get("numpy") is not None:
        import numpy as np

        near = np.rint(np.array(scores) * SCORE_UNIT).astype(np.int64)
        if not (near % _STEP == _STEP // 2).any():
            found: list[int] = near.tolist()
            return found
    return list(map(millionths, scores))


def _benchmark(benchmark: Benchmark) -> dict[str, Any]:
    categories = benchmark.category_order
    return {
        "name": benchmark.name,
        "sha256": benchmark.sha256,
        "harness": benchmark.harness_version,
        "primary": benchmark.primary_metric,
        "regimes": benchmark.regimes,
        "few": [name for name in benchmark.regimes if name in benchmark.protocol.few_shot_k],
        "fits": len(benchmark.protocol.seeds),
        "metrics": benchmark.metrics,
        "categories": categories,
        "pages": list(slugs(categories).values()),
        "tasks": [
            {
                "id": task.id,
                "label": task.label,
                "category": categories.index(task.category),
                "n": task.n_test,
                "counts": task.test_class_counts,
            }
            for task in benchmark.tasks
        ],
    }


def _scores(
    data: Mapping[str, list[dict[str, Any]]], ids: list[str], benchmark: Benchmark
) -> list[dict[str, list[list[int] | None]]]:
    """Regime, metric, model: macro, micro, then the categories; None where cells are missing."""
    found = []
    for regime in benchmark.regimes:
        rows = {row["model"]: row for row in data[regime]}
        by_metric: dict[str, list[list[int] | None]] = {}
        for metric in benchmark.metrics:
            by_metric[metric] = [
                None
                if (row := rows.get(model)) is None
                else [
                    *(millionths(row[f"{mean}_{metric}"]) for mean in _MEANS),
                    *(millionths(row[f"cat_{metric}"][c]) for c in benchmark.category_order),
                ]
                for model in ids
            ]
        found.append(by_metric)
    return found


def _tasks(
    rows: list[dict[str, Any]], ids: list[str], benchmark: Benchmark
) -> dict[str, dict[str, list[list[int] | None]]]:
    """Metric, model: scores in board order of the tasks; None for a model with missing cells."""
    by_model = {row["model"]: row for row in rows}
    return {
        "scores": {
            metric: [
                None
                if (row := by_model.get(model)) is None
                else all_millionths(row[f"task_{metric}"].numbers)
                for model in ids
            ]
            for metric in benchmark.metrics
        }
    }


def _task_intervals(
    diagnostics: Mapping[str, Any] | None, regime: str, ids: list[str], benchmark: Benchmark
) -> dict[str, list[list[int] | None]]:
    """Model: low and high of each task, one after the other."""
    if diagnostics is None:
        return {}
    tasks = diagnostics["ranks"][regime]["tasks"]
    columns = zip(*(tasks[task].plain().values() for task in benchmark.task_ids), strict=True)
    ranked = tasks[benchmark.task_ids[0]]
    ends = {m: list(itertools.chain(*one)) for m, one in zip(ranked, columns, strict=True)}
    return {"intervals": [all_millionths(ends[m]) if m in ends else None for m in ids]}


def _standings(
    diagnostics: Mapping[str, Any] | None, ids: list[str], benchmark: Benchmark
) -> list[list[list[list[float | None] | None]]] | None:
    """Regime, column (macro, micro, categories), model: `_STANDING`; None without intervals."""
    if diagnostics is None:
        return None
    found = []
    for regime in benchmark.regimes:
        ranks = diagnostics["ranks"][regime]
        columns = [ranks[mean] for mean in _MEANS]
        columns += [ranks["categories"][name] for name in benchmark.category_order]
        found.append([[_standing(column.get(model)) for model in ids] for column in columns])
    return found


def _shared(
    diagnostics: Mapping[str, Any] | None,
    regime: str,
    place: Mapping[str, int],
    columns: Sequence[str],
) -> dict[str, Any]:
    """Return the covariances of models by column, as `shared`; {} where errors are independent."""
    found = None if diagnostics is None else diagnostics["ranks"][regime].get("shared")
    if found is None:
        return {}
    models = [place[model] for model in found["models"]]
    return {"shared": {"models": models, "columns": [found["scores"][name] for name in columns]}}


def _standing(standing: Mapping[str, Any] | None) -> list[float | None] | None:
    """Return a standing as computed: decisions are never made from rounded numbers."""
    return None if standing is None else [standing[key] for key in _STANDING]


def _advised(advice: list[dict[str, Any]], columns: Sequence[Any]) -> dict[str, Any]:
    """Return the standings by column of each model that advice names, by its place."""
    named = {one["recommended"] for one in advice} - {None}
    for one in advice:
        named |= {one[key]["at"] for key in ("best", "within", "average") if one[key] is not None}
    return {str(index): [column[index] for column in columns] for index in sorted(named)}


def _decisions(
    diagnostics: Mapping[str, Any] | None, benchmark: Benchmark
) -> dict[str, Any] | None:
    """Return what the page decides by: the critical value of each regime, and the margin."""
    if diagnostics is None:
        return None
    ranks = diagnostics["ranks"]
    return {
        "critical": [ranks[regime]["critical"] for regime in benchmark.regimes],
        "normal": NORMAL,
        "margin": diagnostics["method"]["margin"],
    }


def _facts(
    diagnostics: Mapping[str, Any] | None, place: Mapping[str, int], benchmark: Benchmark
) -> dict[str, Any] | None:
    """Return figures of how far ranks differ between regimes, for the overview."""
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
            one | {"parts": one["parts"][:FIGURE_PARTS], "count": len(one["parts"])}
            for one in diagnostics["findings"]
        ],
        "covered": [
            [place[model] for model in diagnostics["ranks"][regime]["draws_covered"]]
            for regime in benchmark.regimes
        ],
    }


def _advice(
    recommendations: Mapping[str, Any] | None, place: Mapping[str, int]
) -> list[dict[str, Any]] | None:
    if recommendations is None:
        return None

    def choice(one: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if one is None:
            return None
        kept = ("expected_loss", "loss_bound", "best_is_better")
        return {"at": place[one["model"]]} | {key: one[key] for key in kept}

    return [
        {
            **one["need"],
            "considered": one["considered"],
            "recommended": None if one["recommended"] is None else place[one["recommended"]],
            "best": choice(one["best"]),
            "could": [place[model] for model in one["could_be_best"]],
            "within": choice(one["within_margin"]),
            "average": choice(one["on_average"]),
            "why": one["why"],
        }
        for one in recommendations["advice"]
    ]
