"""The HTTP session of the Hub's client, which waits for ever unless told."""

from typing import Any

TIMEOUT_S = 120.0  # for one answer; a commit of a few MB takes the Hub a few seconds


def session(timeout_s: float = TIMEOUT_S) -> Any:  # noqa: ANN401 (the client is imported late)
    """Give the session, with a limit; the client makes it anew at times, so ask before each use."""
    from huggingface_hub import get_session  # noqa: PLC0415 (a second to import)

    found = get_session()
    found.timeout = timeout_s
    return found
