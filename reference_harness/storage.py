"""The Hub's storage of large files: limits of its client hf_xet, and its errors.

The Hub's own client leaves large files to another one, hf_xet, which raises RuntimeError, OSError
or ConnectionError with one line of text. Nothing but the line says what went wrong.
"""

import logging
import os
import re
from http import HTTPStatus
from urllib.parse import urlsplit

LIMITS = {
    # Nothing else tries a download again: 2, 4, 8 and 16 s at most, 15 s on average. Unless told,
    # it waits for 3 to 243 s, and says nothing for three minutes.
    "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "4",
    "HF_XET_CLIENT_RETRY_BASE_DELAY": "2s",
    # No byte for so long: the connection is lost.
    "HF_XET_CLIENT_READ_TIMEOUT": "30s",
    "HF_XET_CLIENT_CONNECT_TIMEOUT": "10s",
}
"""Settings of hf_xet; those of the environment go first."""

_CATEGORY = re.compile(r"([A-Z][\w/]*( [a-z]+)? error|Rate limited|Timeout|Not found): ")
_STATUS = re.compile(r"error \((\d{3} [^)]*)\)")
_ADDRESS = re.compile(r"https?://[^\s)?#]+")
_LOCAL = re.compile(r"[^:]*\(os error \d+\)")
_STEPS = {
    "/xet-read-token": "the Hub {answer} when asked for a token",
    "/reconstructions": "the Hub's storage {answer} when asked what the file is made of",
}
_AGAIN = "run the command again: complete files are not downloaded again"
_CONNECT = f"check the network, or name a Hub that it reaches with --endpoint; then {_AGAIN}"
_PUT_RIGHT = f"free disk space or check permissions, also of HF_HOME, then {_AGAIN}"
_TRANSIENT = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_LINE_MAX = 200  # characters of the client's own words


def limit() -> None:
    """Bound what hf_xet does by itself; it reads the settings when it is first used.

    Of the lines that the Hub's own client logs when it tries again, one is left.
    """
    for name, value in LIMITS.items():
        os.environ.setdefault(name, value)
    logging.getLogger("huggingface_hub.utils._http").addFilter(_Once())


class _Once(logging.Filter):
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
    line = " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        return f"this machine failed, not the Hub: {where}{error.strerror}; {_PUT_RIGHT}"
    answered = getattr(error, "response", None)
    if answered is not None:
        status, path = answered.status_code, urlsplit(str(answered.url)).path
        what = "a token" if "/xet-" in path else "the list of files" if "/tree/" in path else path
        fix = "see that the data set is public and has this commit, or set HF_TOKEN"
        return f"the Hub answers {status} when asked for {what}; " + (
            _AGAIN if status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR else fix
        )
    if not _CATEGORY.match(line):
        words = _ADDRESS.sub(_host, line)[:_LINE_MAX]
        is_of_network = type(error).__module__.startswith("httpx")
        return (
            f"the Hub cannot be reached ({words}); {_CONNECT}"
            if is_of_network
            else f"{type(error).__name__}: {words}"
        )
    address = _ADDRESS.search(line)
    if address is None:
        if local := _LOCAL.search(line):
            return f"this machine failed, not the Hub:{local[0]}; {_PUT_RIGHT}"
        return f"the Hub's storage gave no usable answer ({line[:_LINE_MAX]}); {_AGAIN}"
    status = _STATUS.search(line)
    url = urlsplit(address[0])
    answer = f"({url.netloc}) answers {status[1]}" if status else f"({url.netloc}) does not answer"
    steps = [sentence for part, sentence in _STEPS.items() if part in url.path]
    answer_text = steps[0] if steps else "the Hub's storage {answer} when asked for the bytes"
    return f"{answer_text.format(answer=answer)}; {_AGAIN}"


def _host(address: re.Match[str]) -> str:
    return urlsplit(address[0]).netloc
