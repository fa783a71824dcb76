"""The queue of open pull requests: their findings, waiting times and next actions."""

import datetime as dt
import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from geneb_ci.common.errors import GenebError
from geneb_ci.common.finding import first_and_more
from geneb_ci.common.types import TrustLevel
from geneb_ci.github.ages import OVERDUE_AFTER, duration
from geneb_ci.github.api import GitHub, numbers_by_head
from geneb_ci.github.comment import verdict_on
from geneb_ci.github.errors import result_or_error
from geneb_ci.github.prefetch import prefetch_conversations
from geneb_ci.github.replies import Pull, UnreadablePull
from geneb_ci.github.report import AGREES, AUDIT_LABEL, DIFFERS, FAILED, RUNNING
from geneb_ci.github.verdict.model import (
    AUDIT_RECORD,
    PASSING,
    PENDING,
    PullOutcome,
    PullVerdict,
    failed_rules,
)
from geneb_ci.github.waiting_list import Wait, known_waits
from geneb_ci.render.plain import visible

EVENT_LOST_AFTER = dt.timedelta(minutes=30)
"""Time after which a pull request should have its verdict; else GitHub has lost the event.

An event is usually answered within two minutes.
"""
NAMED_RULES_MAX = 2  # rules that the reason of an action names
ABANDONED_AFTER = dt.timedelta(days=30)
"""Time without a change after which work on a pull request counts as abandoned."""
AUDIT_WEIGHT_MIN = 10.0
"""Sum of warning scores (each 1 to 10) from which a row is audited before it is merged."""
_TITLE_MAX = 40  # characters of a title or of a login
_FILE_MAX = 60  # characters of a path in an action


class Turn(enum.StrEnum):
    """Who has to act next on a pull request, in the order in which the queue is sorted."""

    MAINTAINER = "maintainer"
    PROGRAM = "program"
    CONTRIBUTOR = "contributor"


class QueueStep(enum.StrEnum):
    """The kind of work that a pull request needs from a maintainer next."""

    MERGE = "merge"
    ASK = "ask back"
    """Ask the author for something."""
    AUDIT = "audit"
    """Have the row audited before the merge."""
    LOOK = "look at"
    """Look at the pull request, and decide."""
    WAIT = "wait"
    """Nothing: somebody else has to act."""


class NextAction(NamedTuple):
    """Who has to act, and what comes next."""

    turn: Turn
    step: QueueStep
    """The kind of work."""
    action: str
    """The next action, in words or as a command."""
    reason: str = ""
    """Reasons to ask a contributor or to audit a row."""


@dataclass(frozen=True)
class QueueRow:
    """One open pull request in the queue."""

    number: int
    url: str
    name: str
    """The model's id, or the title if no verdict names a model."""
    author: str
    """Login of the author; "" if the account was deleted."""
    assignees: tuple[str, ...]
    age_seconds: int | None
    """Seconds since the pull request was opened, by GitHub's clock; None if that is unknown."""
    verdict: str
    """An outcome; "waiting" if the head has none, "stale" if main has changed since."""
    errors: int
    """Number of findings that are errors."""
    warnings: int
    weight: float
    """Sum of the scores of the warnings."""
    effect: str
    """The change of the board by a merge; "" if that is not known."""
    level: str
    """Trust level after a merge; "" if it is not known."""
    audit_tasks: int
    """Number of tasks that an audit would rerun; 0 if it is not known."""
    audit_sequences: int
    """Expected number of their test sequences; 0 if it is not known."""
    turn: Turn
    who: str
    """Name of the account that has to act, or "a maintainer" or "its author" if unknown."""
    step: QueueStep
    """The kind of work of the next action."""
    action: str
    """The next action, in words, or a command."""
    reason: str
    """Why a contributor is asked, or a row is audited; else ""."""
    is_overdue: bool
    """Whether a maintainer or geneb-ci should have acted by now."""


@dataclass(frozen=True)
class Queue:
    """All open pull requests to the default branch."""

    rows: tuple[QueueRow, ...]
    unreadable: tuple[UnreadablePull, ...] = ()
    """Pull requests whose data in GitHub's answer are invalid."""

    @property
    def summary(self) -> str:
        """One line with the numbers of waiting pull requests and the longest waiting times."""
        if not self.rows and not self.unreadable:
            return "no pull request is open"
        counts = []
        for turn, purpose in (
            (Turn.MAINTAINER, "for a maintainer"),
            (Turn.PROGRAM, "for a verdict"),
            (Turn.CONTRIBUTOR, "for the contributor"),
        ):
            rows = [row for row in self.rows if row.turn is turn]
            if rows:
                counts.append(f"{len(rows)} {purpose} (longest: {largest_age(rows)})")
        if self.unreadable:
            counts.append(f"{len(self.unreadable)} that cannot be read")
        overdue_count = sum(row.is_overdue for row in self.rows)
        overdue_text = (
            f"; {overdue_count} overdue (over {duration(int(OVERDUE_AFTER.total_seconds()))})"
            if overdue_count
            else ""
        )
        return "waiting: " + "; ".join(counts) + overdue_text


class PullFacts(NamedTuple):
    """The facts about an open pull request, from which its next action follows."""

    verdict: PullVerdict | GenebError | None = None
    """The verdict of our comment, on any commit; or the error of reading it."""
    state: str | None = None
    """State of the status on its head; None if it was not read."""
    wait: Wait | None = None
    """Entry in the list of waiting pull requests; None if it is not listed."""
    first_number: int | None = None
    """Number of the first open pull request with the same head; None if that is not known."""


def read_queue(github: GitHub) -> Queue:
    """Read the queue: a request per 100 pull requests, a query per 25, and one for the issue list.

    Verdicts are read from our own comments; no content of a pull request is fetched.
    """
    pulls, unreadable = github.open_pulls()
    prefetch_conversations(github, [pull.number for pull in pulls])
    waits, heads = known_waits(github), numbers_by_head(pulls)
    pulls_with_facts = []
    for pull in pulls:
        conversation = github.conversations.get(pull.number)
        state = conversation.state if conversation is not None else None
        first_number = heads[pull.head.sha][0]
        verdict = result_or_error(verdict_on, github, pull)
        pulls_with_facts.append(
            (pull, PullFacts(verdict, state, waits.get(pull.number), first_number))
        )
    return replace(queue(pulls_with_facts, github.connection.now), unreadable=tuple(unreadable))


def queue(pulls_with_facts: Iterable[tuple[Pull, PullFacts]], now: dt.datetime) -> Queue:
    """Return the queue, sorted by who has to act, then the oldest first."""
    rows = [_queue_row(pull, facts, now) for pull, facts in pulls_with_facts]
    turns = list(Turn)
    rows.sort(
        key=lambda row: (
            turns.index(row.turn),
            -math.inf if row.age_seconds is None else -row.age_seconds,
            row.number,
        )
    )
    return Queue(tuple(rows))


def _queue_row(pull: Pull, facts: PullFacts, now: dt.datetime) -> QueueRow:
    """Return the row of the queue for a pull request."""
    age = now - pull.created_at if pull.created_at is not None else None
    verdict = facts.verdict if isinstance(facts.verdict, PullVerdict) else None
    current = verdict if verdict is not None and verdict.head_sha == pull.head.sha else None
    is_stale = current is not None and current.passes and facts.state == PENDING
    turn, step, action, reason = _next_action(pull, facts, None if is_stale else current, now)
    author = visible(pull.user.login, _TITLE_MAX) if pull.user is not None else ""
    assignees = tuple(visible(user.login, _TITLE_MAX) for user in pull.assignees if user)
    return QueueRow(
        number=pull.number,
        url=pull.html_url,
        name=verdict.model if verdict and verdict.model else visible(pull.title, _TITLE_MAX),
        author=author,
        assignees=assignees,
        age_seconds=max(0, int(age.total_seconds())) if age is not None else None,
        verdict="stale" if is_stale else current.outcome.value if current else "waiting",
        errors=current.counts.error if current else 0,
        warnings=current.counts.warning if current else 0,
        weight=current.weight if current else 0.0,
        effect=current.effect if current else "",
        level=(current.level if current else None) or "",
        audit_tasks=current.audit.drawn if current and current.audit else 0,
        audit_sequences=current.audit.sequences if current and current.audit else 0,
        turn=turn,
        who=_actor(turn, author, assignees),
        step=step,
        action=action,
        reason=reason,
        is_overdue=turn is not Turn.CONTRIBUTOR and age is not None and age > OVERDUE_AFTER,
    )


def _actor(turn: Turn, author: str, assignees: tuple[str, ...]) -> str:
    """Return the name of the account that has to act, or a role in words."""
    if turn is Turn.PROGRAM:
        return "geneb-ci"
    if turn is Turn.CONTRIBUTOR:
        return author or "its author"
    return ", ".join(assignees) or "a maintainer"


def _next_action(
    pull: Pull, facts: PullFacts, verdict: PullVerdict | None, now: dt.datetime
) -> NextAction:
    """Return who has to act, and the next action."""
    idle = now - pull.updated_at if pull.updated_at is not None else ABANDONED_AFTER
    if isinstance(facts.verdict, GenebError):
        return _look_at("review it manually: its comments cannot be read")
    if pull.draft and idle <= ABANDONED_AFTER:
        return NextAction(Turn.CONTRIBUTOR, QueueStep.WAIT, "wait: it is a draft")
    if facts.first_number not in {None, pull.number}:
        return _look_at(f"close it: it has the commit of pull request {facts.first_number}")
    if verdict is None:
        return _action_without_verdict(pull, facts, idle)
    if verdict.outcome is PullOutcome.CHANGES_NEEDED and idle <= ABANDONED_AFTER:
        reason = first_and_more(failed_rules(verdict.places), NAMED_RULES_MAX)
        return NextAction(Turn.CONTRIBUTOR, QueueStep.ASK, "wait for new commits", reason)
    return _audit_action(pull, verdict) or _maintainer_action(verdict, is_draft=pull.draft)


def _look_at(action: str) -> NextAction:
    """Return the action that a maintainer looks at the pull request and decides."""
    return NextAction(Turn.MAINTAINER, QueueStep.LOOK, action)


def _merge_action(action: str) -> NextAction:
    """Return the action that a maintainer merges the pull request."""
    return NextAction(Turn.MAINTAINER, QueueStep.MERGE, action)


def _ask_author(action: str, reason: str) -> NextAction:
    """Return the action that a maintainer asks the author of the pull request for something."""
    return NextAction(Turn.MAINTAINER, QueueStep.ASK, action, reason)


def _action_without_verdict(pull: Pull, facts: PullFacts, idle: dt.timedelta) -> NextAction:
    """Return who has to act, and the next action, if the head has no verdict."""
    if facts.wait is not None and facts.wait.head_sha == pull.head.sha:
        return _look_at(facts.wait.reason)
    if idle < EVENT_LOST_AFTER or facts.state == PENDING:
        return NextAction(Turn.PROGRAM, QueueStep.WAIT, "wait for the next sweep")
    return _look_at(f"gh workflow run verdict.yml -f pr={pull.number}")


_ACTION_BY_LABEL = {
    AGREES: _merge_action("merge: its row and its audit verify"),
    DIFFERS: _look_at("merge the record of its audit, not its row: the audit differs"),
    FAILED: _look_at("read in its comments why its audit has no record"),
}
"""Action for each label that shows the state of an audit."""


def _audit_action(pull: Pull, verdict: PullVerdict) -> NextAction | None:
    """Return the action that the label of an audit requires; None if it requires none."""
    labels = set(pull.labels)
    if labels & {AUDIT_LABEL, RUNNING}:
        return NextAction(Turn.PROGRAM, QueueStep.WAIT, "wait for its audit")
    action = next((step for label, step in _ACTION_BY_LABEL.items() if label in labels), None)
    return None if verdict.outcome not in PASSING else action


_ACTION_BY_RULE = {
    "truncated-tree": _look_at("review it by hand: GitHub lists only a part of its files"),
    "too-many-files": _look_at("review it by hand: it changes more files than geneb-ci reads"),
    "several-models": _ask_author(
        "ask its author for one pull request for each model", "several-models"
    ),
    "generated-file": _ask_author(
        "ask its author to take the generated file out", "generated-file"
    ),
    "deleted-file": _look_at("decide whether a row is withdrawn: it deletes files"),
}
"""Action for each rule that needs a maintainer's decision; the first with findings decides."""


def _review_action(verdict: PullVerdict) -> NextAction:
    """Return the action on a pull request that is not exactly one submission."""
    action = next((step for rule, step in _ACTION_BY_RULE.items() if rule in verdict.places), None)
    if action is not None:
        return action
    if verdict.foreign_file:
        file = visible(verdict.foreign_file, _FILE_MAX)
        return _look_at(f"review {file}: it belongs to no submission")
    if verdict.model is not None:
        return _ask_author("ask its author for the row that belongs to its files", "it has no row")
    return _look_at("close it: it changes nothing that main does not have")


def _maintainer_action(verdict: PullVerdict, *, is_draft: bool) -> NextAction:
    """Return the next action of a maintainer, by the first condition that holds."""
    is_abandoned = is_draft or verdict.outcome is PullOutcome.CHANGES_NEEDED
    weight_text = f"its warnings weigh {verdict.weight:g}"
    table = (
        (is_abandoned, _ask_author("ask whether work continues, or close it", "nothing happens")),
        (verdict.outcome is PullOutcome.NOT_CHECKED, _look_at("fix geneb-ci: a rule crashed")),
        (verdict.outcome is PullOutcome.NEEDS_MAINTAINER, _review_action(verdict)),
        (verdict.effect == AUDIT_RECORD, _merge_action("merge: its records verify")),
        (
            verdict.command_state.dispute_in_force is not None,
            _look_at("settle the dispute, then comment /recheck"),
        ),
        (
            verdict.level == TrustLevel.DISPUTED,
            _look_at("close it: an audit of this file found other scores"),
        ),
        (verdict.is_edit, _ask_author("ask the row's author, then merge", "it changes a row")),
        (verdict.level == TrustLevel.OFFICIAL, _merge_action("merge")),
        (
            verdict.weight >= AUDIT_WEIGHT_MIN,
            NextAction(
                Turn.MAINTAINER, QueueStep.AUDIT, "review, then set the label audit", weight_text
            ),
        ),
        (
            verdict.outcome is PullOutcome.WARNINGS,
            _look_at("read the warnings and their answers"),
        ),
    )
    return next((action for applies, action in table if applies), _merge_action("review and merge"))


def largest_age(rows: Iterable[QueueRow]) -> str:
    """Return the largest known age of some rows as text; "?" if none is known."""
    return duration(
        max((row.age_seconds for row in rows if row.age_seconds is not None), default=None)
    )
