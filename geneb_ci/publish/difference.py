"""Compares the Space with its manifest and with main, and computes what publishing would change."""

import enum
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pydantic_core

from geneb_ci.board.diff import COMPARED_FACTS, ChangedFact
from geneb_ci.publish.faults import PublishFault, RepoMissing
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.manifest import MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest, parse_manifest
from geneb_ci.publish.push import dropped_files
from geneb_ci.publish.space import Space, SpaceSite, SpaceState

BOARD_FILE = "leaderboard.json"
"""File of the Space with the rows of the board."""
RANKING_SCORE = "macro_MCC"
"""Column of the score that determines the rank."""

RowsByModel = dict[str, dict[str, dict[str, Any]]]
"""The rows of a leaderboard.json, by model and regime."""


class ChangeSign(enum.StrEnum):
    """Kinds of changes of a file or a row; the values are the signs that are printed."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"
    SAME = "="


class SpaceFileChange(NamedTuple):
    """Change of one file that publishing would make on the Space."""

    sign: ChangeSign
    name: str
    bytes: int
    """Size after the change; 0 for a removed file."""


class PublishedPlace(NamedTuple):
    """Rank and score of a row in one regime."""

    score: float
    """Macro score, by which rows are ranked."""
    rank: int


class PublishedMove(NamedTuple):
    """Present and new place of a row in one regime; they are equal if only other scores differ."""

    regime: str
    was: PublishedPlace | None
    """Place on the live board; None if the row is not ranked there."""
    will_be: PublishedPlace | None
    """Place on the new board; None if the row is not ranked there."""


class RowChange(NamedTuple):
    """A model whose row is added, removed or changed."""

    sign: ChangeSign
    model: str
    facts: tuple[ChangedFact, ...]
    """Present and new values of facts that are not scores; None without a row."""
    moves: tuple[PublishedMove, ...]
    """The changes of score and rank, one for each regime with any."""


def file_changes(state: SpaceState, generation: Generation) -> list[SpaceFileChange]:
    """Return the change of every published file, sorted by name."""
    changes = []
    for file, content in generation.published.items():
        is_published = file in state.files
        is_same = not state.differing({file: content})
        sign = (
            ChangeSign.SAME if is_same else ChangeSign.CHANGED if is_published else ChangeSign.ADDED
        )
        changes.append(SpaceFileChange(sign, file, len(content)))
    changes += [
        SpaceFileChange(ChangeSign.REMOVED, name, 0) for name in dropped_files(state, generation)
    ]
    return sorted(changes, key=lambda change: change.name)


def row_changes(live: bytes | None, built: bytes) -> list[RowChange]:
    """Return the changes of rows from the live leaderboard.json to the one that was built.

    A live file that is missing or invalid has no rows.
    """
    old, new = _rows_by_model(live), _rows_by_model(built)
    models = sorted({*old, *new}, key=lambda name: (name.lower(), name))
    return [change for model in models if (change := _row_change(model, old, new)) is not None]


def model_count_of(content: bytes) -> int:
    """Return the number of models in a leaderboard.json."""
    return len(_rows_by_model(content))


def _rows_by_model(raw: bytes | None) -> RowsByModel:
    """Return the rows in a leaderboard.json; {} for a missing or invalid file."""
    board: RowsByModel = {}
    try:
        # pydantic_core raises ValueError for text that is nested too deeply, too.
        rows_by_regime = pydantic_core.from_json(raw)["data"] if raw is not None else {}
        for regime, rows in rows_by_regime.items():
            for row in rows:
                board.setdefault(str(row["model"]), {})[regime] = dict(row)
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return board


def _row_change(model: str, old: RowsByModel, new: RowsByModel) -> RowChange | None:
    """Return the change of the row of a model; None if nothing changes."""
    row_before, row_after = old.get(model, {}), new.get(model, {})
    if row_before == row_after:
        return None
    sign = (
        ChangeSign.CHANGED
        if row_before and row_after
        else ChangeSign.ADDED
        if row_after
        else ChangeSign.REMOVED
    )
    moves = (
        PublishedMove(
            regime, _published_place(old, model, regime), _published_place(new, model, regime)
        )
        for regime in {**row_after, **row_before}
        if _row_scores(row_before.get(regime)) != _row_scores(row_after.get(regime))
    )
    return RowChange(sign, model, tuple(_changed_facts(row_before, row_after)), tuple(moves))


def _changed_facts(
    row_before: dict[str, dict[str, Any]], row_after: dict[str, dict[str, Any]]
) -> Iterator[ChangedFact]:
    """Yield the changed facts, which are equal in all regimes of a model."""
    facts_before, facts_after = (next(iter(rows.values()), {}) for rows in (row_before, row_after))
    for fact in COMPARED_FACTS:
        if facts_before.get(fact) != facts_after.get(fact):
            yield ChangedFact(fact, facts_before.get(fact), facts_after.get(fact))


def _row_scores(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a row without its facts about the model."""
    return None if row is None else {k: v for k, v in row.items() if k not in COMPARED_FACTS}


def _published_place(board: RowsByModel, model: str, regime: str) -> PublishedPlace | None:
    """Return rank and score of a model in a regime; None if the model is not ranked there."""
    if regime not in board.get(model, {}):
        return None
    scores = {name: _ranking_score(rows[regime]) for name, rows in board.items() if regime in rows}
    higher = sum(score > scores[model] for score in scores.values())
    return PublishedPlace(scores[model], 1 + higher)


def _ranking_score(row: dict[str, Any]) -> float:
    """Return the score that determines the rank; minus infinity where it is not a number."""
    score = row.get(RANKING_SCORE)
    return score if isinstance(score, float) and math.isfinite(score) else -math.inf


class LiveStatus(enum.StrEnum):
    """How the generation on the Space relates to the generation of main."""

    CURRENT = "current"
    ROLLED_BACK = "rolled back"
    BEHIND = "behind"
    AHEAD = "ahead"
    OTHER = "other"
    NOTHING = "nothing"


@dataclass(frozen=True)
class SpaceHealth:
    """Which board the Space has, and whether visitors get its files unaltered."""

    live_status: LiveStatus
    """How the live generation relates to that of main."""
    head: str
    """Newest commit of the Space."""
    live: Manifest | None
    """Manifest on the Space; None without a board."""
    altered: tuple[str, ...]
    """Files that are missing on the Space or differ from its manifest."""
    hindrances: tuple[str, ...] = ()
    """Reasons why visitors do not get the files of the Space's repository: sentences without their
    subject, the Space, such as "is private: make it public in its settings"."""
    address: str | None = None
    """Address where visitors get the files; None where the Hub states none."""

    @property
    def is_served(self) -> bool:
        """Whether the expected board is served completely."""
        is_expected = self.live_status in {LiveStatus.CURRENT, LiveStatus.ROLLED_BACK}
        return is_expected and not self.altered and not self.hindrances


def space_health(space: Space, generation: Generation, repository: GitRepository) -> SpaceHealth:
    """Return the state of the Space: every file is fetched, and its digest is compared.

    The manifest is also fetched from the address of visitors. Raises Retryable and PublishFault.
    """
    state = space.state()
    live = state.manifest
    service = space.service()
    hindrances = tuple(_hindrances(space.name, service))
    if live is None:
        return SpaceHealth(LiveStatus.NOTHING, state.head, None, (), hindrances)
    if not hindrances and service.address is not None:
        hindrances = tuple(_altered_on_the_way(space, service.address, live))
    altered = tuple(
        name
        for name, file in live.files.items()
        if name not in state.files
        or hashlib.sha256(space.read(name, state.head)).hexdigest() != file.sha256
    )
    main = generation.manifest
    live_status = live_status_of(live, main.source_commit, repository)
    if live.generation == main.generation:
        live_status = LiveStatus.CURRENT
    elif live_status is LiveStatus.CURRENT:
        live_status = LiveStatus.OTHER  # the same commit, built by another version
    return SpaceHealth(live_status, state.head, live, altered, hindrances, service.address)


_SERVING_STAGES = {None, "RUNNING", "RUNNING_BUILDING", "RUNNING_APP_STARTING"}
"""Stages of a Space, by the Hub's names, in which visitors get its files; None: not known."""


def _hindrances(space_name: str, service: SpaceSite) -> Iterator[str]:
    """Yield the reasons, according to the Hub, why visitors see no Space of this name."""
    if service.name.casefold() != space_name.casefold():
        yield f"was renamed to {service.name}: use the new name in settings and links"
    if service.is_private:
        yield "is private: make the Space public in its settings"
    if service.is_disabled:
        yield "is disabled: ask the support of the Hub"
    if service.stage not in _SERVING_STAGES:
        yield f"is not running (stage {service.stage}): restart the Space in its settings"


def _altered_on_the_way(space: Space, address: str, live: Manifest) -> Iterator[str]:
    """Yield the reason why visitors get another manifest than that in the Space's repository."""
    try:
        served = parse_manifest(
            space.read_served(address, MANIFEST_FILE, MANIFEST_BYTES_MAX),
            f"{address}/{MANIFEST_FILE}",
        )
    except RepoMissing:
        yield (
            f"serves no board: {address}/{MANIFEST_FILE} does not exist; restart the Space in its "
            "settings"
        )
        return
    except PublishFault as error:
        yield f"serves no board that can be read: {error.message}"
        return
    if served.generation != live.generation:
        yield (
            f"serves generation {served.generation[:12]} at {address}, but the repository of the "
            f"Space has generation {live.generation[:12]}: restart the Space in its settings"
        )


def live_status_of(live: Manifest, commit: str, repository: GitRepository) -> LiveStatus:
    """Return how a live board relates to `commit`, the newest one that the board depends on.

    Only commits are compared: nothing is built, and no file is read.
    """
    if live.rollback is not None and live.rollback.covers == commit:
        return LiveStatus.ROLLED_BACK
    if live.source_commit == commit:
        return LiveStatus.CURRENT
    if repository.is_ancestor(live.newest_commit, commit):
        return LiveStatus.BEHIND
    if repository.is_ancestor(commit, live.newest_commit):
        return LiveStatus.AHEAD
    return LiveStatus.OTHER
