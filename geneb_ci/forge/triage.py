"""The queue of open submissions: what was found, how long each waits, and the one next action."""

import dataclasses
import datetime as dt
import enum
from collections.abc import Iterable
from dataclasses import dataclass

from geneb_ci.forge.errors import ForgeProblem
from geneb_ci.forge.github import GitHub
from geneb_ci.forge.receipt import Receipt, receipts_on
from geneb_ci.forge.replies import Pull
from geneb_ci.forge.verdict import Outcome
from geneb_ci.report.plain import visible

# A sweep runs every 15 minutes, and schedules of GitHub can be late by as much again.
SWEPT_AFTER = dt.timedelta(minutes=30)
# A contributor who hears nothing for a week goes elsewhere.
OVERDUE_AFTER = dt.timedelta(days=7)
ABANDONED_AFTER = dt.timedelta(days=30)
# One warning at the top of its scale, or several strange ones together: numbers to rerun first.
AUDIT_WEIGHT = 10.0
_TITLE_MAX = 40


class Turn(enum.StrEnum):
    """Whose turn it is; the order of the queue."""

    MAINTAINER = "maintainer"
    PROGRAM = "program"
    CONTRIBUTOR = "contributor"


@dataclass(frozen=True)
class Row:
    """One open pull request in the queue."""

    number: int
    name: str
    """The model's id, or the title where no verdict names a model."""
    age_seconds: int
    """Since it was opened, by GitHub's clock."""
    verdict: str
    """An outcome, or "waiting" where the newest commits have none."""
    errors: int
    warnings: int
    weight: float
    """Sum of the scores of its warnings: how strange it is."""
    level: str
    audit_tasks: int
    audit_sequences: int
    turn: Turn
    action: str
    is_overdue: bool


@dataclass(frozen=True)
class Queue:
    """All open pull requests that are submissions, and how many are not."""

    rows: tuple[Row, ...]
    others: tuple[int, ...] = ()
    """Ages in seconds of the open pull requests that change no submission."""

    @property
    def clock(self) -> str:
        """Say in one line what waits, and how long the longest does."""
        if not self.rows:
            return "no submission waits"
        parts = []
        for turn, what in (
            (Turn.MAINTAINER, "for a maintainer"),
            (Turn.PROGRAM, "for a verdict"),
            (Turn.CONTRIBUTOR, "for the contributor"),
        ):
            ages = [row.age_seconds for row in self.rows if row.turn is turn]
            if ages:
                parts.append(f"{len(ages)} {what}, the longest {duration(max(ages))}")
        overdue = sum(row.is_overdue for row in self.rows)
        late = f"; {overdue} overdue after {duration(_seconds(OVERDUE_AFTER))}" if overdue else ""
        return "waiting: " + "; ".join(parts) + late


def read_queue(github: GitHub) -> Queue:
    """Read the queue: a request for 100 pull requests, and one for each of them.

    What a verdict said is read from our own comment; nothing of a pull request is fetched.
    """
    pairs = list(receipts_on(github, list(github.open_pulls())))
    return queue(pairs, github.wire.now)


def queue(pairs: Iterable[tuple[Pull, Receipt | ForgeProblem | None]], now: dt.datetime) -> Queue:
    """Order the queue: whose turn it is, then the oldest first."""
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


def _unreadable(pull: Pull, now: dt.datetime) -> Row:
    """Show one whose comments cannot be read: else a flood of them would hide it."""
    row = _row(pull, None, now, is_current=False)
    action = "look at it by hand: its comments cannot be read"
    is_overdue = now - pull.created_at > OVERDUE_AFTER
    return dataclasses.replace(row, turn=Turn.MAINTAINER, action=action, is_overdue=is_overdue)


def _row(pull: Pull, receipt: Receipt | None, now: dt.datetime, *, is_current: bool) -> Row:
    age, idle = now - pull.created_at, now - pull.updated_at
    turn, action = _next(pull, receipt if is_current else None, idle)
    known = receipt if receipt is not None and is_current else None
    return Row(
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
    """Give whose turn it is, and the one thing to do."""
    if pull.draft and idle <= ABANDONED_AFTER:
        return Turn.CONTRIBUTOR, "wait: it is a draft"
    if receipt is None:
        if idle < SWEPT_AFTER:
            return Turn.PROGRAM, "wait for the next sweep"
        return Turn.MAINTAINER, f"gh workflow run pr-report.yml -f pr={pull.number}"
    if receipt.outcome is Outcome.CHANGES_NEEDED and idle <= ABANDONED_AFTER:
        return Turn.CONTRIBUTOR, "wait for new commits"
    return Turn.MAINTAINER, _decision(receipt, is_draft=pull.draft)


def _decision(receipt: Receipt, *, is_draft: bool) -> str:
    """Give what a maintainer does next: the first line that fits."""
    table = (
        (
            is_draft or receipt.outcome is Outcome.CHANGES_NEEDED,
            "ask whether it goes on, or close it",
        ),
        (receipt.outcome is Outcome.NOT_CHECKED, "mend geneb-ci: a rule of it failed"),
        (receipt.outcome is Outcome.NEEDS_MAINTAINER, "look at the other files it changes"),
        (receipt.level == "disputed", "close it: an audit of these bytes failed"),
        (receipt.is_edit, "ask the row's author, then merge"),
        (receipt.level == "official", "merge"),
        (receipt.weight >= AUDIT_WEIGHT, "audit before merging"),
        (receipt.outcome is Outcome.WARNINGS, "read the warnings and their answers"),
    )
    return next((action for fits, action in table if fits), "review and merge")


def _seconds(span: dt.timedelta) -> int:
    return int(span.total_seconds())


def duration(seconds: int) -> str:
    """Write a span of time in its largest unit: "5 min", "7 h", "12 d"."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
