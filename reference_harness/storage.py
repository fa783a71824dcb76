"""Downloads of task data from the Hub: how long its clients try, and why one failed."""

import logging
import re
from http import HTTPStatus
from urllib.parse import urlsplit

from .formats.hub_storage import DOWNLOAD_LIMITS, StorageFailure, limit_storage, storage_failure

_ADDRESS = re.compile(r"https?://[^\s)?#]+")
_RETRY_FIX = "run the command again: complete files are not downloaded again"
_CONNECT = f"check the network, or name a Hub that it reaches with --endpoint; then {_RETRY_FIX}"
_DISK_ADVICE = f"free disk space or check permissions, also of HF_HOME, then {_RETRY_FIX}"
_TRANSIENT = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_LINE_MAX = 200  # characters of the client's own words
SILENCE_SECONDS = 30
"""Without a byte for so long, a connection is lost."""


def limit() -> None:
    """Bound what hf_xet does by itself; it reads the settings when it is first used.

    Of the lines that the Hub's own client logs when it tries again, one is left.
    """
    limit_storage(DOWNLOAD_LIMITS | {"HF_XET_CLIENT_READ_TIMEOUT": f"{SILENCE_SECONDS}s"})
    logging.getLogger("huggingface_hub.utils._http").addFilter(_OneLineFilter())


class _OneLineFilter(logging.Filter):
    """Replaces two lines a try, with an address of 80 letters each, by one for all."""

    was_printed = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not _TRIES.search(record.getMessage()):
            return True
        if self.was_printed:
            return False
        self.was_printed = True
        record.msg, record.args = "the Hub does not answer; trying again, for half a minute", ()
        return True


_TRIES = re.compile(r" thrown while requesting |^Retrying in ")


def reason(error: BaseException) -> str:
    """Return why a download failed and what to do, without the URL of the file.

    Such URLs are signed: anyone can download the file with one for an hour.
    """
    failure = storage_failure(error) or error
    if isinstance(failure, StorageFailure):
        return f"{failure.what}; {_RETRY_FIX}"
    if isinstance(failure, OSError) and failure.errno is not None:
        where = f"{failure.filename}: " if failure.filename else ""
        return f"this machine failed, not the Hub: {where}{failure.strerror}; {_DISK_ADVICE}"
    answered = getattr(error, "response", None)
    if answered is not None:
        status, path = answered.status_code, urlsplit(str(answered.url)).path
        requested = (
            "a token" if "/xet-" in path else "the list of files" if "/tree/" in path else path
        )
        fix = "see that the data set is public and has this commit, or set HF_TOKEN"
        return f"the Hub answers {status} when asked for {requested}; " + (
            _RETRY_FIX
            if status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR
            else fix
        )
    words = _ADDRESS.sub(_host, " ".join(str(error).split()))[:_LINE_MAX]
    if type(error).__module__.startswith("httpx"):
        return f"the Hub cannot be reached ({words}); {_CONNECT}"
    return f"{type(error).__name__}: {words}"


def _host(address: re.Match[str]) -> str:
    return urlsplit(address[0]).netloc
