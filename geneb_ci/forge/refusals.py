"""What an answer that is no success means, and what to do about it."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from github.Requester import Requester

from geneb_ci.errors import GenebError
from geneb_ci.forge.errors import (
    MissingScope,
    NotFound,
    RateLimited,
    TokenRefused,
    Unavailable,
    UnexpectedReply,
)
from geneb_ci.forge.patience import FORBIDDEN, TOO_MANY, Patience, told_wait
from geneb_ci.report.plain import visible

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
        return TokenRefused(
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
    """Give the seconds until a limit has passed, or None where this is not a limit."""
    wait = told_wait(refusal.headers)
    is_limit = refusal.status == TOO_MANY or (
        refusal.status == FORBIDDEN
        and (wait is not None or Requester.isRateLimitError(refusal.message))
    )
    if not is_limit:
        return None
    return patience.secondary if wait is None else wait
