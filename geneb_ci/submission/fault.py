"""A fault before it is a finding: the rule it belongs to and where it stands."""

from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and indices from the root of a document."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a document.

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
    """A cure closer to the case than the rule's own."""
    card: bool = False
    """Whether the place is in the model card rather than in the submission."""
    score: float = 0.0
    """How strange it is, 1 at a rule's threshold to 10: the sum over a file orders triage."""


def pointer(path: Path) -> str:
    """Write a path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
