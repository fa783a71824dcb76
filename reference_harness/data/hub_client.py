"""Downloads of task data from the Hub: time limits of its clients, and reasons of failures."""

import logging
import re
from http import HTTPStatus
from urllib.parse import urlsplit

from reference_harness.formats.hub_storage import (
    XET_DOWNLOAD_SETTINGS,
    StorageFailure,
    set_xet_environment,
    storage_failure,
)

_ADDRESS = re.compile(r"https?://[^\s)?#]+")
"""Pattern of a URL in a message of a client."""
_RETRY_FIX = "run the command again: complete files are not downloaded again"
_NETWORK_ADVICE = (
    f"check the network, or name a Hub that it reaches with --endpoint; then {_RETRY_FIX}"
)
_DISK_ADVICE = f"free disk space or check permissions, also of HF_HOME, then {_RETRY_FIX}"
_TRANSIENT_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
"""HTTP statuses after which the same request may succeed."""
_LINE_MAX = 200  # characters quoted of the client's message
SILENCE_SECONDS = 30
"""Time without a byte after which a connection counts as lost."""


def limit_downloads() -> None:
    """Set time limits of hf_xet, which reads them at its first use.

    Of the many lines that the Hub's client logs about its retries, only one is printed.
    """
    set_xet_environment(
        XET_DOWNLOAD_SETTINGS | {"HF_XET_CLIENT_READ_TIMEOUT": f"{SILENCE_SECONDS}s"}
    )
    logging.getLogger("huggingface_hub.utils._http").addFilter(_OneLineFilter())


class _OneLineFilter(logging.Filter):
    """Replaces two log lines per retry, with long addresses, by one line in all."""

    was_printed = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not _RETRY_LINE.search(record.getMessage()):
            return True
        if self.was_printed:
            return False
        self.was_printed = True
        record.msg, record.args = "the Hub does not answer; trying again, for half a minute", ()
        return True


_RETRY_LINE = re.compile(r" thrown while requesting |^Retrying in ")
"""Pattern of the log lines of a client that tries again."""


def failure_reason(error: BaseException) -> str:
    """Return why a download failed and what to do, without the URL of the file.

    Such URLs are signed: with one, anyone can download the file for an hour.
    """
    failure = storage_failure(error) or error
    if isinstance(failure, StorageFailure):
        return f"{failure.description}; {_RETRY_FIX}"
    if isinstance(failure, OSError) and failure.errno is not None:
        file_prefix = f"{failure.filename}: " if failure.filename else ""
        return f"this machine failed, not the Hub: {file_prefix}{failure.strerror}; {_DISK_ADVICE}"
    response = getattr(error, "response", None)
    if response is not None:
        status, path = response.status_code, urlsplit(str(response.url)).path
        requested = (
            "a token" if "/xet-" in path else "the list of files" if "/tree/" in path else path
        )
        fix = "check that the data set is public and has this commit, or set HF_TOKEN"
        return f"the Hub answers {status} when asked for {requested}; " + (
            _RETRY_FIX
            if status in _TRANSIENT_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR
            else fix
        )
    message = _ADDRESS.sub(_host_of_address, " ".join(str(error).split()))[:_LINE_MAX]
    if type(error).__module__.startswith("httpx"):
        return f"the Hub cannot be reached ({message}); {_NETWORK_ADVICE}"
    return f"{type(error).__name__}: {message}"


def _host_of_address(address: re.Match[str]) -> str:
    """Return the host of a matched address, in place of the long address."""
    return urlsplit(address[0]).netloc
