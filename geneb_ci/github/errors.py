"""Errors of the GitHub API, with advice, and the limits of retries."""

import datetime as dt
import email.utils
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from github.GithubException import RateLimitExceededException
from github.GithubRetry import GithubRetry
from github.Requester import Requester
from urllib3.exceptions import MaxRetryError

from geneb_ci.common.errors import Exit, GenebError, UsageProblem
from geneb_ci.render.plain import visible


class NoGitHubToken(UsageProblem):
    """GH_TOKEN is not set."""


class GitHubTokenRefused(UsageProblem):
    """GitHub rejected the token (401)."""


class MissingScope(UsageProblem):
    """The token lacks a permission (403)."""


class NotFound(UsageProblem):
    """The resource does not exist, or the token may not read it."""


class ForgeProblem(GenebError):
    """GitHub is unavailable, or its answer is invalid."""

    exit_code = Exit.NOT_CHECKED


class RateLimited(ForgeProblem):
    """GitHub requires a longer wait than allowed; `wait` is in seconds."""

    def __init__(self, until: dt.datetime, wait: float) -> None:
        super().__init__(
            f"GitHub's rate limit is reached until {until:%Y-%m-%d %H:%M:%S} UTC",
            "run the command again after that time; nothing is lost",
        )
        self.until = until
        self.wait = wait


class Unavailable(ForgeProblem):
    """GitHub did not answer, or with a server error (5xx)."""


class UnexpectedReply(ForgeProblem):
    """GitHub's answer differs from its documentation."""


class Tampered(ForgeProblem):
    """The received data contradict themselves, such as bytes that do not match their digest."""


class HeadMoved(GenebError):
    """The pull request has new commits, which were not checked."""

    exit_code = Exit.MOVED


FORBIDDEN, TOO_MANY = 403, 429
_LIMITED = frozenset({FORBIDDEN, TOO_MANY})
_LIMIT_BODY = {"message": "API rate limit exceeded"}


@dataclass(frozen=True)
class Patience:
    """Limits of waiting for GitHub, in seconds."""

    wait_max: float = 120.0
    """Longest wait for a rate limit; above it, RateLimited is raised."""
    secondary: float = 60.0
    """Wait after a secondary rate limit without a stated time (GitHub's documentation)."""
    retries: int = 3
    backoff: float = 1.0
    """Doubles with each retry."""
    between_writes: float = 1.0
    """Pause between two writes (GitHub's documentation)."""
    timeout: int = 30


PATIENCE = Patience()


class PoliteRetry(GithubRetry):
    """Retries only GET, waits at most as long as allowed, and uses GitHub's clock."""

    def increment(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (urllib3's own signature)
        """Count a failed attempt. Raises RateLimitExceededException if the wait is too long."""
        response = kwargs.get("response")
        headers = lower(response.headers) if response is not None else {}
        status = response.status if response is not None else 0
        wait = told_wait(headers) if status in _LIMITED else None
        limited = RateLimitExceededException(status, _LIMIT_BODY, headers)
        if response is not None and wait is not None and wait > (self.max_rate_limit_wait or 0):
            response.drain_conn()  # so that the connection is closed, not lost
            raise limited
        try:
            return super().increment(*args, **kwargs)
        except MaxRetryError:
            if status == FORBIDDEN:  # of these, only limits are retried; the body is read up
                raise limited from None
            raise


def told_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait according to GitHub's headers, or None.

    The reset time is compared with the Date header, because our clock may be wrong.
    """
    asked = headers.get("retry-after", "")
    if asked.isascii() and asked.isdigit():
        return float(asked)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        now = date_of(headers) or dt.datetime.now(dt.UTC)
        return max(0.0, float(reset) - now.timestamp()) + 1.0
    return None


def date_of(headers: Mapping[str, str]) -> dt.datetime | None:
    """Return the Date header of an answer, or None."""
    try:
        return email.utils.parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return None


def lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers with lower-case names."""
    return {name.lower(): value for name, value in (headers or {}).items()}


AGAIN = "run the command again; nothing is written twice"
_UNKNOWN_TOKEN, _MISSING = 401, 404
_SERVER = range(500, 600)
_SCOPES = ("x-accepted-github-permissions", "x-accepted-oauth-scopes")
_ALL_SCOPES = "contents: read, pull-requests: write, statuses: write"
_SAID_MAX = 200  # characters of GitHub's own words in a message of ours


class Refusal(NamedTuple):
    """An answer with a status outside 200 to 299."""

    status: int
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: Any
    """Its JSON, or None."""

    @property
    def message(self) -> str:
        """GitHub's message, made printable."""
        said = self.body.get("message") if isinstance(self.body, dict) else None
        return visible(said, _SAID_MAX) if isinstance(said, str) else "no reason given"


def problem(refusal: Refusal, repository: str, now: dt.datetime, patience: Patience) -> GenebError:
    """Return the typed error of an answer; `now` is the time by GitHub's clock."""
    status = refusal.status
    wait = _limit(refusal, patience)
    if wait is not None:
        return RateLimited(now + dt.timedelta(seconds=wait), wait)
    if status == _UNKNOWN_TOKEN:
        return GitHubTokenRefused(
            "GitHub rejected the token in GH_TOKEN",
            "set GH_TOKEN to a valid token: `gh auth token`",
        )
    if status == FORBIDDEN:
        needs = next((refusal.headers[name] for name in _SCOPES if refusal.headers.get(name)), "")
        return MissingScope(
            f"the token lacks a permission: {refusal.message}",
            f"grant it {visible(needs, _SAID_MAX) or _ALL_SCOPES}",
        )
    if status == _MISSING:
        return NotFound(
            f"{repository}: GitHub finds no such repository or pull request",
            "check --repo; for a private repository the token needs read access",
        )
    if status in _SERVER:
        return Unavailable(f"GitHub answered {status}", AGAIN)
    return UnexpectedReply(f"GitHub answered {status}: {refusal.message}", AGAIN)


def _limit(refusal: Refusal, patience: Patience) -> float | None:
    """Return the seconds until a rate limit ends, or None if this is not a rate limit."""
    wait = told_wait(refusal.headers)
    is_limit = refusal.status == TOO_MANY or (
        refusal.status == FORBIDDEN
        and (wait is not None or Requester.isRateLimitError(refusal.message))
    )
    if not is_limit:
        return None
    return patience.secondary if wait is None else wait
