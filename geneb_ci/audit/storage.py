"""The storage behind the Hub, where large files lie: the limits of its client, and its errors.

The Hub's own client leaves large files to another one, hf_xet. That one raises ConnectionError,
RuntimeError, OSError or ValueError, all with one line of text: a category, what happened, and
mostly the status and the address. Nothing but the line says what went wrong.
"""

import errno
import os
import re
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

LIMITS = {
    # Our own six tries read the repository first and say what they wait for; five more inside
    # each of them, with 3 to 243 s between them, made 162 s of silence and would make 16 minutes.
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "1s",
    # As long as the Hub itself has for an answer: 64 MB go up with the answer after the last byte.
    "HF_XET_CLIENT_READ_TIMEOUT": "120s",
    "HF_XET_CLIENT_CONNECT_TIMEOUT": "10s",
}
"""Settings of hf_xet; those of the environment go first."""
DOWNLOAD_LIMITS = LIMITS | {
    # Nothing else tries a download again: 2, 4, 8 and 16 s at most, 15 s on average.
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "4",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "2s",
}

_CATEGORY = re.compile(
    r"(Authentication|Network|Server|Data integrity|Configuration|I/O|Internal|Task|Previous task)"
    r" error: |Rate limited: |Timeout: |Not found: |Operation cancelled: "
)
_STATUS = re.compile(r"HTTP status \w+ error \((\d{3})\b")
_ADDRESS = re.compile(r"https?://[^\s)?#]+")
_LOCAL = re.compile(r"\(os error (\d+)\)")
_OF_THE_NETWORK = frozenset(
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
_LINE_MAX = 200  # characters of the client's own words


class StorageFailure(NamedTuple):
    """What the storage's client says."""

    what: str
    """A clause without an end: who did what, and at which step."""
    status: int | None
    by_hub: bool
    """Whether it was the Hub that answered, not the storage."""


def limit(settings: dict[str, str] = LIMITS) -> None:
    """Bound what hf_xet does by itself; it reads the settings when it is first used."""
    for name, value in settings.items():
        os.environ.setdefault(name, value)


def storage_failure(error: BaseException) -> StorageFailure | OSError | None:
    """Read an error of the storage's client; None for any other.

    An OSError is one of this machine, such as a full disk, and has its number.
    """
    line = " ".join(str(error).split())
    if getattr(error, "errno", None) is not None or not _CATEGORY.match(line):
        return None
    local = _LOCAL.search(line)
    if local and int(local[1]) not in _OF_THE_NETWORK:
        return OSError(int(local[1]), os.strerror(int(local[1])))
    address = _ADDRESS.search(line)
    status = _STATUS.search(line)
    if address is None:
        reason = _ADDRESS.sub("", line)[:_LINE_MAX]
        return StorageFailure(
            f"the Hub's storage gave no usable answer ({reason})", None, by_hub=False
        )
    path = urlsplit(address[0]).path
    who, step = next(
        ((who, step) for part, who, step in _STEPS if part in path),
        ("the Hub's storage", "asked for the bytes"),
    )
    host = urlsplit(address[0]).netloc
    answer = f"answers {_named(int(status[1]))}" if status else "does not answer"
    what = f"{who} ({host}) {answer} when {step}"
    return StorageFailure(what, int(status[1]) if status else None, by_hub=who == "the Hub")


def _named(status: int) -> str:
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)
