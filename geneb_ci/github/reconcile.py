"""Finds the pull requests that need a verdict, and checks them; needs only a read token.

Pull requests are found by listing them, not by the triggering event, so that the next sweep makes
up for a lost event.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from geneb_ci import __version__
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import GenebError
from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import ForgeProblem, HeadMoved, NotFound, RateLimited
from geneb_ci.github.judge import Judge, crash_verdict, pull_verdict
from geneb_ci.github.receipt import FAILED_MAX, receipts_on
from geneb_ci.github.replies import Pull
from geneb_ci.github.standing import BaseBranch
from geneb_ci.github.verdict import PULLS_MAX, PullVerdict, Verdicts

# Requests of the hourly limit that a sweep leaves for runs triggered by events.
RESERVE = 100
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


def pull_of(github: GitHub, head_sha: str) -> Pull:
    """Return the open pull request with this head. Raises HeadMoved if there is none.

    The event's pull request number is not used: it is empty for forks, and could be forged.
    """
    for pull in github.open_pulls():
        if pull.head.sha == head_sha:
            return pull
    raise HeadMoved(f"no open pull request has the head {head_sha}", _QUEUED)


def verdicts(github: GitHub, layout: Layout, pulls: Sequence[Pull]) -> Found:
    """Check pull requests until `PULLS_MAX` have a verdict; the others wait for the next run.

    One that cannot be read is reported as an error and does not count.
    """
    base = BaseBranch(layout)
    judge = Judge(github, layout, base.modules)
    done: list[PullVerdict] = []
    problems: list[GenebError] = []
    for pull in pulls:
        if len(done) == PULLS_MAX or len(problems) == FAILED_MAX:
            break
        try:
            done.append(pull_verdict(pull, judge.judge(pull), base))
        except RateLimited as error:  # would also hit the others
            problems.append(error)
            break
        except GenebError as error:
            problems.append(error)
        except Exception as error:  # noqa: BLE001 (no exception may stop the queue)
            done.append(crash_verdict(pull, pull.base.sha, error))
    verdict = Verdicts(
        format_version="1.0",
        repository=github.wire.repository,
        tool_version=__version__,
        pulls=done,
        waiting=len(pulls) - len(done),
    )
    return Found(verdict, problems)


def sweep(github: GitHub, layout: Layout, say: Callable[[str], None]) -> Found:
    """Check the open pull requests whose head has no comment of ours, the oldest first.

    It stops at the size limit of a verdict and at the hourly rate limit. Statuses and labels are
    ignored, since others can set them.
    """
    wanted: list[Pull] = []
    problems: list[GenebError] = []
    queue = sorted(github.open_pulls(), key=lambda pull: (pull.updated_at, pull.number))
    for pull, said in receipts_on(github, _within_reserve(github, queue, say)):
        if isinstance(said, ForgeProblem):
            problems.append(said)  # it can still be checked with --pr
        elif said is None or said.head_sha != pull.head.sha:
            wanted.append(pull)
    found = verdicts(github, layout, wanted)
    return Found(found.verdict, [*problems, *found.problems])


def _within_reserve(
    github: GitHub, pulls: Iterable[Pull], say: Callable[[str], None]
) -> Iterator[Pull]:
    for pull in pulls:
        if github.wire.remaining < RESERVE:
            left = f"{github.wire.remaining:.0f}"
            say(f"stopped before pull request {pull.number}: {left} requests left in this hour")
            return
        yield pull
