"""Write a document as one line of ASCII for another job or a comment, and read it strictly."""

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

LINE_BYTES_MAX = 120_000
"""Maximum bytes of a line.

Linux limits an environment variable to 128 KiB, GitHub the outputs of a job to 1 MB in UTF-16.
"""
UNPACKED_BYTES_MAX = 4_000_000
"""Maximum bytes of a decompressed line: fifty verdicts have 0.2 MB, with the longest findings 2."""
PACKED_PREFIX = "zlib:"
"""Beginning of a compressed line."""
_NUMBERED_PART = re.compile(r"(\d{1,4})/(\d{1,4}) ([A-Za-z0-9+/=:]+)")
"""Part of a line: its number, the number of all parts, and its text."""
_REASON_MAX = 200  # characters of a message about invalid JSON

_M = TypeVar("_M", bound=BaseModel)


def json_line(document: BaseModel) -> str:
    """Return a document as JSON on one line.

    "##[" is escaped, because a line with it would be a command to the runner of GitHub Actions.
    """
    json_text = json.dumps(document.model_dump(mode="json"), ensure_ascii=True, allow_nan=False)
    return json_text.replace("##[", "\\u0023#[")


def packed_text(document: BaseModel) -> str:
    """Return a document as a compressed line, of any length."""
    return PACKED_PREFIX + base64.b64encode(zlib.compress(json_line(document).encode(), 9)).decode()


def encode(document: BaseModel, fix: str) -> str:
    """Return a document as a compressed line of at most `LINE_BYTES_MAX` bytes.

    Raises Tampered, with `fix`, if the line would be longer.
    """
    return _require_short(packed_text(document), "the compressed data", fix)


def decode(line: str, model: type[_M], subject: str, fix: str) -> _M:
    """Return the document in a line, which may be compressed.

    Raises Tampered unless the line is strict JSON of this model within the limits; its message
    begins with `subject`, and `fix` is its fix.
    """
    json_text = _unpacked_text(_require_short(line, subject, fix).strip(), subject, fix)
    if faults := scan(json_text).faults:
        fault = visible(faults[0].message, _REASON_MAX)
        raise Tampered(f"{subject} is not JSON: {fault}", fix)
    try:
        return model.model_validate_json(json_text)
    except ValidationError as error:
        raise Tampered(f"{subject} does not fit its schema at {first_error(error)}", fix) from error


def numbered_parts(line: str, size: int) -> list[str]:
    """Return a line in numbered parts such as "1/2 TEXT", each with at most `size` characters."""
    pieces = [line[start : start + size] for start in range(0, len(line), size)]
    return [f"{number}/{len(pieces)} {text}" for number, text in enumerate(pieces, 1)]


def joined_parts(parts: Iterable[str]) -> str | None:
    """Return the line that `numbered_parts` split into these parts; None if a part is missing."""
    matches = filter(None, map(_NUMBERED_PART.fullmatch, parts))
    pieces = {int(match[1]): (int(match[2]), match[3]) for match in matches}
    counts = {count for count, _ in pieces.values()}
    if len(counts) != 1 or sorted(pieces) != list(range(1, counts.pop() + 1)):
        return None
    return "".join(text for _, (_, text) in sorted(pieces.items()))


def _require_short(line: str, subject: str, fix: str) -> str:
    """Return a line. Raises Tampered if the line has more than `LINE_BYTES_MAX` bytes."""
    size = len(line.encode("utf-8", "surrogatepass"))
    if size > LINE_BYTES_MAX:
        raise Tampered(f"{subject} has {size:,} bytes; the limit is {LINE_BYTES_MAX:,}", fix)
    return line


def _unpacked_text(line: str, subject: str, fix: str) -> str:
    """Return the text of a line. Raises Tampered if it is not compressed as by `packed_text`."""
    if not line.startswith(PACKED_PREFIX):
        return line
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(
            base64.b64decode(line[len(PACKED_PREFIX) :], validate=True), UNPACKED_BYTES_MAX
        )
        if inflate.unconsumed_tail:
            raise Tampered(f"{subject} unpacks to more than {UNPACKED_BYTES_MAX:,} bytes", fix)
        if not inflate.eof:
            raise Tampered(f"{subject} is not complete", fix)
        return raw.decode("ascii")
    except (zlib.error, binascii.Error, ValueError) as error:
        raise Tampered(f"{subject} is not compressed JSON", fix) from error
