"""One request to GitHub: PyGithub's connection, our own patience, typed errors, ETags.

PyGithub would send a POST again after a 5xx, and so comment twice; it would also sleep for as long
as `Retry-After` says, up to six hours.
"""

import datetime as dt
import email.utils
import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import github
import requests
from github.GithubException import GithubException, RateLimitExceededException
from github.GithubRetry import GithubRetry
from github.Requester import Requester
from urllib3.exceptions import MaxRetryError

from geneb_ci import __version__
from geneb_ci.errors import GenebError
from geneb_ci.forge.errors import (
    MissingScope,
    NotFound,
    RateLimited,
    TokenRefused,
    Unavailable,
    UnexpectedReply,
)
from geneb_ci.forge.etags import Etags, Kept
from geneb_ci.report.plain import visible

PER_PAGE = 100  # GitHub's largest page
_NOT_MODIFIED = 304
_UNKNOWN_TOKEN, _FORBIDDEN, _MISSING, _TOO_MANY = 401, 403, 404, 429
_LIMITED = frozenset({_FORBIDDEN, _TOO_MANY})
_LIMIT_BODY = {"message": "API rate limit exceeded"}
_OK = range(200, 300)
_SERVER = range(500, 600)
_AGAIN = "run it again; nothing was half-written"


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


class Reply(NamedTuple):
    """One answer: its JSON, and the address of the next page."""

    body: Any
    following: str | None = None


class PoliteRetry(GithubRetry):
    """Retries GET alone, never sleeps longer than it was told to, and goes by GitHub's clock."""

    def increment(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (urllib3's own signature)
        """Count a failed attempt. Raises RateLimitExceededException where waiting is too long."""
        response = kwargs.get("response")
        headers = _lower(response.headers) if response is not None else {}
        status = response.status if response is not None else 0
        wait = told_wait(headers) if status in _LIMITED else None
        limited = RateLimitExceededException(status, _LIMIT_BODY, headers)
        if response is not None and wait is not None and wait > (self.max_rate_limit_wait or 0):
            response.drain_conn()  # so that the connection is closed, not lost
            raise limited
        try:
            return super().increment(*args, **kwargs)
        except MaxRetryError:
            if status == _FORBIDDEN:  # of these, only limits are retried; the body is read up
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
        now = _date(headers) or dt.datetime.now(dt.UTC)
        return max(0.0, float(reset) - now.timestamp()) + 1.0
    return None


def _date(headers: Mapping[str, str]) -> dt.datetime | None:
    try:
        return email.utils.parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return None


class Wire:
    """Requests to one repository of GitHub, counted."""

    def __init__(
        self,
        token: str,
        repository: str,
        api: str,
        patience: Patience = PATIENCE,
        etags: Etags | None = None,
    ) -> None:
        retry = PoliteRetry(
            total=patience.retries,
            backoff_factor=patience.backoff,
            allowed_methods={"GET", "HEAD"},
            secondary_rate_wait=patience.secondary,
            max_rate_limit_wait=patience.wait_max,
            raise_on_status=False,
        )
        self._github = github.Github(
            auth=github.Auth.Token(token),
            base_url=api,
            user_agent=f"geneb-ci/{__version__}",
            per_page=PER_PAGE,
            retry=retry,
            timeout=patience.timeout,
            seconds_between_requests=0,
            seconds_between_writes=patience.between_writes,
        )
        self.repository = repository
        self.patience = patience
        self.etags = etags if etags is not None else Etags()
        self.reads = 0
        """GET requests that count against the rate limit: a 304 does not."""
        self.writes = 0
        self.remaining = math.inf
        """Requests left in this hour, as GitHub said last."""
        self._skew = dt.timedelta(0)

    def close(self) -> None:
        """Close the connection."""
        self._github.close()

    @property
    def now(self) -> dt.datetime:
        """The time by GitHub's clock: ours may be wrong."""
        return dt.datetime.now(dt.UTC) + self._skew

    def get(self, path: str, **parameters: str | int) -> Reply:
        """Read one address below the repository; a known answer that still holds is free."""
        return self._read(f"/repos/{self.repository}{path}", dict(parameters))

    def pages(self, path: str, pages_max: int, **parameters: str | int) -> Iterator[list[Any]]:
        """Read a list page by page. Raises UnexpectedReply when there are more than `pages_max`.

        A page that cannot be read raises: a list with a hole is no list.
        """
        reply = self.get(path, per_page=PER_PAGE, **parameters)
        for _ in range(pages_max):
            if not isinstance(reply.body, list):
                raise UnexpectedReply(f"{path}: GitHub sent no list", _AGAIN)
            yield reply.body
            if reply.following is None:
                return
            reply = self._read(reply.following, {})
        raise UnexpectedReply(
            f"{path}: more than {pages_max} pages of {PER_PAGE}", "a maintainer looks at it by hand"
        )

    def send(self, verb: str, path: str, body: Any) -> Any:  # noqa: ANN401 (JSON)
        """Write once. Where a limit refused it, wait as told and write again: nothing was done yet.

        Raises Unavailable where nobody knows whether it was done.
        """
        for attempt in range(self.patience.retries + 1):
            self.writes += 1
            try:
                return self._ask(verb, f"/repos/{self.repository}{path}", {}, {}, body)[2]
            except RateLimited as limit:
                if limit.wait > self.patience.wait_max or attempt == self.patience.retries:
                    raise
                time.sleep(limit.wait)
        raise AssertionError  # the last attempt returns or raises

    def _read(self, url: str, parameters: dict[str, Any]) -> Reply:
        key = Requester.add_parameters_to_url(url, dict(parameters))
        kept = self.etags.find(key)
        headers = {} if kept is None else {"If-None-Match": kept.etag}
        status, answer, body = self._ask("GET", url, parameters, headers, None)
        if status == _NOT_MODIFIED:
            if kept is None:
                raise UnexpectedReply("GitHub sent 304 to a request without a condition", _AGAIN)
            return Reply(kept.body, kept.following)
        self.reads += 1
        following = _following(answer.get("link", ""))
        if "etag" in answer:
            self.etags.keep(key, Kept(answer["etag"], body, following))
        return Reply(body, following)

    def _ask(
        self,
        verb: str,
        url: str,
        parameters: dict[str, Any],
        headers: dict[str, Any],
        body: Any,  # noqa: ANN401
    ) -> tuple[int, Mapping[str, str], Any]:
        requester = self._github.requester
        try:
            status, answer, text = requester.requestJson(verb, url, parameters, headers, body)
            self._note(answer)
            if status == _NOT_MODIFIED:
                return status, answer, None
            data = _json(text)
            if status in _OK:
                return status, answer, data
            self._refuse(status, answer, data)
        except GithubException as error:  # raised while PyGithub was deciding whether to retry
            self._refuse(error.status, _lower(error.headers), error.data)
        except requests.exceptions.RequestException as error:
            reason = type(error).__name__
            raise Unavailable(f"GitHub did not answer: {reason}", _AGAIN) from error

    def _note(self, answer: Mapping[str, str]) -> None:
        remaining = answer.get("x-ratelimit-remaining", "")
        if remaining.isascii() and remaining.isdigit():
            self.remaining = int(remaining)
        server = _date(answer)
        if server is not None:
            self._skew = server - dt.datetime.now(dt.UTC)

    def _refuse(self, status: int, answer: Mapping[str, str], data: Any) -> NoReturn:  # noqa: ANN401
        self._note(answer)
        raise self._problem(status, answer, data)

    def _problem(self, status: int, answer: Mapping[str, str], data: Any) -> GenebError:  # noqa: ANN401
        said = data.get("message") if isinstance(data, dict) else None
        message = visible(said, 200) if isinstance(said, str) else "no reason given"
        wait = self._wait(status, answer, message)
        if wait is not None:
            return RateLimited(self.now + dt.timedelta(seconds=wait), wait)
        if status == _UNKNOWN_TOKEN:
            return TokenRefused(
                "GitHub does not know the token", "put a valid one into GH_TOKEN: `gh auth token`"
            )
        if status == _FORBIDDEN:
            needs = answer.get("x-accepted-github-permissions") or answer.get(
                "x-accepted-oauth-scopes"
            )
            return MissingScope(
                f"the token may not do this: {message}",
                f"give it {visible(needs, 200)}"
                if needs
                else "give it contents: read, pull-requests: write, statuses: write",
            )
        if status == _MISSING:
            return NotFound(
                f"{self.repository}: GitHub finds no such repository or pull request",
                "check the name in --repo; a private one is found only by a token that may read it",
            )
        if status in _SERVER:
            return Unavailable(f"GitHub answered {status}", _AGAIN)
        return UnexpectedReply(f"GitHub answered {status}: {message}", _AGAIN)

    def _wait(self, status: int, answer: Mapping[str, str], message: str) -> float | None:
        """Give the seconds until a limit has passed, or None where this is not a limit."""
        wait = told_wait(answer)
        is_limit = status == _TOO_MANY or (
            status == _FORBIDDEN and (wait is not None or Requester.isRateLimitError(message))
        )
        if not is_limit:
            return None
        return self.patience.secondary if wait is None else wait


def _lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): value for name, value in (headers or {}).items()}


def _json(text: str) -> Any:  # noqa: ANN401 (JSON)
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None  # a proxy's page: the status says enough


def _following(link: str) -> str | None:
    """Give the address of the next page, from a Link header; its host is never asked."""
    for part in requests.utils.parse_header_links(link) if link else ():
        if part.get("rel") == "next":
            return str(part["url"])
    return None
