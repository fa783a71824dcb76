"""Compare two boards: the places of rows in each regime, and how a change moves them."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from geneb_ci.board.columns import PUBLISHED_COLUMNS

if TYPE_CHECKING:
    from geneb_ci.board.decisions import RankRanges, ScoreColumn

COMPARED_FACTS = tuple(
    column.key for column in PUBLISHED_COLUMNS if column.key != "model" and column.is_compared
)
"""Keys of the facts about a model that are compared in addition to its scores."""
REPEATING_FACTS = frozenset({"official", "submitted"})
"""Keys that repeat authorship and evidence in other words: texts for people omit them."""


class RegimePlace(NamedTuple):
    """Score, rank and rank range of a row in one regime."""

    regime: str
    score: float
    """Macro MCC."""
    rank: int
    """1 is best; equal scores share the better rank."""
    rows: int
    """Number of rows that are ranked in the regime."""
    rank_low: int
    rank_high: int
    """Range of the rank; the ranges of all rows together hold with 95 % confidence."""


@dataclass(frozen=True)
class MacroScores:
    """Macro MCC of all rows of one regime; rank ranges are computed when needed."""

    name: str
    """Name of the regime."""
    scores: Mapping[str, float]
    """Macro MCC by model."""
    column: "ScoreColumn"
    """The same scores, with their variances."""
    critical: float
    """Number of standard errors from which a difference is significant."""

    @functools.cached_property
    def _index_by_model(self) -> dict[str, int]:
        """Position of each model among the scores."""
        return {model: k for k, model in enumerate(self.scores)}

    @functools.cached_property
    def _rank_ranges(self) -> "RankRanges":
        """Ranks and rank ranges of all models."""
        from geneb_ci.board.decisions import rank_ranges

        return rank_ranges(self.column, self.critical)

    def rank(self, model: str) -> int:
        """Return the rank of a row by macro MCC; 1 is best."""
        return int(self._rank_ranges.rank[self._index_by_model[model]])

    def is_significant(self, model: str, other_model: str) -> bool:
        """Whether one of two rows scores significantly higher than the other."""
        from geneb_ci.board.decisions import compare_pair

        indices = self._index_by_model[model], self._index_by_model[other_model]
        return compare_pair(self.column, *indices, self.critical).is_significant

    def half_width(self, model: str) -> float:
        """Return half the width of the 95 % interval of a row's score."""
        from geneb_ci.board.decisions import intervals_of

        low, high = intervals_of(self.column)
        index = self._index_by_model[model]
        return float(high[index] - low[index]) / 2

    def place_of(self, model: str) -> RegimePlace:
        """Return the score, rank and rank range of a row."""
        index = self._index_by_model[model]
        low, high = int(self._rank_ranges.low[index]), int(self._rank_ranges.high[index])
        return RegimePlace(
            self.name, self.scores[model], self.rank(model), len(self.scores), low, high
        )


def macro_scores_of(
    rows_by_regime: Mapping[str, list[dict[str, Any]]], columns: "Mapping[str, ScoreColumn] | None"
) -> dict[str, MacroScores]:
    """Return the regimes by name, from the member `rows_by_regime` of leaderboard.json.

    `columns` has macro MCC with its variances, by regime; if it is None, scores count as exact.
    """
    import numpy as np  # of the extra `build`

    from geneb_ci.board.decisions import ScoreColumn, critical_value, rounded_model_count

    regimes = {}
    for regime, rows in rows_by_regime.items():
        scores = {row["model"]: float(row["macro_MCC"]) for row in rows}
        score_array = np.array([*scores.values()])
        column = (
            ScoreColumn(score_array, np.zeros(len(score_array)), np.full(len(score_array), np.inf))
            if columns is None
            else columns[regime]
        )
        regimes[regime] = MacroScores(
            regime, scores, column, critical_value(rounded_model_count(len(scores)))
        )
    return regimes


@dataclass(frozen=True)
class BoardSide:
    """One of the two boards that are compared."""

    categories: dict[str, Any]
    """The content of leaderboard.json."""
    tasks: dict[str, Any]
    """The content of leaderboard_tasks.json."""
    columns: "Mapping[str, ScoreColumn] | None"
    """Macro MCC with its variances, by regime; None if the benchmark lacks the size of a task."""


class OneSidedRow(NamedTuple):
    """A row that only one of the two boards has."""

    model: str
    places: tuple[RegimePlace, ...]
    """Score and rank in each regime."""


class ChangedFact(NamedTuple):
    """A fact about a model that differs between the boards."""

    name: str
    """Key of the fact in leaderboard.json."""
    before: object
    after: object


class RankShift(NamedTuple):
    """The change of a row in one regime; `before` or `after` is None if it is not ranked there."""

    regime: str
    before: RegimePlace | None
    """Place on the old board."""
    after: RegimePlace | None
    """Place on the new board."""
    scores: int
    """Number of task scores that differ."""
    inside_noise: bool
    """Whether macro MCC moved by at most half the width of the row's interval."""


class ChangedRow(NamedTuple):
    """A row that both boards have, and that differs."""

    model: str
    facts: tuple[ChangedFact, ...]
    """Facts about the model that differ."""
    shifts: tuple[RankShift, ...]
    """Regimes in which scores or ranks differ."""


class RankMove(NamedTuple):
    """A row that passed others or was passed by others; both boards have all of them."""

    model: str
    before: RegimePlace
    """Place on the old board."""
    after: RegimePlace
    """Place on the new board."""
    passed: tuple[str, ...]
    """Ids of the models that the row passed."""
    passed_by: tuple[str, ...]
    """Ids of the models that passed the row."""
    inside_noise: bool
    """Whether the row differs significantly from none of the rows of `passed` and `passed_by`."""


@dataclass(frozen=True)
class BoardDiff:
    """All differences between two boards."""

    added: tuple[OneSidedRow, ...]
    """Rows that only the new board has."""
    removed: tuple[OneSidedRow, ...]
    """Rows that only the old board has."""
    changed: tuple[ChangedRow, ...]
    """Rows of both boards that differ."""
    moves: tuple[RankMove, ...]
    """Rows that passed others or were passed."""
    pushed: dict[str, int]
    """By regime: the number of rows whose rank differs only through added or removed rows."""

    @property
    def is_empty(self) -> bool:
        """Whether the boards do not differ."""
        return not (self.added or self.removed or self.changed)


def board_diff(before: BoardSide, after: BoardSide) -> BoardDiff:
    """Return the differences; rows and regimes are in the order of the new board."""
    old_regimes, new_regimes = _macro_scores(before), _macro_scores(after)
    models_old, models_new = _models_of(before), _models_of(after)
    common_models = [model for model in models_new if model in models_old]
    changed_rows = tuple(
        row
        for model in common_models
        if (row := _changed_row(model, before, after, old_regimes, new_regimes)) is not None
    )
    changed_models = {row.model for row in changed_rows}
    moves = tuple(
        move
        for regime in new_regimes
        if regime in old_regimes
        for move in _rank_moves(old_regimes[regime], new_regimes[regime], changed_models)
    )
    return BoardDiff(
        added=tuple(_one_sided_row(m, new_regimes) for m in models_new if m not in models_old),
        removed=tuple(_one_sided_row(m, old_regimes) for m in models_old if m not in models_new),
        changed=changed_rows,
        moves=moves,
        pushed={
            regime: _pushed_count(old_regimes[regime], new_regimes[regime], moves)
            for regime in new_regimes
            if regime in old_regimes
        },
    )


def _macro_scores(side: BoardSide) -> dict[str, MacroScores]:
    """Return the macro scores of a board by regime."""
    return macro_scores_of(side.categories["data"], side.columns)


def _models_of(side: BoardSide) -> dict[str, None]:
    """Return the ids of the models of a board as keys, sorted."""
    rows = (row for rows in side.categories["data"].values() for row in rows)
    model_ids = {row["model"] for row in rows}
    return dict.fromkeys(sorted(model_ids, key=lambda model: (model.lower(), model)))


def _one_sided_row(model: str, regimes: dict[str, MacroScores]) -> OneSidedRow:
    """Return a row that only one board has, with its places in that board's regimes."""
    return OneSidedRow(
        model,
        tuple(regime.place_of(model) for regime in regimes.values() if model in regime.scores),
    )


def _changed_row(
    model: str,
    before: BoardSide,
    after: BoardSide,
    old_regimes: dict[str, MacroScores],
    new_regimes: dict[str, MacroScores],
) -> ChangedRow | None:
    """Return the changes of a row that both boards have; None without any."""
    facts: dict[str, ChangedFact] = {}
    shifts = []
    for regime in (*new_regimes, *(regime for regime in old_regimes if regime not in new_regimes)):
        row_before = _row_of(before.categories, regime, model)
        row_after = _row_of(after.categories, regime, model)
        if row_before is not None and row_after is not None:
            facts |= {
                f: ChangedFact(f, row_before.get(f), row_after.get(f))
                for f in COMPARED_FACTS
                if row_before.get(f) != row_after.get(f)
            }
        score_count = _differing_count(
            _row_of(before.tasks, regime, model), _row_of(after.tasks, regime, model)
        )
        if score_count:
            place_before = old_regimes[regime].place_of(model) if row_before is not None else None
            place_after = new_regimes[regime].place_of(model) if row_after is not None else None
            is_inside_noise = place_before is not None and place_after is not None
            if place_before is not None and place_after is not None:
                change = abs(place_after.score - place_before.score)
                is_inside_noise = change <= new_regimes[regime].half_width(model)
            shifts.append(
                RankShift(regime, place_before, place_after, score_count, is_inside_noise)
            )
    return ChangedRow(model, tuple(facts.values()), tuple(shifts)) if facts or shifts else None


def _row_of(board: dict[str, Any], regime: str, model: str) -> dict[str, Any] | None:
    """Return the row of a model in a regime, from a file of the board; None without one."""
    rows: Iterable[dict[str, Any]] = board["data"].get(regime, ())
    return next((row for row in rows if row["model"] == model), None)


def _differing_count(before: dict[str, Any] | None, after: dict[str, Any] | None) -> int:
    """Return the number of task scores that differ, or that only one of two rows has."""
    scores_before, scores_after = _task_scores(before), _task_scores(after)
    return sum(
        scores_before.get(key) != scores_after.get(key)
        for key in scores_before.keys() | scores_after.keys()
    )


def _task_scores(row: dict[str, Any] | None) -> dict[tuple[str, str], float]:
    """Return the scores of a row by metric and task; {} without a row."""
    return {
        (table, task): score
        for table, cells in (row or {}).items()
        if table.startswith("task_")
        for task, score in cells.items()
    }


def _rank_moves(
    old_regime: MacroScores, new_regime: MacroScores, changed_models: set[str]
) -> Iterable[RankMove]:
    """Yield each row that passed another row, or was passed by one.

    Only rows of both boards are compared, in pairs with at least one of `changed_models`.
    """
    common_models = [model for model in new_regime.scores if model in old_regime.scores]
    for model in common_models:
        # Two rows that did not change cannot have passed each other.
        compared_models = [
            rival for rival in common_models if rival != model and changed_models & {model, rival}
        ]
        passed = tuple(
            rival for rival in compared_models if _passes(model, rival, old_regime, new_regime)
        )
        passed_by = tuple(
            rival for rival in compared_models if _passes(rival, model, old_regime, new_regime)
        )
        if passed or passed_by:
            is_inside_noise = not any(
                new_regime.is_significant(model, rival) for rival in (*passed, *passed_by)
            )
            yield RankMove(
                model,
                old_regime.place_of(model),
                new_regime.place_of(model),
                passed,
                passed_by,
                is_inside_noise,
            )


def _passes(model: str, rival: str, old_regime: MacroScores, new_regime: MacroScores) -> bool:
    """Whether a row goes past a rival: its score is higher on the new board and was not before."""
    return (
        old_regime.scores[model] <= old_regime.scores[rival]
        and new_regime.scores[model] > new_regime.scores[rival]
    ) or (
        old_regime.scores[model] < old_regime.scores[rival]
        and new_regime.scores[model] == new_regime.scores[rival]
    )


def _pushed_count(
    old_regime: MacroScores, new_regime: MacroScores, moves: Iterable[RankMove]
) -> int:
    """Return how many rows have another rank without having passed another row or being passed."""
    moved_models = {move.model for move in moves if move.after.regime == new_regime.name}
    return sum(
        old_regime.rank(model) != new_regime.rank(model)
        for model in new_regime.scores
        if model in old_regime.scores and model not in moved_models
    )
