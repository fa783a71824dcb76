"""Finds the pull requests that need a verdict, and checks them; needs only a read token.

A verdict is about a head, the state of main with which it was compared, and the other open pull
requests that its findings name. If any of these has changed, the pull request is checked again.
Pull requests are found by listing them, so that the next sweep makes up for a lost event.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from geneb_ci import __version__
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import GenebError
from geneb_ci.github.api import GitHub, numbers_by_head
from geneb_ci.github.batch import (
    aside,
    asked_on,
    prefetch_bases,
    prefetch_blobs,
    prefetch_talks,
)
from geneb_ci.github.comment import Receipt, receipt_on
from geneb_ci.github.errors import (
    HeadMoved,
    NotFound,
    RateLimited,
    Tampered,
    UnexpectedReply,
    explained,
    our_mistake,
)
from geneb_ci.github.groups import judge_group, judge_groups, waiting_groups
from geneb_ci.github.judge import Judge, places_of
from geneb_ci.github.judgement import BaseBranch, crash_verdict, pull_verdict
from geneb_ci.github.main_branch import further_places, layout_of_main
from geneb_ci.github.replies import Pull
from geneb_ci.github.sides import Main, main_at, numbers, rivals
from geneb_ci.github.verdict import (
    OPEN_MAX,
    PASSING,
    PULLS_MAX,
    SUCCESS,
    Asked,
    Fingerprint,
    GroupVerdict,
    PullHead,
    PullVerdict,
    Trouble,
    Verdicts,
)
from geneb_ci.github.waits import REASON_MAX, Wait, is_due, read_waits
from geneb_ci.render.plain import visible

if TYPE_CHECKING:
    from geneb_ci.check.change import Blob

# Requests of the hourly limit that a sweep leaves for runs triggered by events.
RESERVE = 100
# Pull requests that are read together, and lost together where a limit is reached.
CHUNK = 25
# After so many failures of GitHub in a row the sweep ends; those wait, the next come first.
FAILED_MAX = 10
# Unreadable pull requests of one sweep, a request and a write each: the others wait for no more.
UNREADABLE_MAX = 100
_UNREADABLE = (NotFound, Tampered, UnexpectedReply)
"""Errors of one pull request: GitHub answered, and will answer so again."""
LOCKED = "the conversation is locked, so no verdict can be written: unlock it"
_QUEUED = "nothing was written; the new commits are queued, and are checked within 15 minutes"


@dataclass
class Found:
    """The verdicts, the number left for the next run, and errors."""

    verdict: Verdicts
    problems: list[GenebError] = field(default_factory=list)


def one_pull(github: GitHub, number: int, head_sha: str | None) -> Pull:
    """Return the pull request to check. Raises HeadMoved, or NotFound if it is not open to main."""
    pull = github.pull(number)
    if head_sha is not None and pull.head.sha != head_sha:
        raise HeadMoved(f"pull request {number} no longer has the head {head_sha}", _QUEUED)
    if pull.state != "open":
        raise NotFound(f"pull request {number} is {pull.state!r}", "pass an open one")
    if not pull.is_to_main:
        main = pull.base.repo.default_branch
        raise NotFound(
            f"the base branch of pull request {number} is {pull.base.ref!a}, not {main!a}",
            f"pass a pull request to {main!a}",
        )
    return pull


def pull_of(pulls: Iterable[Pull], head_sha: str) -> Pull:
    """Return the first open pull request with this head. Raises HeadMoved if there is none.

    The event's pull request number is not used: it is empty for forks, and could be forged.
    """
    found = [pull for pull in pulls if pull.head.sha == head_sha]
    if not found:
        raise HeadMoved(f"no open pull request has the head {head_sha}", _QUEUED)
    return min(found, key=lambda pull: pull.number)


@contextlib.contextmanager
def base_of(
    github: GitHub, layout: Layout, note: Callable[[str], None] | None = None
) -> Iterator[tuple[Main, Layout]]:
    """Yield the state of main as the API has it, and its files.

    Raises UsageProblem if this is not a checkout of a repository of submissions.
    """
    places_of(layout)
    main = main_at(github, github.main(), further_places(layout))
    with layout_of_main(github, layout, main, note) as own:
        yield main, own


@dataclass
class OpenPulls:
    """What is known of the open pull requests before any is checked."""

    main: Main
    pulls: list[Pull]
    receipts: dict[int, Receipt] = field(default_factory=dict)
    """Number to the receipt on its present head."""
    wanted: list[Pull] = field(default_factory=list)
    stale: list[PullHead] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    problems: list[GenebError] = field(default_factory=list)
    asked: dict[int, Asked] = field(default_factory=dict)
    """Number to what maintainers asked for in its comments."""
    rights: dict[str, bool] = field(default_factory=dict)
    """Who may write, of those who gave a command."""
    passing: dict[int, Fingerprint] = field(default_factory=dict)
    """Fingerprints of the pull requests that pass, or passed when the run began."""

    @functools.cached_property
    def heads(self) -> dict[str, list[int]]:
        """Numbers by head."""
        return numbers_by_head(self.pulls)

    def others(self, pull: Pull) -> dict[int, Fingerprint]:
        """Return the pull requests with which one is compared: not those with the same head."""
        same = {*self.heads.get(pull.head.sha, ()), pull.number}
        return {one: mark for one, mark in self.passing.items() if one not in same}

    def fail(self, pull: Pull, problem: GenebError) -> None:
        """Note that a pull request could not be read."""
        self.problems.append(problem)
        self.troubles.append(trouble(pull.number, pull.head.sha, problem.message))


def trouble(number: int, head_sha: str, reason: str) -> Trouble:
    """Return a pull request that waits, with the reason."""
    return Trouble(number=number, head_sha=head_sha, reason=visible(reason, REASON_MAX))


def sweep(
    github: GitHub, layout: Layout, say: Callable[[str], None], only: Pull | None = None
) -> Found:
    """Check the open pull requests without a verdict on their head and on the present main.

    The oldest come first. It stops at the size limit of a verdict and at the hourly rate limit.
    With `only`, just that one is checked, whatever its verdict.
    """
    with base_of(github, layout) as (main, own):
        listed = sorted(github.all_open_pulls(), key=lambda pull: (pull.updated_at, pull.number))
        pulls = [pull for pull in listed if pull.is_to_main]
        waits = {} if only is not None else read_waits(github).waits
        board = read_board(github, main, pulls, waits, say)
        queued: list[str] = []
        if only is not None:
            board.wanted, board.troubles, board.problems = [only], [], []
        else:
            board.stale += aside(github, listed, board.heads)
            if pulls:
                queued = waiting_groups(github, pulls[0].base.repo.default_branch)
        if not board.wanted and not queued:
            return _found(github, board, [], [])
        base = BaseBranch(own)
        judge = Judge(github, own, base.modules, main)
        groups, problems = judge_groups(github, judge, queued)
        board.problems += problems
        done = _checked(github, judge, base, board)
        board.settled += [verdict.number for verdict in done if verdict.number in waits]
        return _found(github, board, done, groups)


def group_verdict(github: GitHub, layout: Layout, head: str) -> Found:
    """Return the verdict on one group of a merge queue. Raises ForgeProblem."""
    with base_of(github, layout) as (main, own):
        judge = Judge(github, own, BaseBranch(own).modules, main)
        return found_of(github, main, groups=[judge_group(github, judge, head)])


def _found(
    github: GitHub, board: OpenPulls, done: list[PullVerdict], groups: list[GroupVerdict]
) -> Found:
    found = found_of(
        github,
        board.main,
        pulls=done,
        groups=groups,
        waiting=max(0, len(board.wanted) - len(done)),
        stale=board.stale[:OPEN_MAX],
        troubles=board.troubles,
        settled=sorted(set(board.settled)),
    )
    return Found(found.verdict, board.problems)


def found_of(github: GitHub, main: Main, **found: Any) -> Found:  # fields of Verdicts
    """Return verdicts that were computed beside this state of main."""
    nothing: dict[str, Any] = {"pulls": [], "waiting": 0}
    verdict = Verdicts(
        format_version="1.0",
        repository=github.wire.repository,
        tool_version=__version__,
        main_sha=main.sha,
        main_digest=main.digest,
        **nothing | found,
    )
    return Found(verdict)


def read_board(
    github: GitHub,
    main: Main,
    pulls: Sequence[Pull],
    waits: dict[int, Wait],
    say: Callable[[str], None],
) -> OpenPulls:
    """Read what is known of the open pull requests, and choose those that need a verdict."""
    board = OpenPulls(main, list(pulls))
    prefetch_talks(github, [pull.number for pull in pulls])
    pulls = [pull for pull in pulls if board.heads[pull.head.sha][0] == pull.number]
    due = [pull for pull in pulls if is_due(waits.get(pull.number), pull.head.sha, github.wire.now)]
    board.settled = sorted(set(waits) - {pull.number for pull in pulls})
    for pull in _within_reserve(github, pulls, say):
        if len(board.problems) == FAILED_MAX:
            break
        _read_one(github, board, pull, is_due=pull in due)
    for pull in pulls:
        receipt = board.receipts.get(pull.number)
        if pull.number in waits and receipt is not None and _holds(github, board, pull, receipt):
            board.settled.append(pull.number)
    for pull in _within_reserve(github, due, say):
        receipt = board.receipts.get(pull.number)
        if any(one.number == pull.number for one in board.troubles):
            continue
        if receipt is None or not _holds(github, board, pull, receipt):
            board.wanted.append(pull)
    board.wanted.sort(key=lambda pull: pull.number in waits)  # what failed before comes last
    return board


def _read_one(github: GitHub, board: OpenPulls, pull: Pull, *, is_due: bool) -> None:
    """Read the receipt and the status of one pull request."""
    talk = github.talks.get(pull.number)
    if talk is None and not is_due:
        return
    is_far = False
    try:
        receipt = receipt_on(github, pull)
        known = asked = receipt.asked if receipt is not None else Asked()
        if receipt is not None or is_due:
            said = board.heads[pull.head.sha]
            asked, is_far = asked_on(github, said, known, board.rights)
    except RateLimited:
        raise
    except Exception as error:  # noqa: BLE001 (no exception may stop the queue)
        board.fail(pull, error if isinstance(error, GenebError) else our_mistake(error))
        return
    board.asked[pull.number] = asked
    is_new = is_far or asked.command != known.command
    if receipt is not None and receipt.head_sha == pull.head.sha:
        board.receipts[pull.number] = receipt
        if receipt.passes and receipt.fingerprint is not None:
            board.passing[pull.number] = receipt.fingerprint
    else:
        receipt = None
    if is_new:
        board.receipts.pop(pull.number, None)
    is_current = receipt is not None and receipt.main_digest == board.main.digest
    passes = talk.state == SUCCESS if talk is not None else receipt is not None and receipt.passes
    if passes and not is_current:
        board.stale.append(PullHead(number=pull.number, head_sha=pull.head.sha))
    if is_due and pull.locked and not is_current:
        board.troubles.append(trouble(pull.number, pull.head.sha, LOCKED))


def _holds(github: GitHub, board: OpenPulls, pull: Pull, receipt: Receipt) -> bool:
    """Whether a verdict is about the present main and other pull requests, and is the status."""
    talk = github.talks.get(pull.number)
    if talk is not None and talk.state != receipt.state:
        return False
    if receipt.main_digest != board.main.digest:
        return False
    if receipt.fingerprint is None:
        return True
    found = numbers(rivals(receipt.fingerprint, board.others(pull)))
    return found == receipt.rivals


def _checked(github: GitHub, judge: Judge, base: BaseBranch, board: OpenPulls) -> list[PullVerdict]:
    """Check pull requests until `PULLS_MAX` have a verdict, or too many have failed."""
    done: list[PullVerdict] = []
    failures = unreadable = 0
    try:
        for start in range(0, len(board.wanted), CHUNK):
            if _is_over(len(done), failures, unreadable):
                break
            part = board.wanted[start : start + CHUNK]
            failed = _prefetch(github, judge, board.main, part)
            for pull in part:
                if _is_over(len(done), failures, unreadable):
                    break
                problem = failed.get(pull.number)
                verdict = problem or _verdict(judge, base, board, pull)
                if isinstance(verdict, GenebError):
                    board.fail(pull, explained(verdict))
                    is_own = isinstance(verdict, _UNREADABLE)
                    unreadable, failures = unreadable + is_own, 0 if is_own else failures + 1
                    continue
                failures = 0
                asked = board.asked.get(pull.number, Asked())
                done.append(verdict.model_copy(update=asked._asdict()))
                if verdict.outcome in PASSING and verdict.fingerprint is not None:
                    board.passing[pull.number] = verdict.fingerprint
    except RateLimited as error:  # would also hit the others
        board.problems.append(error)
    return done


def _is_over(done: int, failures: int, unreadable: int) -> bool:
    return done == PULLS_MAX or failures == FAILED_MAX or unreadable == UNREADABLE_MAX


def _verdict(
    judge: Judge, base: BaseBranch, board: OpenPulls, pull: Pull
) -> PullVerdict | GenebError:
    """Check one pull request. Raises RateLimited."""
    head = PullHead(number=pull.number, head_sha=pull.head.sha)
    try:
        judged = judge.judge(pull.head.sha, board.others(pull))
        return pull_verdict(head, judged, base, board.main.digest)
    except RateLimited:
        raise
    except GenebError as error:
        return error
    except Exception as error:  # noqa: BLE001 (no exception may stop the queue)
        return crash_verdict(head, board.main.sha, error, board.main.digest)


def _prefetch(
    github: GitHub, judge: Judge, main: Main, pulls: Sequence[Pull]
) -> dict[int, GenebError]:
    """Read together what the pull requests take; return those whose trees cannot be read."""
    if len(pulls) > 1:
        prefetch_bases(github, main.sha, [pull.head.sha for pull in pulls])
    blobs: list[Blob] = []
    failed: dict[int, GenebError] = {}
    for pull in pulls:
        is_down = sum(not isinstance(one, _UNREADABLE) for one in failed.values()) == FAILED_MAX
        if is_down or (len(pulls) > 1 and _is_low(github)):
            break
        try:
            blobs += judge.own_blobs(pull.head.sha)
        except RateLimited:
            raise
        except GenebError as error:
            failed[pull.number] = error
        except Exception:  # noqa: BLE001,S112 (the same happens again when it is its turn)
            continue
    prefetch_blobs(github, blobs)
    return failed


def _within_reserve(
    github: GitHub, pulls: Iterable[Pull], say: Callable[[str], None]
) -> Iterator[Pull]:
    for pull in pulls:
        if _is_low(github):
            left = f"{github.wire.remaining:.0f}"
            say(f"stopped before pull request {pull.number}: {left} requests left in this hour")
            return
        yield pull


def _is_low(github: GitHub) -> bool:
    """Whether so few requests are left in this hour that a sweep ends."""
    return github.wire.remaining < RESERVE
