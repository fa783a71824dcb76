"""How long we wait for GitHub: as long as it says, up to a bound, by its clock and not by ours."""

import datetime as dt
import email.utils
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from github.GithubException import RateLimitExceededException
from github.GithubRetry import GithubRetry
from urllib3.exceptions import MaxRetryError

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
    """Give the seconds that GitHub says to wait, or None where it says nothing.

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
    """Give the time of an answer by GitHub's clock, or None where it says none."""
    try:
        return email.utils.parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return None


def lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Give headers by their names in small letters: HTTP makes no difference."""
    return {name.lower(): value for name, value in (headers or {}).items()}
