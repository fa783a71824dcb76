"""Ask GitHub and the Hub about a branch or a board."""

from collections.abc import Mapping
from typing import NamedTuple

from geneb_ci.github.ages import duration
from geneb_ci.github.api import GitHub, connect, is_gh_usable, repository_address
from geneb_ci.github.queue import Queue, QueueStep, Turn, read_queue
from geneb_ci.publish.difference import LiveStatus, live_status_of
from geneb_ci.publish.generation import source_commit_of
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.session import require_space, token_to_read, with_retries
from geneb_ci.publish.space import Space
from geneb_ci.situation.contributor import OpenPull
from geneb_ci.situation.maintainer import LiveBoard, OpenAudit, WaitingPull


class ServerAnswers(NamedTuple):
    """Answers of GitHub and the Hub about a board."""

    is_github_known: bool = False
    """Whether GitHub was asked."""
    shown_at: Mapping[str, str] = {}
    """The time, in UTC, at which a commitment became public, by its digest."""
    pull: WaitingPull | None = None
    """The first pull request that waits for a maintainer; None without one."""
    live: LiveBoard | None = None
    """The published board; None if the Hub was not asked."""


def open_pull_of_commit(repository: str, head: str) -> OpenPull | None:
    """Return the open pull request of a commit; None without one. Raises GitHubProblem."""
    with connect(repository) as github:
        numbers = [p.number for p in github.open_pulls().pulls if p.head.sha == head]
        rows = [row for row in read_queue(github).rows if row.number in numbers]
    if not rows:
        return None
    row = rows[0]
    return OpenPull(row.number, row.verdict, row.who, row.action)


def server_answers(
    repository: str | None, space: str | None, clone: GitRepository, audits: tuple[OpenAudit, ...]
) -> ServerAnswers:
    """Return the answers of GitHub if `repository` is given, and of the Hub if `space` is given.

    Raises GitHubProblem, PublishFault, and UsageProblem without a token or for an impossible name.
    """
    answers = ServerAnswers()
    if repository is not None:
        with connect(repository) as github:
            answers = ServerAnswers(
                is_github_known=True,
                shown_at=_publication_times(github, audits),
                pull=waiting_pull(read_queue(github), repository),
            )
    if space is not None:
        answers = answers._replace(live=live_board(require_space(space, "--space"), clone))
    return answers


def _publication_times(github: GitHub, audits: tuple[OpenAudit, ...]) -> dict[str, str]:
    """Return when each commitment became a status of the commit that added it to main."""
    time_by_commitment = {
        audit.commitment: github.publication_time(audit.shown_on, audit.commitment)
        for audit in audits
        if audit.shown_on and not audit.is_drawn
    }
    return {commitment: moment for commitment, moment in time_by_commitment.items() if moment}


def waiting_pull(queue: Queue, repository: str) -> WaitingPull | None:
    """Return the first pull request of a queue that waits for a maintainer; None without one."""
    rows = [row for row in queue.rows if row.turn is Turn.MAINTAINER]
    if not rows:
        return None
    row = rows[0]
    age = duration(row.age_seconds)
    is_to_be_audited = row.step is QueueStep.AUDIT
    address = "" if is_gh_usable() else repository_address(repository)
    return WaitingPull(row.number, row.name, age, row.action, len(rows), is_to_be_audited, address)


def live_board(space_name: str, clone: GitRepository) -> LiveBoard:
    """Return the status of a Space: whether it serves the board of the clone's last commit."""
    space = Space(space_name, token=token_to_read(f"spaces/{space_name}"))
    live = with_retries(space.state).manifest
    if live is None:
        return LiveBoard(space_name, LiveStatus.NOTHING)
    return LiveBoard(
        space_name, live_status_of(live, source_commit_of(clone, clone.resolve("HEAD")), clone)
    )
