"""The queue as a table for a terminal, as Markdown, and as JSON."""

import dataclasses
import io
import json
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from geneb_ci.finding import counted
from geneb_ci.forge.triage import Queue, Row, Turn, duration
from geneb_ci.report.markdown import cell
from geneb_ci.report.text import escape

COLUMNS: tuple[str, ...] = ("PR", "model", "age", "verdict", "warnings", "level", "audit", "next")
_RIGHT = frozenset({"PR", "age", "warnings", "audit"})
_EXPENDABLE = ("audit", "level", "warnings")  # in a narrow terminal, the first goes first
_GAP = 2
_STYLES = {Turn.MAINTAINER: "bold", Turn.PROGRAM: "", Turn.CONTRIBUTOR: "dim"}


def terminal(queue: Queue, limit: int, *, color: bool, width: int) -> str:
    """Render at most `limit` rows for a terminal, then the clock."""
    rows = queue.rows[:limit]
    shown, needed = _fitting(rows, width)
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=max(width, needed),
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    if rows:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in shown:
            justify: Literal["left", "right"] = "right" if name in _RIGHT else "left"
            # A wrapped cell could begin a line of its own.
            table.add_column(name, justify=justify, no_wrap=True)
        for row in rows:
            style = "bold red" if row.is_overdue else _STYLES[row.turn]
            table.add_row(*(Text(cell) for cell in _chosen(row, shown)), style=style)
        console.print(table)
        console.print()
    for line in _lines(queue, limit):
        console.print(Text(line), soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _fitting(rows: tuple[Row, ...], width: int) -> tuple[tuple[str, ...], int]:
    """Leave columns out until the rest fits; gives their names and the width they take."""
    shown = COLUMNS
    for name in ("", *_EXPENDABLE):
        shown = tuple(column for column in shown if column != name)
        lines = [shown, *(_chosen(row, shown) for row in rows)]
        needed = sum(max(map(cell_len, cells)) + _GAP for cells in zip(*lines, strict=True)) - _GAP
        if needed <= width:
            break
    return shown, needed


def _chosen(row: Row, shown: tuple[str, ...]) -> tuple[str, ...]:
    cells = zip(COLUMNS, _cells(row), strict=True)
    return tuple(escape(cell) for name, cell in cells if name in shown)


def markdown(queue: Queue, limit: int) -> str:
    """Render at most `limit` rows as a table, then the clock."""
    lines = ["## Open submissions", ""]
    if queue.rows:
        lines.append("| " + " | ".join(COLUMNS) + " |")
        lines.append("|" + "".join("---:|" if name in _RIGHT else "---|" for name in COLUMNS))
        for row in queue.rows[:limit]:
            cells = [cell(text) if text else "" for text in _cells(row)]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join([*lines, *_lines(queue, limit)]) + "\n"


def as_json(queue: Queue, limit: int) -> str:
    """Render at most `limit` rows as JSON."""
    rows = [dataclasses.asdict(row) for row in queue.rows[:limit]]
    value = {
        "format_version": "1.0",
        "pulls": rows,
        "left_out": len(queue.rows) - len(rows),
        "others": len(queue.others),
        "clock": queue.clock,
    }
    return json.dumps(value, indent=2).replace("##[", "\\u0023#[") + "\n"


def _lines(queue: Queue, limit: int) -> list[str]:
    left = queue.rows[limit:]
    lines = []
    if left:
        longest = duration(max(row.age_seconds for row in left))
        lines.append(f"not shown: {len(left)}, the longest waits {longest}")
    lines.append(queue.clock)
    if queue.others:
        what = counted(len(queue.others), "other pull request")
        lines.append(f"{what} without a submission, the oldest {duration(max(queue.others))}")
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    late = "!" if row.is_overdue else ""
    warnings = f"{row.warnings} ({row.weight:g})" if row.warnings else ""
    audit = f"{row.audit_tasks} tasks" if row.audit_tasks else ""
    if row.audit_sequences:
        audit += f", {row.audit_sequences:,} seq."
    errors = f" ({row.errors})" if row.errors else ""
    return (
        str(row.number),
        row.name,
        f"{late}{duration(row.age_seconds)}",
        f"{row.verdict}{errors}",
        warnings,
        row.level,
        audit,
        row.action,
    )
