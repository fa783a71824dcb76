"""What a hostile input is: its number, its bytes, and all that must be said of it."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.hostile.text import MARK, Members, Place, Raw, unmarked, written
from tests.small import small

CELL = "results/full/promoter_tata"
NOTE = "no-run-details"  # what every sound file of format 1.0 is told


class Says(NamedTuple):
    """One finding, at the mark of the same number in the text."""

    rule: str
    pointer: str
    message: str


@dataclass(frozen=True)
class Case:
    """One input. `content` is a document with marks, a text with marks, or bytes.

    `also` names the rules of further findings, which follow from the fault and have no mark.
    """

    number: int
    name: str
    content: Any
    says: tuple[Says, ...] = ()
    also: tuple[str, ...] = (NOTE,)
    place: Place | None = None
    """Where the finding stands, for bytes that carry no mark."""

    def text(self, newline: str = "\n") -> str:
        """Return the text with its marks, over many lines or on one."""
        if isinstance(self.content, str) and not isinstance(self.content, Raw):
            return self.content if newline else self.content.replace("\n", " ")
        return written(self.content, newline=newline) + newline

    def data(self, newline: str = "\n") -> bytes:
        """Return the bytes of the file."""
        if isinstance(self.content, bytes):
            return self.content
        # Surrogates stand for bytes that are not UTF-8.
        return unmarked(self.text(newline))[0].encode("utf-8", "surrogateescape")

    def places(self, newline: str = "\n") -> list[Place]:
        """Return the place of each finding in `says`."""
        if isinstance(self.content, bytes):
            return [self.place or Place(1, 1)] * len(self.says)
        return unmarked(self.text(newline))[1]


def whole(rule: str, message: str) -> tuple[Says, ...]:
    """Say one thing of the whole document."""
    return (Says(rule, "", message),)


def sound(name: str) -> str:
    """Write a sound document."""
    return written(small(name)) + "\n"


def edited(name: str, path: str, value: Any) -> dict[str, Any]:
    """Return a sound document with one member replaced, which may hold marks."""
    document = small(name)
    *parents, last = path.split("/")
    holder: Any = document
    for part in parents:
        holder = holder[part]
    holder[last] = value
    return document


def added(name: str, path: str, *members: tuple[str, Any]) -> dict[str, Any]:
    """Return a sound document with members added to an object, which may have them already."""
    document = small(name)
    *parents, last = path.split("/")
    holder: Any = document
    for part in parents:
        holder = holder[part]
    holder[last] = Members([*holder[last].items(), *members])
    return document


def token(number: int, name: str, value: str, rule: str, message: str) -> Case:
    """Return a case that has a token in place of a score."""
    grammar = rule == "invalid-json"
    says = Says(rule, "" if grammar else f"/{CELL}/MCC", message)
    also = () if grammar else (NOTE,)
    return Case(number, name, edited(name, f"{CELL}/MCC", Raw(MARK + value)), (says,), also)


def field(
    number: int,
    name: str,
    path: str,
    value: str,
    *says: tuple[str, str],
    also: tuple[str, ...] = (NOTE,),
) -> Case:
    """Return a case that has a text in place of a member; `value` is the inside of the quotes."""
    marked = Raw(f'{MARK * len(says)}"{value}"')
    expected_findings = tuple(Says(rule, f"/{path}", message) for rule, message in says)
    return Case(number, name, edited(name, path, marked), expected_findings, also)


def model_id(number: int, name: str, value: str, *rules: str) -> Case:
    """Return a case that has another model_id, which every rule shows the same way."""
    seen = re.sub(r"[^\x20-\x7e]", lambda m: f"\\u{ord(m.group()):04x}", value)
    shown = f'"{seen}"' if len(seen) <= 78 else f'"{seen[:76]}...'
    messages = {
        "bad-model-id": f"model_id is {shown}",
        "reserved-model-id": f"model_id is {shown}, a reserved name",
    }
    return field(
        number, f"id-{name}", "model_id", value, *((rule, messages[rule]) for rule in rules)
    )
