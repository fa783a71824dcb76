"""Write a value as one line of ASCII for another job or a comment, and read it strictly."""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from geneb_ci.github.errors import Tampered
from geneb_ci.render.plain import visible
from geneb_ci.submission.scanner import scan
from reference_harness.formats.base import first_error

# GitHub limits the outputs of a job to 1 MB in UTF-16, Linux an environment variable to 128 KiB.
BYTES_MAX = 120_000
# Fifty verdicts take about 200 kB, with the longest findings ten times as much.
UNPACKED_MAX = 4_000_000
PACKED_PREFIX = "zlib:"
_PART = re.compile(r"(\d{1,4})/(\d{1,4}) ([A-Za-z0-9+/=:]+)")
_REASON_MAX = 200  # characters of what is wrong with the JSON

_M = TypeVar("_M", bound=BaseModel)


def plain(value: BaseModel) -> str:
    """Return a value as JSON on one line; "##[", which starts a runner's command, is escaped."""
    text = json.dumps(value.model_dump(mode="json"), ensure_ascii=True, allow_nan=False)
    return text.replace("##[", "\\u0023#[")


def packed_text(value: BaseModel) -> str:
    """Return a value as a compressed line, of any length."""
    return PACKED_PREFIX + base64.b64encode(zlib.compress(plain(value).encode(), 9)).decode()


def encode(value: BaseModel, fix: str) -> str:
    """Return a value as a compressed line of at most `BYTES_MAX` bytes.

    Raises Tampered, with this fix, for a longer one.
    """
    return _require_short(packed_text(value), "the line", fix)


def decode(line: str, model: type[_M], subject: str, fix: str) -> _M:
    """Return the value of a line, compressed or not.

    Raises Tampered unless the line is strict JSON of this model within the limits; its message
    begins with `subject`, and `fix` is its fix.
    """
    text = _unpacked(_require_short(line, subject, fix).strip(), subject, fix)
    if faults := scan(text).faults:
        reason = visible(faults[0].message, _REASON_MAX)
        raise Tampered(f"{subject} is not JSON: {reason}", fix)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise Tampered(f"{subject} does not fit its schema at {first_error(error)}", fix) from error


def numbered_parts(line: str, size: int) -> list[str]:
    """Return a line in numbered parts such as "1/2 TEXT", each with at most `size` characters."""
    texts = [line[start : start + size] for start in range(0, len(line), size)]
    return [f"{number}/{len(texts)} {text}" for number, text in enumerate(texts, 1)]


def joined(parts: Iterable[str]) -> str | None:
    """Return the line that `numbered_parts` split into these parts; None if a part is missing."""
    matches = filter(None, map(_PART.fullmatch, parts))
    texts = {int(match[1]): (int(match[2]), match[3]) for match in matches}
    counts = {count for count, _ in texts.values()}
    if len(counts) != 1 or sorted(texts) != list(range(1, counts.pop() + 1)):
        return None
    return "".join(text for _, (_, text) in sorted(texts.items()))


def _require_short(line: str, subject: str, fix: str) -> str:
    size = len(line.encode("utf-8", "surrogatepass"))
    if size > BYTES_MAX:
        raise Tampered(f"{subject} has {size:,} bytes; the limit is {BYTES_MAX:,}", fix)
    return line


def _unpacked(text: str, subject: str, fix: str) -> str:
    """Return the text of a line. Raises Tampered if it is not compressed as by `packed_text`."""
    if not text.startswith(PACKED_PREFIX):
        return text
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(
            base64.b64decode(text[len(PACKED_PREFIX) :], validate=True), UNPACKED_MAX
        )
        if inflate.unconsumed_tail:
            raise Tampered(f"{subject} unpacks to more than {UNPACKED_MAX:,} bytes", fix)
        if not inflate.eof:
            raise Tampered(f"{subject} is not complete", fix)
        return raw.decode("ascii")
    except (zlib.error, binascii.Error, ValueError) as error:
        raise Tampered(f"{subject} is not compressed JSON", fix) from error
