"""Where rows stand in a regime, by macro MCC, and which of them can be told apart."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Interval(NamedTuple):
    """Between what a score lies, 95 times in 100."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """The mean distance of its ends from the middle."""
        return (self.high - self.low) / 2


class Place(NamedTuple):
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
    """All rows of one regime: macro MCC of each, and its interval."""

    name: str
    scores: dict[str, float]
    intervals: dict[str, Interval]

    @functools.cached_property
    def _ranks(self) -> dict[str, int]:
        ordered = sorted(self.scores.values(), reverse=True)
        first: dict[float, int] = {}
        for place, score in enumerate(ordered, 1):
            first.setdefault(score, place)
        return {model: first[score] for model, score in self.scores.items()}

    def rank(self, model: str) -> int:
        """Give the rank of a row."""
        return self._ranks[model]

    def apart(self, model: str, other: str) -> bool:
        """Whether two rows differ by more than the noise of their difference.

        As if their errors were independent; on one test set they are alike, so that rows are
        called alike too often rather than too seldom.
        """
        noise = math.hypot(self.intervals[model].half_width, self.intervals[other].half_width)
        return abs(self.scores[model] - self.scores[other]) > noise

    def place(self, model: str) -> Place:
        """Say where a row stands, and between which ranks noise leaves it."""
        score = self.scores[model]
        apart = [other for other in self.scores if other != model and self.apart(model, other)]
        above = sum(self.scores[other] > score for other in apart)
        rows = len(self.scores)
        lowest = rows - (len(apart) - above)
        return Place(self.name, score, self.rank(model), rows, 1 + above, lowest)


def regimes_of(
    data: dict[str, list[dict[str, Any]]], interval: Callable[[str, str], Interval]
) -> dict[str, Regime]:
    """Give the standings of each regime of a board, `leaderboard.json`'s member `data`."""
    return {
        name: Regime(
            name,
            {row["model"]: float(row["macro_MCC"]) for row in rows},
            {row["model"]: interval(row["model"], name) for row in rows},
        )
        for name, rows in data.items()
    }
