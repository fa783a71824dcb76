"""diagnostics.json as a value: what sets models and regimes apart, put together."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from geneb_ci.board.advice import MARGIN
from geneb_ci.board.columns import Entry
from geneb_ci.board.decisions import CONFIDENCE, compared
from geneb_ci.board.diagnostics import shape
from geneb_ci.board.diagnostics.findings import SCOPES, figure_rows, figures_of
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TASKS, leaderboards, mean
from geneb_ci.board.uncertainty import ByModel, Intervals, RegimeIntervals, RegimeScores
from geneb_ci.board.variance import OVERLAP, Floats
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.types import Authorship

METRIC: Final = "MCC"
DECIMALS = 4
"""Of figures that describe the board and decide nothing: mean differences, Kendall's tau."""


class RankedTable(NamedTuple):
    """Scores of the ranked models of a regime."""

    models: tuple[str, ...]
    """In the order of their ids."""
    columns: tuple[str, ...]
    """macro, micro, then the categories."""
    scores: Floats
    """(models, columns)."""

    def column(self, name: str) -> list[float]:
        """Return one score of every model."""
        found: list[float] = self.scores[:, self.columns.index(name)].tolist()
        return found


@dataclass(frozen=True)
class DiagnosedBoard:
    """What every diagnostic is computed from."""

    benchmark: Benchmark
    entries: tuple[Entry, ...]
    """In the order of the ids."""
    scores: dict[str, RankedTable]
    """By regime."""
    intervals: Intervals


def diagnosed(
    entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals
) -> DiagnosedBoard:
    """Put a board into tables; `intervals` are those of the same entries."""
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    columns = ("macro", "micro", *benchmark.category_order)
    scores = {}
    for regime, rows in leaderboards(ordered, benchmark)[0]["data"].items():
        told = [
            [row[f"macro_{METRIC}"], row[f"micro_{METRIC}"], *row[f"cat_{METRIC}"].values()]
            for row in rows
        ]
        table = np.array(told, dtype=float).reshape(-1, len(columns))
        scores[regime] = RankedTable(tuple(row["model"] for row in rows), columns, table)
    return DiagnosedBoard(benchmark, tuple(ordered), scores, intervals)


def params_in_paper(entry: Entry) -> int | None:
    """Return the parameter count of the paper; None for a row that is not the authors' own."""
    known = entry.attributes if entry.authorship is Authorship.OFFICIAL else {}
    count = known.get("params_in_paper", known.get("params"))
    return None if count is None else int(count)


def rounded(value: float, decimals: int = DECIMALS) -> float:
    """Round a figure as it is published; -0.0 becomes 0.0."""
    return round(float(value), decimals) + 0.0


def size(board: DiagnosedBoard) -> dict[str, shape.Size]:
    """Return how macro scores follow the board's parameter counts, in every regime."""
    params = {e.submission.model_id: e.submission.meta.params for e in board.entries}
    found = {}
    for regime, table in board.scores.items():
        rows = zip(table.models, table.column("macro"), strict=True)
        found[regime] = shape.Size(pareto=pareto([(m, params[m], macro) for m, macro in rows]))
    return found


def pareto(rows: Iterable[tuple[str, int, float]]) -> list[shape.ParetoModel]:
    """Return each model that is better than all that are no larger, smallest first.

    `rows` are model, parameters and macro score.
    """
    found: list[shape.ParetoModel] = []
    for model, params, macro in sorted(rows, key=lambda row: (row[1], -row[2])):
        if not found or macro > found[-1].macro:
            found.append(shape.ParetoModel(model=model, params=params, macro=macro))
    return found


ATTRIBUTES = ("size", "architecture", "tokenization", "pretraining", "pooling")
SAME_SIZE = 1.25
"""Models are of one size when neither has more than so many times the other's parameters."""


class _Facts(NamedTuple):
    """One model by its attributes."""

    model: str
    params: float
    kinds: Mapping[str, str]


def pairs(board: DiagnosedBoard) -> dict[str, dict[str, shape.Attribute]]:
    """Compare macro scores of controlled pairs in every regime, by the attribute that differs."""
    facts = list(_facts(board.entries))
    found = list(controlled(facts))
    return {regime: _regime(board, regime, found) for regime in board.scores}


def _facts(entries: Iterable[Entry]) -> Iterator[_Facts]:
    for entry in entries:
        paper = params_in_paper(entry)
        kinds = {name: entry.attributes.get(name) for name in ATTRIBUTES[1:]}
        if paper and paper > 0 and all(isinstance(kind, str) for kind in kinds.values()):
            model = entry.submission.model_id
            yield _Facts(model, float(paper), {k: str(v) for k, v in kinds.items()})


def controlled(facts: list[_Facts]) -> Iterator[tuple[str, _Facts, _Facts]]:
    """Return the pairs that differ in one attribute, with its name; the larger value first.

    For size that is the larger model, for the rest the later word.
    """
    for one, other in itertools.combinations(facts, 2):
        ratio = max(one.params, other.params) / min(one.params, other.params)
        differ = [name for name in ATTRIBUTES[1:] if one.kinds[name] != other.kinds[name]]
        differ += ["size"] if ratio > SAME_SIZE else []
        if len(differ) == 1:
            name = differ[0]
            first, second = sorted((one, other), key=lambda f: _value(f, name), reverse=True)
            yield name, first, second


def _value(facts: _Facts, attribute: str) -> float | str:
    return facts.params if attribute == "size" else facts.kinds[attribute]


def _regime(
    board: DiagnosedBoard, regime: str, found: list[tuple[str, _Facts, _Facts]]
) -> dict[str, shape.Attribute]:
    ranked = board.intervals.regimes[regime].board
    place = {model: k for k, model in enumerate(ranked.models)}
    macro = ranked.scores["macro"]
    by_attribute: dict[str, list[shape.Pair]] = {name: [] for name in ATTRIBUTES}
    for name, first, second in found:
        if first.model in place and second.model in place:
            against = compared(macro, place[first.model], place[second.model], ranked.critical)
            by_attribute[name].append(
                shape.Pair(
                    first=first.model,
                    second=second.model,
                    values=(_shown(first, name), _shown(second, name)),
                    difference=rounded(against.difference),
                    significant=against.is_significant,
                )
            )
    return {
        name: shape.Attribute(contrasts=list(_contrasts(name, found)), pairs=found)
        for name, found in by_attribute.items()
    }


def _shown(facts: _Facts, attribute: str) -> str:
    return f"{facts.params:.0f}" if attribute == "size" else facts.kinds[attribute]


def _contrasts(attribute: str, found: list[shape.Pair]) -> Iterator[shape.Contrast]:
    """Sum up the pairs of equal values; of sizes, all pairs are one contrast."""
    grouped: dict[tuple[str, str], list[float]] = {}
    for pair in found:
        values = ("larger", "smaller") if attribute == "size" else pair.values
        grouped.setdefault(values, []).append(pair.difference)
    for values, differences in sorted(grouped.items()):
        yield shape.Contrast(
            values=values,
            pairs=len(differences),
            mean_difference=rounded(mean(differences)),
            first_better=sum(difference > 0 for difference in differences),
        )


def stability(board: DiagnosedBoard) -> shape.Stability:
    """Compare categories within a regime, and regimes with each other."""
    categories = board.benchmark.category_order
    agreement: dict[str, dict[str, dict[str, float | None]]] = {}
    with_macro: dict[str, dict[str, float | None]] = {}
    for regime, table in board.scores.items():
        found = taus(table.scores)
        told = [dict(zip(table.columns, row, strict=True)) for row in found]
        rows = dict(zip(table.columns, told, strict=True))
        agreement[regime] = {a: {b: rows[a][b] for b in categories} for a in categories}
        with_macro[regime] = {a: rows[a]["macro"] for a in categories}
    return shape.Stability(
        category_tau=agreement,
        macro_tau=with_macro,
        winners={regime: _winners(board, regime) for regime in board.scores},
        regime_pairs=[_pair(board, *pair) for pair in itertools.combinations(board.scores, 2)],
    )


def taus(scores: Floats) -> list[list[float | None]]:
    """Return Kendall's tau-b of all pairs of columns of (models, columns); None where undefined.

    (concordant - discordant) / sqrt((pairs - ties of one) (pairs - ties of the other)), Kendall
    1945. Differences of models have the signs -1, 0 and 1, and all sums are whole numbers.
    """
    columns = scores.shape[1]
    together = np.zeros((columns, columns))
    for k in range(1, len(scores)):  # row by row: a thousand models have half a million pairs
        signs = np.sign(scores[k] - scores[:k])
        together += signs.T @ signs
    untied = together.diagonal()
    return [
        [
            rounded(float(together[i, j]) / math.sqrt(float(untied[i]) * float(untied[j])))
            if untied[i] and untied[j]
            else None
            for j in range(columns)
        ]
        for i in range(columns)
    ]


def _winners(board: DiagnosedBoard, regime: str) -> dict[str, shape.Winner]:
    stood = board.intervals.regimes[regime].categories
    return {name: _winner(models) for name, models in stood.items() if models}


def _winner(models: ByModel) -> shape.Winner:
    first = next(iter(models))
    count = sum(standing.could_be_best for standing in models.values())
    return shape.Winner(model=first, score=models[first].score, could_be_best=count)


def _pair(board: DiagnosedBoard, before: str, after: str) -> shape.RegimePair:
    old, new = board.scores[before], board.scores[after]
    both = [model for model in old.models if model in set(new.models)]
    kept = [table.scores[[table.models.index(model) for model in both]] for table in (old, new)]
    found = taus(np.hstack(kept))
    columns = len(old.columns)
    tau = {name: found[k][columns + k] for k, name in enumerate(old.columns)}
    categories = board.benchmark.category_order
    changes = _changes(board, before, after)
    return shape.RegimePair(
        regimes=(before, after),
        models=len(both),
        macro_tau=tau["macro"],
        category_tau={name: tau[name] for name in categories},
        winners_changed=len(changes),
        winners_significantly_changed=sum(change.significant for change in changes),
        categories=len(categories),
        changes=changes,
    )


def _changes(board: DiagnosedBoard, before: str, after: str) -> list[shape.WinnerChange]:
    found = []
    for name in board.benchmark.category_order:
        old, new = (board.intervals.regimes[r].categories[name] for r in (before, after))
        if not old or not new:
            continue
        first, second = next(iter(old)), next(iter(new))
        if first != second:
            is_open = _could_be_best(old, second) or _could_be_best(new, first)
            change = shape.WinnerChange(
                category=name, before=first, after=second, significant=not is_open
            )
            found.append(change)
    return found


def _could_be_best(models: ByModel, model: str) -> bool:
    """Whether a model could be best, or is not ranked at all: then nothing is known."""
    return model not in models or models[model].could_be_best


def diagnostics(
    entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals
) -> dict[str, Any]:
    """Return diagnostics.json as a value; `intervals` are those of the same entries."""
    rows = list(entries)
    board = diagnosed(rows, benchmark, intervals)
    values = figure_values(rows, benchmark)
    return shape.Diagnostics(
        schema_version="2.0",
        benchmark=shape.ScoredBenchmark(name=benchmark.name, sha256=benchmark.sha256),
        method=shape.Method(
            metric=METRIC,
            confidence=CONFIDENCE,
            overlap=OVERLAP,
            dependence=(
                "predictions"
                if any(shared_of(found.board) for found in intervals.regimes.values())
                else "none"
            ),
            margin=MARGIN,
        ),
        models=_models(board),
        ranks={regime: _ranks(found) for regime, found in intervals.regimes.items()},
        stability=stability(board),
        size=size(board),
        pairs=pairs(board),
        findings=[
            figure
            for scope in SCOPES
            for figure in figures_of(figure_rows(values, scope), benchmark.regimes, scope)
        ],
    ).model_dump(mode="json")


def figure_values(entries: Iterable[Entry], benchmark: Benchmark) -> dict[str, dict[str, Any]]:
    """Return what figures are computed from: files of the board as values, by name."""
    rows = list(entries)
    categories, tasks = leaderboards(rows, benchmark)
    counts = [
        {"model": entry.submission.model_id, "params_in_paper": params_in_paper(entry)}
        for entry in rows
    ]
    return {LEADERBOARD: categories, TASKS: tasks, DIAGNOSTICS: {"models": counts}}


def _models(board: DiagnosedBoard) -> list[shape.ModelFacts]:
    ranked = {regime: set(table.models) for regime, table in board.scores.items()}
    return [
        shape.ModelFacts(
            model=(model := entry.submission.model_id),
            display=entry.submission.meta.display,
            authorship=str(entry.authorship),
            evidence=str(entry.evidence),
            params=entry.submission.meta.params,
            params_in_paper=params_in_paper(entry),
            regimes=[regime for regime, models in ranked.items() if model in models],
        )
        for entry in board.entries
    ]


def _ranks(found: RegimeIntervals) -> shape.Ranks:
    return shape.Ranks(
        models=len(found.board.models),
        rounded=found.board.rounded,
        critical=found.board.critical,
        macro=_standings(found, "macro"),
        micro=_standings(found, "micro"),
        categories={name: _standings(found, name) for name in found.categories},
        tasks=found.tasks,
        is_drawn=found.is_drawn,
        draws_covered=list(found.board.draws_covered),
        shared=shared_of(found.board),
    )


def shared_of(board: RegimeScores) -> shape.Shared | None:
    """Return what errors of the models of a regime share; None where all count as independent."""
    matrices = {name: one.shared for name, one in board.scores.items() if one.shared is not None}
    if not matrices:
        return None
    places = [k for k in range(len(board.models)) if any(one[k].any() for one in matrices.values())]
    return shape.Shared(
        models=[board.models[k] for k in places],
        scores={
            name: [one[k, places[:n]].tolist() for n, k in enumerate(places)]
            for name, one in matrices.items()
        },
    )


def _standings(found: RegimeIntervals, name: str) -> dict[str, shape.DiagnosedScore]:
    models: ByModel = found.of(name)
    told = zip(found.board.models, found.board.scores[name].freedom.tolist(), strict=True)
    freedom = {model: None if math.isinf(one) else one for model, one in told}
    return {
        model: shape.DiagnosedScore(**standing._asdict(), freedom=freedom[model])
        for model, standing in models.items()
    }
