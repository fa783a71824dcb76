"""The data of the page as scripts: scores, standings, advice and confusion matrices."""

import array
import functools
import hashlib
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from geneb_ci import __version__
from geneb_ci.board.advice import Advice, Claim
from geneb_ci.board.baselines import baseline_lines
from geneb_ci.board.columns import COLUMNS, Entry, facts_of, in_board_order, page_columns
from geneb_ci.board.confusion import row_matrices, single_fits
from geneb_ci.board.page import BASE
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TASKS
from geneb_ci.board.site.inputs import slugs
from geneb_ci.board.texts import (
    DIGEST_DIGITS,
    Text,
    Texts,
    ascii_text,
    number_texts,
    script_name,
    script_of,
)
from geneb_ci.check.claims import results_of
from geneb_ci.common.json_text import json_text, object_text
from geneb_ci.statistics.metrics import Standings
from reference_harness.formats.benchmark import Benchmark

SCORE_UNIT = 10**6
NORMAL = 1.96
"""Standard errors from a score to the ends of its 95 % interval, as `decisions.NORMAL`."""
FIGURE_PARTS = 30
"""Parts of a figure that the page has: a thousand models have a hundred thousand pairs."""
DECIMALS = 3
"""Decimals on the page."""
MODELS_AT_ONCE = 64
"""Models whose numbers are written together."""
CURRENT = "board-current.js"
"""The script with the digest of the newest board."""
_STANDING = ("score", "error", "freedom", "rank", "rank_low", "rank_high")
_MEANS = ("macro", "micro")
ENCODING = {"score": SCORE_UNIT, "standing": _STANDING, "means": _MEANS}
"""The key to the page's numbers: units, and the order in which they stand."""
Values = Mapping[str, Mapping[str, Any]]
"""Files of the board by name, each as a value."""
Ids = Sequence[str]
"""Of models, in the order of the page."""
Diagnosed = Mapping[str, Any] | None
"""diagnostics.json as a value; None where it was not made."""
_STEP = SCORE_UNIT // 10**DECIMALS


def matrices(entries: Iterable[Entry], benchmark: Benchmark) -> dict[str, Any]:
    """Return the two-class tasks of such regimes, and of every model what was recovered in each.

    A model's list has three numbers a task: how many matrices give the scores as printed, then the
    right predictions in the minority and in the majority class of the one that comes nearest.
    """
    regimes: dict[str, list[Sequence[int]]] = {regime: [] for regime in single_fits(benchmark)}
    for entry in entries:
        row, numbers = entry.submission, entry.numbers
        row_numbers = numbers.matrices if numbers else row_matrices(row, results_of(row), benchmark)
        for regime, rows in regimes.items():
            rows.append(row_numbers[regime])
    return {"tasks": _recoverable(benchmark), "regimes": regimes}


def _recoverable(benchmark: Benchmark) -> list[int]:
    return [index for index, task in enumerate(benchmark.tasks) if task.two_sizes]


def page_scripts(
    values: Values,
    entries: Iterable[Entry],
    benchmark: Benchmark,
    events: Sequence[Mapping[str, Any]] | None = None,
    first: Advice | None = None,
) -> Texts:
    """Return the generated scripts of the page by file name.

    `values` are those of leaderboard.json and leaderboard_tasks.json and, where it was made, of
    diagnostics.json, with `first`, the advice for a visitor who has asked for nothing: without
    these there are neither intervals nor advice. `events` are those of ledger.json, None where
    there is no history.

    Rows stand by place in every part, so each has a digest of all of them in its name and under it
    what it holds: parts of two boards are never read together. CURRENT alone keeps its name.
    """
    ordered = in_board_order(entries)
    ids = [entry.submission.model_id for entry in ordered]
    # Made once, for the digest and to be written.
    parts: dict[str, list[bytes]] = {}
    for index in range(len(benchmark.regimes)):
        parts[f"scores-{index}"] = [*_scores_text(values, index, ids, benchmark)]
        parts[f"tasks-{index}"] = [*_tasks_text(values, index, ids, benchmark)]
    parts["matrices"] = [ascii_text(matrices(ordered, benchmark))]
    parts["history"] = [ascii_text(events)]
    base = _base(values, ordered, ids, benchmark, first)
    digest = _digest(parts | {BASE: [ascii_text(base)]})
    base_text: list[bytes] = [ascii_text({"digest": digest} | base)]
    keys = {name: f"{name}.{digest}" for name in parts}
    later = functools.partial
    scripts: dict[str, Text] = {
        script_name(name, digest): later(script_of, keys[name], text)
        for name, text in parts.items()
    }
    scripts[script_name(BASE, digest)] = later(script_of, "base", base_text)
    scripts[CURRENT] = later(script_of, "current", [ascii_text(digest)])
    return Texts(dict(sorted(scripts.items())))


def _digest(parts: Mapping[str, list[bytes]]) -> str:
    """Return the digest of texts by name, and of the version whose page reads them."""
    digest = hashlib.sha256(__version__.encode())
    for name, text in parts.items():
        digest.update(f"\0{name}\0".encode())
        for chunk in text:
            digest.update(chunk)
    return digest.hexdigest()[:DIGEST_DIGITS]


def _base(
    values: Values,
    ordered: Sequence[Entry],
    ids: Ids,
    benchmark: Benchmark,
    advice: Advice | None,
) -> dict[str, Any]:
    """Return the data of the first view; of standings, those by the mean of all tasks."""
    index_of = {model: index for index, model in enumerate(ids)}
    diagnostics, first = values.get(DIAGNOSTICS), benchmark.regimes[0]
    columns = _columns(diagnostics, first, benchmark)
    data = values[LEADERBOARD]["data"]
    ranked = [{row["model"] for row in data[regime]} for regime in benchmark.regimes]
    return {
        "benchmark": _benchmark(benchmark, values[TASKS]["tasks"]),
        "encoding": ENCODING,
        "columns": page_columns(),
        "models": [facts_of(entry, COLUMNS) for entry in ordered],
        "decisions": _decisions(diagnostics, benchmark),
        # What the first view shows; with a thousand models the rest is twenty times as much.
        "ranked": [[int(model in models) for model in ids] for models in ranked],
        "overall": [_overall(columns[1], model) for model in ids] if columns else None,
        "facts": _facts(diagnostics, index_of, benchmark),
        "baselines": baseline_lines(benchmark),
        "first": None if advice is None else _claims(advice, index_of),
    }


def millionths(score: float) -> int:
    """Return a score as a whole number of millionths that rounds to the same three decimals."""
    near = round(score * SCORE_UNIT)
    # What ends in 500 could be rounded either way: it is moved to the side of the exact score.
    if near % _STEP == _STEP // 2:
        thousandths = round(float(f"{score:.{DECIMALS}f}") * 10**DECIMALS)
        near += 1 if near < thousandths * _STEP else -1
    return near


def all_millionths(scores: Sequence[float]) -> list[int]:
    """Return `millionths` of each score; all at once where numpy is at work anyway."""
    if sys.modules.get("numpy") is None:
        return list(map(millionths, scores))
    import numpy as np

    near = np.rint(np.array(scores) * SCORE_UNIT).astype(np.int64)
    for index in np.flatnonzero(near % _STEP == _STEP // 2):
        near[index] = millionths(scores[int(index)])
    numbers: list[int] = near.tolist()
    return numbers


def _benchmark(benchmark: Benchmark, published: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    categories = benchmark.category_order
    tasks = ({key: task[key] for key in task if key != "cat"} for task in published)
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
                **task_facts,
                "category": categories.index(task.category),
                "n": task.n_test,
                "counts": task.test_class_counts,
            }
            for task, task_facts in zip(benchmark.tasks, tasks, strict=True)
        ],
    }


def _scores_text(values: Values, index: int, ids: Ids, benchmark: Benchmark) -> Iterator[bytes]:
    """Yield the means of a regime: scores by metric and model, then standings.

    A model has macro, micro, then the categories; null where cells are missing.
    """
    regime, diagnostics = benchmark.regimes[index], values.get(DIAGNOSTICS)
    rows = {row["model"]: row for row in values[LEADERBOARD]["data"][regime]}

    def means(row: Mapping[str, Any], metric: str) -> "array.array[float]":
        categories = map(row[f"cat_{metric}"].__getitem__, benchmark.category_order)
        return array.array("d", [*(row[f"{mean}_{metric}"] for mean in _MEANS), *categories])

    scores = (
        (metric, _numbers_text({m: means(row, metric) for m, row in rows.items()}, ids))
        for metric in benchmark.metrics
    )
    index_of = {model: k for k, model in enumerate(ids)}
    shared = _shared(diagnostics, regime, index_of, [*_MEANS, *benchmark.category_order])
    members: list[tuple[str, Iterable[bytes]]] = [
        ("scores", object_text(scores)),
        ("standings", _standings_text(_columns(diagnostics, regime, benchmark), ids)),
        *((name, [json_text(value)]) for name, value in shared.items()),
    ]
    return object_text(members)


def _tasks_text(values: Values, index: int, ids: Ids, benchmark: Benchmark) -> Iterator[bytes]:
    """Yield the tasks of a regime: by metric and model, scores in board order.

    Where errors are known, scores of the primary metric and their standard errors are as computed,
    since means of tasks are decided by; null where cells are missing.
    """
    regime, diagnostics = benchmark.regimes[index], values.get(DIAGNOSTICS)
    rows = {row["model"]: row for row in values[TASKS]["data"][regime]}
    of = {
        metric: {m: row[f"task_{metric}"].numbers for m, row in rows.items()}
        for metric in benchmark.metrics
    }
    exact = {benchmark.primary_metric} if diagnostics is not None else set()
    scores = (
        (metric, (_exact_text if metric in exact else _numbers_text)(numbers_by_model, ids))
        for metric, numbers_by_model in of.items()
    )
    members: list[tuple[str, Iterable[bytes]]] = [("scores", object_text(scores))]
    if diagnostics is not None:
        import numpy as np

        tasks = diagnostics["ranks"][regime]["tasks"]
        columns = [np.frombuffer(tasks[task].numbers) for task in benchmark.task_ids]
        width = tasks[benchmark.task_ids[0]].width
        numbers = np.stack(columns, axis=1).reshape(-1, width, len(columns))
        for name, part in (("errors", 2), ("spreads", 3)):
            numbers_by_model = zip(tasks[benchmark.task_ids[0]], numbers[:, part], strict=True)
            by_model = {
                model: array.array("d", values.tobytes()) for model, values in numbers_by_model
            }
            is_known = any(map(any, by_model.values()))
            members.append((name, _exact_text(by_model, ids) if is_known else [b"null"]))
    return object_text(members)


def _exact_text(rows: Mapping[str, "array.array[float]"], ids: Ids) -> Iterator[bytes]:
    """Yield the text of the numbers of each model as computed; null for one without."""
    for number, model in enumerate(ids):
        row_numbers = rows.get(model)
        yield (b"," if number else b"[") + (
            b"null" if row_numbers is None else json_text(row_numbers.tolist())
        )
    yield b"]" if ids else b"[]"


def _numbers_text(rows: Mapping[str, "array.array[float]"], ids: Ids) -> Iterator[bytes]:
    """Yield the text of the millionths of each model; null for one without."""
    yield b"["
    for start in range(0, len(ids), MODELS_AT_ONCE):
        rows_of_group = [rows.get(model) for model in ids[start : start + MODELS_AT_ONCE]]
        yield (b"," if start else b"") + _group_text(rows_of_group)
    yield b"]"


def _group_text(rows: Sequence["array.array[float] | None"]) -> bytes:
    all_numbers = array.array("d")
    for row in rows:
        all_numbers.extend(() if row is None else row)
    numbers = iter(all_millionths(all_numbers))
    texts = (
        b"null" if row is None else to_json([*itertools.islice(numbers, len(row))]) for row in rows
    )
    return b",".join(texts)


def _columns(diagnostics: Diagnosed, regime: str, benchmark: Benchmark) -> list[Standings]:
    """Return standings by macro, micro and each category; [] without intervals."""
    if diagnostics is None:
        return []
    ranks = diagnostics["ranks"][regime]
    return [ranks[m] for m in _MEANS] + [ranks["categories"][c] for c in benchmark.category_order]


def _standings_text(columns: Iterable[Standings], ids: Ids) -> Iterator[bytes]:
    """Yield standings by column and model, as computed: no decision is made from rounded numbers.

    null for a model that is not ranked, and without intervals.
    """
    before = b"["
    for column in columns:
        texts = zip(*(number_texts(column.columns[name]) for name in _STANDING), strict=True)
        of = dict(zip(column.models, map(",".join, texts), strict=True))
        listed = (f"[{of[model]}]" if model in of else "null" for model in ids)
        yield before + f"[{','.join(listed)}]".encode()
        before = b","
    yield b"]" if before == b"," else b"null"


def _overall(standings: Standings, model: str) -> list[float | None] | None:
    """Return score, error and degrees of freedom of a model."""
    return (
        list(map(standings[model].__getitem__, _STANDING[:3]))
        if model in standings.places
        else None
    )


def _claims(advice: Advice, index_of: Mapping[str, int]) -> dict[str, Any]:
    """Return the claims behind the sentences of the first view."""

    def claim(claim: Claim) -> dict[str, Any]:
        return {
            "at": index_of[claim.model],
            "wins": list(claim.wins.values()),
            "without": len(claim.without),
        }

    return {
        "highest": [claim(regime_advice.highest) for regime_advice in advice.regimes],
        "smallest": None if advice.smallest is None else claim(advice.smallest),
    }


def _shared(
    diagnostics: Diagnosed,
    regime: str,
    index_of: Mapping[str, int],
    columns: Sequence[str],
) -> dict[str, Any]:
    """Return the covariances of models by column, as `shared`; {} where errors are independent."""
    shared = None if diagnostics is None else diagnostics["ranks"][regime].get("shared")
    if shared is None:
        return {}
    models = [index_of[model] for model in shared["models"]]
    return {"shared": {"models": models, "columns": [shared["scores"][name] for name in columns]}}


def _decisions(diagnostics: Diagnosed, benchmark: Benchmark) -> dict[str, Any] | None:
    """Return the numbers that the page decides by: critical values of regimes, and the margin."""
    if diagnostics is None:
        return None
    ranks = diagnostics["ranks"]
    return {
        "critical": [ranks[regime]["critical"] for regime in benchmark.regimes],
        "drawn": [ranks[regime]["draw_variance"] for regime in benchmark.regimes],
        "normal": NORMAL,
        "margin": diagnostics["method"]["margin"],
    }


def _facts(
    diagnostics: Diagnosed, index_of: Mapping[str, int], benchmark: Benchmark
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
            finding | {"parts": finding["parts"][:FIGURE_PARTS], "count": len(finding["parts"])}
            for finding in diagnostics["findings"]
        ],
        "covered": [
            [index_of[model] for model in diagnostics["ranks"][regime]["draws_covered"]]
            for regime in benchmark.regimes
        ],
    }
