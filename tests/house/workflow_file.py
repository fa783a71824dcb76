"""A workflow or a composite action as the tests see it: its text, its jobs, its steps."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.paths import ROOT

FOLDER = ROOT / ".github/workflows"
ACTIONS = ROOT / ".github/actions"
# Nothing that a stranger starts runs with these: the code is main's, and so is the file.
PRIVILEGED = {
    *("workflow_run", "pull_request_target", "issue_comment", "issues", "discussion"),
    *("schedule", "workflow_dispatch", "repository_dispatch", "push", "release"),
}


@dataclass(frozen=True)
class Workflow:
    """One file, every scalar a text: YAML 1.1 would read `on` as true."""

    name: str
    text: str

    @property
    def tree(self) -> dict[str, Any]:
        """The document, which nobody changes: it is parsed once."""
        return parsed(self.text)

    @property
    def is_action(self) -> bool:
        """Whether it is a composite action."""
        return "runs" in self.tree

    @property
    def events(self) -> set[str]:
        """What starts it."""
        events = self.tree.get("on", {})
        return {events} if isinstance(events, str) else set(events)

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """Jobs by id; an action is one job without rights of its own."""
        tree = self.tree
        return {"action": tree["runs"]} if self.is_action else tree["jobs"]

    @property
    def is_privileged(self) -> bool:
        """Whether a stranger's pull request must not reach it."""
        writes = any("write" in rights(job).values() for job in self.jobs.values())
        return writes or (bool(self.events & PRIVILEGED) and "pull_request" not in self.events)


@functools.cache
def parsed(text: str) -> dict[str, Any]:
    """Return a document of YAML, every scalar a text."""
    tree: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (makes texts, lists and mappings alone)
    return tree


def rights(job: dict[str, Any]) -> dict[str, str]:
    """Return the permissions of a job; a shorthand such as write-all is a right of that name."""
    permissions = job.get("permissions", {})
    return {"*": permissions} if isinstance(permissions, str) else dict(permissions)


def steps(job: dict[str, Any], uses: str = "") -> list[dict[str, Any]]:
    """List the steps of a job, or those that use an action whose name begins so."""
    return [step for step in job.get("steps", []) if step.get("uses", "").startswith(uses)]


def runs(job: dict[str, Any]) -> str:
    """Return every command of a job."""
    return "\n".join(step.get("run", "") for step in job.get("steps", []))


def inputs(step: dict[str, Any]) -> dict[str, str]:
    """Return what a step hands to its action."""
    return dict(step.get("with", {}))


def shipped_workflows() -> list[Workflow]:
    """Read every workflow and action of the repository."""
    files = [*FOLDER.iterdir(), *ACTIONS.glob("*/action.yml")]
    return [read(path) for path in sorted(files)]


def read(path: Path) -> Workflow:
    """Read one file; an action is named after its folder."""
    name = f"{path.parent.name}/{path.name}" if path.name == "action.yml" else path.name
    return Workflow(name, path.read_text(encoding="utf-8"))
