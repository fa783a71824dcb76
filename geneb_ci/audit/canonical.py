"""One sequence of bytes for one value: what is hashed has to be written in one way only."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> bytes:  # noqa: ANN401 (JSON has no narrower type)
    """Give the canonical JSON of a value (RFC 8785), as UTF-8.

    Texts, whole numbers, booleans, null, lists and objects with ASCII keys only: for these the RFC
    asks for what Python's encoder gives with sorted keys and no spaces. Raises TypeError for
    floats, whose notation differs between languages, and for anything JSON does not have.
    """
    _refuse(value)
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(value: Any) -> str:  # noqa: ANN401
    """Give the SHA-256 of the canonical JSON, as 64 hex digits."""
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
