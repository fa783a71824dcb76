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

LIMITS = {
    # The caller makes six attempts and reports them. hf_xet would make five within each, 3 to 243 s
    # apart, without a report: they took 162 s, and could take 16 minutes.
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "1s",
    # The time limit for other answers of the Hub: 64 MB are uploaded before an answer.
    "HF_XET_CLIENT_READ_TIMEOUT": "120s",
    "HF_XET_CLIENT_CONNECT_TIMEOUT": "10s",
}
"""Settings of hf_xet; settings in the environment have priority."""
DOWNLOAD_LIMITS = LIMITS | {
    # Only hf_xet retries downloads: after pauses of up to 2, 4, 8 and 16 s, 15 s on average.
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "4",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "2s",
}

_CATEGORY = re.compile(
    r"(Authentication|Network|Server|Data integrity|Configuration|I/O|Internal|Task|Previous task)"
    r" error: |Rate limited: |Timeout: |Not found: |Operation cancelled: "
)
_STATUS = re.compile(r"HTTP status \w+ error \((\d{3})\b")
_ADDRESS = re.compile(r"https?://[^\s)?#]+")
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_NETWORK_ERRORS = frozenset(
    {errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.ENETUNREACH}
    | {errno.EHOSTUNREACH, errno.ECONNABORTED, errno.EADDRNOTAVAIL}
)
_STEPS = (
    ("/xet-write-token", "the Hub", "asked for a token to upload with"),
    ("/xet-read-token", "the Hub", "asked for a token to download with"),
    ("/v1/xorb", "the Hub's storage", "sent the bytes"),
    ("/shards", "the Hub's storage", "sent the list of files"),
    ("/reconstructions", "the Hub's storage", "asked what the file is made of"),
)
"""Part of the address of a request, the server, and what the request did."""
_LINE_MAX = 200  # characters of the client's message


class StorageFailure(NamedTuple):
    """An error of the storage's client."""

    description: str
    """A clause: which server answered what, in which step."""
    status: int | None
    by_hub: bool
    """Whether the Hub answered, rather than its storage."""


def limit_storage(settings: dict[str, str] = LIMITS) -> None:
    """Set the limits of hf_xet, which reads them at its first use."""
    for variable, limit in settings.items():
        os.environ.setdefault(variable, limit)


def storage_failure(error: BaseException) -> StorageFailure | OSError | None:
    """Return the failure behind an error of the storage's client; None for any other error.

    An error of this machine, such as a full disk, is returned as an OSError with its errno.
    """
    line = " ".join(str(error).split())
    if getattr(error, "errno", None) is not None or not _CATEGORY.match(line):
        return None
    local = _OS_ERROR.search(line)
    if local and int(local[1]) not in _NETWORK_ERRORS:
        return OSError(int(local[1]), os.strerror(int(local[1])))
    address = _ADDRESS.search(line)
    status = _STATUS.search(line)
    if address is None:
        answer_text = _ADDRESS.sub("", line)[:_LINE_MAX]
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
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)
