"""Write compact JSON of boards piece by piece."""

import json
import operator
from collections.abc import Iterable, Iterator
from typing import Any

_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    separators=(",", ":"),
    default=operator.methodcaller("plain_dict"),
)
"""Encoder of compact JSON, for objects that have a method `plain_dict`, too."""


def json_text(value: Any) -> bytes:
    """Return a value as compact JSON in UTF-8. Raises ValueError for NaN.

    An object with a method `plain_dict` is written as the value that the method returns.
    """
    return _ENCODER.encode(value).encode()


def object_pieces(members: Iterable[tuple[str, Iterable[Any]]]) -> Iterator[Any]:
    """Yield the JSON text of an object in pieces, so that the caller joins only once.

    `members` are (key, pieces of the text of its value).
    """
    comma = b"{"
    for key, pieces in members:
        yield comma + json_text(key) + b":"
        yield from pieces
        comma = b","
    yield b"}" if comma == b"," else b"{}"


def json_pieces(value: Any, depth: int) -> Iterable[bytes]:
    """Return the same text as `json_text`, in pieces.

    An object that is nested in fewer than `depth` others is divided into its members.
    """
    if not depth or not isinstance(value, dict):
        return [json_text(value)]
    return object_pieces((key, json_pieces(member, depth - 1)) for key, member in value.items())
