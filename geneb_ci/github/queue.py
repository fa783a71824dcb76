"""The queue of open submissions: findings, waiting time, next action; as text and JSON."""

import dataclasses
import datetime as dt
import enum
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from geneb_ci.common.finding import plural
from geneb_ci.common.types import TrustLevel
from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import ForgeProblem
from geneb_ci.github.receipt import Receipt, receipts_on
from geneb_ci.github.replies import Pull
from geneb_ci.github.verdict import PullOutcome
from geneb_ci.render import tables
from geneb_ci.render.markdown import cell
from geneb_ci.render.plain import visible
from geneb_ci.render.text import console_of, escape

# A sweep runs every 15 minutes, and GitHub's schedules can be as late again.
SWEPT_AFTER = dt.timedelta(minutes=30)
# A maintainer should answer within a week.
OVERDUE_AFTER = dt.timedelta(days=7)
ABANDONED_AFTER = dt.timedelta(days=30)
# Sum of warning scores (each 1 to 10) from which an audit is due before merging.
AUDIT_WEIGHT = 10.0
_TITLE_MAX = 40


class Turn(enum.StrEnum):
    """Who has to act next; sort order of the queue."""

    MAINTAINER = "maintainer"
    PROGRAM = "program"
    CONTRIBUTOR = "contributor"


@dataclass(frozen=True)
class QueueRow:
    """One open pull request in the queue."""

    number: int
    name: str
    """The model's id, or the title if no verdict names a model."""
    age_seconds: int
    """Seconds since it was opened, by GitHub's clock."""
    verdict: str
    """An outcome, or "waiting" if the newest commit has none."""
    errors: int
    warnings: int
    weight: float
    """Sum of the scores of its warnings."""
    level: str
    audit_tasks: int
    audit_sequences: int
    turn: Turn
    action: str
    is_overdue: bool


@dataclass(frozen=True)
class Queue:
    """All open pull requests that are submissions, and the ages of the others."""

    rows: tuple[QueueRow, ...]
    others: tuple[int, ...] = ()
    """Ages in seconds of open pull requests without a submission."""

    @property
    def clock(self) -> str:
        """Return one line with numbers and longest waiting times."""
        if not self.rows:
            return "no submission is waiting"
        parts = []
        for turn, what in (
            (Turn.MAINTAINER, "for a maintainer"),
            (Turn.PROGRAM, "for a verdict"),
            (Turn.CONTRIBUTOR, "for the contributor"),
        ):
            ages = [row.age_seconds for row in self.rows if row.turn is turn]
            if ages:
                parts.append(f"{len(ages)} {what} (longest: {duration(max(ages))})")
        overdue = sum(row.is_overdue for row in self.rows)
        late = f"; {overdue} overdue (over {duration(_seconds(OVERDUE_AFTER))})" if overdue else ""
        return "waiting: " + "; ".join(parts) + late


def read_queue(github: GitHub) -> Queue:
    """Read the queue: one request per 100 pull requests, and one for each of them.

    Verdicts are read from our own comments; no content of a pull request is fetched.
    """
    pairs = list(receipts_on(github, list(github.open_pulls())))
    return queue(pairs, github.wire.now)


def queue(pairs: Iterable[tuple[Pull, Receipt | ForgeProblem | None]], now: dt.datetime) -> Queue:
    """Return the queue, sorted by who has to act, then the oldest first."""
    rows, others = [], []
    for pull, said in pairs:
        if isinstance(said, ForgeProblem):
            rows.append(_unreadable(pull, now))
            continue
        receipt = said
        is_current = receipt is not None and receipt.head_sha == pull.head.sha
        if receipt is not None and is_current and receipt.model is None:
            others.append(max(0, _seconds(now - pull.created_at)))
        else:
            rows.append(_row(pull, receipt, now, is_current=is_current))
    turns = list(Turn)
    rows.sort(key=lambda row: (turns.index(row.turn), -row.age_seconds, row.number))
    return Queue(tuple(rows), tuple(sorted(others)))


def _unreadable(pull: Pull, now: dt.datetime) -> QueueRow:
    """Return the row of a pull request whose comments cannot be read, so that it is not hidden."""
    row = _row(pull, None, now, is_current=False)
    action = "review it manually: its comments cannot be read"
    is_overdue = now - pull.created_at > OVERDUE_AFTER
    return dataclasses.replace(row, turn=Turn.MAINTAINER, action=action, is_overdue=is_overdue)


def _row(pull: Pull, receipt: Receipt | None, now: dt.datetime, *, is_current: bool) -> QueueRow:
    age, idle = now - pull.created_at, now - pull.updated_at
    turn, action = _next(pull, receipt if is_current else None, idle)
    known = receipt if receipt is not None and is_current else None
    return QueueRow(
        number=pull.number,
        name=receipt.model if receipt and receipt.model else visible(pull.title, _TITLE_MAX),
        age_seconds=max(0, _seconds(age)),
        verdict=known.outcome.value if known else "waiting",
        errors=known.error if known else 0,
        warnings=known.warning if known else 0,
        weight=known.weight if known else 0.0,
        level=(known.level if known else None) or "",
        audit_tasks=known.drawn if known else 0,
        audit_sequences=known.sequences if known else 0,
        turn=turn,
        action=action,
        is_overdue=turn is not Turn.CONTRIBUTOR and age > OVERDUE_AFTER,
    )


def _next(pull: Pull, receipt: Receipt | None, idle: dt.timedelta) -> tuple[Turn, str]:
    """Return who has to act, and the next action."""
    if pull.draft and idle <= ABANDONED_AFTER:
        return Turn.CONTRIBUTOR, "wait: it is a draft"
    if receipt is None:
        if idle < SWEPT_AFTER:
            return Turn.PROGRAM, "wait for the next sweep"
        return Turn.MAINTAINER, f"gh workflow run pr-report.yml -f pr={pull.number}"
    if receipt.outcome is PullOutcome.CHANGES_NEEDED and idle <= ABANDONED_AFTER:
        return Turn.CONTRIBUTOR, "wait for new commits"
    return Turn.MAINTAINER, _decision(receipt, is_draft=pull.draft)


def _decision(receipt: Receipt, *, is_draft: bool) -> str:
    """Return the next action of a maintainer: the first condition that holds."""
    table = (
        (
            is_draft or receipt.outcome is PullOutcome.CHANGES_NEEDED,
            "ask whether work continues, or close it",
        ),
        (receipt.outcome is PullOutcome.NOT_CHECKED, "fix geneb-ci: a rule crashed"),
        (receipt.outcome is PullOutcome.NEEDS_MAINTAINER, "review the other files it changes"),
        (receipt.level == "disputed", "close it: an audit of these bytes failed"),
        (receipt.is_edit, "ask the row's author, then merge"),
        (receipt.level == TrustLevel.OFFICIAL, "merge"),
        (receipt.weight >= AUDIT_WEIGHT, "audit before merging"),
        (receipt.outcome is PullOutcome.WARNINGS, "read the warnings and their answers"),
    )
    return next((action for fits, action in table if fits), "review and merge")


def _seconds(span: dt.timedelta) -> int:
    return int(span.total_seconds())


def duration(seconds: int) -> str:
    """Return a time span in its largest unit: "5 min", "7 h", "12 d"."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


COLUMNS: tuple[str, ...] = ("PR", "model", "age", "verdict", "warnings", "level", "audit", "next")
_RIGHT = frozenset({"PR", "age", "warnings", "audit"})
_EXPENDABLE = ("audit", "level", "warnings")  # columns left out in a narrow terminal, in this order
_GAP = 2
_STYLES = {Turn.MAINTAINER: "bold", Turn.PROGRAM: "", Turn.CONTRIBUTOR: "dim"}


def terminal(queue: Queue, limit: int, *, color: bool, width: int) -> str:
    """Render at most `limit` rows for a terminal, then the summary line."""
    rows = queue.rows[:limit]
    shown, needed = _fitting(rows, width)
    stream = io.StringIO()
    console = console_of(stream, max(width, needed), color=color)
    if rows:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in shown:
            justify: Literal["left", "right"] = "right" if name in _RIGHT else "left"
            # No wrapping: contributor text must not begin a line.
            table.add_column(name, justify=justify, no_wrap=True)
        for row in rows:
            style = "bold red" if row.is_overdue else _STYLES[row.turn]
            table.add_row(*(Text(cell) for cell in _chosen(row, shown)), style=style)
        console.print(table)
        console.print()
    for line in _lines(queue, limit):
        console.print(Text(line), soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _fitting(rows: tuple[QueueRow, ...], width: int) -> tuple[tuple[str, ...], int]:
    """Return the columns that fit the width, and their total width."""
    shown = COLUMNS
    for name in ("", *_EXPENDABLE):
        shown = tuple(column for column in shown if column != name)
        lines = [shown, *(_chosen(row, shown) for row in rows)]
        needed = sum(max(map(cell_len, cells)) + _GAP for cells in zip(*lines, strict=True)) - _GAP
        if needed <= width:
            break
    return shown, needed


def _chosen(row: QueueRow, shown: tuple[str, ...]) -> tuple[str, ...]:
    cells = zip(COLUMNS, _cells(row), strict=True)
    return tuple(escape(cell) for name, cell in cells if name in shown)


def markdown(queue: Queue, limit: int) -> str:
    """Render at most `limit` rows as a Markdown table, then the summary line."""
    lines = ["## Open submissions", ""]
    if queue.rows:
        rows = [[cell(text) if text else "" for text in _cells(row)] for row in queue.rows[:limit]]
        lines += [*tables.Table(COLUMNS, rows, right=_RIGHT).markdown_lines(), ""]
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
        lines.append(f"not shown: {len(left)} (longest waiting: {longest})")
    lines.append(queue.clock)
    if queue.others:
        what = plural(len(queue.others), "other pull request")
        lines.append(f"{what} without a submission (oldest: {duration(max(queue.others))})")
    return lines


def _cells(row: QueueRow) -> tuple[str, ...]:
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
