"""What `publish`, `rollback` and the health check say, as lines of text."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from geneb_ci.publish.difference import (
    SCORE,
    Fact,
    FileChange,
    Move,
    Place,
    RowChange,
    Sign,
)
from geneb_ci.publish.health import Health, Standing
from geneb_ci.publish.push import SHORT, Outcome, Published
from geneb_ci.publish.shape import Manifest
from geneb_ci.report.summary import counted
from geneb_ci.report.text import escape

ROWS_MAX = 60  # rows of the board that a reader goes through; the rest is counted


class Preview(NamedTuple):
    """What a publish would do."""

    files: list[FileChange]
    rows: list[RowChange]
    others: int
    """Files on the Space that are not ours."""
    models: int
    """On the board that would be live."""


def published_line(resource: str, done: Published) -> str:
    """Say what a publish did."""
    what = named(done.manifest)
    if done.outcome is Outcome.UNCHANGED:
        return f"{resource}: nothing changed; {what} is live at {done.commit[:SHORT]}"
    return f"{resource}: published {what} as {done.commit[:SHORT]}, read back and verified"


def preview_line(resource: str, made: Manifest, live: Manifest | None) -> str:
    """Say which generation a publish would put in the place of which."""
    former = "where no board is yet" if live is None else f"in place of {named(live)}"
    return f"{resource}: would publish {named(made)}, {former}"


def named(manifest: Manifest) -> str:
    """Name a generation, as short as people read it."""
    return f"generation {manifest.generation[:SHORT]} of commit {manifest.source_commit[:SHORT]}"


def changes(preview: Preview) -> Iterator[str]:
    """Show what a publish would change: the files, then the rows of the board."""
    files, rows = preview.files, preview.rows
    changed = [file for file in files if file.sign is not Sign.SAME]
    size = sum(file.bytes for file in changed)
    yield ""
    yield f"files: {_tally(changed, 'deleted')}; {size:,} bytes to send"
    for file in changed:
        shown = f"  {file.bytes:,} bytes" if file.sign is not Sign.REMOVED else ""
        yield f"  {file.sign} {escape(file.name)}{shown}"
    if len(files) > len(changed):
        yield f"  {counted(len(files) - len(changed), 'file')} as published already"
    if preview.others:
        yield f"  {counted(preview.others, 'file')} of others left alone"
    yield ""
    yield f"board: {_tally(rows, 'removed')}; {counted(preview.models, 'model')} in all"
    for row in rows[:ROWS_MAX]:
        facts = [_fact(fact) for fact in row.facts if _telling(row, fact)]
        told = "; ".join([*facts, *map(_move, row.moves)])
        yield f"  {row.sign} {escape(row.model)}: {escape(told)}"
    if len(rows) > ROWS_MAX:
        yield f"  and {counted(len(rows) - ROWS_MAX, 'more row')}"
    yield ""
    yield "nothing was sent"


def _tally(changed: Sequence[FileChange | RowChange], removed: str) -> str:
    words = {Sign.ADDED: "added", Sign.CHANGED: "changed", Sign.REMOVED: removed}
    signs = Counter(one.sign for one in changed)
    told = [f"{signs[sign]} {word}" for sign, word in words.items() if signs[sign]]
    return ", ".join(told) or "none would change"


def _telling(row: RowChange, fact: Fact) -> bool:
    """Whether a fact is worth a line: of a row that comes or goes, its level and its audit are."""
    return row.sign is Sign.CHANGED or fact.name in {"submitted", "audit"}


def _fact(fact: Fact) -> str:
    values = (v if v is None or isinstance(v, str) else json.dumps(v) for v in fact[1:])
    return f"{'level' if fact.name == 'submitted' else fact.name} {_arrow(*values)}"


def _move(move: Move) -> str:
    if move.was == move.will_be:
        return f"{move.regime} other scores than {SCORE}"
    return f"{move.regime} {_arrow(*(None if p is None else _place(p) for p in move[1:]))}"


def _arrow(was: str | None, will_be: str | None) -> str:
    return " -> ".join(text for text in (was, will_be) if text is not None)


def _place(place: Place) -> str:
    score = f"{place.score:.4f}" if math.isfinite(place.score) else "no score"
    return f"{score} (#{place.rank})"


_MEANING = {
    Standing.CURRENT: "it is that of main",
    Standing.BEHIND: "main is ahead of it: geneb-ci publish",
    Standing.AHEAD: "it is newer than this clone: git pull, and look again",
    Standing.OTHER: "it is not that of main, though nothing newer: geneb-ci publish",
    Standing.NOTHING: "no board of ours is live: geneb-ci publish",
}


def health_lines(resource: str, health: Health, main: Manifest) -> Iterator[str]:
    """Say which generation is live, and whether that is right."""
    live = health.live
    if live is None:
        yield f"{resource} at {health.head[:SHORT]}: {_MEANING[Standing.NOTHING]}"
        return
    yield f"{resource} at {health.head[:SHORT]}: {named(live)} is live"
    if health.standing is Standing.ROLLED_BACK and live.rollback is not None:
        yield (
            f"it was put there on purpose, in place of {live.rollback.former_generation[:SHORT]}; "
            "the next change of main replaces it"
        )
    else:
        yield _MEANING[health.standing]
    if health.standing not in {Standing.CURRENT, Standing.AHEAD}:
        yield f"main: {named(main)}"
    for name in health.altered:
        yield f"altered on the Space: {escape(name)}"
    if health.altered:
        yield "these files are not what was published: geneb-ci publish puts them back"
    else:
        yield f"{counted(len(live.files), 'file')} served as published"
