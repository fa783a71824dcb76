"""What can go wrong between us and GitHub, and what to do about it."""

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
    """There is no token to ask GitHub with."""


class GitHubTokenRefused(UsageProblem):
    """GitHub does not know the token."""


class MissingScope(UsageProblem):
    """The token may not do what was asked."""


class NotFound(UsageProblem):
    """There is no such thing, or the token may not see it."""


class ForgeProblem(GenebError):
    """GitHub could not be asked, or not be believed."""

    exit_code = Exit.NOT_CHECKED


class RateLimited(ForgeProblem):
    """GitHub wants us to wait longer than we do; `wait` is in seconds."""

    def __init__(self, until: dt.datetime, wait: float) -> None:
        super().__init__(
            f"GitHub's rate limit is reached until {until:%Y-%m-%d %H:%M:%S} UTC",
            "run it again then; nothing is lost",
        )
        self.until = until
        self.wait = wait


class Unavailable(ForgeProblem):
    """GitHub did not answer, or with a fault of its own."""


class UnexpectedReply(ForgeProblem):
    """An answer that is not what GitHub documents."""


class Tampered(ForgeProblem):
    """What was received contradicts itself."""


class HeadMoved(GenebError):
    """The pull request has other commits than those that were checked."""

    exit_code = Exit.MOVED


FORBIDDEN, TOO_MANY = 403, 429
_LIMITED = frozenset({FORBIDDEN, TOO_MANY})
_LIMIT_BODY = {"message": "API rate limit exceeded"}


@dataclass(frozen=True)
class Patience:
    """How long to wait for GitHub, in seconds. A job of Actions is paid by the minute."""

    wait_max: float = 120.0
    """Longest wait for a limit to pass; beyond it, the run ends and says until when."""
    secondary: float = 60.0
    """GitHub: wait a minute where a secondary limit does not say how long."""
    retries: int = 3
    backoff: float = 1.0
    """Doubles with each retry."""
    between_writes: float = 1.0
    """GitHub asks for a second between two requests that write."""
    timeout: int = 30


PATIENCE = Patience()


class PoliteRetry(GithubRetry):
    """Retries GET alone, never sleeps longer than it was told to, and goes by GitHub's clock."""

    def increment(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (urllib3's own signature)
        """Count a failed attempt. Raises RateLimitExceededException where waiting is too long."""
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
    """Return the seconds that GitHub says to wait, or None where it says nothing.

    The end of the hour is measured from the answer's own date: our clock may be wrong.
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
    """Return the time of an answer by GitHub's clock, or None where it says none."""
    try:
        return email.utils.parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return None


def lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return headers by their names in small letters: HTTP makes no difference."""
    return {name.lower(): value for name, value in (headers or {}).items()}


AGAIN = "run it again: what is done already is not done twice"
_UNKNOWN_TOKEN, _MISSING = 401, 404
_SERVER = range(500, 600)
_SCOPES = ("x-accepted-github-permissions", "x-accepted-oauth-scopes")
_ALL_SCOPES = "contents: read, pull-requests: write, statuses: write"
_SAID_MAX = 200  # characters of GitHub's own words in a message of ours


class Refusal(NamedTuple):
    """An answer outside of 200 to 299."""

    status: int
    headers: Mapping[str, str]
    """By their names in small letters."""
    body: Any
    """Its JSON, or None."""

    @property
    def message(self) -> str:
        """GitHub's own words, made visible."""
        said = self.body.get("message") if isinstance(self.body, dict) else None
        return visible(said, _SAID_MAX) if isinstance(said, str) else "no reason given"


def problem(refusal: Refusal, repository: str, now: dt.datetime, patience: Patience) -> GenebError:
    """Name what went wrong; `now` is the time by GitHub's clock."""
    status = refusal.status
    wait = _limit(refusal, patience)
    if wait is not None:
        return RateLimited(now + dt.timedelta(seconds=wait), wait)
    if status == _UNKNOWN_TOKEN:
        return GitHubTokenRefused(
            "GitHub does not know the token", "put a valid one into GH_TOKEN: `gh auth token`"
        )
    if status == FORBIDDEN:
        needs = next((refusal.headers[name] for name in _SCOPES if refusal.headers.get(name)), "")
        return MissingScope(
            f"the token may not do this: {refusal.message}",
            f"give it {visible(needs, _SAID_MAX) or _ALL_SCOPES}",
        )
    if status == _MISSING:
        return NotFound(
            f"{repository}: GitHub finds no such repository or pull request",
            "check the name in --repo; a private one is found only by a token that may read it",
        )
    if status in _SERVER:
        return Unavailable(f"GitHub answered {status}", AGAIN)
    return UnexpectedReply(f"GitHub answered {status}: {refusal.message}", AGAIN)


def _limit(refusal: Refusal, patience: Patience) -> float | None:
    """Return the seconds until a limit has passed, or None where this is not a limit."""
    wait = told_wait(refusal.headers)
    is_limit = refusal.status == TOO_MANY or (
        refusal.status == FORBIDDEN
        and (wait is not None or Requester.isRateLimitError(refusal.message))
    )
    if not is_limit:
        return None
    return patience.secondary if wait is None else wait
