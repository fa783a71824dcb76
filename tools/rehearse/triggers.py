"""Decides which workflows an event starts, by the filters that GitHub applies."""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.github.server import REPOSITORY
from tests.house.workflow_file import Workflow
from tools.rehearse.workflow import Unsound

_DEFAULT_TYPES = {"pull_request": {"opened", "synchronize", "reopened"}}
_FILTERS = {"types", "branches", "paths", "workflows", "inputs"}


@dataclass(frozen=True)
class Event:
    """Something that happened on GitHub."""

    name: str
    ref: str
    sha: str
    payload: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    branch: str = "main"
    """The branch that filters apply to; for a pull request, its base."""
    paths: tuple[str, ...] | None = None
    """Changed paths; None if the event has none."""
    fork: bool = False
    """Whether the commit comes from a fork, so that no token may write."""
    head: str = ""
    """The branch that a pull request comes from."""


def starts(workflow: Workflow, event: Event) -> bool:
    """Whether a workflow starts on an event."""
    events = workflow.tree["on"]
    if isinstance(events, str | list):
        return event.name == events or event.name in events
    if event.name not in events:
        return False
    filters = events[event.name]
    if not isinstance(filters, dict):  # a list of schedules, or nothing
        filters = {}
    if unknown := sorted(set(filters) - _FILTERS):
        raise Unsound(f"{workflow.name}: on.{event.name}: unknown filter {unknown[0]!r}")
    action = event.payload.get("action")
    types = set(filters.get("types", ())) or _DEFAULT_TYPES.get(event.name)
    if action is not None and types is not None and action not in types:
        return False
    if "workflows" in filters:
        return event.payload["workflow_run"]["name"] in filters["workflows"]
    is_on_branch = "branches" not in filters or chosen(filters["branches"], event.branch)
    has_no_filter = "paths" not in filters or event.paths is None
    return is_on_branch and (
        has_no_filter or any(chosen(filters["paths"], path) for path in event.paths or ())
    )


def chosen(patterns: list[str], path: str) -> bool:
    """Whether a list of patterns selects a name: the last match decides, `!` excludes."""
    is_chosen = False
    for pattern in patterns:
        if _regex(pattern.removeprefix("!")).fullmatch(path):
            is_chosen = not pattern.startswith("!")
    return is_chosen


def _regex(pattern: str) -> re.Pattern[str]:
    """Translate a filter pattern: `**` is any path, `*` any name; other characters are literal."""
    if set(pattern) & set("?+[]"):
        raise Unsound(f"the filter {pattern!r} has characters that the rehearsal does not know")
    regex = "".join(
        {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}.get(part, re.escape(part))
        for part in re.split(r"(\*\*/|\*\*|\*)", pattern)
    )
    return re.compile(regex)


def repository() -> dict[str, Any]:
    """Return the member `repository` of every event."""
    return {"repository": {"full_name": REPOSITORY, "default_branch": "main", "fork": False}}
