"""What a publish would change: files of the Space, and rows of the board."""

import enum
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from geneb_ci.publish.generation import Generation
from geneb_ci.publish.push import dropped
from geneb_ci.publish.space import State

BOARD = "leaderboard.json"
SCORE = "macro_MCC"
"""The score that the board is ordered by."""


class Sign(enum.StrEnum):
    """What would happen to a file or a row."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"
    SAME = "="


class FileChange(NamedTuple):
    """One file of ours."""

    sign: Sign
    name: str
    bytes: int


class RowChange(NamedTuple):
    """One row of one regime that is added, removed, or shows something else."""

    sign: Sign
    regime: str
    model: str
    was: str
    will_be: str


def file_changes(state: State, made: Generation) -> list[FileChange]:
    """Hold every published file against the Space, in the order of their names."""
    changes = []
    for name, content in made.published.items():
        there = name in state.files
        same = state.holds({name: content})
        sign = Sign.SAME if same else Sign.CHANGED if there else Sign.ADDED
        changes.append(FileChange(sign, name, len(content)))
    changes += [FileChange(Sign.REMOVED, name, 0) for name in dropped(state, made)]
    return sorted(changes, key=lambda change: change.name)


def row_changes(live: bytes | None, made: bytes) -> list[RowChange]:
    """Compare two leaderboard.json; the live one may be anything, and counts as empty if so."""
    return list(_row_changes(_rows(live), _rows(made)))


def _rows(raw: bytes | None) -> dict[tuple[str, str], dict[str, Any]]:
    try:
        data = json.loads(raw)["data"] if raw is not None else {}
        return {(regime, row["model"]): row for regime, rows in data.items() for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _row_changes(
    old: dict[tuple[str, str], dict[str, Any]], new: dict[tuple[str, str], dict[str, Any]]
) -> Iterator[RowChange]:
    place = {regime: at for at, regime in enumerate(dict.fromkeys(r for r, _ in (*new, *old)))}
    for key in sorted({*old, *new}, key=lambda key: (key[1].lower(), key[1], place[key[0]])):
        regime, model = key
        was, will_be = (_shown(rows.get(key)) for rows in (old, new))
        if key not in old:
            yield RowChange(Sign.ADDED, regime, model, "", will_be)
        elif key not in new:
            yield RowChange(Sign.REMOVED, regime, model, was, "")
        elif old[key] != new[key]:
            yield RowChange(Sign.CHANGED, regime, model, was, will_be)


def _shown(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    score = row.get(SCORE)
    shown = f"{score:.4f}" if isinstance(score, float) else "?"
    return f"{shown} {row.get('submitted', '?')}"
