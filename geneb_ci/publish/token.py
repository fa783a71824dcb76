"""Who publishes: a trusted publisher's short-lived token, or HF_TOKEN. Never shown."""

import os

from geneb_ci.publish.faults import NoToken, TokenRefused

RESOURCE = "HF_OIDC_RESOURCE"


def space_of_environment() -> str | None:
    """Give the Space that the CI job's identity is scoped to, if it is."""
    kind, _, name = os.environ.get(RESOURCE, "").partition("/")
    return name if kind == "spaces" and name.count("/") == 1 else None


def find_token(resource: str, *, required: bool = True) -> str | None:
    """Give the token for a repository such as "spaces/OWNER/NAME"; None only if not required.

    Raises NoToken and TokenRefused.
    """
    # The Hub's client takes a second to import.
    from huggingface_hub import get_token  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, OIDCError  # noqa: PLC0415

    scope = os.environ.get(RESOURCE)
    if scope and scope != resource:
        raise NoToken(
            f"{RESOURCE} is {scope!r}, but {resource!r} is to be published",
            f"set {RESOURCE}={resource}, or name the Space that it is scoped to",
        )
    try:
        token = get_token()
    except OIDCError as error:
        raise NoToken(
            f"{RESOURCE} is set, but the job has no identity to show: {error}",
            "give the job `permissions: id-token: write`",
        ) from error
    except HfHubHTTPError as error:
        raise TokenRefused(
            f"the Hub does not take this job for a publisher of {resource} "
            f"(status {error.response.status_code})",
            "add the repository, branch and workflow as a trusted publisher in its settings",
        ) from error
    if token is None and required:
        raise NoToken(
            f"there is no token to publish {resource} with",
            f"in GitHub Actions set {RESOURCE}={resource} and `permissions: id-token: write`; "
            "elsewhere set HF_TOKEN",
        )
    return token
