"""What GitHub refuses, in its own words, and the faults that a test asks for."""

from dataclasses import dataclass, field
from typing import Any

STATUSES_MAX = 1000  # of one commit and context


@dataclass
class Fault:
    """What happens instead of an answer, or after the work was done; 0 hangs up without one."""

    verb: str
    path: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "Server Error"
    times: int = 1
    done: bool = False


@dataclass
class Answer:
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def invalid(resource: str, message: str) -> Answer:
    """Refuse what the API calls invalid."""
    error = {"resource": resource, "code": "custom", "message": message}
    return Answer(422, {"message": "Validation Failed", "errors": [error]})


def wrong_status(body: Any, known: list[dict[str, Any]]) -> str:
    """Return what is wrong with a new status; "" if nothing is."""
    if any(ord(c) > 0xFFFF for c in body["description"]):
        return "description doesn't accept 4-byte Unicode"
    if sum(status["context"] == body["context"] for status in known) >= STATUSES_MAX:
        return "This SHA and context has reached the maximum number of statuses."
    return ""


def unwritable(archived: bool, too_many: bool) -> Answer | None:
    """Refuse a write to an archived repository, and beyond the secondary limit."""
    if archived:
        return Answer(403, {"message": "Repository was archived so is read-only."})
    if too_many:
        message = "You have exceeded a secondary rate limit and have been temporarily blocked."
        return Answer(403, {"message": message}, {"Retry-After": "600"})
    return None


def unknown_labels(names: list[str], known: set[str] | None) -> Answer | None:
    """Refuse a label that would have to be created: pull-requests: write is not enough."""
    if known is None or set(names) <= known:
        return None
    message = "You do not have permission to create labels on this repository."
    error = {"resource": "Repository", "field": "label", "code": "unauthorized"}
    return Answer(403, {"message": message, "errors": [error]})
