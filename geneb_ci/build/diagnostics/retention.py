"""What is left of a full-data score when the probe sees few examples."""

import pandas as pd

from geneb_ci.build.diagnostics import shape
from geneb_ci.build.diagnostics.frame import Frames, rounded
from geneb_ci.build.rows import mean

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
