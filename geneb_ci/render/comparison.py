"""Renders comparisons of boards, and replays of rules, as text, Markdown and JSON."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from geneb_ci.board.board import RejectedSubmission
from geneb_ci.board.diff import (
    REPEATING_FACTS,
    BoardDiff,
    ChangedRow,
    OneSidedRow,
    RankShift,
    RegimePlace,
)
from geneb_ci.common.finding import first_and_more
from geneb_ci.publish.comparison import BoardComparison, Replay, RuleEffect
from geneb_ci.render.markdown import code_span, prose_text, table_cell
from geneb_ci.render.plain import audit_words, log_safe_json
from geneb_ci.render.table import Table
from geneb_ci.render.text import escape
from reference_harness.formats.text import plural, quoted

COMPARISON_FORMAT_VERSION = "1.0"
"""Version of the JSON of a comparison."""
NAMED_ROWS_MAX = 2
"""Maximum number of rows named in one cell, since an id can have 128 characters."""
MARKDOWN_LINES_MAX = 200
"""Maximum number of lines of one Markdown table; the JSON has all."""
TERMINAL_LINES_MAX = 8
"""Maximum number of lines of each table on a terminal."""
REPLAY_FORMAT_VERSION = "1.0"
"""Version of the JSON of a replay."""


class TitledTable(NamedTuple):
    """A table with a title, column names and rows."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    quoted: tuple[str, ...]
    """Names of the columns that hold text written by contributors."""


def comparison_text(comparison: BoardComparison) -> str:
    """Return a comparison as tables for a terminal."""
    lines = [_headline(comparison, escape(comparison.base))]
    for table in _tables(comparison.diff):
        rows = [tuple(map(escape, row)) for row in table.rows[:TERMINAL_LINES_MAX]]
        lines += ["", table.title]
        lines += [f"  {line}" for line in Table(table.columns, rows).text_lines()]
        lines += _hidden_rows_line(table, TERMINAL_LINES_MAX)
    notes = [escape(note) for note in _notes(comparison)]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def comparison_markdown(comparison: BoardComparison) -> str:
    """Return a comparison as Markdown tables; names are in code spans."""
    lines = [f"**{_headline(comparison, code_span(comparison.base))}**"]
    for table in _tables(comparison.diff):
        rows = [
            [
                _cell_text(text) if name in table.quoted else text
                for name, text in zip(table.columns, row, strict=True)
            ]
            for row in table.rows[:MARKDOWN_LINES_MAX]
        ]
        lines += ["", f"### {table.title.capitalize()}", ""]
        lines += Table(table.columns, rows).markdown_lines()
        lines += [f"\n{line.strip()}" for line in _hidden_rows_line(table, MARKDOWN_LINES_MAX)]
    notes = [f"- {prose_text(note)}" for note in _notes(comparison)]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def comparison_json(comparison: BoardComparison) -> str:
    """Return the whole comparison as JSON."""
    diff = comparison.diff
    return log_safe_json(
        {
            "format_version": COMPARISON_FORMAT_VERSION,
            "base": comparison.base,
            "commit": comparison.commit,
            "added": [_one_sided_json(row) for row in diff.added],
            "removed": [_one_sided_json(row) for row in diff.removed],
            "changed": [_changed_json(row) for row in diff.changed],
            "moved": [
                {
                    "model": move.model,
                    "regime": move.after.regime,
                    "rank_before": move.before.rank,
                    "rank_after": move.after.rank,
                    "passed": list(move.passed),
                    "passed_by": list(move.passed_by),
                    "inside_noise": move.inside_noise,
                }
                for move in diff.moves
            ],
            "pushed": diff.pushed,
            "refused": [refusal._asdict() for refusal in comparison.refused],
            "refused_before": [refusal._asdict() for refusal in comparison.refused_before],
        }
    )


COMPARISON_WRITERS: dict[str, Callable[[BoardComparison], str]] = {
    "text": comparison_text,
    "json": comparison_json,
    "markdown": comparison_markdown,
}
"""By format: the function that writes a comparison."""


def _headline(comparison: BoardComparison, base: str) -> str:
    """Return the numbers of added, changed, removed and moved rows as a line."""
    diff = comparison.diff
    moved_models = len({move.model for move in diff.moves})
    rows_by_change = {"added": diff.added, "changed": diff.changed, "removed": diff.removed}
    counts = ", ".join(f"{len(rows)} {name}" for name, rows in rows_by_change.items())
    headline = "no row differs" if diff.is_empty else f"rows: {counts}, {moved_models} moved"
    return f"against {base} ({comparison.commit[:12]}): {headline}"


def _notes(comparison: BoardComparison) -> Iterator[str]:
    """Yield what the tables do not show: pushed rows, unknown sizes, submissions left out."""
    pushed = [f"{regime} {number}" for regime, number in comparison.diff.pushed.items() if number]
    if pushed:
        yield f"rows whose rank changed only through added or removed rows: {', '.join(pushed)}"
    diff = comparison.diff
    is_ranked = diff.added or diff.removed or any(row.shifts for row in diff.changed)
    if comparison.unsized and is_ranked:
        yield (
            "significance was not computed: the benchmark has no n_test for "
            f"{first_and_more(list(comparison.unsized))}"
        )
    if comparison.refused:
        yield (
            f"not on the new board because `geneb-ci check` finds errors: "
            f"{first_and_more([_refusal_text(refusal) for refusal in comparison.refused])}"
        )
    if comparison.refused_before:
        file_list = first_and_more([quoted(refusal.file) for refusal in comparison.refused_before])
        yield f"not on the old board, because it could not be read: {file_list}"


def _refusal_text(submission: RejectedSubmission) -> str:
    """Return the file of a submission that is left out, with the rules that refuse it."""
    rules = f" ({first_and_more(list(submission.rules))})" if submission.rules else ""
    return f"{quoted(submission.file)}{rules}"


def _tables(diff: BoardDiff) -> Iterator[TitledTable]:
    """Yield the tables of a comparison: added, removed and changed rows, facts, moves."""
    columns = ("model", "regime", "macro MCC", "rank", "possible ranks")
    for title, rows in (("added", diff.added), ("removed", diff.removed)):
        lines = [(row.model, *_place_cells(place)) for row in rows for place in row.places]
        if lines:
            yield TitledTable(title, columns, lines, ("model",))
    shift_lines = [
        (row.model, *_shift_cells(shift)) for row in diff.changed for shift in row.shifts
    ]
    if shift_lines:
        shift_columns = ("model", "regime", "macro MCC", "by", "rank", "task scores")
        yield TitledTable("changed", shift_columns, shift_lines, ("model",))
    facts = [
        (row.model, fact.name, _fact_text(fact.before), _fact_text(fact.after))
        for row in diff.changed
        for fact in row.facts
        if fact.name not in REPEATING_FACTS
    ]
    if facts:
        quoted_columns = ("model", "before", "after")
        yield TitledTable(
            "changed facts", ("model", "field", "before", "after"), facts, quoted_columns
        )
    moves = [
        (
            *(move.model, move.after.regime, f"{move.before.rank} -> {move.after.rank}"),
            *(
                first_and_more(list(names), NAMED_ROWS_MAX) or "-"
                for names in (move.passed, move.passed_by)
            ),
            "not significant" if move.inside_noise else "significant",
        )
        for move in diff.moves
    ]
    if moves:
        quoted_columns = ("model", "overtook", "overtaken by")
        columns_of_moves = ("model", "regime", "rank", "overtook", "overtaken by", "change is")
        yield TitledTable("moved", columns_of_moves, moves, quoted_columns)


def _fact_text(fact: object) -> str:
    """Return the value of a row's fact as text; an audit is summed up in one line."""
    if isinstance(fact, dict):
        return audit_words(fact)
    return quoted(fact) if fact is not None else "none"


def _place_cells(place: RegimePlace) -> tuple[str, ...]:
    """Return regime, score, rank and possible ranks as texts."""
    possible_ranks = f"{place.rank_low} to {place.rank_high}"
    return (
        place.regime,
        f"{place.score:.4f}",
        f"{place.rank} of {place.rows}",
        possible_ranks,
    )


def _shift_cells(shift: RankShift) -> tuple[str, ...]:
    """Return the change of a row in a regime as texts."""
    before, after = shift.before, shift.after
    change_text = "-"
    if before and after:
        significance = "not significant" if shift.inside_noise else "significant"
        change_text = f"{after.score - before.score:+.4f}, {significance}"
    scores = " -> ".join(f"{place.score:.4f}" if place else "none" for place in (before, after))
    ranks_shown = [str(place.rank) if place else "none" for place in (before, after)]
    ranks = " -> ".join(ranks_shown) if ranks_shown[0] != ranks_shown[1] else ranks_shown[0]
    return (shift.regime, scores, change_text, ranks, plural(shift.scores, "score"))


def _hidden_rows_line(table: TitledTable, limit: int) -> list[str]:
    """Return the line that says how many rows of a table are not shown; none if all are."""
    hidden_rows = len(table.rows) - limit
    return [f"  and {hidden_rows:,} more; `--format json` lists all"] if hidden_rows > 0 else []


def _cell_text(fact: str) -> str:
    """Return contributor text as a cell of Markdown; "-" remains as it is."""
    return "-" if fact == "-" else table_cell(fact)


def _place_json(place: RegimePlace | None) -> dict[str, Any] | None:
    """Return a place as JSON; None without one."""
    return None if place is None else dict(place._asdict())


def _one_sided_json(row: OneSidedRow) -> dict[str, Any]:
    """Return a row that only one board has as JSON."""
    return {"model": row.model, "places": [_place_json(place) for place in row.places]}


def _changed_json(row: ChangedRow) -> dict[str, Any]:
    """Return a changed row as JSON."""
    return {
        "model": row.model,
        "facts": [fact._asdict() for fact in row.facts],
        "regimes": [
            shift._asdict()
            | {"before": _place_json(shift.before), "after": _place_json(shift.after)}
            for shift in row.shifts
        ],
    }


def replay_text(replay: Replay) -> str:
    """Return a replay as text, two lines per row and rule."""
    lines = [_replay_headline(replay, escape(replay.name))]
    for title, effects in _effects_by_title(replay):
        lines += ["", title]
        for effect in effects:
            lines.append(
                f"  {escape(effect.row)}  {escape(effect.rule)}  {plural(effect.places, 'place')}"
            )
            lines.append(f"    {escape(effect.message)}")
    return "\n".join(lines) + "\n"


def replay_markdown(replay: Replay) -> str:
    """Return a replay as Markdown; names are in code spans."""
    lines = [f"**{_replay_headline(replay, code_span(replay.name))}**"]
    for title, effects in _effects_by_title(replay):
        lines += ["", f"### {title.capitalize()}", ""]
        for effect in effects:
            places = plural(effect.places, "place")
            lines.append(f"- {code_span(effect.row)} {code_span(effect.rule)}, {places}\\")
            lines.append(f"  {code_span(effect.message)}")
    return "\n".join(lines) + "\n"


def replay_json(replay: Replay) -> str:
    """Return the whole replay as JSON."""
    return log_safe_json(
        {
            "format_version": REPLAY_FORMAT_VERSION,
            "rules": replay.name,
            "commit": replay.commit,
            "rows": replay.rows,
            "fails": [effect._asdict() for effect in replay.fails],
            "warns": [effect._asdict() for effect in replay.warns],
            "heals": [effect._asdict() for effect in replay.heals],
        }
    )


REPLAY_WRITERS: dict[str, Callable[[Replay], str]] = {
    "text": replay_text,
    "json": replay_json,
    "markdown": replay_markdown,
}
"""By format: the function that writes a replay."""


def _replay_headline(replay: Replay, name: str) -> str:
    """Return how many rows would newly fail, as a line."""
    failing = len({effect.row for effect in replay.fails})
    headline = f"{failing} would newly fail" if failing else "no row would newly fail"
    return f"rules of {name} ({replay.commit[:12]}) on {plural(replay.rows, 'row')}: {headline}"


def _effects_by_title(replay: Replay) -> Iterator[tuple[str, tuple[RuleEffect, ...]]]:
    """Yield title and findings of each kind of change that a replay found."""
    effects_by_title = {
        "would newly fail": replay.fails,
        "would newly warn": replay.warns,
        "would no longer fail": replay.heals,
    }
    yield from ((title, effects) for title, effects in effects_by_title.items() if effects)
