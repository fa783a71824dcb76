"""Every leaf of a JSON value, and what one flipped bit makes of it."""

import struct
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]

# Words of a fixed set: beside a flipped bit, which makes no word, another one of the set.
OTHER_WORD = {
    "agrees": "differs",
    "drawn": "targeted",
    "huggingface": "none",
}


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every leaf; an empty list or object is one."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def flips(value: Any) -> Iterator[Any]:
    """Yield what a flipped bit makes of a leaf, as far as it is still written as JSON."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value ^ 1
        yield -value or 1
    elif isinstance(value, float):
        for bit in (0, 51, 63):  # the last one of the fraction, its first one, the sign
            (number,) = struct.unpack("<Q", struct.pack("<d", value))
            yield struct.unpack("<d", struct.pack("<Q", number ^ (1 << bit)))[0]
    elif isinstance(value, str):
        if value in OTHER_WORD:
            yield OTHER_WORD[value]
        for at in sorted({0, len(value) // 2, len(value) - 1}) if value else ():
            yield value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
    else:
        yield {None: True}.get(value) if value is None else ["another"]


def at(value: Any, path: Path) -> Any:
    """Return the leaf at a path."""
    for part in path:
        value = value[part]
    return value


def put_at(value: Any, path: Path, leaf: Any) -> Any:
    """Return a copy with another leaf at a path; all beside the path is shared with the value."""
    if not path:
        return leaf
    changed_value = value.copy()
    inner = value[path[0]] if len(path) > 1 else None
    changed_value[path[0]] = put_at(inner, path[1:], leaf)
    return changed_value


def pointer(path: Path) -> str:
    """Write a path without the places in lists, as a pattern of fields."""
    return "/".join("*" if isinstance(part, int) else part for part in path)
