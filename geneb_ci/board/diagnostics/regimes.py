"""What sets tasks and regimes apart: hard tasks, retention with few examples, rank agreement."""

import itertools

import pandas as pd
from scipy.stats import kendalltau

from geneb_ci.board.diagnostics import shape
from geneb_ci.board.diagnostics.frame import Frames, defined, rounded
from geneb_ci.board.rows import mean
from geneb_ci.board.uncertainty import ByModel

HARD_BELOW = 0.3
"""MCC: of even classes, two of three predictions right."""
LISTED = 10
"""Tasks of high variance that are listed: a tenth of the benchmark."""
MODELS_MIN = 2
"""One model has no variance."""


def tasks(frames: Frames) -> dict[str, shape.Tasks]:
    """List the tasks of every regime in which models are ranked."""
    found = {}
    for regime, table in frames.tasks.items():
        described = [_task(frames, table, task) for task in table.columns] if len(table) else []
        hard = sorted((t for t in described if t.best < HARD_BELOW), key=lambda t: (t.best, t.task))
        wide = sorted(described, key=lambda t: (-t.deviation, t.task))[:LISTED]
        found[regime] = shape.Tasks(
            hard=hard,
            hard_below=HARD_BELOW,
            high_variance=wide if len(table) >= MODELS_MIN else [],
        )
    return found


def _task(frames: Frames, table: pd.DataFrame, task: str) -> shape.DiagnosedTask:
    scores = table[task]
    return shape.DiagnosedTask(
        task=task,
        category=frames.benchmark.by_id[task].category,
        best=rounded(scores.max()),
        best_model=str(scores.idxmax()),
        mean=rounded(scores.mean()),
        deviation=rounded(scores.std()) if len(scores) >= MODELS_MIN else 0.0,
    )


DECIMALS = 3
"""A ratio of two scores is known no better."""


def retention(frames: Frames) -> shape.Retention:
    """Divide few-shot scores by those with all data, over the models ranked in every regime."""
    few = [r for r in frames.scores if r in frames.benchmark.protocol.few_shot_k]
    whole = [regime for regime in frames.scores if regime not in few]
    common = sorted(set.intersection(*(set(table.index) for table in frames.scores.values())))
    tables = {regime: table.loc[common] for regime, table in frames.scores.items()}
    if not whole or not common:
        return shape.Retention(mean_macro={}, models={}, categories={})
    full = tables[whole[0]]
    return shape.Retention(
        mean_macro={regime: rounded(mean(table["macro"])) for regime, table in tables.items()},
        models={
            model: {
                regime: ratio(tables[regime].loc[model, "macro"], full.loc[model, "macro"])
                for regime in few
            }
            for model in common
        },
        categories={
            name: {regime: ratio(_mean(tables[regime], name), _mean(full, name)) for regime in few}
            for name in frames.benchmark.category_order
        },
    )


def _mean(table: pd.DataFrame, name: str) -> float:
    return mean(table[name])


def ratio(part: float, whole: float) -> float | None:
    """Divide, or give None where the whole is not above 0."""
    return rounded(part / whole, DECIMALS) if whole > 0 else None


def stability(frames: Frames) -> shape.Stability:
    """Compare categories within a regime, and regimes with each other."""
    categories = list(frames.benchmark.category_order)
    agreement: dict[str, dict[str, dict[str, float | None]]] = {}
    with_macro: dict[str, dict[str, float | None]] = {}
    for regime, scores in frames.scores.items():
        agreement[regime] = {
            a: {b: tau(scores[a], scores[b]) for b in categories} for a in categories
        }
        with_macro[regime] = {a: tau(scores[a], scores["macro"]) for a in categories}
    return shape.Stability(
        category_tau=agreement,
        macro_tau=with_macro,
        winners={regime: _winners(frames, regime) for regime in frames.scores},
        regime_pairs=[_pair(frames, *pair) for pair in itertools.combinations(frames.scores, 2)],
    )


def tau(one: pd.Series, other: pd.Series) -> float | None:
    """Return Kendall's tau-b over the models in both; None where it is not defined."""
    left, right = one.align(other, join="inner")
    return defined(kendalltau(left, right).statistic) if len(left) > 1 else None


def _winners(frames: Frames, regime: str) -> dict[str, shape.Winner]:
    stood = frames.intervals.regimes[regime].categories
    return {name: _winner(models) for name, models in stood.items() if models}


def _winner(models: ByModel) -> shape.Winner:
    first = next(iter(models))
    ties = sum(standing.group == 1 for standing in models.values()) - 1
    return shape.Winner(model=first, score=rounded(models[first].score), ties=ties)


def _pair(frames: Frames, before: str, after: str) -> shape.RegimePair:
    left, right = frames.scores[before], frames.scores[after]
    categories = frames.benchmark.category_order
    changes = _changes(frames, before, after)
    return shape.RegimePair(
        regimes=(before, after),
        models=len(left.index.intersection(right.index)),
        macro_tau=tau(left["macro"], right["macro"]),
        category_tau={name: tau(left[name], right[name]) for name in categories},
        winners_changed=len(changes),
        winners_surely_changed=sum(change.surely for change in changes),
        categories=len(categories),
        changes=changes,
    )


def _changes(frames: Frames, before: str, after: str) -> list[shape.WinnerChange]:
    found = []
    for name in frames.benchmark.category_order:
        old, new = (frames.intervals.regimes[r].categories[name] for r in (before, after))
        if not old or not new:
            continue
        first, second = next(iter(old)), next(iter(new))
        if first != second:
            tied = _ties(old, second) or _ties(new, first)
            found.append(
                shape.WinnerChange(category=name, before=first, after=second, surely=not tied)
            )
    return found


def _ties(models: ByModel, model: str) -> bool:
    """Whether a model is in the best group, or not ranked at all: then nothing is sure."""
    return model not in models or models[model].group == 1
