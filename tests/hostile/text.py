"""Writes JSON as a hostile hand would: keys twice, tokens that are none, and a mark for the fault.

The mark is a character that no input holds. It stands where a finding must point; reading it off
the text gives line and column without help of the code under test.
"""

from typing import Any, NamedTuple

MARK = "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}"


class Raw(str):
    """Text that is written as it stands, as a value or as a key."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """An object whose keys may stand twice."""


class Place(NamedTuple):
    """A place in a text: line and column count from 1."""

    line: int
    column: int


def written(value: Any, indent: str = "", newline: str = "\n") -> str:
    """Write a value over many lines, or on one when `newline` is empty."""
    step = indent + " " if newline else ""
    colon = ": " if newline else ":"
    if isinstance(value, dict | Members):
        members = value if isinstance(value, Members) else value.items()
        opening, closing = "{", "}"
        items = [f"{scalar(k)}{colon}{written(v, step, newline)}" for k, v in members]
    elif isinstance(value, list):
        opening, closing = "[", "]"
        items = [written(v, step, newline) for v in value]
    else:
        return scalar(value)
    if not items:
        return opening + closing
    if opening == "[" and not any(isinstance(item, dict | list) for item in value):
        return f"[{(', ' if newline else ',').join(items)}]"
    inner = f",{newline}{step}".join(items)
    return f"{opening}{newline}{step}{inner}{newline}{indent}{closing}"


def scalar(value: Any) -> str:
    """Write a text, number or word; Raw as it stands."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return {True: "true", False: "false", None: "null"}[value] if _is_word(value) else repr(value)


def _is_word(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def unmarked(text: str) -> tuple[str, list[Place]]:
    """Take the marks out of a text, and give the places where they stood."""
    places = []
    plain, *rest = text.split(MARK)
    for part in rest:
        lines = plain.split("\n")
        places.append(Place(len(lines), len(lines[-1]) + 1))
        plain += part
    return plain, places
