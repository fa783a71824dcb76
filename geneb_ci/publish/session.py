"""Connections to the Hub: timeouts, retries, and whose token is used."""

import os
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from geneb_ci.publish.faults import (
    HeadChanged,
    HubTokenRefused,
    Limited,
    NoHubToken,
    PublishFault,
    RetriesExhausted,
    Retryable,
    Unknown,
    Unstored,
    setback,
)

TIMEOUT_S = 120.0  # for one answer; a commit of a few MB takes the Hub a few seconds


def session(timeout_s: float = TIMEOUT_S) -> Any:  # noqa: ANN401 (the client is imported late)
    """Return the session, with a limit; the client replaces it at times: ask before each use."""
    from huggingface_hub import get_session  # noqa: PLC0415 (a second to import)

    found = get_session()
    found.timeout = timeout_s
    return found


T = TypeVar("T")

# A head that moves six times in a row is no accident, and a token that may only open pull requests
# gets 412 for ever (huggingface/datasets issue 7777).
TRIES = 6
FIRST_WAIT_S = 2.0  # doubled after each try: 2, 4, 8, 16, 32
# The Hub counts requests in windows of 300 s; a wait that is longer is better spent by another run.
WAIT_MAX_S = 600.0
# A Hub that takes calls and answers none costs the limit of an answer with each try: after two of
# them there is no point in four more. Pauses do not count, and neither does what was answered.
SILENT_MAX_S = 200.0
_LATER = "run the command again later: it reads what became of them first"


class Clock(Protocol):
    """What waits; tests have one that does not."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


def attempt(
    one_try: Callable[[], T], *, clock: Clock = time, say: Callable[[str], None] = lambda _: None
) -> T:
    """Try until it works, `TRIES` times at most. Raises GaveUp, and any fault at once.

    412 is tried again at once, since reading anew is the cure; 429 after the time the Hub names;
    409, 5xx and lost answers after a wait that doubles. Two tries are made, however long they take.
    """
    wait = FIRST_WAIT_S
    last, silent = "", 0.0
    for number in range(1, TRIES + 1):
        began = time.monotonic()
        try:
            return one_try()
        except Retryable as setback:
            last = str(setback)
            if isinstance(setback, Unknown | Unstored):
                silent += time.monotonic() - began
            pause = 0.0 if isinstance(setback, HeadChanged) else wait
            if isinstance(setback, Limited) and setback.wait_s is not None:
                # One second more: the Hub names whole seconds.
                pause = setback.wait_s + 1
        wait *= 2
        if pause > WAIT_MAX_S:
            raise RetriesExhausted(
                f"{last}: the Hub wants a pause of {pause:.0f} s",
                "run the command again after that; publishing twice changes nothing",
            )
        if silent > SILENT_MAX_S and 1 < number < TRIES:
            raise RetriesExhausted(
                f"{number} tries failed in {silent:.0f} s; the last: {last}", _LATER
            )
        if number < TRIES:
            say(f"try {number} of {TRIES}: {last}; again after {pause:.0f} s")
            if pause:
                clock.sleep(pause)
    raise RetriesExhausted(f"{TRIES} tries failed; the last: {last}", _LATER)


RESOURCE = "HF_OIDC_RESOURCE"


def space_of_environment() -> str | None:
    """Return the Space that the CI job's identity is scoped to, if it is."""
    kind, _, name = os.environ.get(RESOURCE, "").partition("/")
    return name if kind == "spaces" and name.count("/") == 1 else None


def token_to_read(resource: str) -> str | None:
    """Return a token where there is one for this repository; what is public needs none.

    A job that only reads may name the Space by HF_OIDC_RESOURCE and have no identity to show.
    """
    try:
        return find_token(resource)
    except PublishFault:
        return None


def find_token(
    resource: str, *, clock: Clock = time, say: Callable[[str], None] = lambda _: None
) -> str:
    """Return the token to write to a repository such as "spaces/OWNER/NAME".

    Raises NoToken, TokenRefused, and GaveUp where the exchange of identities does not answer.
    """
    scope = os.environ.get(RESOURCE)
    if scope and scope != resource:
        raise NoHubToken(
            f"{RESOURCE} is {scope!r}, but {resource!r} is to be published",
            f"set {RESOURCE}={resource}, or name the Space that it is scoped to",
        )
    token = attempt(lambda: _token(resource), clock=clock, say=say)
    if token is None:
        raise NoHubToken(
            f"there is no token to publish {resource} with",
            f"in GitHub Actions set {RESOURCE}={resource} and `permissions: id-token: write`; "
            "elsewhere set HF_TOKEN",
        )
    if not (token.isascii() and token.isprintable()):
        raise NoHubToken(
            "HF_TOKEN holds characters that no token has", "set it anew, as the Hub showed it"
        )
    return token


def _token(resource: str) -> str | None:
    """Ask the Hub's client, which may have to exchange the identity of the CI job for a token."""
    from huggingface_hub import get_token  # noqa: PLC0415 (a second to import)
    from huggingface_hub.errors import HfHubHTTPError, OIDCError  # noqa: PLC0415
    from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # noqa: PLC0415 (public)

    session()
    try:
        return get_token()
    except OIDCError as error:
        raise NoHubToken(
            f"{RESOURCE} is set, but the job has no identity to show: {error}",
            "give the job `permissions: id-token: write`",
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        raise setback(status, error.response.headers) or HubTokenRefused(
            f"the Hub does not take this job for a publisher of {resource} (status {status})",
            "add the repository, branch and workflow as a trusted publisher in its settings",
        ) from error
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise Unknown(f"no token from the Hub ({type(error).__name__})") from error
