"""Which model to take: the best for a need, what ties with it, the smallest of those, and why."""

import itertools
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from geneb_ci.board.columns import Entry
from geneb_ci.board.uncertainty import DECIMALS, Estimate, Intervals, differ_significantly
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import quoted
from geneb_ci.common.types import TRUST_ORDER, Count, Hex64, Signed, StrictModel, TrustLevel

TRUST = tuple(map(str, TRUST_ORDER))
NEVER = TrustLevel.DISPUTED.value
"""The level of a row whose audit failed: no advice for any need names it."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMBGT]?)", re.IGNORECASE)


def parameters(text: str) -> int:
    """Read a parameter count such as 500M, 1.2B or 86000000.

    Raises UsageProblem when it is none.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageProblem(
            f"{quoted(text)} is not a number of parameters",
            "write it as 500M, 1.2B or 86000000",
        )
    return round(float(match[1]) * _UNITS[match[2].upper()])


def size_text(params: int) -> str:
    """Write a parameter count for people: 500M, 1.2B, 19.7M."""
    for unit in ("B", "M", "K"):
        if params >= _UNITS[unit]:
            return f"{params / _UNITS[unit]:.3g}{unit}"
    return str(params)


Model = Annotated[str, Field(min_length=1)]


class ModelRequest(StrictModel):
    """What is asked for."""

    category: str | None
    """Null for the macro score over all categories."""
    regime: str
    max_params: Count | None
    """The most parameters a model may have; null for any number."""
    level: str | None
    """The least trust level; null for any but `disputed`."""


class Choice(StrictModel):
    """One model and its score for the need."""

    model: Model
    params: Count
    level: str
    score: Signed
    low: Signed
    high: Signed
    """Interval of the score."""


class Advice(StrictModel):
    """Which model to take for a need."""

    need: ModelRequest
    considered: Count
    """Models that meet size and level."""
    best: Choice | None
    """The highest score; null when no model meets size and level."""
    ties: list[Model]
    """Other models that do not differ significantly from the best one, best first."""
    smallest: Choice | None
    """The smallest of the best one and its ties."""
    why: list[str]
    """The reasons, in sentences."""


class AdvisedBenchmark(StrictModel):
    """Which benchmark definition the scores belong to."""

    name: str
    sha256: Hex64


class Recommendations(StrictModel):
    """Advice for each regime, category, size limit and level, in that order."""

    schema_version: Literal["1.0"]
    benchmark: AdvisedBenchmark
    advice: list[Advice]


SIZES = (None, 1_000_000_000, 500_000_000, 100_000_000, 25_000_000)
"""Limits in recommendations.json: one large accelerator, a small one, a laptop, a processor."""
LEVELS = (None, TrustLevel.VERIFIED.value)


class _Candidate(NamedTuple):
    model: str
    params: int
    level: str
    estimate: Estimate


def recommendations(
    entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals
) -> dict[str, Any]:
    """Return recommendations.json as a value: advice for every common need."""
    rows = list(entries)
    categories = (None, *benchmark.category_order)
    advice = [
        advise(
            ModelRequest(category=c, regime=r, max_params=s, level=v), rows, benchmark, intervals
        )
        for r, c, s, v in itertools.product(benchmark.regimes, categories, SIZES, LEVELS)
    ]
    return Recommendations(
        schema_version="1.0",
        benchmark=AdvisedBenchmark(name=benchmark.name, sha256=benchmark.sha256),
        advice=advice,
    ).model_dump(mode="json")


def advise(
    need: ModelRequest, entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals
) -> Advice:
    """Choose among the models that meet size and level.

    Raises UsageProblem when the benchmark has no such category or regime.
    """
    _known(need.regime, benchmark.regimes, "regime")
    if need.category is not None:
        _known(need.category, benchmark.category_order, "category")
    estimates = intervals.estimates[need.regime][need.category or "macro"]
    rows = [
        _Candidate(e.submission.model_id, e.submission.meta.params, str(e.level), estimate)
        for e in entries
        if (estimate := estimates.get(e.submission.model_id)) is not None and _meets(e, need)
    ]
    rows.sort(key=lambda row: (-row.estimate.score, row.model))
    if not rows:
        why = [f"No model ranked in the regime {need.regime} meets {_limits(need) or 'the need'}."]
        return Advice(need=need, considered=0, best=None, ties=[], smallest=None, why=why)
    best, *others = rows
    ties = [r for r in others if not differ_significantly(best.estimate, r.estimate, len(rows))]
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
            f"{quoted(name)} is not a {what} of the benchmark", f"name one of {', '.join(names)}"
        )


def _meets(entry: Entry, need: ModelRequest) -> bool:
    level = str(entry.level)
    if need.max_params is not None and entry.submission.meta.params > need.max_params:
        return False
    if need.level is None:
        return level != NEVER
    return level in TRUST and TRUST.index(level) >= TRUST.index(need.level)


def _choice(row: _Candidate) -> Choice:
    score, low, high = (
        round(x, DECIMALS) + 0.0 for x in (row.estimate.score, row.estimate.low, row.estimate.high)
    )
    return Choice(
        model=row.model, params=row.params, level=row.level, score=score, low=low, high=high
    )


def _limits(need: ModelRequest) -> str:
    parts = []
    if need.max_params is not None:
        parts.append(f"at most {size_text(need.max_params)} parameters")
    if need.level is not None:
        parts.append(f"level {need.level} or more")
    return " and ".join(parts)


def _reasons(
    need: ModelRequest,
    rows: list[_Candidate],
    ties: list[_Candidate],
    smallest: _Candidate,
    intervals: Intervals,
) -> list[str]:
    """Return the reasons in sentences; model ids are all of a contributor's text in them."""
    best, limits = rows[0], _limits(need)
    where = need.category or "the mean of all categories"
    of = f"{len(rows)} models{f' with {limits}' if limits else ''}"
    low, high = best.estimate.low, best.estimate.high
    interval = f"{best.estimate.score:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    where = f"{where} in the regime {need.regime}"
    why = [f"{best.model} has the highest MCC on {where}, of {of}: {interval}."]
    if ties:
        others = "1 other" if len(ties) == 1 else f"{len(ties)} others"
        why.append(
            f"{others} {'does' if len(ties) == 1 else 'do'} not differ significantly from it."
        )
    elif len(rows) > 1:
        drawn = _is_draws_own(need, best, intervals)
        where = "With the benchmark's own training draws it" if drawn else "It"
        why.append(f"{where} is significantly better than each of the others.")
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


def _warnings(need: ModelRequest, rows: list[_Candidate], intervals: Intervals) -> list[str]:
    """Return what the advice does not rest on, in sentences."""
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


def _is_draws_own(need: ModelRequest, row: _Candidate, intervals: Intervals) -> bool:
    """Whether a score may change with other training draws by more than its interval says."""
    regime = intervals.regimes[need.regime]
    return regime.is_drawn and row.model not in regime.draws_covered
