"""Whether one rank speaks for all: agreement of rankings, and who wins where."""

import itertools

import pandas as pd
from scipy.stats import kendalltau

from geneb_ci.build.diagnostics import shape
from geneb_ci.build.diagnostics.frame import Frames, defined, rounded
from geneb_ci.build.uncertainty import ByModel


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
    """Give Kendall's tau-b over the models in both; None where it is not defined."""
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


def _changes(frames: Frames, before: str, after: str) -> list[shape.Change]:
    found = []
    for name in frames.benchmark.category_order:
        old, new = (frames.intervals.regimes[r].categories[name] for r in (before, after))
        if not old or not new:
            continue
        first, second = next(iter(old)), next(iter(new))
        if first != second:
            tied = _ties(old, second) or _ties(new, first)
            found.append(shape.Change(category=name, before=first, after=second, surely=not tied))
    return found


def _ties(models: ByModel, model: str) -> bool:
    """Whether a model is in the best group, or not ranked at all: then nothing is sure."""
    return model not in models or models[model].group == 1
