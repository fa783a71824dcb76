"""Write the queue as a table for a terminal, as Markdown, and as JSON."""

import dataclasses
import json
import textwrap

from rich.cells import cell_len

from geneb_ci.common.finding import first_and_more
from geneb_ci.common.types import level_word
from geneb_ci.github.ages import duration
from geneb_ci.github.queue import Queue, QueueRow, QueueStep, Turn, largest_age
from geneb_ci.render.markdown import table_cell
from geneb_ci.render.table import Table
from geneb_ci.render.text import StyledText, coloured, escape

COLUMNS: tuple[str, ...] = (
    *("PR", "model", "author", "age", "verdict", "warnings", "effect", "trust", "audit"),
    *("by", "next"),
)
"""Headings of the columns of the table."""
_RIGHT_ALIGNED = frozenset({"PR", "age", "warnings", "audit"})
"""Columns whose cells are aligned to the right."""
# Columns left out in a narrow terminal, in this order.
_OMITTABLE = ("audit", "trust", "warnings", "effect", "author")
_COLUMNS_BELOW = ("by", "next")
"""Columns that a narrow terminal shows on a line of their own below the row."""
_INDENT_BELOW = "    "
NAMED_PULLS_MAX = 12
"""Maximum number of pull requests that a line names, for example the line of those to merge."""
_STYLES = {Turn.MAINTAINER: "bold", Turn.PROGRAM: "", Turn.CONTRIBUTOR: "dim"}
"""Style of a row in a terminal with colours, by who has to act."""


def terminal(queue: Queue, limit: int, *, color: bool, width: int) -> str:
    """Render at most `limit` rows for a terminal, then the summary line."""
    rows = queue.rows[:limit]
    column_names, needed_width = _fitting_columns(rows, width, COLUMNS)
    is_action_below = needed_width > width  # the action then has a line of its own
    if is_action_below:
        names_in_table = tuple(name for name in COLUMNS if name not in _COLUMNS_BELOW)
        column_names, _ = _fitting_columns(rows, width, names_in_table)
    head, *lines = _table(rows, column_names).text_lines()
    if color:
        styles = ["bold red" if row.is_overdue else _STYLES[row.turn] for row in rows]
        head = coloured(StyledText(head, "bold"))
        lines = [coloured(StyledText(*pair)) for pair in zip(lines, styles, strict=True)]
    if is_action_below:
        pairs = zip(lines, rows, strict=True)
        lines = [text for line, row in pairs for text in (line, *_action_lines(row, width))]
    summary = [part for line in _summary_lines(queue, limit) for part in textwrap.wrap(line, width)]
    step_lines = [
        part
        for line in _step_lines(queue)
        for part in textwrap.wrap(escape(line), width, subsequent_indent=_INDENT_BELOW)
    ]
    text_lines = [*step_lines, "", head, *lines, "", *summary] if rows else summary
    return "".join(f"{line.rstrip()}\n" for line in text_lines)


def _step_lines(queue: Queue) -> list[str]:
    """Return a line for each kind of work, such as "merge: #4, #7", with reasons."""
    lines = []
    for step in (QueueStep.MERGE, QueueStep.ASK, QueueStep.AUDIT, QueueStep.LOOK):
        pulls = [
            f"#{row.number}{f' because {row.reason}' if row.reason else ''}"
            for row in queue.rows
            if row.step is step
        ]
        if pulls or step is not QueueStep.LOOK:
            lines.append(f"{step}: {first_and_more(pulls, NAMED_PULLS_MAX) or 'none'}")
    return lines


def _action_lines(row: QueueRow, width: int) -> list[str]:
    """Return the lines below a row: who acts, and how. No line begins with a contributor's text."""
    text = f"{escape(row.who)}: {escape(row.action)}"
    return textwrap.wrap(text, width, initial_indent=_INDENT_BELOW, subsequent_indent=_INDENT_BELOW)


def _fitting_columns(
    rows: tuple[QueueRow, ...], width: int, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], int]:
    """Return the columns that fit the width, and their total width."""
    for omitted in ("", *_OMITTABLE):
        columns = tuple(column for column in columns if column != omitted)
        needed_width = max(map(cell_len, _table(rows, columns).text_lines()))
        if needed_width <= width:
            break
    return columns, needed_width


def _table(rows: tuple[QueueRow, ...], columns: tuple[str, ...]) -> Table:
    return Table(columns, [_cells_of_columns(row, columns) for row in rows], _RIGHT_ALIGNED)


def _cells_of_columns(row: QueueRow, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the cells of a row in the given columns."""
    cells = zip(COLUMNS, _cells_of_row(row), strict=True)
    return tuple(escape(cell) for name, cell in cells if name in columns)


def markdown(queue: Queue, limit: int) -> str:
    """Render at most `limit` rows as a Markdown table with links, then the summary line."""
    lines = ["## Open pull requests", ""]
    if queue.rows:
        lines += [*(f"- {line}" for line in _step_lines(queue)), ""]
        rows = []
        for row in queue.rows[:limit]:
            number, *cells = _cells_of_row(row)
            # Its address is GitHub's own, and ends with the number.
            link = f"[{number}]({row.url})" if _is_safe_url(row.url) else number
            rows.append([link, *(table_cell(text) if text else "" for text in cells)])
        lines += [*Table(COLUMNS, rows, right_aligned=_RIGHT_ALIGNED).markdown_lines(), ""]
    return "\n".join([*lines, *_summary_lines(queue, limit)]) + "\n"


def _is_safe_url(url: str) -> bool:
    """Whether an address can be part of a Markdown link: https, and no special characters."""
    allowed = url.replace("-", "").replace("_", "").replace(".", "").replace("/", "")
    return url.startswith("https://") and allowed.removeprefix("https:").isalnum() and url.isascii()


def as_json(queue: Queue, limit: int) -> str:
    """Render at most `limit` rows as JSON."""
    rows = [dataclasses.asdict(row) for row in queue.rows[:limit]]
    document = {
        "format_version": "1.3",
        "pulls": rows,
        "left_out": len(queue.rows) - len(rows),
        "unread": [{"number": pull.number, "reason": pull.reason} for pull in queue.unreadable],
        "clock": queue.summary,
    }
    return json.dumps(document, indent=2).replace("##[", "\\u0023#[") + "\n"


def _summary_lines(queue: Queue, limit: int) -> list[str]:
    """Return the last lines: rows not shown, unreadable pull requests, and the summary."""
    unlisted = queue.rows[limit:]
    lines = []
    if unlisted:
        lines.append(f"not shown: {len(unlisted)} (longest waiting: {largest_age(unlisted)})")
    lines += [f"#{pull.number} cannot be read: {escape(pull.reason)}" for pull in queue.unreadable]
    lines.append(queue.summary)
    return lines


def _cells_of_row(row: QueueRow) -> tuple[str, ...]:
    """Return the cells of a row in all columns."""
    overdue_mark = "!" if row.is_overdue else ""
    warnings = f"{row.warnings} ({row.weight:g})" if row.warnings else ""
    audit = f"{row.audit_tasks} tasks" if row.audit_tasks else ""
    if row.audit_sequences:
        audit += f", {row.audit_sequences:,} seq."
    error_count = f" ({row.errors})" if row.errors else ""
    return (
        str(row.number),
        row.name,
        row.author,
        f"{overdue_mark}{duration(row.age_seconds)}",
        f"{row.verdict}{error_count}",
        warnings,
        row.effect,
        level_word(row.level),
        audit,
        row.who,
        row.action,
    )
