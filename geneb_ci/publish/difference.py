"""What the Space serves, against its manifest and main, and what a publish would change."""

import enum
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pydantic_core

from geneb_ci.board.diff import FACTS
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.manifest import Manifest
from geneb_ci.publish.push import dropped
from geneb_ci.publish.space import Space, SpaceState

BOARD = "leaderboard.json"
SCORE = "macro_MCC"
"""The score that ranks a row."""

Board = dict[str, dict[str, dict[str, Any]]]
"""Model to regime to row."""


class Sign(enum.StrEnum):
    """What would happen to a file or a row."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"
    SAME = "="


class SpaceFileChange(NamedTuple):
    """One file of ours."""

    sign: Sign
    name: str
    bytes: int


class PublishedFact(NamedTuple):
    """What the board says of a model beside its scores, now and then; None where it has no row."""

    name: str
    was: object
    will_be: object


class PublishedPlace(NamedTuple):
    """Where a row stands in one regime."""

    score: float
    rank: int


class PublishedMove(NamedTuple):
    """A row in one regime, as it is and would be; both the same where other scores differ."""

    regime: str
    was: PublishedPlace | None
    will_be: PublishedPlace | None


class RowChange(NamedTuple):
    """A model whose row is added, removed, or shows something else."""

    sign: Sign
    model: str
    facts: tuple[PublishedFact, ...]
    moves: tuple[PublishedMove, ...]


def file_changes(state: SpaceState, made: Generation) -> list[SpaceFileChange]:
    """Hold every published file against the Space, in the order of their names."""
    changes = []
    for name, content in made.published.items():
        there = name in state.files
        same = state.holds({name: content})
        sign = Sign.SAME if same else Sign.CHANGED if there else Sign.ADDED
        changes.append(SpaceFileChange(sign, name, len(content)))
    changes += [SpaceFileChange(Sign.REMOVED, name, 0) for name in dropped(state, made)]
    return sorted(changes, key=lambda change: change.name)


def row_changes(live: bytes | None, made: bytes) -> list[RowChange]:
    """Compare two leaderboard.json; the live one may be anything, and counts as empty if so."""
    old, new = _board(live), _board(made)
    models = sorted({*old, *new}, key=lambda name: (name.lower(), name))
    return [change for model in models if (change := _change(model, old, new)) is not None]


def models_of(made: bytes) -> int:
    """Count the models of a leaderboard.json."""
    return len(_board(made))


def _board(raw: bytes | None) -> Board:
    found: Board = {}
    try:
        # It bounds the depth by itself; json does not once py_ecc has raised Python's limit.
        data = pydantic_core.from_json(raw)["data"] if raw is not None else {}
        for regime, rows in data.items():
            for row in rows:
                found.setdefault(str(row["model"]), {})[regime] = dict(row)
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return found


def _change(model: str, old: Board, new: Board) -> RowChange | None:
    was, will_be = old.get(model, {}), new.get(model, {})
    if was == will_be:
        return None
    sign = Sign.CHANGED if was and will_be else Sign.ADDED if will_be else Sign.REMOVED
    moves = (
        PublishedMove(regime, _place(old, model, regime), _place(new, model, regime))
        for regime in {**will_be, **was}
        if _scores(was.get(regime)) != _scores(will_be.get(regime))
    )
    return RowChange(sign, model, tuple(_facts(was, will_be)), tuple(moves))


def _facts(
    was: dict[str, dict[str, Any]], will_be: dict[str, dict[str, Any]]
) -> Iterator[PublishedFact]:
    """Return what differs of the facts, which are the same in every regime of a model."""
    old, new = (next(iter(rows.values()), {}) for rows in (was, will_be))
    for name in FACTS:
        if old.get(name) != new.get(name):
            yield PublishedFact(name, old.get(name), new.get(name))


def _scores(row: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if row is None else {k: v for k, v in row.items() if k not in FACTS}


def _place(board: Board, model: str, regime: str) -> PublishedPlace | None:
    if regime not in board.get(model, {}):
        return None
    scores = {name: _score(rows[regime]) for name, rows in board.items() if regime in rows}
    return PublishedPlace(
        scores[model], 1 + sum(score > scores[model] for score in scores.values())
    )


def _score(row: dict[str, Any]) -> float:
    """Return the score that ranks; what is no number on the Space ranks last."""
    score = row.get(SCORE)
    return score if isinstance(score, float) and math.isfinite(score) else -math.inf


class LiveStatus(enum.StrEnum):
    """How the live generation stands to that of main."""

    CURRENT = "current"
    ROLLED_BACK = "rolled back"
    BEHIND = "behind"
    AHEAD = "ahead"
    OTHER = "other"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Health:
    """What a look at the Space found."""

    standing: LiveStatus
    head: str
    live: Manifest | None
    altered: tuple[str, ...]
    """Files that the Space serves with other bytes than its manifest says, or not at all."""

    @property
    def sound(self) -> bool:
        """Whether the right board is served, whole."""
        right = self.standing in {LiveStatus.CURRENT, LiveStatus.ROLLED_BACK}
        return right and not self.altered


def look(space: Space, made: Generation, repository: GitRepository) -> Health:
    """Fetch every published file and digest it; compare the generation with that of main.

    Raises Setback and PublishFault.
    """
    state = space.state()
    live = state.manifest
    if live is None:
        return Health(LiveStatus.NOTHING, state.head, None, ())
    altered = tuple(
        name
        for name, file in live.files.items()
        if name not in state.files
        or hashlib.sha256(space.read(name, state.head)).hexdigest() != file.sha256
    )
    return Health(_standing(live, made.manifest, repository), state.head, live, altered)


def _standing(live: Manifest, main: Manifest, repository: GitRepository) -> LiveStatus:
    if live.generation == main.generation:
        return LiveStatus.CURRENT
    if live.rollback is not None and live.rollback.covers == main.source_commit:
        return LiveStatus.ROLLED_BACK
    if live.source_commit == main.source_commit:
        return LiveStatus.OTHER  # the same commit, built by another version
    if repository.is_ancestor(live.newest_commit, main.source_commit):
        return LiveStatus.BEHIND
    if repository.is_ancestor(main.source_commit, live.newest_commit):
        return LiveStatus.AHEAD
    return LiveStatus.OTHER
