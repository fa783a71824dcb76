"""Canonical JSON, its digest, and times: one way to write each value that is hashed or signed."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from geneb_ci.common.errors import UsageProblem


def canonical(value: Any) -> bytes:  # noqa: ANN401 (JSON has no narrower type)
    """Return the canonical JSON of a value (RFC 8785), as UTF-8.

    Texts, whole numbers, booleans, null, lists and objects with ASCII keys only: for these the RFC
    asks for what Python's encoder gives with sorted keys and no spaces. Raises TypeError for
    floats, whose notation differs between languages, and for anything JSON does not have.
    """
    _refuse(value)
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(value: Any) -> str:  # noqa: ANN401
    """Return the SHA-256 of the canonical JSON, as 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _refuse(value: Any) -> None:  # noqa: ANN401
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str) or not key.isascii():
                msg = f"canonical JSON has ASCII keys, found {key!r}"
                raise TypeError(msg)
            _refuse(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse(inner)
    elif isinstance(value, float):
        msg = f"canonical JSON here has no floats, found {value!r}"
        raise TypeError(msg)


FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def seconds_of(moment: str) -> int:
    """Return the seconds since 1970 of a time such as 2026-11-20T08:30:00Z.

    Raises UsageProblem for any other text.
    """
    try:
        found = datetime.strptime(moment, FORMAT).replace(tzinfo=UTC)
    except ValueError:
        found = None
    # strptime also takes digits of other scripts and missing zeros; one way to write it is valid.
    if found is None or not moment.isascii() or found.strftime(FORMAT) != moment:
        raise UsageProblem(
            f"{moment!r} is not a time", "write it in UTC, to the second: 2026-11-20T08:30:00Z"
        )
    return int(found.timestamp())


def moment_of(seconds: int) -> str:
    """Return seconds since 1970 as a time such as 2026-11-20T08:30:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime(FORMAT)
