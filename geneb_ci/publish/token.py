"""Who publishes: a trusted publisher's short-lived token, or HF_TOKEN. Never shown."""

import os
import time
from collections.abc import Callable

from geneb_ci.publish.faults import NoToken, PublishFault, TokenRefused, Unknown
from geneb_ci.publish.retry import Clock, attempt
from geneb_ci.publish.session import session
from geneb_ci.publish.translate import setback

RESOURCE = "HF_OIDC_RESOURCE"


def space_of_environment() -> str | None:
    """Give the Space that the CI job's identity is scoped to, if it is."""
    kind, _, name = os.environ.get(RESOURCE, "").partition("/")
    return name if kind == "spaces" and name.count("/") == 1 else None


def token_to_read(resource: str) -> str | None:
    """Give a token where there is one for this repository; what is public needs none.

    A job that only reads may name the Space by HF_OIDC_RESOURCE and have no identity to show.
    """
    try:
        return find_token(resource)
    except PublishFault:
        return None


def find_token(
    resource: str, *, clock: Clock = time, say: Callable[[str], None] = lambda _: None
) -> str:
    """Give the token to write to a repository such as "spaces/OWNER/NAME".

    Raises NoToken, TokenRefused, and GaveUp where the exchange of identities does not answer.
    """
    scope = os.environ.get(RESOURCE)
    if scope and scope != resource:
        raise NoToken(
            f"{RESOURCE} is {scope!r}, but {resource!r} is to be published",
            f"set {RESOURCE}={resource}, or name the Space that it is scoped to",
        )
    token = attempt(lambda: _token(resource), clock=clock, say=say)
    if token is None:
        raise NoToken(
            f"there is no token to publish {resource} with",
            f"in GitHub Actions set {RESOURCE}={resource} and `permissions: id-token: write`; "
            "elsewhere set HF_TOKEN",
        )
    if not (token.isascii() and token.isprintable()):
        raise NoToken(
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
        raise NoToken(
            f"{RESOURCE} is set, but the job has no identity to show: {error}",
            "give the job `permissions: id-token: write`",
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        raise setback(status, error.response.headers) or TokenRefused(
            f"the Hub does not take this job for a publisher of {resource} (status {status})",
            "add the repository, branch and workflow as a trusted publisher in its settings",
        ) from error
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise Unknown(f"no token from the Hub ({type(error).__name__})") from error
