"""Find the pull requests that need a verdict, and check them; a read token is enough.

A verdict is about a head, the state of main with which it was compared, and the other open pull
requests that its findings name. If any of these has changed, the pull request is checked again.
Pull requests are found by listing them, so a lost event only waits for the next sweep.
"""

import contextlib
import datetime as dt
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from geneb_ci import __version__
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import GenebError
from geneb_ci.github.api import (
    NO_VERDICT_PREFIX,
    GitHub,
    PullListing,
    numbers_by_head,
)
from geneb_ci.github.commands import read_commands
from geneb_ci.github.comment import commands_of, verdict_in, verdict_on
from geneb_ci.github.errors import (
    QUEUED_FIX,
    HeadMoved,
    NotFound,
    RateLimited,
    UnexpectedReply,
    result_or_error,
    with_rebase_advice,
)
from geneb_ci.github.fingerprints import pull_numbers, rivals
from geneb_ci.github.main_branch import configured_folders, layout_of_main
from geneb_ci.github.prefetch import (
    passing_outside_main,
    prefetch_bases,
    prefetch_blobs,
    prefetch_conversations,
)
from geneb_ci.github.replies import Pull, UnreadablePull
from geneb_ci.github.sweep_progress import PullState, SweepProgress, SweepStop, rate_limit_stop
from geneb_ci.github.trees import Main, main_at
from geneb_ci.github.verdict.base_branch import BaseBranch
from geneb_ci.github.verdict.checker import PullChecker, repository_folders
from geneb_ci.github.verdict.decide import PullDecision, decide
from geneb_ci.github.verdict.merge_queue import judge_group, waiting_groups
from geneb_ci.github.verdict.model import (
    OPEN_PULLS_MAX,
    PASSING,
    PENDING,
    SUCCESS,
    VERDICTS_MAX,
    CommandState,
    FailedPull,
    Fingerprint,
    GroupVerdict,
    PullHead,
    PullVerdict,
    Verdicts,
)
from geneb_ci.github.verdict.verdict_line import shortened_verdicts
from geneb_ci.github.waiting_list import Wait, is_due, known_waits
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from geneb_ci.check.change import Blob

RESERVED_REQUESTS = 100
"""Number of requests of GitHub's hourly limit that a sweep leaves for runs that events start."""
PULLS_PER_BATCH = 25
"""Number of pull requests that are read together before they are checked one by one."""
FAILURES_MAX = 10
"""Number of failures in a row after which a sweep ends; the next sweep tries these last."""
UNREADABLE_PULLS_MAX = 100
"""Number of unreadable pull requests after which a sweep ends: each delays the readable ones."""
_LASTING_ERRORS = (NotFound, UnexpectedReply)
"""Errors about one pull request that also occur if the request is repeated."""
LOCKED_REASON = "the conversation is locked, so no verdict can be written: unlock it"

_EARLIEST = dt.datetime.min.replace(tzinfo=dt.UTC)
"""Time of a pull request whose last change cannot be read, so it is the first to check."""


@dataclass
class SweepResult:
    """The verdicts, the errors, and the progress of a sweep over the open pull requests."""

    verdicts: Verdicts
    problems: list[GenebError] = field(default_factory=list)
    """Errors about single pull requests, which did not end the sweep."""
    progress: SweepProgress = field(default_factory=lambda: SweepProgress(is_group=True))


def open_pull_at(github: GitHub, number: int, head_sha: str | None) -> Pull:
    """Return an open pull request to main. Raises NotFound if it is not one.

    Raises HeadMoved if `head_sha` is given and is not its head.
    """
    pull = github.pull(number)
    if head_sha is not None and pull.head.sha != head_sha:
        raise HeadMoved(f"pull request {number} no longer has the head {head_sha}", QUEUED_FIX)
    if pull.state != "open":
        raise NotFound(f"pull request {number} is {pull.state}", "pass an open pull request")
    if not pull.is_to_main:
        main = pull.base.repo.default_branch
        raise NotFound(
            f"the base branch of pull request {number} is {pull.base.ref!a}, not {main!a}",
            f"pass a pull request with the base branch {main!a}",
        )
    return pull


def pull_with_head(open_list: PullListing, head_sha: str) -> Pull:
    """Return the first open pull request with this head. Raises HeadMoved if there is none.

    The event's pull request number is not used: it is empty for forks, and could be forged. Raises
    UnexpectedReply if an unreadable pull request may have this head.
    """
    pulls = [pull for pull in open_list.pulls if pull.head.sha == head_sha]
    if not pulls:
        open_list.require_all(f"whether a pull request has the head {head_sha} is not known")
        raise HeadMoved(f"no open pull request has the head {head_sha}", QUEUED_FIX)
    return min(pulls, key=lambda pull: pull.number)


def has_verdict(github: GitHub, sha: str) -> bool:
    """Whether the last status of a commit is a verdict; one request.

    A verdict that no longer holds is replaced by the next sweep that notices it.
    """
    for status in github.verdict_statuses(sha):
        says_no_verdict = (status.description or "").startswith(NO_VERDICT_PREFIX)
        return status.state != PENDING or not says_no_verdict
    return False


def pull_with_command(github: GitHub, number: int) -> Pull | None:
    """Return a pull request if its comments have a new command of a maintainer, else None.

    Return None also if it is not open to main. Two requests; one more for each author of a command,
    and one per 100 further new comments.
    """
    pull = github.pull(number)
    if pull.state != "open" or not pull.is_to_main:
        return None
    prefetch_conversations(github, [number])
    earlier_commands, current_commands = commands_on(github, pull)
    return pull if current_commands.command != earlier_commands.command else None


def commands_on(github: GitHub, pull: Pull) -> tuple[CommandState, CommandState]:
    """Return the commands that our verdict on a pull request notes, and those in force now."""
    earlier_commands = commands_of(verdict_on(github, pull))
    current_commands, _ = read_commands(github, [pull.number], earlier_commands, {})
    return earlier_commands, current_commands


@contextlib.contextmanager
def main_on_github(
    github: GitHub, layout: Layout, warn: Say | None = None
) -> Iterator[tuple[Main, Layout]]:
    """Yield the state of main on GitHub, and a layout with its files.

    Raises UsageProblem if this is not a checkout of a repository of submissions.
    """
    repository_folders(layout)
    main = main_at(github, github.main(), configured_folders(layout))
    with layout_of_main(github, layout.root, main, warn) as main_layout:
        yield main, main_layout


@dataclass
class OpenPulls:
    """All open pull requests, and everything about them that a sweep reads before it checks one."""

    main: Main
    """Main, with which each of them is compared."""
    pulls: list[Pull]
    """The pull requests, in the order in which they are checked."""
    verdicts_on_head: dict[int, PullVerdict] = field(default_factory=dict)
    """Verdict in our comment, if it is on the present head, by number of the pull request."""
    unjudged: list[Pull] = field(default_factory=list)
    """Pull requests that need a verdict."""
    stale: list[PullHead] = field(default_factory=list)
    """Heads with a passing status that is not about the present state of main."""
    troubles: list[FailedPull] = field(default_factory=list)
    """Pull requests that could not be read or checked, to be listed as waiting."""
    settled: list[int] = field(default_factory=list)
    """Numbers of pull requests that need not wait any more."""
    problems: list[GenebError] = field(default_factory=list)
    """Errors of reading and checking, in the order in which they occurred."""
    failed: dict[int, GenebError] = field(default_factory=dict)
    """Error of reading a pull request, by its number."""
    command_states: dict[int, CommandState] = field(default_factory=dict)
    """Commands of maintainers in the comments that were read, by number of the pull request."""
    may_write_by_login: dict[str, bool] = field(default_factory=dict)
    """Whether the author of a command may write to the repository, by login."""
    passing: dict[int, Fingerprint] = field(default_factory=dict)
    """Fingerprints of the pull requests that pass, or passed when the run began."""
    waits: dict[int, Wait] = field(default_factory=dict)
    """Pull requests that wait after an earlier failure, by number."""
    reserved_requests: int = RESERVED_REQUESTS
    """Number of requests that must be left in this hour."""
    progress: SweepProgress = field(init=False)
    """State of each pull request in the sweep."""

    def __post_init__(self) -> None:
        """Begin the progress: no pull request is judged yet."""
        states = dict.fromkeys((pull.number for pull in self.pulls), PullState.LEFT)
        self.progress = SweepProgress(states)

    def require_read(self, pull: Pull | None = None) -> None:
        """Raise the error that ended the reading of pull requests, or the one of reading `pull`.

        Otherwise, collisions with unread pull requests and disputes would be missed.
        """
        stop = self.progress.stop
        if stop is not None:
            raise stop.cause or UnexpectedReply(stop.reason, "run the command again later")
        if pull is not None and pull.number in self.failed:
            raise self.failed[pull.number]

    def is_limit_near(self, github: GitHub) -> bool:
        """Whether too few requests are left in this hour; if so, note that the sweep ends."""
        remaining = github.connection.remaining
        if remaining >= self.reserved_requests:
            return False
        reason = (
            f"{remaining:.0f} requests are left in this hour, and {self.reserved_requests} are "
            "kept for runs that events start"
        )
        self.progress.stop = SweepStop(reason, github.connection.resets)
        return True

    @functools.cached_property
    def numbers_with_head(self) -> dict[str, list[int]]:
        """Numbers of the pull requests with a head commit, by its id; the smallest first."""
        return numbers_by_head(self.pulls)

    def passing_with_other_heads(self, pull: Pull) -> dict[int, Fingerprint]:
        """Return the fingerprints, by number, of the passing pull requests with another head."""
        same_head = {*self.numbers_with_head.get(pull.head.sha, ()), pull.number}
        return {
            number: fingerprint
            for number, fingerprint in self.passing.items()
            if number not in same_head
        }

    def note_failure(self, pull: Pull, problem: GenebError) -> None:
        """Note that a pull request could not be read."""
        self.problems.append(problem)
        self.failed[pull.number] = problem
        self.progress.problem = problem.message
        self.note_wait(pull.number, pull.head.sha, problem.message)

    def note_wait(self, number: int, head_sha: str, reason: str) -> None:
        """Note that a pull request has no verdict, and why."""
        self.troubles.append(FailedPull.of(number, head_sha, reason))
        if number in self.progress.states:
            self.progress.note([number], PullState.FAILED)


def sweep(github: GitHub, layout: Layout, only: Pull | None = None) -> SweepResult:
    """Check the open pull requests without a verdict on their head and on the present main.

    The oldest come first. The sweep stops at the size limit of a verdict and at the hourly rate
    limit; its progress lists what is left. With `only`, just that pull request is checked, whatever
    its verdict, also with the last requests of the hour, and the errors of reading it are raised.
    """
    with main_on_github(github, layout) as (main, main_layout):
        open_list = github.all_open_pulls()
        open_list.pulls.sort(key=lambda pull: (pull.updated_at or _EARLIEST, pull.number))
        pulls = [pull for pull in open_list.pulls if pull.is_to_main]
        if only is not None:  # with the head that is to be checked, which may have moved since
            pulls = [*(pull for pull in pulls if pull.number != only.number), only]
        open_pulls = OpenPulls(main, pulls)
        if only is not None:
            open_pulls.reserved_requests = 0
            read_facts(github, open_pulls)
            open_pulls.require_read(only)
            open_pulls.unjudged, queued_groups = [only], []
            open_pulls.troubles, open_pulls.problems = [], []
            open_pulls.progress = SweepProgress({only.number: PullState.LEFT})
        else:
            queued_groups = _read_for_sweep(github, open_pulls, open_list)
        if not open_pulls.unjudged and not queued_groups:
            return _sweep_result(github, open_pulls, [], [])
        pull_checker = PullChecker(github, BaseBranch(main_layout), main)
        groups = _group_verdicts(github, pull_checker, open_pulls, queued_groups)
        verdicts = _check_pulls(github, pull_checker, open_pulls)
        open_pulls.settled += [
            verdict.number for verdict in verdicts if verdict.number in open_pulls.waits
        ]
        return _sweep_result(github, open_pulls, verdicts, groups)


def _read_for_sweep(github: GitHub, open_pulls: OpenPulls, open_list: PullListing) -> list[str]:
    """Read the data of a sweep until a limit is reached; return the merge groups to check."""
    try:
        open_pulls.waits = known_waits(github)
        _withdraw_unreadable(github, open_pulls, open_list.unreadable)
        read_facts(github, open_pulls)
        open_pulls.stale += passing_outside_main(
            github, open_list.pulls, open_pulls.numbers_with_head
        )
        if not open_pulls.pulls:
            return []
        queued_groups, problems = waiting_groups(
            github, open_pulls.pulls[0].base.repo.default_branch
        )
    except RateLimited as limit:
        open_pulls.progress.stop = rate_limit_stop(limit)
        return []
    open_pulls.problems += problems
    return queued_groups


def _withdraw_unreadable(
    github: GitHub, open_pulls: OpenPulls, unreadable: Sequence[UnreadablePull]
) -> None:
    """Note the pull requests that cannot be read, so their passing status is withdrawn."""
    prefetch_conversations(github, [pull.number for pull in unreadable])
    for pull in unreadable:
        open_pulls.progress.note([pull.number], PullState.FAILED)
        open_pulls.progress.problem = pull.reason
        conversation = github.conversations.get(pull.number)
        head = pull.head_sha or (conversation.head_sha if conversation is not None else None)
        if head is not None and is_due(
            open_pulls.waits.get(pull.number), head, github.connection.now
        ):
            open_pulls.note_wait(pull.number, head, pull.reason)


def group_verdict(github: GitHub, layout: Layout, head: str) -> SweepResult:
    """Return the verdict on one group of a merge queue. Raises GitHubProblem."""
    with main_on_github(github, layout) as (main, main_layout):
        pull_checker = PullChecker(github, BaseBranch(main_layout), main)
        return result_for_main(github, main, groups=[judge_group(github, pull_checker, head)])


def _sweep_result(
    github: GitHub, open_pulls: OpenPulls, verdicts: list[PullVerdict], groups: list[GroupVerdict]
) -> SweepResult:
    sweep_result = result_for_main(
        github,
        open_pulls.main,
        pulls=verdicts,
        groups=groups,
        waiting=open_pulls.progress.waiting,
        stale=open_pulls.stale[:OPEN_PULLS_MAX],
        troubles=open_pulls.troubles,
        settled=sorted(set(open_pulls.settled)),
    )
    shown_verdicts = shortened_verdicts(sweep_result.verdicts)
    progress = open_pulls.progress
    progress.judged = {pull.number: pull.outcome.value for pull in shown_verdicts.pulls}
    progress.note({pull.number for pull in verdicts} - progress.judged.keys(), PullState.LEFT)
    return SweepResult(shown_verdicts, open_pulls.problems, progress)


def result_for_main(github: GitHub, main: Main, **fields: Any) -> SweepResult:  # fields of Verdicts
    """Return a result whose verdicts are about this state of main; `fields` are its members."""
    defaults: dict[str, Any] = {"pulls": [], "waiting": 0}
    verdicts = Verdicts(
        format_version="1.0",
        repository=github.connection.repository,
        tool_version=__version__,
        main_sha=main.sha,
        main_digest=main.digest,
        **defaults | fields,
    )
    return SweepResult(verdicts)


def read_facts(github: GitHub, open_pulls: OpenPulls) -> None:
    """Read the facts of all open pull requests, and list those that need a verdict.

    If not all could be read, none is listed, because each is compared with all others.
    """
    numbers, waits = {pull.number for pull in open_pulls.pulls}, open_pulls.waits
    first_pulls = [
        pull
        for pull in open_pulls.pulls
        if open_pulls.numbers_with_head[pull.head.sha][0] == pull.number
    ]
    due_numbers = {
        p.number
        for p in first_pulls
        if is_due(waits.get(p.number), p.head.sha, github.connection.now)
    }
    open_pulls.progress.note(numbers - {pull.number for pull in first_pulls}, PullState.SHARED)
    open_pulls.progress.note(numbers & waits.keys() - due_numbers, PullState.WAITING)
    unreadable = set(open_pulls.progress.numbers(PullState.FAILED))
    open_pulls.settled = sorted(waits.keys() - {pull.number for pull in first_pulls} - unreadable)
    try:
        prefetch_conversations(github, [pull.number for pull in open_pulls.pulls])
        for pull in first_pulls:
            if _must_stop_reading(github, open_pulls):
                break
            _read_pull(github, open_pulls, pull, is_due=pull.number in due_numbers)
    except RateLimited as limit:
        open_pulls.progress.stop = rate_limit_stop(limit)
    for pull in first_pulls:
        earlier_verdict = open_pulls.verdicts_on_head.get(pull.number)
        if earlier_verdict is not None and _is_current(github, open_pulls, pull, earlier_verdict):
            open_pulls.progress.note([pull.number], PullState.CURRENT)
            if pull.number in waits:
                open_pulls.settled.append(pull.number)
    if open_pulls.progress.stop is None:
        without_verdict = set(open_pulls.progress.numbers(PullState.LEFT))
        open_pulls.unjudged = [pull for pull in first_pulls if pull.number in without_verdict]
        # Those that failed before come last.
        open_pulls.unjudged.sort(key=lambda pull: pull.number in waits)


def _must_stop_reading(github: GitHub, open_pulls: OpenPulls) -> bool:
    """Whether to stop reading because GitHub fails or the limit is near; note it if so."""
    if len(open_pulls.problems) == FAILURES_MAX:
        last_problem = open_pulls.problems[-1]
        reason = (
            f"{FAILURES_MAX} pull requests could not be read, the last because "
            f"{last_problem.message}"
        )
        open_pulls.progress.stop = SweepStop(reason, cause=last_problem)
        return True
    return open_pulls.is_limit_near(github)


def _read_pull(github: GitHub, open_pulls: OpenPulls, pull: Pull, *, is_due: bool) -> None:
    """Read the verdict and the status of one pull request."""
    conversation = github.conversations.get(pull.number)
    if conversation is None and not is_due:
        return
    outcome = result_or_error(_verdict_and_commands, github, open_pulls, pull, is_due=is_due)
    if isinstance(outcome, GenebError):
        open_pulls.note_failure(pull, outcome)
        return
    earlier_verdict, commands, is_outdated = outcome
    open_pulls.command_states[pull.number] = commands
    if earlier_verdict is not None and earlier_verdict.head_sha == pull.head.sha:
        open_pulls.verdicts_on_head[pull.number] = earlier_verdict
        if earlier_verdict.passes and earlier_verdict.fingerprint is not None:
            open_pulls.passing[pull.number] = earlier_verdict.fingerprint
    else:
        earlier_verdict = None
    if is_outdated:
        open_pulls.verdicts_on_head.pop(pull.number, None)
    is_current = (
        earlier_verdict is not None and earlier_verdict.main_digest == open_pulls.main.digest
    )
    state = (
        conversation.state
        if conversation is not None
        else earlier_verdict and earlier_verdict.state
    )
    if state == SUCCESS and not is_current:
        open_pulls.stale.append(PullHead(number=pull.number, head_sha=pull.head.sha))
    if is_due and pull.locked and not is_current:
        open_pulls.note_wait(pull.number, pull.head.sha, LOCKED_REASON)


def _verdict_and_commands(
    github: GitHub, open_pulls: OpenPulls, pull: Pull, *, is_due: bool
) -> tuple[PullVerdict | None, CommandState, bool]:
    """Return the verdict in our comment, the commands, and whether these require a new verdict."""
    conversation = github.conversations.get(pull.number)
    read_comments = (
        conversation.comments if conversation is not None else list(github.comments(pull.number))
    )
    earlier_verdict = verdict_in(read_comments, github.own_account_id, pull.number)
    earlier_commands = commands_of(earlier_verdict)
    if earlier_verdict is None and not is_due:
        return earlier_verdict, earlier_commands, False
    comments_by_pull = {pull.number: read_comments} if conversation is None else {}
    numbers_with_head = open_pulls.numbers_with_head[pull.head.sha]
    current_commands, should_store_seen = read_commands(
        github, numbers_with_head, earlier_commands, open_pulls.may_write_by_login, comments_by_pull
    )
    return (
        earlier_verdict,
        current_commands,
        should_store_seen or current_commands.command != earlier_commands.command,
    )


def _is_current(
    github: GitHub, open_pulls: OpenPulls, pull: Pull, earlier_verdict: PullVerdict
) -> bool:
    """Whether a verdict is about the present main and pull requests, and the status shows it."""
    conversation = github.conversations.get(pull.number)
    if conversation is not None and conversation.state != earlier_verdict.state:
        return False
    if earlier_verdict.main_digest != open_pulls.main.digest:
        return False
    if earlier_verdict.fingerprint is None:
        return True
    rival_numbers = pull_numbers(
        rivals(earlier_verdict.fingerprint, open_pulls.passing_with_other_heads(pull))
    )
    return rival_numbers == earlier_verdict.rivals


def _group_verdicts(
    github: GitHub, pull_checker: PullChecker, open_pulls: OpenPulls, queued_groups: list[str]
) -> list[GroupVerdict]:
    """Check groups of a merge queue; an error about one does not stop the others."""
    verdicts: list[GroupVerdict] = []
    for sha in queued_groups:
        try:
            verdicts.append(judge_group(github, pull_checker, sha))
        except GenebError as error:
            open_pulls.problems.append(error)
            if isinstance(error, RateLimited):  # would also hit the others
                break
    return verdicts


def _check_pulls(
    github: GitHub, pull_checker: PullChecker, open_pulls: OpenPulls
) -> list[PullVerdict]:
    """Check pull requests until `VERDICTS_MAX` have a verdict, or too many have failed."""
    verdicts: list[PullVerdict] = []
    failures = unreadable = 0
    try:
        for start in range(0, len(open_pulls.unjudged), PULLS_PER_BATCH):
            is_over = _must_stop_judging(open_pulls, len(verdicts), failures, unreadable)
            if is_over or open_pulls.is_limit_near(github):
                break
            batch = open_pulls.unjudged[start : start + PULLS_PER_BATCH]
            error_by_number = _prefetch_batch(github, pull_checker, open_pulls, batch)
            for pull in batch:
                if _must_stop_judging(open_pulls, len(verdicts), failures, unreadable):
                    break
                if open_pulls.is_limit_near(github) and not pull_checker.has_read(pull.head.sha):
                    break
                head = PullHead(number=pull.number, head_sha=pull.head.sha)
                decision: PullDecision | GenebError | None = error_by_number.get(pull.number)
                if decision is None:
                    decision = result_or_error(
                        decide, pull_checker, head, open_pulls.passing_with_other_heads(pull)
                    )
                if isinstance(decision, GenebError):
                    open_pulls.note_failure(pull, with_rebase_advice(decision))
                    is_unreadable = isinstance(decision, _LASTING_ERRORS)
                    unreadable, failures = (
                        unreadable + is_unreadable,
                        0 if is_unreadable else failures + 1,
                    )
                    continue
                failures, verdict = 0, decision.verdict
                command_state = open_pulls.command_states[
                    open_pulls.numbers_with_head[pull.head.sha][0]
                ]
                verdicts.append(verdict.model_copy(update=command_state._asdict()))
                open_pulls.progress.note([pull.number], PullState.JUDGED)
                if verdict.outcome in PASSING and verdict.fingerprint is not None:
                    open_pulls.passing[pull.number] = verdict.fingerprint
    except RateLimited as error:  # would also hit the others
        open_pulls.problems.append(error)
        open_pulls.progress.stop = rate_limit_stop(error)
    return verdicts


def _must_stop_judging(open_pulls: OpenPulls, count: int, failures: int, unreadable: int) -> bool:
    """Whether a limit ends the sweep before its next pull request; note it if so."""
    is_over = (
        count == VERDICTS_MAX or failures == FAILURES_MAX or unreadable == UNREADABLE_PULLS_MAX
    )
    if count == VERDICTS_MAX:
        open_pulls.progress.stop = SweepStop(f"a run gives {VERDICTS_MAX} verdicts", is_full=True)
    elif failures == FAILURES_MAX:
        reason = f"{failures} pull requests in a row could not be judged, the last because "
        open_pulls.progress.stop = SweepStop(f"{reason}{open_pulls.problems[-1].message}")
    elif unreadable == UNREADABLE_PULLS_MAX:
        open_pulls.progress.stop = SweepStop(
            f"{unreadable} pull requests of this run cannot be read"
        )
    return is_over


def _prefetch_batch(
    github: GitHub, pull_checker: PullChecker, open_pulls: OpenPulls, pulls: Sequence[Pull]
) -> dict[int, GenebError]:
    """Read what checks of several pull requests need; return the errors of reading, by number."""
    if len(pulls) > 1:
        prefetch_bases(github, open_pulls.main.sha, [pull.head.sha for pull in pulls])
    blobs: list[Blob] = []
    error_by_number: dict[int, GenebError] = {}
    for pull in pulls:
        is_down = (
            sum(not isinstance(failure, _LASTING_ERRORS) for failure in error_by_number.values())
            == FAILURES_MAX
        )
        if is_down or (len(pulls) > 1 and open_pulls.is_limit_near(github)):
            break
        try:
            blobs += pull_checker.blobs_to_read(pull.head.sha)
        except RateLimited:
            raise
        except GenebError as error:
            error_by_number[pull.number] = error
        except Exception:  # noqa: BLE001,S112 (the same happens again when it is its turn)
            continue
    prefetch_blobs(github, blobs)
    return error_by_number
