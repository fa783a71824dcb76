"""The Hub's storage of large files: limits for its client hf_xet, and meanings of its errors.

hf_xet raises ConnectionError, RuntimeError, OSError or ValueError with one line of text: a
category, what happened, and mostly the status and the address. Only this text shows what failed.
"""

import errno
import os
import re
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

XET_UPLOAD_SETTINGS = {
    # The caller makes six attempts and reports them. hf_xet would make five within each, 3 to 243 s
    # apart, without a report: they took 162 s, and could take 16 minutes.
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "1s",
    # The time limit for other answers of the Hub: 64 MB are uploaded before an answer.
    "HF_XET_CLIENT_READ_TIMEOUT": "120s",
    "HF_XET_CLIENT_CONNECT_TIMEOUT": "10s",
}
"""Environment variables that limit hf_xet's retries and waits; those already set have priority."""
XET_DOWNLOAD_SETTINGS = XET_UPLOAD_SETTINGS | {
    # Only hf_xet retries downloads: after pauses of up to 2, 4, 8 and 16 s, 15 s on average.
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "4",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "2s",
}
"""The same variables for downloads."""

_ERROR_CATEGORY = re.compile(
    r"(Authentication|Network|Server|Data integrity|Configuration|I/O|Internal|Task|Previous task)"
    r" error: |Rate limited: |Timeout: |Not found: |Operation cancelled: "
)
"""Beginning of every error text of hf_xet."""
_HTTP_STATUS = re.compile(r"HTTP status \w+ error \((\d{3})\b")
"""The status code in an error text of hf_xet."""
_URL = re.compile(r"https?://[^\s)?#]+")
"""The address of the request in an error text of hf_xet."""
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""The number of an error of the operating system in an error text of hf_xet."""
_NETWORK_ERRORS = frozenset(
    {errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.ENETUNREACH}
    | {errno.EHOSTUNREACH, errno.ECONNABORTED, errno.EADDRNOTAVAIL}
)
"""Numbers of errors of the operating system that concern the network, not this machine."""
_STEPS = (
    ("/xet-write-token", "the Hub", "asked for a token to upload with"),
    ("/xet-read-token", "the Hub", "asked for a token to download with"),
    ("/v1/xorb", "the Hub's storage", "sent the bytes"),
    ("/shards", "the Hub's storage", "sent the list of files"),
    ("/reconstructions", "the Hub's storage", "asked what the file is made of"),
)
"""For each kind of request: part of its address, the server, and what the request did."""
_MESSAGE_CHARACTERS_MAX = 200
"""Maximum number of characters of hf_xet's error text that a message quotes."""


class StorageFailure(NamedTuple):
    """An error of the storage's client."""

    description: str
    """A clause: which server answered what, in which step."""
    status: int | None
    """Status code of the HTTP answer; None without an answer."""
    by_hub: bool
    """Whether the Hub answered, rather than its storage."""


def set_xet_environment(settings: dict[str, str] = XET_UPLOAD_SETTINGS) -> None:
    """Set the environment variables that limit hf_xet, which reads them at its first use."""
    for variable, limit in settings.items():
        os.environ.setdefault(variable, limit)


def storage_failure(error: BaseException) -> StorageFailure | OSError | None:
    """Return the failure behind an error of the storage's client; None for any other error.

    An error of this machine, such as a full disk, is returned as an OSError with its errno.
    """
    line = " ".join(str(error).split())
    if getattr(error, "errno", None) is not None or not _ERROR_CATEGORY.match(line):
        return None
    local = _OS_ERROR.search(line)
    if local and int(local[1]) not in _NETWORK_ERRORS:
        return OSError(int(local[1]), os.strerror(int(local[1])))
    address = _URL.search(line)
    status = _HTTP_STATUS.search(line)
    if address is None:
        answer_text = _URL.sub("", line)[:_MESSAGE_CHARACTERS_MAX]
        return StorageFailure(
            f"the Hub's storage gave no usable answer ({answer_text})", None, by_hub=False
        )
    path = urlsplit(address[0]).path
    server, step = next(
        ((server, step) for path_part, server, step in _STEPS if path_part in path),
        ("the Hub's storage", "asked for the bytes"),
    )
    host = urlsplit(address[0]).netloc
    answer = f"answers {_status_text(int(status[1]))}" if status else "does not answer"
    sentence = f"{server} ({host}) {answer} when {step}"
    return StorageFailure(sentence, int(status[1]) if status else None, by_hub=server == "the Hub")


def _status_text(status: int) -> str:
    """Return a status code with its name, such as "404 (Not Found)"."""
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)
