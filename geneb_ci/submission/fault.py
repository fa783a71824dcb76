"""Faults: problems of a document before they become findings with a line and a severity."""

from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and indices from the root of a document."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem found by a rule, at a place of the document.

    `at` is an offset in code points, or None for the place of `path`; `on_key` points at the key of
    the last member of `path` rather than at its value.
    """

    rule: str
    path: Path
    message: str
    found: str = ""
    expected: str = ""
    at: int | None = None
    on_key: bool = False
    fix: str = ""
    """How to fix this case, if more specific than the rule's own text."""
    card: bool = False
    """Whether the place is in the model card rather than in the submission."""
    score: float = 0.0
    """How unusual it is, from 1 at the rule's threshold to 10; triage sorts files by the sum."""


def pointer(path: Path) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
