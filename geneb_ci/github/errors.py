"""Errors about pull requests and GitHub, with advice, and limits of waiting for GitHub."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from geneb_ci.common.errors import Exit, GenebError, UsageProblem
from geneb_ci.render.plain import visible

_MESSAGE_MAX = 80  # characters of an exception's text in a message of ours


class GitHubTokenRefused(UsageProblem):
    """GitHub rejected the token (401)."""


class MissingScope(UsageProblem):
    """The token lacks a permission (403)."""


class ConversationLocked(UsageProblem):
    """The conversation of a pull request is locked, so nobody can comment (403)."""


class NotFound(UsageProblem):
    """The resource does not exist, or the token may not read it."""


class GitHubProblem(GenebError):
    """GitHub is unavailable, or its answer is invalid."""

    exit_code = Exit.NOT_CHECKED


class RateLimited(GitHubProblem):
    """GitHub requires a longer wait than allowed; `wait` is in seconds."""

    def __init__(self, until: dt.datetime, wait: float) -> None:
        super().__init__(
            f"GitHub's rate limit is reached until {until:%Y-%m-%d %H:%M:%S} UTC",
            "run the command again after that time; nothing is lost",
        )
        self.until = until
        self.wait = wait


class Unavailable(GitHubProblem):
    """GitHub did not answer, or answered with a server error (5xx)."""


class UnexpectedReply(GitHubProblem):
    """GitHub's answer differs from its documentation."""


class Tampered(UnexpectedReply):
    """Received data contradict themselves, for example bytes that do not match their digest."""


T = TypeVar("T")
P = ParamSpec("P")


def result_or_error(action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | GenebError:
    """Return the result of an action about one pull request, or its error.

    Raises RateLimited, because it would stop actions about other pull requests too.
    """
    try:
        return action(*args, **kwargs)
    except RateLimited:
        raise
    except GenebError as error:
        return error
    except Exception as error:  # noqa: BLE001 (a mistake about one stops no other)
        return internal_error(error)


def with_rebase_advice(error: GenebError) -> GenebError:
    """Return the error; a NotFound is replaced by one that advises to rebase the pull request."""
    if not isinstance(error, NotFound):
        return error
    return NotFound(
        "the pull request has no head, or no commit in common with main: ask its author to "
        "rebase it onto main",
        "ask its author to rebase it onto main",
    )


def internal_error(error: Exception) -> UnexpectedReply:
    """Return the error for an unexpected exception, a bug that one pull request has shown."""
    message = (
        f"geneb-ci failed on this pull request: {type(error).__name__}: {str(error)[:_MESSAGE_MAX]}"
    )
    return UnexpectedReply(visible(message), "report this message to the maintainers of geneb-ci")


class UnreadableSetting(GenebError):
    """A setting of a repository cannot be read; the fix names the permission that is needed."""


class HeadMoved(GenebError):
    """The pull request has new commits, which were not checked."""

    exit_code = Exit.MOVED


class MainMoved(HeadMoved):
    """The base branch has changed meanwhile, so the verdict is about an earlier state."""


@dataclass(frozen=True)
class WaitingLimits:
    """Limits of waiting for GitHub; times are in seconds."""

    wait_max: float = 120.0
    """Longest wait for a rate limit; above it, RateLimited is raised."""
    secondary_wait: float = 60.0
    """Wait after a rate limit for which GitHub states no time, as its documentation advises."""
    retries: int = 3
    """Maximum number of further attempts after a failed request."""
    first_backoff: float = 1.0
    """Wait before the second retry; it doubles with each further one."""
    pause_between_writes: float = 1.0
    """Pause between two writes, as GitHub's documentation advises."""
    request_time_max: int = 30
    """Maximum time of one request."""


WAITING_LIMITS = WaitingLimits()
"""The limits that every connection to GitHub has."""

RETRY_FIX = "run the command again; nothing is written twice"
"""Advice after a failed request that can be repeated."""
EFFECT_TIME = "usually within two minutes; if GitHub delays, at the next sweep"
"""Text on when an event has its effect: GitHub promises no time for events and schedules."""
QUEUED_FIX = (
    f"wait: nothing was written, and new commits of an open pull request are checked {EFFECT_TIME}"
)
"""Advice if a pull request has other commits than those to be checked."""
