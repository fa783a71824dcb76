"""Write verdicts: comment, label and status; and an issue while the Space differs from main."""

import time
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.common.finding import first_and_more
from geneb_ci.github.api import NO_VERDICT_PREFIX, GitHub, repository_address
from geneb_ci.github.comment import own_comment, read_verdict, verdict_comment
from geneb_ci.github.errors import (
    QUEUED_FIX,
    HeadMoved,
    MainMoved,
    MissingScope,
    P,
    RateLimited,
    Unavailable,
    result_or_error,
)
from geneb_ci.github.prefetch import prefetch_conversations
from geneb_ci.github.replies import Comment, Conversation
from geneb_ci.github.trees import main_at
from geneb_ci.github.verdict.model import (
    PENDING,
    CommandName,
    FailedPull,
    GroupVerdict,
    PullOutcome,
    PullVerdict,
    Verdicts,
)
from geneb_ci.github.waiting_list import update_waits

HEALTH_TITLE = "geneb-ci: the Space is not what main says"
"""Title of the issue that is open while the Space differs from main."""
HEALTH_MARK = "<!-- geneb-ci:health:1 -->"
"""Beginning of the text of the issue about a Space that differs from main."""
OPENED, UPDATED, CLOSED = "opened", "updated", "closed"
LABELS = {
    PullOutcome.PASSED: "geneb: passed",
    PullOutcome.WARNINGS: "geneb: warnings",
    PullOutcome.CHANGES_NEEDED: "geneb: changes needed",
    PullOutcome.NEEDS_MAINTAINER: "needs-maintainer",
    PullOutcome.NOT_CHECKED: "geneb: not checked",
}
"""Label of a pull request for each outcome of its verdict."""
AUDIT_LABEL = "audit"
"""Label that requests an audit."""
RUNNING, AGREES, DIFFERS, FAILED = (
    *("geneb: audit running", "geneb: audit agrees"),
    *("geneb: audit differs", "geneb: audit failed"),
)
AUDIT_STATES = (RUNNING, AGREES, DIFFERS, FAILED)
"""Labels of the state of an audit: a pull request has at most one."""
PULLS_PER_QUERY = 10
"""Number of pull requests that one query reads, half a minute at most before they are written."""
_STALE_DESCRIPTION = (
    f"{NO_VERDICT_PREFIX}the earlier one is outdated; a new one follows if this pull request is "
    "open to main"
)
"""Description of a status that withdraws an outdated verdict."""
_RETRY_FIX = "wait for the next sweep, which compares with the new main; nothing was written"
"""Advice if main has changed since the verdict was computed."""
_MISSING_LABEL_FIX = 'create it once: gh label create "{}"'


def report_health(github: GitHub, *, is_healthy: bool, run_address: str) -> str:
    """Open or update the issue about a Space that differs; close it if `is_healthy`.

    Return "opened", "updated" or "closed"; "" if there was nothing to do. `run_address` is that of
    the run of the workflow, or "". At most one read request per 100 issues, and one write.
    """
    issue = github.marked_issue(HEALTH_MARK)
    health_text = _health_text(github, run_sentence(run_address))
    if is_healthy:
        if issue is None:
            return ""
        github.edit_issue(issue.number, issue.body, "closed")
        return CLOSED
    if issue is None:
        github.open_issue(HEALTH_TITLE, health_text)
        return OPENED
    github.edit_issue(issue.number, health_text)
    return UPDATED


def run_sentence(run_address: str) -> str:
    """Return a space and the address of a workflow's run as a sentence; "" without an address."""
    return f" Run: {run_address}" if run_address.startswith("https://") else ""


def _health_text(github: GitHub, run_sentence: str) -> str:
    """Return the text of the issue about a Space that differs from main."""
    return (
        f"{HEALTH_MARK}\nThe daily check found that the Space differs from main or that a "
        "published receipt is missing, or the check failed, last at "
        f"{github.connection.now:%Y-%m-%d %H:%M} UTC.{run_sentence}\n\n"
        "`geneb-ci publish --verify` says what differs; `gh workflow run publish.yml` publishes "
        "main again. `geneb-ci receipt seen` names receipts that are missing; with `--write` it "
        "writes today's date to leaderboard/policy/receipts.json. This issue is closed by the "
        "first check that finds nothing.\n"
    )


class WrittenParts(NamedTuple):
    """Which of the status, labels and comment were written to one pull request."""

    status: bool
    labels: bool
    comment: bool


class WriteResult(NamedTuple):
    """The result of writing about one pull request, or about one group of the merge queue."""

    subject: str
    """Number of the pull request, or commit of the group; else what was written, in words."""
    outcome: str
    """Outcome of the verdict, or state of the status; "" after an error."""
    written: WrittenParts | None
    """The written parts; None after an error."""
    problem: GenebError | None
    """The error; None if everything was written."""


class NoSuchLabel(UsageProblem):
    """A label of ours does not exist, and the token may not create it."""


def write_verdicts(
    github: GitHub, verdicts: Verdicts, configured_paths: tuple[str, ...] = ()
) -> Iterator[WriteResult]:
    """Write the verdicts and the list of those that wait; yield the result of each pull request.

    First the statuses that no longer hold are set to pending, then the verdicts are written, then
    the list of waiting pull requests. An error about one of them does not stop the others, but a
    rate limit does.
    """
    troubles, settled = list(verdicts.troubles), list(verdicts.settled)
    waiting = {trouble.number for trouble in troubles}
    outdated_heads = [
        (trouble.number, trouble.head_sha, f"{NO_VERDICT_PREFIX}{trouble.reason}")
        for trouble in troubles
    ]
    outdated_heads += [
        (head.number, head.head_sha, _STALE_DESCRIPTION)
        for head in verdicts.stale
        if head.number not in waiting
    ]
    unwritten = [str(number) for number, _, _ in outdated_heads]
    unwritten += [group.head_sha for group in verdicts.groups]
    unwritten += [str(pull.number) for pull in verdicts.pulls]
    try:
        for number, sha, description in outdated_heads:
            yield _write_result(str(number), _set_status, github, sha, PENDING, description)
            unwritten.pop(0)
        is_main_unchanged = _is_main_unchanged(github, verdicts, configured_paths)
        for group in verdicts.groups:
            yield _write_result(
                group.head_sha, _write_group, github, group, is_main_unchanged=is_main_unchanged
            )
            unwritten.pop(0)
        for index, pull in enumerate(verdicts.pulls):
            if index % PULLS_PER_QUERY == 0:
                batch = verdicts.pulls[index : index + PULLS_PER_QUERY]
                prefetch_conversations(github, [pull.number for pull in batch])
            written = _write_result(
                str(pull.number), write_verdict, github, pull, is_main_unchanged=is_main_unchanged
            )
            yield written
            unwritten.pop(0)
            settled.append(pull.number)
            problem = written.problem
            if problem is not None and not isinstance(problem, HeadMoved | NoSuchLabel):
                troubles.append(FailedPull.of(pull.number, pull.head_sha, problem.message))
    except RateLimited as limit:
        yield WriteResult(first_and_more(unwritten), "", None, limit)
    if troubles or verdicts.settled:
        try:
            update_waits(github, troubles, settled)
        except GenebError as problem:
            yield WriteResult("the list of waiting pull requests", "", None, problem)


def _is_main_unchanged(
    github: GitHub, verdicts: Verdicts, configured_paths: tuple[str, ...]
) -> bool:
    """Whether main still has the files on which the verdicts depend; at most two requests."""
    if verdicts.main_sha is None or not (verdicts.pulls or verdicts.groups):
        return True
    commit = github.main()
    if commit.sha == verdicts.main_sha:
        return True
    return main_at(github, commit, configured_paths).digest == verdicts.main_digest


def _require_main_unchanged(*, is_main_unchanged: bool) -> None:
    """Raise MainMoved if main has changed since the verdicts were computed."""
    if not is_main_unchanged:
        raise MainMoved("main has changed since the verdict was computed", _RETRY_FIX)


def _write_result(
    subject: str,
    action: Callable[P, tuple[str, WrittenParts]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> WriteResult:
    """Return the result of writing something. Raises RateLimited, and no other error."""
    outcome = result_or_error(action, *args, **kwargs)
    if isinstance(outcome, GenebError):
        return WriteResult(subject, "", None, outcome)
    return WriteResult(subject, *outcome, None)


def _set_status(github: GitHub, sha: str, state: str, description: str) -> tuple[str, WrittenParts]:
    """Set only the status of a commit; return its state and what was written."""
    github.set_status(sha, state, description)
    return state, WrittenParts(status=True, labels=False, comment=False)


def _write_group(
    github: GitHub, group: GroupVerdict, *, is_main_unchanged: bool
) -> tuple[str, WrittenParts]:
    """Write the status of a group of the merge queue; return its state and what was written."""
    _require_main_unchanged(is_main_unchanged=is_main_unchanged)
    return _set_status(github, group.head_sha, group.state, group.description)


def write_verdict(
    github: GitHub, verdict: PullVerdict, *, is_main_unchanged: bool = True
) -> tuple[str, WrittenParts]:
    """Write the label, comment and status that differ; return the outcome and what was written.

    The status comes last, so no pull request passes without its comment. Raises HeadMoved before
    the first write if the pull request has new commits, and NoSuchLabel after the last write if
    the label does not exist.
    """
    # 1. The present state.
    _require_main_unchanged(is_main_unchanged=is_main_unchanged)
    comment_text = verdict_comment(verdict, repository_address(github.connection.repository))
    conversation = _present_conversation(github, verdict.number)
    if conversation.head_sha != verdict.head_sha or not conversation.is_open:
        change = (
            f"has the new head {conversation.head_sha}" if conversation.is_open else "is closed"
        )
        raise HeadMoved(f"pull request {verdict.number} {change}", QUEUED_FIX)
    our_comment = own_comment(conversation.comments, github.own_account_id)
    has_same_comment = our_comment is not None and _is_same_text(our_comment.body, comment_text)
    # 2. The label, before the list of the other labels is outdated.
    label_error: NoSuchLabel | None = None
    is_labelled = False
    try:
        is_labelled = _set_label(
            github, verdict.number, conversation.labels, LABELS[verdict.outcome]
        )
    except NoSuchLabel as problem:
        label_error = problem
    if _has_new_audit_command(verdict, our_comment):
        github.add_label(verdict.number, AUDIT_LABEL)
    # 3. The comment: edited if it exists, else created.
    if our_comment is None:
        _comment_once(github, verdict.number, comment_text)
    elif not has_same_comment:
        github.edit_comment(our_comment.id, comment_text)
    # 4. The status, on the checked commit.
    state = verdict.state
    has_same_status = conversation.state == state and has_same_comment
    if not has_same_status:
        github.set_status(verdict.head_sha, state, verdict.description)
    if label_error is not None:
        raise label_error
    written = WrittenParts(
        status=not has_same_status, labels=is_labelled, comment=not has_same_comment
    )
    return verdict.outcome.value, written


def _has_new_audit_command(verdict: PullVerdict, comment: Comment | None) -> bool:
    """Whether the command `/audit` is newer than our comment."""
    command = verdict.command
    if command is None or command.name is not CommandName.AUDIT:
        return False
    written_verdict = read_verdict(comment.body) if comment is not None else None
    return written_verdict is None or written_verdict.command != command


def _present_conversation(github: GitHub, number: int) -> Conversation:
    """Return comments, head and labels of a pull request: prefetched, or by two requests."""
    prefetched = github.conversations.pop(number, None)
    if prefetched is not None:
        return prefetched
    comments = list(github.comments(number))
    pull = github.pull(number)
    return Conversation(
        number=number,
        head_sha=pull.head.sha,
        status_sha=pull.head.sha,
        pull_state="OPEN" if pull.state == "open" else "CLOSED",
        locked=pull.locked,
        labels=pull.labels,
        comments=comments,
        number_of_comments=len(comments),
        latest=[],
    )


def _set_label(github: GitHub, number: int, present_labels: Collection[str], label: str) -> bool:
    """Set our label on a pull request, in at most one write; return whether one was needed.

    A first label is added, which keeps labels set meanwhile. To replace one in a single write, all
    labels are read again and set.
    """
    our_labels = set(LABELS.values())
    if our_labels & set(present_labels) == {label}:
        return False
    try:
        if our_labels & set(present_labels):
            github.replace_labels(number, github.pull(number).labels, our_labels, label)
        else:
            github.add_label(number, label)
    except MissingScope as problem:
        if "label" not in problem.message:
            raise
        raise NoSuchLabel(
            f"the repository has no label {label!a}", _MISSING_LABEL_FIX.format(label)
        ) from problem
    return True


def _comment_once(github: GitHub, number: int, comment_text: str) -> None:
    """Write a comment; if GitHub fails, check whether it exists before sending it again.

    Raises Unavailable if the second attempt fails.
    """
    try:
        github.add_comment(number, comment_text)
    except Unavailable:
        time.sleep(
            github.connection.waiting_limits.pause_between_writes
        )  # GitHub reads from replicas that lag
        if own_comment(github.comments(number), github.own_account_id) is None:
            github.add_comment(number, comment_text)


def _is_same_text(text: str, other_text: str) -> bool:
    """Whether two comments are equal, apart from line ends and trailing blanks."""
    return text.replace("\r\n", "\n").strip() == other_text.strip()
