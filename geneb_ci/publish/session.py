"""Requests to the Hugging Face Hub: timeouts, retries, tokens."""

import os
import re
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from geneb_ci.common.errors import UsageProblem
from geneb_ci.publish.faults import (
    HeadChanged,
    HubRateLimited,
    HubTokenRefused,
    NoHubToken,
    PublishFault,
    RetriesExhausted,
    Retryable,
    StorageFailed,
    UnknownOutcome,
    retryable_fault,
)
from reference_harness.formats.text import Say, silent

REQUEST_TIMEOUT_S = 120.0  # maximum seconds of one request; a commit of a few MB takes a few


def hub_session(timeout_s: float = REQUEST_TIMEOUT_S) -> Any:  # the client is imported late
    """Return the HTTP session of the Hub's client, with a timeout in seconds.

    Call this function before each use, because the client may replace its session.
    """
    from huggingface_hub import get_session  # a second to import

    http_session = get_session()
    http_session.timeout = timeout_s
    return http_session


T = TypeVar("T")
"""Type of the result of a function that is tried several times."""

TRIES_MAX = 6
"""Maximum number of tries: six conflicts in a row do not occur by chance.

A token that may only open pull requests always gets 412.
"""
FIRST_WAIT_S = 2.0  # seconds before the second try; doubled after each try: 2, 4, 8, 16, 32
WAIT_MAX_S = 600.0
"""Longest pause between two tries, in seconds; the Hub's rate limits have windows of 300 s."""
UNANSWERED_MAX_S = 200.0
"""Maximum seconds spent on requests without an answer, which is fewer than two timeouts.

Pauses and answered requests do not count.
"""
_RETRY_FIX = "run the command again later; the command first reads whether an earlier try succeeded"
"""Advice after the last try failed."""


class Clock(Protocol):
    """The part of the module `time` that waits, which tests replace."""

    def sleep(self, seconds: float, /) -> None:
        """Wait for a number of seconds."""


def with_retries(action: Callable[[], T], *, clock: Clock = time, say: Say = silent) -> T:
    """Call `action` until it succeeds, at most `TRIES_MAX` times, and return its result.

    The next try follows at once after status 412, after the time that the Hub states with 429, and
    after doubled pauses with 409, 5xx and lost answers. There are at least two tries, however long
    they take. Raises RetriesExhausted, and the PublishFault of `action`.
    """
    wait = FIRST_WAIT_S
    last_message, silent_seconds = "", 0.0
    for try_number in range(1, TRIES_MAX + 1):
        started_at = time.monotonic()
        try:
            return action()
        except Retryable as failure:
            last_message = str(failure)
            if isinstance(failure, UnknownOutcome | StorageFailed):
                silent_seconds += time.monotonic() - started_at
            pause = 0.0 if isinstance(failure, HeadChanged) else wait
            if isinstance(failure, HubRateLimited) and failure.wait_s is not None:
                # One second more, because the Hub rounds to whole seconds.
                pause = failure.wait_s + 1
        wait *= 2
        if pause > WAIT_MAX_S:
            raise RetriesExhausted(
                f"{last_message}: the Hub requires a pause of {pause:.0f} s",
                "run the command again after this time; publishing twice does no harm",
            )
        if silent_seconds > UNANSWERED_MAX_S and 1 < try_number < TRIES_MAX:
            raise RetriesExhausted(
                f"{try_number} tries failed in {silent_seconds:.0f} s; the last: {last_message}",
                _RETRY_FIX,
            )
        if try_number < TRIES_MAX:
            say(
                f"try {try_number} of {TRIES_MAX} failed: {last_message}; next try in {pause:.0f} s"
            )
            if pause:
                clock.sleep(pause)
    raise RetriesExhausted(f"{TRIES_MAX} tries failed; the last: {last_message}", _RETRY_FIX)


RESOURCE_VARIABLE = "HF_OIDC_RESOURCE"
"""Environment variable with the repository that a CI job may write to, as in "spaces/OWNER/NAME".
"""


def space_name_in(resource: str) -> str | None:
    """Return the name of the Space in a text such as "spaces/OWNER/NAME"; None for another text."""
    repository_type, _, space_name = resource.partition("/")
    return space_name if repository_type == "spaces" and space_name.count("/") == 1 else None


def space_of_environment() -> str | None:
    """Return the name of the Space in HF_OIDC_RESOURCE, to which a CI job's identity is limited.

    Return None if the variable names no Space.
    """
    return space_name_in(os.environ.get(RESOURCE_VARIABLE, ""))


_SPACE_NAME = re.compile(
    r"(?!.*(--|\.\.))[A-Za-z0-9]([\w.-]{0,94}\w)?/\w([\w.-]{0,94}\w)?(?<!\.git)", re.ASCII
)
"""Name of a Space as the Hub accepts it: OWNER/NAME."""


def require_space(space_name: str, option: str = "") -> str:
    """Return `space_name`. Raises UsageProblem if the Hub accepts no Space of this name."""
    if _SPACE_NAME.fullmatch(space_name) is None:
        raise UsageProblem(
            f"{f'{option} ' if option else ''}{space_name!r} is not the name of a Space",
            f"write {f'{option} ' if option else 'it as '}OWNER/NAME: letters, digits, '-', '_' "
            "and '.', without '--' and '..'",
        )
    return space_name


def token_to_read(resource: str) -> str | None:
    """Return a token for this repository; None without one, which public repositories do not need.

    A job that only reads may set HF_OIDC_RESOURCE without having an identity.
    """
    try:
        return find_token(resource)
    except PublishFault:
        return None


def find_token(resource: str, *, clock: Clock = time, say: Say = silent) -> str:
    """Return a token with write access to a repository such as "spaces/OWNER/NAME".

    Raises NoHubToken, HubTokenRefused, and RetriesExhausted if the token exchange does not answer.
    """
    scope = os.environ.get(RESOURCE_VARIABLE)
    if scope and scope != resource:
        raise NoHubToken(
            f"{RESOURCE_VARIABLE} is {scope!r}, but the Space to publish is {resource!r}",
            f"set {RESOURCE_VARIABLE}={resource}, or pass the Space that {RESOURCE_VARIABLE} names",
        )
    token = with_retries(lambda: _client_token(resource), clock=clock, say=say)
    if token is None:
        raise NoHubToken(
            f"no token to publish {resource} was found",
            f"in GitHub Actions set {RESOURCE_VARIABLE}={resource} and "
            "`permissions: id-token: write`; elsewhere set HF_TOKEN",
        )
    if not (token.isascii() and token.isprintable()):
        raise NoHubToken(
            "HF_TOKEN contains invalid characters", "copy the token from the Hub again"
        )
    return token


def _client_token(resource: str) -> str | None:
    """Return the token of the Hub's client, which may exchange the CI job's identity for one."""
    from huggingface_hub import get_token  # a second to import
    from huggingface_hub.errors import HfHubHTTPError, OIDCError
    from huggingface_hub.utils import httpx

    hub_session()
    try:
        return get_token()
    except OIDCError as error:
        raise NoHubToken(
            f"{RESOURCE_VARIABLE} is set, but the job has no OIDC identity: {error}",
            "add `permissions: id-token: write` to the job",
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        raise retryable_fault(status, error.response.headers) or HubTokenRefused(
            f"the Hub rejected this job as a publisher of {resource} (status {status})",
            "add the repository, branch and workflow as a trusted publisher in the settings of "
            f"{resource}",
        ) from error
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise UnknownOutcome(f"no token from the Hub ({type(error).__name__})") from error
