"""HTTP requests to GitHub: PyGithub's connection with retry limits and typed errors."""

import datetime as dt
import email.utils
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import github
import requests
from github.GithubException import GithubException, RateLimitExceededException
from github.GithubRetry import GithubRetry
from github.Requester import Requester
from urllib3.exceptions import MaxRetryError

from geneb_ci import __version__
from geneb_ci.common.errors import GenebError
from geneb_ci.github.errors import (
    RETRY_FIX,
    WAITING_LIMITS,
    ConversationLocked,
    GitHubTokenRefused,
    MissingScope,
    NotFound,
    RateLimited,
    Unavailable,
    UnexpectedReply,
    WaitingLimits,
)
from geneb_ci.render.plain import visible
from reference_harness.formats.files import table_at

FORBIDDEN, TOO_MANY_REQUESTS = 403, 429
_LIMIT_STATUSES = frozenset({FORBIDDEN, TOO_MANY_REQUESTS})
"""HTTP statuses with which GitHub refuses a request because of a rate limit."""


class PoliteRetry(GithubRetry):
    """Retries that wait for a rate limit by GitHub's clock, but only as long as is allowed."""

    def increment(self, *args: Any, **kwargs: Any) -> Any:  # urllib3's own signature
        """Return the retries that are left after a failed attempt.

        Raises RateLimitExceededException for a rate limit that lasts longer than is allowed, or is
        still there after the last retry.
        """
        response = kwargs.get("response")
        headers = lower_case_names(response.headers) if response is not None else {}
        status = response.status if response is not None else 0
        wait = seconds_to_wait(headers) if status in _LIMIT_STATUSES else None
        limit_error = RateLimitExceededException(
            status, {"message": "rate limit exceeded"}, headers
        )
        if response is not None and wait is not None and wait > (self.max_rate_limit_wait or 0):
            response.drain_conn()  # so that the connection is closed, not lost
            raise limit_error
        try:
            return super().increment(*args, **kwargs)
        except MaxRetryError:
            if status == FORBIDDEN:  # of these, only limits are retried; the body is read up
                raise limit_error from None
            raise


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait according to GitHub's headers; None if they require no wait.

    The reset time is compared with the Date header, because our clock may be wrong.
    """
    seconds = headers.get("retry-after", "")
    if seconds.isascii() and seconds.isdigit():
        return float(seconds)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        now = date_of(headers) or dt.datetime.now(dt.UTC)
        return max(0.0, float(reset) - now.timestamp()) + 1.0
    return None


def date_of(headers: Mapping[str, str]) -> dt.datetime | None:
    """Return the time in the Date header of an answer; None if it is missing or invalid."""
    try:
        return email.utils.parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return None


def lower_case_names(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers with lower-case names."""
    return {name.lower(): value for name, value in (headers or {}).items()}


_UNAUTHORISED, _NOT_FOUND = 401, 404
_SERVER_ERROR_STATUSES = range(500, 600)
_SCOPE_HEADERS = ("x-accepted-github-permissions", "x-accepted-oauth-scopes")
"""Headers in which GitHub names the permissions that a refused request needs."""
_ALL_PERMISSIONS = "contents: read, issues: write, pull-requests: write, statuses: write"
"""Permissions that all commands together need."""
_MESSAGE_MAX = 200  # characters of GitHub's own words in a message of ours


class Refusal(NamedTuple):
    """An answer with which GitHub refuses a request: its HTTP status is not 200 to 299."""

    status: int
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: Any
    """JSON of the answer; None if the answer has none."""

    @property
    def message(self) -> str:
        """GitHub's message and the first of its errors, made printable."""
        errors = self.body.get("errors") if isinstance(self.body, dict) else None
        bodies = [self.body, *(errors if isinstance(errors, list) else ())][:2]
        messages = [body.get("message") for body in bodies if isinstance(body, dict)]
        return visible(
            ": ".join(map(str, filter(None, messages))) or "no reason given", _MESSAGE_MAX
        )


def error_of_refusal(
    refusal: Refusal, repository: str, now: dt.datetime, waiting_limits: WaitingLimits
) -> GenebError:
    """Return the error for a refused request; `now` is the time by GitHub's clock."""
    status = refusal.status
    wait = _seconds_of_limit(refusal, waiting_limits)
    if wait is not None:
        return RateLimited(now + dt.timedelta(seconds=wait), wait)
    if status == _UNAUTHORISED:
        return GitHubTokenRefused(
            "GitHub rejected the token (401)",
            "set GH_TOKEN to a valid token: export GH_TOKEN=$(gh auth token); in a workflow, renew "
            "the token or the App that the job uses",
        )
    if status == FORBIDDEN:
        return _error_of_forbidden(refusal)
    if status == _NOT_FOUND:
        return NotFound(
            f"{repository}: GitHub finds no such repository, pull request or commit (404)",
            "check --repo and the number or commit that was passed; for a private repository, use "
            "a token with read access",
        )
    if status in _SERVER_ERROR_STATUSES:
        return Unavailable(f"GitHub answered {status}", RETRY_FIX)
    return UnexpectedReply(
        f"GitHub refused the request ({status}): {refusal.message}",
        "correct what GitHub names, then run the command again; nothing is written twice",
    )


def _error_of_forbidden(refusal: Refusal) -> GenebError:
    """Return the error for a request that GitHub refused with status 403."""
    if "is locked" in refusal.message:
        return ConversationLocked(
            "the conversation is locked, so nobody can comment",
            "unlock the conversation, then run the command again",
        )
    if "was archived" in refusal.message:
        return UnexpectedReply(
            "the repository is archived, so nothing can be written", "unarchive the repository"
        )
    needs = next(
        (refusal.headers[name] for name in _SCOPE_HEADERS if refusal.headers.get(name)), ""
    )
    return MissingScope(
        f"the token lacks a permission: {refusal.message}",
        f"grant the token {visible(needs, _MESSAGE_MAX) or _ALL_PERMISSIONS}",
    )


def _seconds_of_limit(refusal: Refusal, waiting_limits: WaitingLimits) -> float | None:
    """Return the seconds until a rate limit ends, or None if this is not a rate limit."""
    wait = seconds_to_wait(refusal.headers)
    is_limit = refusal.status == TOO_MANY_REQUESTS or (
        refusal.status == FORBIDDEN
        and (wait is not None or Requester.isRateLimitError(refusal.message))
    )
    if not is_limit:
        return None
    return waiting_limits.secondary_wait if wait is None else wait


PER_PAGE = 100  # GitHub's largest page
LOG_VARIABLE = "GENEB_GITHUB_LOG"
"""Environment variable with a file's path; each request and answer is appended to the file."""
_LOGGED_HEADERS = ("date", "link", "retry-after", "x-github-request-id", "x-ratelimit-remaining")
"""Headers of an answer that the log of requests contains."""
_SUCCESS_STATUSES = range(200, 300)
_RESET_DIGITS_MAX = 10  # of a time in seconds: the year 2286


class Reply(NamedTuple):
    """The JSON of an answer, and the URL of the next page if the answer is part of a list."""

    body: Any
    next_url: str | None = None
    """Address of the next page of a list; None for the last page."""


class Connection:
    """A connection to GitHub for requests to one repository."""

    def __init__(
        self,
        token: str | github.Auth.Auth,
        repository: str,
        api: str,
        waiting_limits: WaitingLimits = WAITING_LIMITS,
    ) -> None:
        retry = PoliteRetry(
            total=waiting_limits.retries,
            backoff_factor=waiting_limits.first_backoff,
            allowed_methods={"GET", "HEAD"},
            secondary_rate_wait=waiting_limits.secondary_wait,
            max_rate_limit_wait=waiting_limits.wait_max,
            raise_on_status=False,
        )
        self._github = github.Github(
            auth=github.Auth.Token(token) if isinstance(token, str) else token,
            base_url=api,
            user_agent=f"geneb-ci/{__version__}",
            per_page=PER_PAGE,
            retry=retry,
            timeout=waiting_limits.request_time_max,
            seconds_between_requests=0,
            seconds_between_writes=waiting_limits.pause_between_writes,
        )
        self.repository = repository
        self.api = api
        self.waiting_limits = waiting_limits
        self.remaining = math.inf
        """Requests left in this hour, according to the last answer."""
        self.resets: dt.datetime | None = None
        """Time when that hour ends, according to the last answer."""
        self._skew = dt.timedelta(0)
        """Time by GitHub's clock minus time by ours."""
        self._log = os.environ.get(LOG_VARIABLE, "")

    def close(self) -> None:
        """Close the connection."""
        self._github.close()

    @property
    def now(self) -> dt.datetime:
        """The time by GitHub's clock."""
        return dt.datetime.now(dt.UTC) + self._skew

    def get(self, path: str, **parameters: str | int) -> Reply:
        """Return the answer at a path of the repository, such as `/pulls`."""
        return self._read(f"/repos/{self.repository}{path}", dict(parameters))

    def get_at(self, path: str) -> Any:
        """Return the JSON at a path of the API that need not be below the repository."""
        return self._read(path, {}).body

    def pages(self, path: str, pages_max: int, **parameters: str | int) -> Iterator[list[Any]]:
        """Yield a list page by page. Raises UnexpectedReply if there are more than `pages_max`.

        Raises UnexpectedReply also if a page cannot be read, so a list is never incomplete.
        """
        reply = self.get(path, per_page=PER_PAGE, **parameters)
        for _ in range(pages_max):
            if not isinstance(reply.body, list):
                raise UnexpectedReply(f"{path}: GitHub did not send a list", RETRY_FIX)
            yield reply.body
            if reply.next_url is None:
                return
            reply = self._read(reply.next_url, {})
        raise UnexpectedReply(
            f"{path}: GitHub lists more than the {pages_max * PER_PAGE:,} entries that are read",
            "delete or close entries of this list on GitHub, or do this step by hand",
        )

    def graphql(self, query: str) -> Mapping[str, Any]:
        """Return GitHub's answers to a query about the repository, by alias; empty without any.

        Raises RateLimited.
        """
        url = self._github.requester.graphql_url
        try:
            return table_at(
                self._request("POST", url, {}, {"query": query})[1], "data", "repository"
            )
        except RateLimited:
            raise
        except GenebError:
            return {}

    def send(self, verb: str, path: str, body: Any) -> Any:
        """Send a write to a path of the repository, and return the JSON of the answer.

        After a rate limit, wait and send the write again; GitHub has not executed it. Raises
        Unavailable if it is unknown whether the write succeeded.
        """
        return self.send_at(verb, f"/repos/{self.repository}{path}", body)

    def send_at(self, verb: str, path: str, body: Any = None) -> Any:
        """Send a write to a path of the API that need not be below the repository."""
        for attempt in range(self.waiting_limits.retries + 1):
            try:
                return self._request(verb, path, {}, body)[1]
            except RateLimited as limit:
                if (
                    limit.wait > self.waiting_limits.wait_max
                    or attempt == self.waiting_limits.retries
                ):
                    raise
                time.sleep(limit.wait)
        raise AssertionError  # the last attempt returns or raises

    def _read(self, url: str, parameters: dict[str, Any]) -> Reply:
        headers, body = self._request("GET", url, parameters, None)
        return Reply(body, _next_page(headers.get("link", "")))

    def _request(
        self, verb: str, url: str, parameters: dict[str, Any], body: Any
    ) -> tuple[Mapping[str, str], Any]:
        """Return the headers of an answer, and its JSON."""
        requester = self._github.requester
        try:
            status, headers, reply_text = requester.requestJson(verb, url, parameters, {}, body)
            self._note_limits(headers)
            reply_body = _parsed_json(reply_text)
            if self._log:
                address = Requester.add_parameters_to_url(url, dict(parameters))
                _log_request(Path(self._log), verb, address, body, status, headers, reply_body)
            if status in _SUCCESS_STATUSES:
                return headers, reply_body
            self._raise_refusal(Refusal(status, headers, reply_body))
        except GithubException as error:  # raised while PyGithub was deciding whether to retry
            self._raise_refusal(Refusal(error.status, lower_case_names(error.headers), error.data))
        except requests.exceptions.RequestException as error:
            error_type = type(error).__name__
            raise Unavailable(f"GitHub did not answer: {error_type}", RETRY_FIX) from error

    def _note_limits(self, headers: Mapping[str, str]) -> None:
        """Note the requests left in this hour, its end, and the time by GitHub's clock."""
        remaining = headers.get("x-ratelimit-remaining", "")
        is_core = headers.get("x-ratelimit-resource", "core") == "core"  # GraphQL has its own limit
        if is_core and remaining.isascii() and remaining.isdigit():
            self.remaining = int(remaining)
            reset = headers.get("x-ratelimit-reset", "")
            is_time = reset.isascii() and reset.isdigit() and len(reset) <= _RESET_DIGITS_MAX
            self.resets = dt.datetime.fromtimestamp(int(reset), dt.UTC) if is_time else None
        server_time = date_of(headers)
        if server_time is not None:
            self._skew = server_time - dt.datetime.now(dt.UTC)

    def _raise_refusal(self, refusal: Refusal) -> NoReturn:
        """Raise the error for a refused request."""
        self._note_limits(refusal.headers)
        raise error_of_refusal(refusal, self.repository, self.now, self.waiting_limits)


def _log_request(
    path: Path,
    verb: str,
    address: str,
    body: Any,
    status: int,
    headers: Mapping[str, str],
    answer: Any,
) -> None:
    """Append a request and its answer to a file, without tokens and without keys of Apps."""
    url = urlsplit(address)
    line = {
        "verb": verb,
        "target": url.path + (f"?{url.query}" if url.query else ""),
        "body": body,
        "status": status,
        "headers": {name: headers[name] for name in _LOGGED_HEADERS if name in headers},
        "answer": None if url.path.startswith("/app-manifests/") else answer,
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _parsed_json(reply_text: str) -> Any:
    """Return the JSON of an answer; None if the answer has no valid JSON."""
    if not reply_text:
        return None
    try:
        return json.loads(reply_text)
    except ValueError:
        return None  # the HTML page of a proxy: the status suffices


def _next_page(link: str) -> str | None:
    """Return the path and query of the next page from a Link header; its host is ignored."""
    for header_link in requests.utils.parse_header_links(link) if link else ():
        if header_link.get("rel") == "next":
            return str(header_link["url"])
    return None
