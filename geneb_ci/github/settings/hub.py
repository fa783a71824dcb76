"""The Space of a board on the Hub: whether it exists, and what a token may do with it."""

import os
from typing import Any

from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.errors import UnreadableSetting
from geneb_ci.github.settings.check import named_space
from geneb_ci.github.settings.client import SettingsClient
from geneb_ci.github.settings.required import Setting
from reference_harness.formats.files import member_at

UNAUTHORISED = 401
"""HTTP status of a request without a valid token."""
_NO_SPACE_STATUSES = (UNAUTHORISED, 404)
"""HTTP statuses for a missing Space: the Hub answers 401 to a caller without a token."""
_WRITE_FIX = "make a token that may write: https://huggingface.co/settings/tokens"
"""Advice to a user whose token may only read."""


def _hub_client(token: str | None = None) -> Any:  # the client is imported late
    """Return the Hub's client. Raises UnreadableSetting if it is not installed."""
    try:
        from huggingface_hub import HfApi  # a second to import
    except ImportError:
        raise UnreadableSetting(
            "the Hub's client is missing", "pip install 'geneb-ci[hub]'"
        ) from None
    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)


def _hub_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the Hub's client: a refusal, no connection, an invalid name."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import httpx

    return HfHubHTTPError, httpx.HTTPError, ValueError


def _http_status(error: Exception) -> int | None:
    """Return the HTTP status of a request that the Hub refused; None without an answer."""
    return getattr(getattr(error, "response", None), "status_code", None)


def space_problem(client: SettingsClient, _setting: Setting | None = None) -> str | None:
    """Return why there is no Space or why it is not a static one, or None.

    Raises UnreadableSetting.
    """
    space_id = named_space(client)
    if space_id is None:
        return "no Space is named"
    api = _hub_client()
    try:
        info = api.space_info(space_id)
    except _hub_errors() as error:
        if _http_status(error) in _NO_SPACE_STATUSES:
            return f"the Hub finds no Space {space_id}"
        raise UnreadableSetting(
            f"the Hub did not show {space_id}: {type(error).__name__}",
            "run the command again later",
        ) from error
    return None if info.sdk in {"static", None} else f"the Space {space_id} runs {info.sdk}"


def require_writing_token(token: str) -> None:
    """Raise UsageProblem if the Hub rejects the token, or the token may only read."""
    try:
        account = _hub_client(token).whoami()
    except UnreadableSetting:
        return  # the report at the end says so
    except _hub_errors() as error:
        if _http_status(error) == UNAUTHORISED:
            raise UsageProblem(
                "HF_TOKEN is not a valid token of the Hub (401)", _WRITE_FIX
            ) from error
        return
    if member_at(account, "auth", "accessToken", "role") == "read":
        raise UsageProblem("HF_TOKEN may only read, but writing to the Space is needed", _WRITE_FIX)


def create_space(space: str, token: str) -> None:
    """Create the Space, unless it exists. Raises OSError, the base of the Hub's errors."""
    _hub_client(token).create_repo(space, repo_type="space", space_sdk="static", exist_ok=True)
