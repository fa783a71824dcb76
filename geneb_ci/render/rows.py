"""Rows as text: evidence, matrices, history, and what publishing them changed."""

import csv
import io
import itertools
import json
import math
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from geneb_ci.audit.trust.attestation import attestation_of
from geneb_ci.audit.trust.evidence import OFFICIAL_REASON, RepositoryEvidence, reasons, shown_audit
from geneb_ci.audit.trust.level import Decision
from geneb_ci.board.diff import OTHER_WORDS
from geneb_ci.common.types import Authorship, Evidence, level_word
from geneb_ci.publish.difference import (
    SCORE,
    Health,
    LiveStatus,
    PublishedFact,
    PublishedMove,
    PublishedPlace,
    RowChange,
    Sign,
    SpaceFileChange,
)
from geneb_ci.publish.manifest import Event, Ledger, Manifest
from geneb_ci.publish.push import SHORT, Published, PublishOutcome
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table, first_that_fit, left_out, wrapped_text
from geneb_ci.render.text import escape
from geneb_ci.statistics.binary import RecoveredCell
from geneb_ci.submission.document import Document
from reference_harness.formats.text import next_line, plural

_AUTHORSHIP_WIDTH = max(map(len, Authorship))
COLUMNS = (
    *("regime", "task", "seed", "n_test", "small_class", "large_class", "matrices"),
    *("small_right", "small_wrong", "large_right", "large_wrong", "MCC", "Acc", "F1"),
)
# Spreadsheets evaluate a string that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
ROWS_MAX = 30  # listed rows of the board; the rest is counted
FILES_MAX = 15  # likewise
_MEANING = {
    LiveStatus.CURRENT: "up to date with main",
    LiveStatus.BEHIND: "older than main",
    LiveStatus.AHEAD: "newer than this clone: pull, then verify again",
    LiveStatus.OTHER: "neither that of main nor newer",
    LiveStatus.NOTHING: "no board is published",
}
WIDTH = 88  # columns of a paragraph
COMMIT_SHOWN = 12  # hex digits that people read
WORDS = {
    "include": "added to the board",
    "change": "changed",
    "correction": "corrected",
    "audit": "audit recorded",
    "withdrawal": "audit withdrawn",
    "relabel": "relabelled",
    "dispute": "disputed",
    "removal": "removed from the board",
}


class LabelRow(NamedTuple):
    """One submission."""

    model_id: str
    decision: Decision | None
    """None if the file has errors; the row is then not on the board."""
    reasons: tuple[str, ...]


def row_of(model_id: str, file: Document, errors: int, evidence: RepositoryEvidence) -> LabelRow:
    """Return the row of a submission with its evidence; `errors` is its number of errors."""
    if errors:
        return LabelRow(model_id, None, (f"{plural(errors, 'error')}: run `geneb-ci check`",))
    decision = evidence.decide(file.sha256, file.origin, file.scorer)
    return LabelRow(model_id, decision, tuple(reasons(model_id, file, evidence)))


def labels_text(
    rows: Sequence[LabelRow], columns: int = sys.maxsize, most: int = sys.maxsize
) -> str:
    """Return text for a terminal: each row with its audits, then the count of each evidence.

    It has `most` lines of so many columns; the rest of the rows is counted.
    """
    blocks: list[list[str]] = []
    width = max(len(_evidence(row)) for row in rows)
    for row in rows:
        first, *others = row.reasons
        whose, audited = "", ""
        if row.decision is not None:
            first = row.decision.reason
            audited = shown_audit(row.decision)
            whose = f"{row.decision.authorship:<{_AUTHORSHIP_WIDTH}}  "
            others = [line for line in others if line != OFFICIAL_REASON]
        tail = f" ({audited})" if audited else ""
        name = escape(row.model_id)
        lines = [f"{_evidence(row):<{width}}  {whose}{name}: {escape(first)}{tail}"]
        lines += [f"{'':<{width}}    {escape(line)}" for line in others]
        blocks.append(wrapped_text("\n".join(lines), columns).splitlines())
    tally = Counter(map(_evidence, rows))
    counts = [f"{tally[evidence]} {evidence}" for evidence in map(str, Evidence) if tally[evidence]]
    shown = first_that_fit(blocks, most - 3)
    lines = [*itertools.chain(*shown), *left_out(len(rows) - len(shown), "row")]
    return "\n".join([*lines, "", f"{plural(len(rows), 'row')}: {', '.join(counts)}"]) + "\n"


def labels_json(rows: Sequence[LabelRow]) -> str:
    """Return the rows and their evidence as JSON."""
    value = {"schema_version": "1.0", "rows": [_label_row(row) for row in rows]}
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


def _evidence(row: LabelRow) -> str:
    return str(Evidence.NONE if row.decision is None else row.decision.evidence)


def _label_row(row: LabelRow) -> dict[str, Any]:
    decision = row.decision
    audit = asdict(decision.audit) if decision is not None and decision.audit else None
    recomputed = decision.recomputed if decision is not None else None
    statements = attestation_of(decision).every_statement if decision is not None else ()
    return {
        "model_id": row.model_id,
        "evidence": _evidence(row),
        "level": str(decision.level) if decision is not None else None,
        "official": decision.is_official if decision is not None else False,
        "audit": audit,
        "recomputed": recomputed.text if recomputed is not None else None,
        "attested": [statement._asdict() for statement in statements],
        "reasons": list(row.reasons),
    }


def _matrix_row(cell: RecoveredCell) -> dict[str, Any]:
    """Return one row: a cell and the matrix nearest to its scores, if there is one."""
    small, large = cell.classes
    known = (cell.regime, cell.task, cell.seed, small + large, small, large, cell.matrices)
    nearest = (*(cell.table or (None,) * 4), *(cell.scores or (None,) * 3))
    return dict(zip(COLUMNS, (*known, *nearest), strict=True))


def formula_safe(value: object) -> object:
    """Prefix a string that a spreadsheet would evaluate as a formula."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return "" if value is None else value


def matrices_csv(cells: list[RecoveredCell]) -> str:
    """Return CSV with one line per cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        [formula_safe(value) for value in _matrix_row(cell).values()] for cell in cells
    )
    return stream.getvalue()


def matrices_json(cells: list[RecoveredCell]) -> str:
    """Return JSON with every matrix of a cell, up to a limit."""
    rows = [
        _matrix_row(cell) | {"tables": [matrix._asdict() for matrix in cell.tables]}
        for cell in cells
    ]
    return json.dumps(rows, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def matrices_text(
    cells: list[RecoveredCell], width: int = sys.maxsize, most: int = sys.maxsize
) -> str:
    """Return a table for a terminal of `width` columns: correct / total for each class.

    It has `most` lines: cells without a matrix come first where not all are shown.
    """
    columns = ("task", "seed", "matrices", "smaller class", "larger class", "MCC", "Acc", "F1")
    lines: list[tuple[str, ...]] = []
    for cell in sorted(cells, key=lambda cell: cell.matrices > 0) if most < sys.maxsize else cells:
        right = (
            (
                f"{cell.table.small_right}/{cell.classes.small}",
                f"{cell.table.large_right}/{cell.classes.large}",
            )
            if cell.table
            else ("-", "-")
        )
        values = [f"{value:.4f}" for value in cell.reported]
        seed = "" if cell.seed is None else str(cell.seed)
        lines.append((visible(cell.task), seed, str(cell.matrices), *right, *values))
    rows = Table(columns, lines, right_aligned=frozenset(columns[1:])).fitted_rows(width)
    shown = first_that_fit(rows, most - 3)
    aligned = [line for row in shown for line in row]
    aligned += left_out(len(rows) - len(shown), "cell")
    single = sum(cell.matrices == 1 for cell in cells)
    none = sum(cell.matrices == 0 for cell in cells)
    count = f"{plural(len(cells), 'cell')}: {single} with one matrix, {none} with none"
    return "\n".join([*aligned, "", count]) + "\n"


MATRICES_WRITERS: dict[str, Callable[[list[RecoveredCell]], str]] = {
    "text": matrices_text,
    "csv": matrices_csv,
    "json": matrices_json,
}


class Preview(NamedTuple):
    """The changes that publishing would make."""

    files: list[SpaceFileChange]
    rows: list[RowChange]
    others: int
    """Number of files on the Space that are of no board, or of pages of earlier ones."""
    models: int
    """Number of models on the new board."""


def published_line(resource: str, published: Published) -> str:
    """Return what publishing did, in one line."""
    what = generation_name(published.manifest)
    if published.outcome is PublishOutcome.UNCHANGED:
        return f"{resource}: nothing changed; {what} is live at {published.commit[:SHORT]}"
    return f"{resource}: published {what} as {published.commit[:SHORT]}, read back and verified"


def preview_line(resource: str, manifest: Manifest, live: Manifest | None) -> str:
    """Return which generation would replace which."""
    former = "as the first board" if live is None else f"in place of {generation_name(live)}"
    return f"{resource}: would publish {generation_name(manifest)}, {former}"


def generation_name(manifest: Manifest) -> str:
    """Return short ids of a generation and its commit."""
    return f"generation {manifest.generation[:SHORT]} of commit {manifest.source_commit[:SHORT]}"


def change_lines(preview: Preview) -> Iterator[str]:
    """Yield what publishing would change: the rows of the board, then the files."""
    files, rows = preview.files, preview.rows
    changed = [file for file in files if file.sign is not Sign.SAME]
    size = sum(file.bytes for file in changed)
    yield ""
    yield f"board: {_counts_text(rows, 'removed')}; {plural(preview.models, 'model')} in all"
    for row in rows[:ROWS_MAX]:
        facts = [_fact(fact) for fact in row.facts if _is_listed(row, fact)]
        parts = "; ".join([*facts, *map(_move_text, row.moves)])
        yield f"  {row.sign} {escape(row.model)}: {escape(parts)}"
    if len(rows) > ROWS_MAX:
        yield f"  and {plural(len(rows) - ROWS_MAX, 'more row')}"
    yield ""
    yield f"files: {_counts_text(changed, 'deleted')}; {size:,} bytes to upload"
    for file in changed[:FILES_MAX]:
        shown = f"  {file.bytes:,} bytes" if file.sign is not Sign.REMOVED else ""
        yield f"  {file.sign} {escape(file.name)}{shown}"
    if len(changed) > FILES_MAX:
        yield f"  and {plural(len(changed) - FILES_MAX, 'more file')}"
    if len(files) > len(changed):
        yield f"  {plural(len(files) - len(changed), 'file')} unchanged"
    if preview.others:
        yield f"  {plural(preview.others, 'file')} of earlier boards or of others, kept"
    yield ""
    yield "nothing was uploaded"


def _counts_text(changed: Sequence[SpaceFileChange | RowChange], removed: str) -> str:
    words = {Sign.ADDED: "added", Sign.CHANGED: "changed", Sign.REMOVED: removed}
    signs = Counter(item.sign for item in changed)
    counts = [f"{signs[sign]} {word}" for sign, word in words.items() if signs[sign]]
    return ", ".join(counts) or "none would change"


def _is_listed(row: RowChange, fact: PublishedFact) -> bool:
    """Whether to list a fact; of added and removed rows, only authorship, evidence and audit."""
    is_changed = row.sign is Sign.CHANGED and fact.name not in OTHER_WORDS
    return is_changed or fact.name in {"authorship", "evidence", "audit"}


def _fact(fact: PublishedFact) -> str:
    values = (v if v is None or isinstance(v, str) else json.dumps(v) for v in fact[1:])
    return f"{fact.name} {_arrow(*values)}"


def _move_text(move: PublishedMove) -> str:
    if move.was == move.will_be:
        return f"{move.regime} other scores than {SCORE}"
    return f"{move.regime} {_arrow(*(None if p is None else _place_text(p) for p in move[1:]))}"


def _arrow(was: str | None, will_be: str | None) -> str:
    return " -> ".join(text for text in (was, will_be) if text is not None)


def _place_text(position: PublishedPlace) -> str:
    score = f"{position.score:.4f}" if math.isfinite(position.score) else "no score"
    return f"{score} (#{position.rank})"


def health_lines(resource: str, health: Health, main: Manifest) -> Iterator[str]:
    """Yield which generation is live, whether it is the expected one, and what comes next."""
    publish = next_line(f"geneb-ci publish --space {resource.removeprefix('spaces/')}")
    live = health.live
    if live is None:
        yield f"{resource} at {health.head[:SHORT]}: {_MEANING[LiveStatus.NOTHING]}"
        yield from _service_lines(health)
        yield publish
        return
    yield f"{resource} at {health.head[:SHORT]}: {generation_name(live)} is live"
    if health.standing is LiveStatus.ROLLED_BACK and live.rollback is not None:
        yield (
            f"published by a rollback, in place of {live.rollback.former_generation[:SHORT]}; the "
            "next change of main replaces it"
        )
    else:
        yield _MEANING[health.standing]
    if health.standing not in {LiveStatus.CURRENT, LiveStatus.AHEAD}:
        yield f"main: {generation_name(main)}"
    for name in health.altered:
        yield f"modified on the Space: {escape(name)}"
    if health.altered:
        yield "these files differ from the published ones, which publishing again restores"
    else:
        yield f"{plural(len(live.files), 'file')} identical to the published ones"
    yield from _service_lines(health)
    if health.standing is LiveStatus.AHEAD:
        yield next_line("git pull")
    elif health.altered and health.standing is LiveStatus.ROLLED_BACK:
        yield publish.replace("publish", f"rollback {live.generation[:SHORT]}", 1)
    elif health.altered or health.standing in {LiveStatus.BEHIND, LiveStatus.OTHER}:
        yield publish


def _service_lines(health: Health) -> Iterator[str]:
    """Yield why visitors do not see the board, or where they do."""
    yield from (f"the Space {escape(hindrance)}" for hindrance in health.hindrances)
    if health.hindrances or health.live is None:
        return
    if health.address is None:
        yield "what visitors get was not looked at: the Hub names no address of the Space"
    else:
        yield f"visitors get this generation at {escape(health.address)}"


def models_of(ledger: Ledger) -> list[str]:
    """Return the models of all rows that ever existed, sorted."""
    return sorted({event.model for event in ledger.events}, key=lambda name: (name.lower(), name))


def row_history(ledger: Ledger, model: str, width: int = WIDTH) -> Iterator[str]:
    """Yield the history of one row, oldest first; nothing if there never was such a row.

    Events of the same commit are in one paragraph.
    """
    own = (event for event in ledger.events if event.model == model)
    commits = [list(events) for _, events in itertools.groupby(own, lambda event: event.commit)]
    for events in commits:
        yield ""
        yield from _paragraph(events, width)
    if commits:
        yield ""
        yield "`git show COMMIT -- FILE` shows how a commit changed the evidence"


def _paragraph(events: list[Event], width: int) -> Iterator[str]:
    first = events[0]
    yield f"{first.when}  {'; '.join(WORDS[event.kind] + _levels(event) for event in events)}"
    for title, text in (("why", first.why), ("who", first.who)):
        yield textwrap.fill(
            f"{title}: {escape(text)}", width, initial_indent="  ", subsequent_indent="       "
        )
    yield f"  commit: {first.commit}"
    for evidence in dict.fromkeys(event.evidence for event in events):
        yield f"  evidence: {escape(evidence.path)}"
        yield f"    {f'sha256 {evidence.sha256}' if evidence.sha256 else 'deleted'}"


def _levels(event: Event) -> str:
    # A change of level is a separate event.
    if event.kind == "dispute" and event.former_level:
        return f", was {escape(level_word(event.former_level))}"
    if event.kind == "relabel" and event.former_level and event.level:
        return f", {escape(level_word(event.former_level))} -> {escape(level_word(event.level))}"
    if event.kind == "include" and event.level:
        return f", {escape(level_word(event.level))}"
    return ""


def event_lines(ledger: Ledger) -> Iterator[str]:
    """Yield one line per event."""
    for event in ledger.events:
        yield (
            f"{event.when}  {event.commit[:COMMIT_SHOWN]}  {event.kind:<10}  {escape(event.model)}"
            f"{_levels(event)}  {escape(event.why)}  ({escape(event.who)})"
        )
