"""Controlled pairs: models that the registry tells to be alike in all attributes but one.

The attributes are those of the paper's models, so only official rows take part. Of two models that
differ in one attribute, the difference of their scores is about that attribute; about what nobody
wrote down (learning rate, steps, data cleaning) as well.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from geneb_ci.build.diagnostics import shape
from geneb_ci.build.diagnostics.frame import Frames, rounded
from geneb_ci.build.rows import mean
from geneb_ci.build.uncertainty import surely_differ

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
    """Give the pairs that differ in one attribute, with its name; the larger value first.

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
                    surely=surely_differ(one, other, len(macro)),
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
