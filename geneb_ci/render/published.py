"""Renders publications as text: what would change, the state of the live board, the history."""

import itertools
import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from geneb_ci.board.diff import REPEATING_FACTS, ChangedFact
from geneb_ci.common.types import level_word
from geneb_ci.publish.difference import (
    RANKING_SCORE,
    ChangeSign,
    LiveStatus,
    PublishedMove,
    PublishedPlace,
    RowChange,
    SpaceFileChange,
    SpaceHealth,
)
from geneb_ci.publish.manifest import Event, Ledger, Manifest
from geneb_ci.publish.push import ID_DIGITS_SHOWN, Published, PublishOutcome
from geneb_ci.render.plain import audit_words
from geneb_ci.render.text import escape
from reference_harness.formats.text import next_line, plural

LISTED_ROWS_MAX = 30
"""Maximum number of rows that are listed; further ones are only counted."""
LISTED_FILES_MAX = 15
"""Maximum number of files that are listed; further ones are only counted."""
_STATUS_TEXTS = {
    LiveStatus.CURRENT: "up to date with main",
    LiveStatus.BEHIND: "older than main",
    LiveStatus.AHEAD: "newer than this clone: pull, then verify again",
    LiveStatus.OTHER: "neither the board of main nor a newer one",
    LiveStatus.NOTHING: "no board is published",
}
"""By status of the live board: the words for it."""
PARAGRAPH_WIDTH = 88
"""Columns of a paragraph of the history."""
COMMIT_DIGITS = 12
"""Hex digits of a commit that are shown."""
EVENT_WORDS = {
    "include": "added to the board",
    "change": "changed",
    "correction": "corrected",
    "audit": "audit recorded",
    "withdrawal": "audit withdrawn",
    "relabel": "relabelled",
    "dispute": "disputed",
    "removal": "removed from the board",
}
"""By kind of event: the words for it."""


class PublishPreview(NamedTuple):
    """The changes that publishing would make."""

    files: list[SpaceFileChange]
    """The change of each published file."""
    rows: list[RowChange]
    """The changes of rows."""
    others: int
    """Number of files on the Space that belong to no board, or to permanent pages of earlier
    boards."""
    models: int
    """Number of models on the new board."""


def published_line(resource: str, published: Published) -> str:
    """Return the outcome of publishing in one line."""
    generation = generation_name(published.manifest)
    commit = published.commit[:ID_DIGITS_SHOWN]
    if published.outcome is PublishOutcome.UNCHANGED:
        return f"{resource}: nothing changed; {generation} is live at {commit}"
    return f"{resource}: published {generation} as {commit}, read back and verified"


def preview_line(resource: str, manifest: Manifest, live: Manifest | None) -> str:
    """Return a line with the generation that would be published, and the live one, if any."""
    former_text = "as the first board" if live is None else f"in place of {generation_name(live)}"
    return f"{resource}: would publish {generation_name(manifest)}, {former_text}"


def generation_name(manifest: Manifest) -> str:
    """Return shortened ids of a generation and of its commit."""
    generation, commit = (
        manifest.generation[:ID_DIGITS_SHOWN],
        manifest.source_commit[:ID_DIGITS_SHOWN],
    )
    return f"generation {generation} of commit {commit}"


def change_lines(preview: PublishPreview) -> Iterator[str]:
    """Yield the changes of publishing: the rows of the board, then the files."""
    files, rows = preview.files, preview.rows
    changed_files = [file for file in files if file.sign is not ChangeSign.SAME]
    size = sum(file.bytes for file in changed_files)
    yield ""
    yield f"board: {_counts_text(rows, 'removed')}; {plural(preview.models, 'model')} in all"
    for row in rows[:LISTED_ROWS_MAX]:
        facts = [_fact_text(fact) for fact in row.facts if _is_listed(row, fact)]
        changes = "; ".join([*facts, *map(_move_text, row.moves)])
        yield f"  {row.sign} {escape(row.model)}: {escape(changes)}"
    if len(rows) > LISTED_ROWS_MAX:
        yield f"  and {plural(len(rows) - LISTED_ROWS_MAX, 'more row')}"
    yield ""
    yield f"files: {_counts_text(changed_files, 'deleted')}; {size:,} bytes to upload"
    for file in changed_files[:LISTED_FILES_MAX]:
        size_text = f"  {file.bytes:,} bytes" if file.sign is not ChangeSign.REMOVED else ""
        yield f"  {file.sign} {escape(file.name)}{size_text}"
    if len(changed_files) > LISTED_FILES_MAX:
        yield f"  and {plural(len(changed_files) - LISTED_FILES_MAX, 'more file')}"
    if len(files) > len(changed_files):
        yield f"  {plural(len(files) - len(changed_files), 'file')} unchanged"
    if preview.others:
        yield f"  {plural(preview.others, 'file')} of earlier boards or from other sources, kept"
    yield ""
    yield "nothing was uploaded"


def _counts_text(changes: Sequence[SpaceFileChange | RowChange], removed: str) -> str:
    """Return how many items would be added, changed and removed."""
    words = {ChangeSign.ADDED: "added", ChangeSign.CHANGED: "changed", ChangeSign.REMOVED: removed}
    count_by_sign = Counter(item.sign for item in changes)
    counts = [
        f"{count_by_sign[sign]} {word}" for sign, word in words.items() if count_by_sign[sign]
    ]
    return ", ".join(counts) or "none would change"


def _is_listed(row: RowChange, fact: ChangedFact) -> bool:
    """Whether to list a fact; of added and removed rows only authorship, evidence and audit are."""
    is_changed = row.sign is ChangeSign.CHANGED and fact.name not in REPEATING_FACTS
    return is_changed or fact.name in {"authorship", "evidence", "audit"}


def _fact_text(fact: ChangedFact) -> str:
    """Return the change of a fact about a model as text."""
    if fact.name == "audit":
        audits = (v for v in fact[1:] if isinstance(v, dict))
        return " -> ".join(map(audit_words, audits)) or "no audit any more"
    sides = (v if v is None or isinstance(v, str) else json.dumps(v) for v in fact[1:])
    return f"{fact.name} {_before_and_after(*sides)}"


def _move_text(move: PublishedMove) -> str:
    """Return the change of a row in a regime as text."""
    if move.was == move.will_be:
        return f"{move.regime}: scores other than {RANKING_SCORE} change"
    places = (None if place is None else _place_text(place) for place in (move.was, move.will_be))
    return f"{move.regime} {_before_and_after(*places)}"


def _before_and_after(was: str | None, will_be: str | None) -> str:
    """Return two values as "before -> after", or the only known one."""
    return " -> ".join(text for text in (was, will_be) if text is not None)


def _place_text(position: PublishedPlace) -> str:
    """Return score and rank of a row as text."""
    score = f"{position.score:.4f}" if math.isfinite(position.score) else "no score"
    return f"{score} (#{position.rank})"


def health_lines(resource: str, health: SpaceHealth, main: Manifest) -> Iterator[str]:
    """Yield which generation is live, whether it is the expected one, and what to do next."""
    publish_line = next_line(f"geneb-ci publish --space {resource.removeprefix('spaces/')}")
    live = health.live
    if live is None:
        yield f"{resource} at {health.head[:ID_DIGITS_SHOWN]}: {_STATUS_TEXTS[LiveStatus.NOTHING]}"
        yield from _service_lines(health)
        yield publish_line
        return
    yield f"{resource} at {health.head[:ID_DIGITS_SHOWN]}: {generation_name(live)} is live"
    if health.live_status is LiveStatus.ROLLED_BACK and live.rollback is not None:
        yield (
            "this board was published by a rollback, in place of generation "
            f"{live.rollback.former_generation[:ID_DIGITS_SHOWN]}; the next change of main "
            "replaces this board"
        )
    else:
        yield _STATUS_TEXTS[health.live_status]
    if health.live_status not in {LiveStatus.CURRENT, LiveStatus.AHEAD}:
        yield f"main: {generation_name(main)}"
    for path in health.altered:
        yield f"modified on the Space: {escape(path)}"
    if health.altered:
        yield "these files differ from the published ones; publish again to restore them"
    else:
        yield f"{plural(len(live.files), 'file')} identical to the published ones"
    yield from _service_lines(health)
    if health.live_status is LiveStatus.AHEAD:
        yield next_line("git pull")
    elif health.altered and health.live_status is LiveStatus.ROLLED_BACK:
        yield publish_line.replace("publish", f"rollback {live.generation[:ID_DIGITS_SHOWN]}", 1)
    elif health.altered or health.live_status in {LiveStatus.BEHIND, LiveStatus.OTHER}:
        yield publish_line


def _service_lines(health: SpaceHealth) -> Iterator[str]:
    """Yield why visitors do not see the board, or the address where they do."""
    yield from (f"the Space {escape(hindrance)}" for hindrance in health.hindrances)
    if health.hindrances or health.live is None:
        return
    if health.address is None:
        yield "what visitors get was not checked: the Hub gives no address for the Space"
    else:
        yield f"visitors get this generation at {escape(health.address)}"


def models_of(ledger: Ledger) -> list[str]:
    """Return the models of all rows that were ever published, sorted."""
    return sorted({event.model for event in ledger.events}, key=lambda name: (name.lower(), name))


def row_history(ledger: Ledger, model: str, width: int = PARAGRAPH_WIDTH) -> Iterator[str]:
    """Yield the history of one row, oldest event first; nothing if there never was such a row.

    Events of the same commit are in one paragraph.
    """
    row_events = (event for event in ledger.events if event.model == model)
    events_by_commit = [
        list(events) for _, events in itertools.groupby(row_events, lambda event: event.commit)
    ]
    for events in events_by_commit:
        yield ""
        yield from _paragraph(events, width)
    if events_by_commit:
        yield ""
        yield "`git show COMMIT -- FILE` shows how a commit changed the evidence"


def _paragraph(events: list[Event], width: int) -> Iterator[str]:
    """Yield the events of one row in one commit."""
    first_event = events[0]
    changes = "; ".join(EVENT_WORDS[event.kind] + _level_text(event) for event in events)
    yield f"{first_event.when}  {changes}"
    for question, answer in (("why", first_event.why), ("who", first_event.who)):
        yield textwrap.fill(
            f"{question}: {escape(answer)}", width, initial_indent="  ", subsequent_indent="       "
        )
    yield f"  commit: {first_event.commit}"
    for evidence in dict.fromkeys(event.evidence for event in events):
        yield f"  evidence: {escape(evidence.path)}"
        yield f"    {f'sha256 {evidence.sha256}' if evidence.sha256 else 'deleted'}"


def _level_text(event: Event) -> str:
    """Return the trust level, as a clause, for an event that adds a row or changes its level."""
    if event.kind == "dispute" and event.former_level:
        return f", was {escape(level_word(event.former_level))}"
    if event.kind == "relabel" and event.former_level and event.level:
        return f", {escape(level_word(event.former_level))} -> {escape(level_word(event.level))}"
    if event.kind == "include" and event.level:
        return f", {escape(level_word(event.level))}"
    return ""


def event_lines(ledger: Ledger) -> Iterator[str]:
    """Yield one line per event of the ledger."""
    for event in ledger.events:
        yield (
            f"{event.when}  {event.commit[:COMMIT_DIGITS]}  {event.kind:<10}  {escape(event.model)}"
            f"{_level_text(event)}  {escape(event.why)}  ({escape(event.who)})"
        )
