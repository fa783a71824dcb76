"""The queue of open pull requests: findings, waiting time, and who has to do what next."""

import datetime as dt
import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from geneb_ci.common.types import TrustLevel
from geneb_ci.github.ages import OVERDUE_AFTER, duration
from geneb_ci.github.api import GitHub, numbers_by_head
from geneb_ci.github.batch import prefetch_talks
from geneb_ci.github.comment import receipt_on
from geneb_ci.github.errors import ForgeProblem, RateLimited
from geneb_ci.github.replies import Pull, Unread
from geneb_ci.github.report import AGREES, ASKED, DIFFERS, FAILED, RUNNING
from geneb_ci.github.verdict.model import AUDIT_RECORD, PASSING, PENDING, PullOutcome, Receipt
from geneb_ci.github.waits import Wait, known_waits
from geneb_ci.render.plain import visible

# An event is answered in two minutes; after this, it was lost, and the net of sweeps may be late.
SWEPT_AFTER = dt.timedelta(minutes=30)
ABANDONED_AFTER = dt.timedelta(days=30)
# Sum of warning scores (each 1 to 10) from which a row is audited as soon as it is merged.
AUDIT_WEIGHT = 10.0
_TITLE_MAX = 40
_FILE_MAX = 60


class Turn(enum.StrEnum):
    """Who has to act next; sort order of the queue."""

    MAINTAINER = "maintainer"
    PROGRAM = "program"
    CONTRIBUTOR = "contributor"


@dataclass(frozen=True)
class QueueRow:
    """One open pull request in the queue."""

    number: int
    url: str
    name: str
    """The model's id, or the title if no verdict names a model."""
    author: str
    """Login of its author; "" if the account was deleted."""
    assignees: tuple[str, ...]
    age_seconds: int | None
    """Seconds since it was opened, by GitHub's clock; None if that cannot be read."""
    verdict: str
    """An outcome; "waiting" if the head has none, "stale" if main has changed since."""
    errors: int
    warnings: int
    weight: float
    """Sum of the scores of its warnings."""
    effect: str
    """The change of the board by a merge; "" if that is not known."""
    level: str
    audit_tasks: int
    audit_sequences: int
    turn: Turn
    who: str
    """Who has to act, by name where it is known."""
    action: str
    is_overdue: bool


@dataclass(frozen=True)
class Queue:
    """All open pull requests to the default branch."""

    rows: tuple[QueueRow, ...]
    unread: tuple[Unread, ...] = ()
    """Those of which GitHub's answer cannot be read."""

    @property
    def clock(self) -> str:
        """Return one line with numbers and longest waiting times."""
        if not self.rows and not self.unread:
            return "no pull request is open"
        parts = []
        for turn, what in (
            (Turn.MAINTAINER, "for a maintainer"),
            (Turn.PROGRAM, "for a verdict"),
            (Turn.CONTRIBUTOR, "for the contributor"),
        ):
            rows = [row for row in self.rows if row.turn is turn]
            if rows:
                parts.append(f"{len(rows)} {what} (longest: {largest_age(rows)})")
        if self.unread:
            parts.append(f"{len(self.unread)} that cannot be read")
        overdue = sum(row.is_overdue for row in self.rows)
        late = f"; {overdue} overdue (over {duration(_seconds(OVERDUE_AFTER))})" if overdue else ""
        return "waiting: " + "; ".join(parts) + late


class PullFacts(NamedTuple):
    """The known facts of one pull request."""

    receipt: Receipt | ForgeProblem | None = None
    """For whichever commit; or why our comment cannot be read."""
    state: str | None = None
    """State of the status on its head; None if it was not read."""
    wait: Wait | None = None
    first: int | None = None
    """Number of the first open pull request with its head; None if that was not looked up."""


def read_queue(github: GitHub) -> Queue:
    """Read the queue: a request per 100 pull requests, a query per 25, and one for those that wait.

    Verdicts are read from our own comments; no content of a pull request is fetched.
    """
    pulls, unread = github.open_pulls()
    prefetch_talks(github, [pull.number for pull in pulls])
    waits, heads = known_waits(github), numbers_by_head(pulls)
    readings = []
    for pull in pulls:
        talk = github.talks.get(pull.number)
        state = talk.state if talk is not None else None
        first = heads[pull.head.sha][0]
        readings.append(
            (pull, PullFacts(_receipt(github, pull), state, waits.get(pull.number), first))
        )
    return replace(queue(readings, github.wire.now), unread=tuple(unread))


def _receipt(github: GitHub, pull: Pull) -> Receipt | ForgeProblem | None:
    try:
        return receipt_on(github, pull)
    except RateLimited:
        raise
    except ForgeProblem as problem:
        return problem


def queue(readings: Iterable[tuple[Pull, PullFacts]], now: dt.datetime) -> Queue:
    """Return the queue, sorted by who has to act, then the oldest first."""
    rows = [_row(pull, facts, now) for pull, facts in readings]
    turns = list(Turn)
    rows.sort(key=lambda row: (turns.index(row.turn), -_known(row.age_seconds), row.number))
    return Queue(tuple(rows))


def _row(pull: Pull, facts: PullFacts, now: dt.datetime) -> QueueRow:
    age = now - pull.created_at if pull.created_at is not None else None
    receipt = facts.receipt if isinstance(facts.receipt, Receipt) else None
    known = receipt if receipt is not None and receipt.head_sha == pull.head.sha else None
    is_stale = known is not None and known.passes and facts.state == PENDING
    turn, action = _next(pull, facts, None if is_stale else known, now)
    author = visible(pull.user.login, _TITLE_MAX) if pull.user is not None else ""
    assignees = tuple(visible(user.login, _TITLE_MAX) for user in pull.assignees if user)
    return QueueRow(
        number=pull.number,
        url=pull.html_url,
        name=receipt.model if receipt and receipt.model else visible(pull.title, _TITLE_MAX),
        author=author,
        assignees=assignees,
        age_seconds=max(0, _seconds(age)) if age is not None else None,
        verdict="stale" if is_stale else known.outcome.value if known else "waiting",
        errors=known.error if known else 0,
        warnings=known.warning if known else 0,
        weight=known.weight if known else 0.0,
        effect=known.effect if known else "",
        level=(known.level if known else None) or "",
        audit_tasks=known.drawn if known else 0,
        audit_sequences=known.sequences if known else 0,
        turn=turn,
        who=_actor(turn, author, assignees),
        action=action,
        is_overdue=turn is not Turn.CONTRIBUTOR and age is not None and age > OVERDUE_AFTER,
    )


def _actor(turn: Turn, author: str, assignees: tuple[str, ...]) -> str:
    if turn is Turn.PROGRAM:
        return "geneb-ci"
    if turn is Turn.CONTRIBUTOR:
        return author or "its author"
    return ", ".join(assignees) or "a maintainer"


def _next(
    pull: Pull, facts: PullFacts, receipt: Receipt | None, now: dt.datetime
) -> tuple[Turn, str]:
    """Return who has to act, and the next action."""
    idle = now - pull.updated_at if pull.updated_at is not None else ABANDONED_AFTER
    if isinstance(facts.receipt, ForgeProblem):
        return Turn.MAINTAINER, "review it manually: its comments cannot be read"
    if pull.draft and idle <= ABANDONED_AFTER:
        return Turn.CONTRIBUTOR, "wait: it is a draft"
    if facts.first not in {None, pull.number}:
        return Turn.MAINTAINER, f"close it: it has the commit of pull request {facts.first}"
    if receipt is None:
        return _unjudged(pull, facts, idle)
    if receipt.outcome is PullOutcome.CHANGES_NEEDED and idle <= ABANDONED_AFTER:
        return Turn.CONTRIBUTOR, "wait for new commits"
    return _audited(pull, receipt) or (
        Turn.MAINTAINER,
        _decision(receipt, is_draft=pull.draft),
    )


def _unjudged(pull: Pull, facts: PullFacts, idle: dt.timedelta) -> tuple[Turn, str]:
    """Return who has to act where the head has no verdict, and the next action."""
    if facts.wait is not None and facts.wait.head_sha == pull.head.sha:
        return Turn.MAINTAINER, facts.wait.reason
    if idle < SWEPT_AFTER or facts.state == PENDING:
        return Turn.PROGRAM, "wait for the next sweep"
    return Turn.MAINTAINER, f"gh workflow run verdict.yml -f pr={pull.number}"


_AUDITED = {
    AGREES: "merge: its row and its audit verify",
    DIFFERS: "an audit differs: merge its record, not the row",
    FAILED: "read in its comments why its audit has no record",
}


def _audited(pull: Pull, receipt: Receipt) -> tuple[Turn, str] | None:
    """Return who has to act because of an audit, by its label; None without one."""
    labels = set(pull.label_names)
    if labels & {ASKED, RUNNING}:
        return Turn.PROGRAM, "wait for its audit"
    action = next((text for label, text in _AUDITED.items() if label in labels), None)
    if action is None or receipt.outcome not in PASSING:
        return None
    return Turn.MAINTAINER, action


_REVIEW = {
    "truncated-tree": "review it by hand: GitHub lists only a part of its files",
    "too-many-files": "review it by hand: it changes more files than geneb-ci reads",
    "several-models": "ask its author for one pull request for each model",
    "generated-file": "ask its author to take the generated file out",
    "deleted-file": "decide whether a row is withdrawn: it deletes files",
}
"""Advice where rules need a decision; the first that applies."""


def _review(receipt: Receipt) -> str:
    """Return what a maintainer does with what is no submission, or more than one."""
    action = next((text for rule, text in _REVIEW.items() if rule in receipt.decide), None)
    if action is not None:
        return action
    if receipt.foreign:
        return f"review {visible(receipt.foreign, _FILE_MAX)}: it belongs to no submission"
    if receipt.model is not None:
        return "ask its author for the row that belongs to its files"
    return "close it: it changes nothing that main does not have"


def _decision(receipt: Receipt, *, is_draft: bool) -> str:
    """Return the next action of a maintainer: the first condition that holds."""
    needs_review = receipt.outcome is PullOutcome.NEEDS_MAINTAINER
    table = (
        (
            is_draft or receipt.outcome is PullOutcome.CHANGES_NEEDED,
            "ask whether work continues, or close it",
        ),
        (receipt.outcome is PullOutcome.NOT_CHECKED, "fix geneb-ci: a rule crashed"),
        (needs_review, _review(receipt)),
        (receipt.effect == AUDIT_RECORD, "merge: its records verify"),
        (
            receipt.command_state.in_force is not None,
            "settle the dispute, then comment /recheck",
        ),
        (receipt.level == "disputed", "close it: an audit of these bytes failed"),
        (receipt.is_edit, "ask the row's author, then merge"),
        (receipt.level == TrustLevel.OFFICIAL, "merge"),
        (receipt.weight >= AUDIT_WEIGHT, "review, then set the label audit"),
        (receipt.outcome is PullOutcome.WARNINGS, "read the warnings and their answers"),
    )
    return next((action for fits, action in table if fits), "review and merge")


def _seconds(span: dt.timedelta) -> int:
    return int(span.total_seconds())


def _known(seconds: int | None) -> float:
    """Return an age; one that is not known is the largest."""
    return math.inf if seconds is None else seconds


def largest_age(rows: Iterable[QueueRow]) -> str:
    """Return the largest age of some rows, of those that are known."""
    return duration(
        max((row.age_seconds for row in rows if row.age_seconds is not None), default=None)
    )
