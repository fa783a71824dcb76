"""Where rows stand in a regime, by macro MCC, and which of them differ significantly."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.submission.models import Submission

if TYPE_CHECKING:
    from geneb_ci.board.uncertainty import ByModel, Estimate

EstimateOf = Callable[[str, str], "Estimate"]
"""Model and regime to macro MCC, as sure as it is known."""


class Estimates:
    """Macro MCC of rows. One that stands on several boards is estimated once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], Estimate] = {}

    def of(self, submission: Submission, regime: str, benchmark: Benchmark) -> "Estimate":
        """Return the estimate of a row; in 0.03 s, the first time."""
        from geneb_ci.board.uncertainty import macro_estimate  # noqa: PLC0415 (of the extra `build`)

        key = (benchmark.sha256, regime, submission.model_dump_json())
        if key not in self._known:
            self._known[key] = macro_estimate(submission, regime, benchmark)
        return self._known[key]


class RegimePlace(NamedTuple):
    """Where a row stands in one regime."""

    regime: str
    score: float
    """Macro MCC."""
    rank: int
    """1 is best; equal scores share the better rank."""
    rows: int
    rank_low: int
    rank_high: int
    """The best and the worst rank that noise allows."""


@dataclass(frozen=True)
class Regime:
    """All rows of one regime: macro MCC of each. What noise is, is found when it is asked for."""

    name: str
    scores: Mapping[str, float]
    estimate: EstimateOf

    @functools.cached_property
    def _ranks(self) -> dict[str, int]:
        ordered = sorted(self.scores.values(), reverse=True)
        first: dict[float, int] = {}
        for place, score in enumerate(ordered, 1):
            first.setdefault(score, place)
        return {model: first[score] for model, score in self.scores.items()}

    @functools.cached_property
    def _standings(self) -> "ByModel":
        from geneb_ci.board.uncertainty import standings  # noqa: PLC0415 (of the extra `build`)

        return standings({model: self.estimate(model, self.name) for model in self.scores})

    def rank(self, model: str) -> int:
        """Return the rank of a row."""
        return self._ranks[model]

    def apart(self, model: str, other: str) -> bool:
        """Whether two rows differ by more than the noise of their difference, as tie groups do."""
        from geneb_ci.board.uncertainty import differ_significantly  # noqa: PLC0415 (of the extra `build`)

        one, two = (self.estimate(name, self.name) for name in (model, other))
        return differ_significantly(one, two, len(self.scores))

    def half_width(self, model: str) -> float:
        """Return the mean distance of the ends of a row's interval from its middle."""
        found = self.estimate(model, self.name)
        return (found.high - found.low) / 2

    def place(self, model: str) -> RegimePlace:
        """Say where a row stands, and between which ranks noise leaves it."""
        found = self._standings[model]
        low, high = found.rank_low, found.rank_high
        return RegimePlace(
            self.name, self.scores[model], self.rank(model), len(self.scores), low, high
        )


def regimes_of(data: dict[str, list[dict[str, Any]]], estimate: EstimateOf) -> dict[str, Regime]:
    """Return the standings of each regime of a board, `leaderboard.json`'s member `data`."""
    return {
        name: Regime(name, {row["model"]: float(row["macro_MCC"]) for row in rows}, estimate)
        for name, rows in data.items()
    }
