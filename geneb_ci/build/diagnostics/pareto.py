"""Score against size: the Pareto front, and models beaten by far smaller ones."""

import pandas as pd

from geneb_ci.build.diagnostics import shape
from geneb_ci.build.diagnostics.frame import Frames, rounded
from geneb_ci.build.uncertainty import surely_differ

TIMES_SMALLER = 5


def size(frames: Frames) -> dict[str, shape.Size]:
    """Hold macro scores against the board's parameter counts, in every regime."""
    found = {}
    for regime in frames.scores:
        table = _table(frames, regime)
        found[regime] = shape.Size(pareto=pareto(table), beaten=_beaten(frames, regime, table))
    return found


def _table(frames: Frames, regime: str) -> pd.DataFrame:
    """Give params and macro of the ranked models, smallest first, the better one of equals."""
    table = frames.models[["params"]].join(frames.scores[regime][["macro"]], how="inner")
    return table.sort_values(["params", "macro"], ascending=[True, False], kind="stable")


def pareto(table: pd.DataFrame) -> list[shape.ParetoModel]:
    """Give each model that is better than all that are no larger."""
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
                    surely=surely_differ(macro[model], macro[other], len(table)),
                )
            )
    return found
