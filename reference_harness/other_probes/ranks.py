"""Ranks of receipts under several kinds of probe, and the agreement of these ranks."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from reference_harness.formats.benchmark import Benchmark

from .report import Agreement, ProbeScores, Standing

ScoresByTask = Mapping[str, ProbeScores]
"""Scores of one receipt under one kind of probe in one regime, by task id."""


def macro_mcc(scores: ScoresByTask, benchmark: Benchmark) -> float:
    """Return the mean over the categories of the mean MCC of their scored tasks."""
    by_category: dict[str, list[float]] = {}
    for task in benchmark.tasks:
        if task.id in scores:
            by_category.setdefault(task.category, []).append(scores[task.id].scores.MCC)
    means = [math.fsum(values) / len(values) for values in by_category.values()]
    return math.fsum(means) / len(means)


def standings(
    scores_by_receipt: Mapping[str, ScoresByTask], benchmark: Benchmark
) -> dict[str, Standing]:
    """Return the mean MCC and rank of each receipt under one kind of probe in one regime."""
    values = {name: macro_mcc(scores, benchmark) for name, scores in scores_by_receipt.items()}
    return {
        name: Standing(macro=value, rank=1 + sum(other > value for other in values.values()))
        for name, value in values.items()
    }


def rank_agreements(standings_by_kind: Mapping[str, Mapping[str, Standing]]) -> list[Agreement]:
    """Return Kendall's tau-b between the macro MCC of the receipts for each pair of kinds."""
    agreements = []
    for first, second in itertools.combinations(standings_by_kind, 2):
        first_macros, second_macros = (
            [standings_by_kind[kind][name].macro for name in standings_by_kind[first]]
            for kind in (first, second)
        )
        agreements.append(
            Agreement(
                first=first,
                second=second,
                tau=_tau(first_macros, second_macros),
                swapped=sum(
                    (a - b) * (c - d) < 0
                    for (a, c), (b, d) in itertools.combinations(
                        zip(first_macros, second_macros, strict=True), 2
                    )
                ),
                pairs=len(first_macros) * (len(first_macros) - 1) // 2,
            )
        )
    return agreements


def _tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b; None if all numbers of a sequence are equal."""
    if len({*first}) == 1 or len({*second}) == 1:
        return None
    from scipy.stats import kendalltau  # half a second to import

    tau = float(kendalltau(first, second).statistic)
    return float(np.clip(tau, -1.0, 1.0))  # rounding may leave 1.0000000000000002
