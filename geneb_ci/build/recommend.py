"""Which model to take: the best for a need, what ties with it, the smallest of those, and why."""

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.need import NEVER, TRUST, size_text
from geneb_ci.build.recommend_shape import Advice, Choice, Need, Recommendations
from geneb_ci.build.recommend_shape import Benchmark as BenchmarkName
from geneb_ci.build.rows import Entry
from geneb_ci.build.uncertainty import DECIMALS, Estimate, Intervals, surely_differ
from geneb_ci.errors import UsageProblem
from geneb_ci.finding import shown

SIZES = (None, 1_000_000_000, 500_000_000, 100_000_000, 25_000_000)
"""Limits in recommendations.json: one large accelerator, a small one, a laptop, a processor."""
LEVELS = (None, "verified")


class _Row(NamedTuple):
    model: str
    params: int
    level: str
    estimate: Estimate


def recommendations(
    entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals
) -> dict[str, Any]:
    """Give recommendations.json as a value: advice for every common need."""
    rows = list(entries)
    categories = (None, *benchmark.category_order)
    advice = [
        advise(Need(category=c, regime=r, max_params=s, level=v), rows, benchmark, intervals)
        for r, c, s, v in itertools.product(benchmark.regimes, categories, SIZES, LEVELS)
    ]
    return Recommendations(
        schema_version="1.0",
        benchmark=BenchmarkName(name=benchmark.name, sha256=benchmark.sha256),
        advice=advice,
    ).model_dump(mode="json")


def advise(
    need: Need, entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals
) -> Advice:
    """Choose among the models that meet size and level.

    Raises UsageProblem when the benchmark has no such category or regime.
    """
    _known(need.regime, benchmark.regimes, "regime")
    if need.category is not None:
        _known(need.category, benchmark.category_order, "category")
    estimates = intervals.estimates[need.regime][need.category or "macro"]
    rows = [
        _Row(e.submission.model_id, e.submission.meta.params, str(e.level), estimate)
        for e in entries
        if (estimate := estimates.get(e.submission.model_id)) is not None and _meets(e, need)
    ]
    rows.sort(key=lambda row: (-row.estimate.score, row.model))
    if not rows:
        why = [f"No model ranked in {need.regime} meets {_limits(need) or 'the need'}."]
        return Advice(need=need, considered=0, best=None, ties=[], smallest=None, why=why)
    best, *others = rows
    ties = [r for r in others if not surely_differ(best.estimate, r.estimate, len(rows))]
    smallest = min((best, *ties), key=lambda row: (row.params, -row.estimate.score, row.model))
    return Advice(
        need=need,
        considered=len(rows),
        best=_choice(best),
        ties=[row.model for row in ties],
        smallest=_choice(smallest),
        why=_reasons(need, rows, ties, smallest, intervals),
    )


def _known(name: str, names: list[str], what: str) -> None:
    if name not in names:
        raise UsageProblem(
            f"{shown(name)} is not a {what} of the benchmark", f"name one of {', '.join(names)}"
        )


def _meets(entry: Entry, need: Need) -> bool:
    level = str(entry.level)
    if need.max_params is not None and entry.submission.meta.params > need.max_params:
        return False
    if need.level is None:
        return level != NEVER
    return level in TRUST and TRUST.index(level) >= TRUST.index(need.level)


def _choice(row: _Row) -> Choice:
    score, low, high = (
        round(x, DECIMALS) + 0.0 for x in (row.estimate.score, row.estimate.low, row.estimate.high)
    )
    return Choice(
        model=row.model, params=row.params, level=row.level, score=score, low=low, high=high
    )


def _limits(need: Need) -> str:
    parts = []
    if need.max_params is not None:
        parts.append(f"at most {size_text(need.max_params)} parameters")
    if need.level is not None:
        parts.append(f"level {need.level} or more")
    return " and ".join(parts)


def _reasons(
    need: Need, rows: list[_Row], ties: list[_Row], smallest: _Row, intervals: Intervals
) -> list[str]:
    """Say why, in sentences; they hold nothing of a contributor's but model ids."""
    best, limits = rows[0], _limits(need)
    where = need.category or "the mean of all categories"
    of = f"{len(rows)} models{f' with {limits}' if limits else ''}"
    low, high = best.estimate.low, best.estimate.high
    interval = f"{best.estimate.score:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    why = [f"{best.model} has the highest MCC on {where} in {need.regime} of {of}: {interval}."]
    if ties:
        others = "1 other" if len(ties) == 1 else f"{len(ties)} others"
        why.append(
            f"{others} cannot be told from it: the scores differ by less than their uncertainty."
        )
    elif len(rows) > 1:
        drawn = _is_draws_own(need, best, intervals)
        where = "With the benchmark's own training draws it" if drawn else "It"
        why.append(f"{where} is surely better than each of the others.")
    if smallest is not best:
        times = f", {best.params / smallest.params:.1f} times fewer" if smallest.params else ""
        why.append(
            f"{smallest.model} is the smallest of these: {size_text(smallest.params)} parameters"
            f"{times}."
        )
    elif ties:
        why.append("It is also the smallest of these.")
    why += _warnings(need, rows, intervals)
    return why


def _warnings(need: Need, rows: list[_Row], intervals: Intervals) -> list[str]:
    """Say what the advice does not rest on."""
    said = []
    macro = intervals.estimates[need.regime]["macro"]
    overall = min(rows, key=lambda row: (-macro[row.model].score, row.model))
    if need.category is not None and overall is not rows[0]:
        place = 1 + sum(row.estimate.score > overall.estimate.score for row in rows)
        said.append(
            f"The best of them over all categories, {overall.model}, is number {place} here."
        )
    if _is_draws_own(need, rows[0], intervals):
        said.append(
            "The intervals cover other test sequences, not other training draws: "
            "the row gives no scores by seed."
        )
    return said


def _is_draws_own(need: Need, row: _Row, intervals: Intervals) -> bool:
    """Whether a score may change with other training draws by more than its interval says."""
    regime = intervals.regimes[need.regime]
    return regime.is_drawn and row.model not in regime.draws_covered
