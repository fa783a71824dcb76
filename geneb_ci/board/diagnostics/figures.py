"""What sets models, tasks and regimes apart: size, pairs, hard tasks, retention, rank agreement."""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd
from scipy.stats import ConstantInputWarning, kendalltau, spearmanr

from geneb_ci.board.diagnostics import shape
from geneb_ci.board.diagnostics.frame import Frames, defined, rounded
from geneb_ci.board.rows import mean
from geneb_ci.board.uncertainty import ByModel, differ_significantly

TIMES_SMALLER = 5


def size(frames: Frames) -> dict[str, shape.Size]:
    """Return how macro scores follow the board's parameter counts, in every regime."""
    found = {}
    for regime in frames.scores:
        table = _table(frames, regime)
        found[regime] = shape.Size(pareto=pareto(table), beaten=_beaten(frames, regime, table))
    return found


def _table(frames: Frames, regime: str) -> pd.DataFrame:
    """Return params and macro of the ranked models, smallest first, the better one of equals."""
    table = frames.models[["params"]].join(frames.scores[regime][["macro"]], how="inner")
    return table.sort_values(["params", "macro"], ascending=[True, False], kind="stable")


def pareto(table: pd.DataFrame) -> list[shape.ParetoModel]:
    """Return each model that is better than all that are no larger."""
    before = table["macro"].cummax().shift(fill_value=-float("inf"))
    front = table[table["macro"] > before]
    return [
        shape.ParetoModel(model=str(model), params=int(params), macro=rounded(macro))
        for model, params, macro in front.itertuples()
    ]


def _beaten(frames: Frames, regime: str, table: pd.DataFrame) -> list[shape.Beaten]:
    macro = frames.intervals.estimates[regime]["macro"]
    best_first = table.sort_values("macro", ascending=False, kind="stable")
    found = []
    for model, params, score in table[::-1].itertuples():
        for other, other_params, other_score in best_first.itertuples():
            if other_score <= score or not 0 < other_params * TIMES_SMALLER <= params:
                continue
            found.append(
                shape.Beaten(
                    model=str(model),
                    params=int(params),
                    macro=rounded(score),
                    by=str(other),
                    by_params=int(other_params),
                    by_macro=rounded(other_score),
                    times_smaller=rounded(params / other_params, 1),
                    significant=differ_significantly(macro[model], macro[other], len(table)),
                )
            )
    return found


MODELS_MIN = 3
"""Two points always lie on a line."""
P_DIGITS = 3
"""Significant digits: p runs over many orders of magnitude."""


def scale(frames: Frames) -> dict[str, shape.ScaleByCounts]:
    """Correlate in every regime, with the counts of the board and with those of the paper."""
    found = {}
    for regime, scores in frames.scores.items():
        sources = {name: _counts(frames, name) for name in ("params", "paper")}
        board, paper = (_scale(counts, scores) for counts in sources.values())
        found[regime] = shape.ScaleByCounts(board=board, paper=paper)
    return found


def _counts(frames: Frames, name: str) -> pd.Series:
    """Return the counts of the models that have any: a method without parameters has no size."""
    counts = frames.models[name].astype(float)
    return counts[counts > 0]


def _scale(counts: pd.Series, scores: pd.DataFrame) -> shape.Scale:
    found = {name: correlation(counts, scores[name]) for name in scores.columns}
    macro, micro = found.pop("macro"), found.pop("micro")
    return shape.Scale(macro=macro, micro=micro, categories=found)


def correlation(counts: pd.Series, scores: pd.Series) -> shape.Correlation:
    """Return Spearman's rho of the models that both have; equal counts share their mean rank."""
    sizes, values = counts.align(scores, join="inner")
    if len(sizes) < MODELS_MIN:
        return shape.Correlation(models=len(sizes), rho=None, p=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        found = spearmanr(sizes, values)
    if pd.isna(found.statistic):
        return shape.Correlation(models=len(sizes), rho=None, p=None)
    p = float(f"{found.pvalue:.{P_DIGITS}g}")
    return shape.Correlation(models=len(sizes), rho=rounded(found.statistic), p=p)


ATTRIBUTES = ("size", "architecture", "tokenization", "pretraining", "pooling")
SAME_SIZE = 1.25
"""Models are of one size when neither has more than so many times the other's parameters."""


class _Facts(NamedTuple):
    """One model by its attributes."""

    model: str
    params: float
    kinds: Mapping[str, str]


def pairs(frames: Frames) -> dict[str, dict[str, shape.Attribute]]:
    """Compare macro scores of controlled pairs in every regime, by the attribute that differs."""
    facts = list(_facts(frames))
    found = list(controlled(facts))
    return {regime: _regime(frames, regime, found) for regime in frames.scores}


def _facts(frames: Frames) -> Iterator[_Facts]:
    for model, paper in frames.models["paper"].items():
        known: Mapping[str, Any] = frames.attributes.get(str(model), {})
        kinds = {name: known.get(name) for name in ATTRIBUTES[1:]}
        if paper and paper > 0 and all(isinstance(kind, str) for kind in kinds.values()):
            yield _Facts(str(model), float(paper), {k: str(v) for k, v in kinds.items()})


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
    frames: Frames, regime: str, found: list[tuple[str, _Facts, _Facts]]
) -> dict[str, shape.Attribute]:
    macro = frames.intervals.estimates[regime]["macro"]
    by_attribute: dict[str, list[shape.Pair]] = {name: [] for name in ATTRIBUTES}
    for name, first, second in found:
        if first.model in macro and second.model in macro:
            one, other = macro[first.model], macro[second.model]
            by_attribute[name].append(
                shape.Pair(
                    first=first.model,
                    second=second.model,
                    values=(_shown(first, name), _shown(second, name)),
                    difference=rounded(one.score - other.score),
                    significant=differ_significantly(one, other, len(macro)),
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
        values = ("larger", "smaller") if attribute == "size" else pair.values  # noqa: PD011 (its field)
        grouped.setdefault(values, []).append(pair.difference)
    for values, differences in sorted(grouped.items()):
        yield shape.Contrast(
            values=values,
            pairs=len(differences),
            mean_difference=rounded(mean(differences)),
            first_better=sum(difference > 0 for difference in differences),
        )


HARD_BELOW = 0.3
"""MCC: of even classes, two of three predictions right."""
LISTED = 10
"""Tasks of high variance that are listed: a tenth of the benchmark."""
SPREAD_MODELS_MIN = 2
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
            high_variance=wide if len(table) >= SPREAD_MODELS_MIN else [],
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
        deviation=rounded(scores.std()) if len(scores) >= SPREAD_MODELS_MIN else 0.0,
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
        winners_significantly_changed=sum(change.significant for change in changes),
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
                shape.WinnerChange(category=name, before=first, after=second, significant=not tied)
            )
    return found


def _ties(models: ByModel, model: str) -> bool:
    """Whether a model is in the best group, or not ranked at all: then nothing is sure."""
    return model not in models or models[model].group == 1
