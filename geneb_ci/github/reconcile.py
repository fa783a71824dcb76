"""Which pull requests want a verdict, and the verdicts: all that needs a read token only.

What is wanted is found by looking, not by the event that woke us: one that was lost is made good by
the next sweep.
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

# A sweep leaves these requests of the hour to the doorbells that ring meanwhile.
RESERVE = 100
_QUEUED = "nothing was written; the new commits are queued, and a sweep finds them in 15 minutes"


@dataclass
class Found:
    """The verdicts, how many wait for the next run, and what went wrong on the way."""

    verdict: Verdicts
    problems: list[GenebError] = field(default_factory=list)


def one_pull(github: GitHub, number: int, head_sha: str | None) -> Pull:
    """Find the pull request to judge. Raises HeadMoved, or NotFound where it is not for us."""
    pull = github.pull(number)
    if head_sha is not None and pull.head.sha != head_sha:
        raise HeadMoved(f"pull request {number} has moved on from {head_sha}", _QUEUED)
    if pull.state != "open":
        raise NotFound(f"pull request {number} is {pull.state!r}", "name an open one")
    if not pull.is_to_main:
        main = pull.base.repo.default_branch
        raise NotFound(
            f"pull request {number} would change {pull.base.ref!a}, not {main!a}",
            f"verdicts are on what becomes of {main!a}: name a pull request to it",
        )
    return pull


def pull_of(github: GitHub, head_sha: str) -> Pull:
    """Find the open pull request with this head. Raises HeadMoved where none has it any more.

    The event names no number: it is empty for a fork, and anyone can write anything into a branch.
    """
    for pull in github.open_pulls():
        if pull.head.sha == head_sha:
            return pull
    raise HeadMoved(f"no open pull request has the head {head_sha}", _QUEUED)


def verdicts(github: GitHub, layout: Layout, pulls: Sequence[Pull]) -> Found:
    """Judge pull requests until `PULLS_MAX` have their verdict; the others wait for the next run.

    One that cannot be read is a problem, takes no place and hides no other.
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
        except RateLimited as error:  # the next one would fare no better
            problems.append(error)
            break
        except GenebError as error:
            problems.append(error)
        except Exception as error:  # noqa: BLE001 (whatever it is, it must not stop the queue)
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
    """Judge the open pull requests whose head has no comment of ours, the longest waiting first.

    As many as fit a verdict and the hour's limit. A status, a label, and a check that calls itself
    ours count for nothing.
    """
    wanted: list[Pull] = []
    problems: list[GenebError] = []
    queue = sorted(github.open_pulls(), key=lambda pull: (pull.updated_at, pull.number))
    for pull, said in receipts_on(github, _within_reserve(github, queue, say)):
        if isinstance(said, ForgeProblem):
            problems.append(said)  # its verdict goes through --pr
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
            say(f"GitHub leaves {left} requests in this hour: the sweep ends before {pull.number}")
            return
        yield pull
