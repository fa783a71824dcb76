"""Reads workflows for the rehearsal; a key that it does not know is an error."""

import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.house.workflow_file import Workflow, read, rights

WORKFLOWS = ".github/workflows"
_TOP = {"name", "run-name", "on", "permissions", "concurrency", "env", "defaults", "jobs"}
_JOB = {
    *("name", "if", "runs-on", "timeout-minutes", "permissions", "outputs", "steps", "needs"),
    *("environment", "strategy", "env", "continue-on-error", "defaults", "concurrency"),
}
_STEP = {
    *("id", "name", "if", "env", "run", "shell", "working-directory", "uses", "with"),
    *("continue-on-error", "timeout-minutes"),
}
_STRATEGY = {"matrix", "fail-fast", "max-parallel"}
_VERSION = re.compile(r"3\.(\d+)")


class Unsound(Exception):  # noqa: N818 (named after what is wrong)
    """A workflow that the rehearsal cannot run as it is."""


def workflows(root: Path) -> dict[str, Workflow]:
    """Return every workflow of a repository by the stem of its file. Raises Unsound."""
    by_stem = {}
    for path in sorted((root / WORKFLOWS).iterdir()):
        if path.suffix in {".yml", ".yaml"}:
            by_stem[path.stem] = read(path)
            _require_all_keys_known(by_stem[path.stem])
    if not by_stem:
        raise Unsound(f"there is no workflow in {WORKFLOWS}")
    return by_stem


def _require_all_keys_known(workflow: Workflow) -> None:
    tree = workflow.tree
    _require_known_keys(tree, _TOP, workflow.name)
    for job_name, job in tree["jobs"].items():
        where = f"{workflow.name}, job {job_name}"
        _require_known_keys(job, _JOB, where)
        _require_known_keys(job.get("strategy", {}), _STRATEGY, f"{where}, strategy")
        for step in job["steps"]:
            _require_known_keys(step, _STEP, f"{where}, a step")


def _require_known_keys(tree: dict[str, Any], keys: set[str], where: str) -> None:
    if unknown := sorted(set(tree) - keys):
        raise Unsound(
            f"{where}: the rehearsal does not know the key {unknown[0]!r}: "
            "add it to tools/rehearse, or do not use it"
        )


def needs(job: dict[str, Any]) -> list[str]:
    """Return the names of the jobs that a job waits for."""
    jobs = job.get("needs", [])
    return [jobs] if isinstance(jobs, str) else list(jobs)


def in_order(workflow: Workflow) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the jobs, each after those that it needs."""
    waiting = dict(workflow.jobs)
    yielded: set[str] = set()
    while waiting:
        ready = [name for name, job in waiting.items() if set(needs(job)) <= yielded]
        if not ready:
            raise Unsound(
                f"{workflow.name}: {', '.join(waiting)} wait for each other or for a missing job"
            )
        for name in ready:
            yielded.add(name)
            yield name, waiting.pop(name)


def matrix(job: dict[str, Any]) -> list[dict[str, str]]:
    """Return the combinations of a matrix; without a matrix, a single empty one."""
    axes = job.get("strategy", {}).get("matrix", {})
    if not isinstance(axes, dict) or {"include", "exclude"} & set(axes):
        raise Unsound("the rehearsal does not know a matrix by expression, include or exclude")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def granted(workflow: Workflow, job: dict[str, Any], *, fork: bool) -> frozenset[str]:
    """Return the rights of a job's token as `scope:access`; in a fork, none can write."""
    rights_of_job = rights(job) if "permissions" in job else rights(workflow.tree)
    if set(rights_of_job) == {"*"}:
        raise Unsound(f"{workflow.name}: permissions {rights_of_job['*']!r}: name each scope")
    scopes = {"metadata:read"}
    for scope, access in rights_of_job.items():
        scope_name = scope.replace("-", "_")
        if access in {"read", "write"}:
            scopes.add(f"{scope_name}:read")
        if access == "write" and not fork:
            scopes.add(f"{scope_name}:write")
    return frozenset(scopes)


def unused(workflow: Workflow, job: dict[str, Any], used: set[str]) -> list[str]:
    """Return the permissions of a job that were never used, as `scope: access`."""
    rights_of_job = rights(job) if "permissions" in job else rights(workflow.tree)
    needed = {scope: access for scope, access in rights_of_job.items() if access != "none"}
    return [
        f"{scope}: {access}"
        for scope, access in sorted(needed.items())
        if f"{scope.replace('-', '_')}:{access}" not in used
    ]


def versions(root: Path, workflows: dict[str, Workflow]) -> Iterator[str]:
    """Yield a message for each wrong Python version in workflows and actions.

    A version must be a quoted text, within `requires-python`. A matrix must contain each version in
    the package's classifiers. All jobs without a matrix must name the same version, which must be
    in the matrix, so that hosted jobs run on what was tested.
    """
    # A board that `geneb-ci init` wrote is not a package: it lists no versions and tests none.
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project")
    promised = [
        line.rpartition(" ")[2]
        for line in (project or {"classifiers": ()})["classifiers"]
        if _VERSION.fullmatch(line.rpartition(" ")[2])
    ]
    places: dict[str, list[str]] = {}
    tested: set[str] = set()
    for file, tree in _trees(root, workflows):
        for version in _python_versions(tree):
            if not isinstance(version, str):
                yield f"{file}: python-version {version!r} has no quotes, so 3.10 would mean 3.1"
            elif "${{" not in version:
                places.setdefault(version, []).append(file)
        for job in (tree.get("jobs") or {}).values():
            for combination in matrix(job):
                tested |= {str(v) for k, v in combination.items() if k.startswith("python")}
    for version in sorted({*places, *tested} - set(promised)) if project else ():
        where = ", ".join(sorted({*places.get(version, ["a matrix"])}))
        promised_text = ", ".join(promised)
        yield f"{where}: Python {version} is not one that pyproject.toml lists ({promised_text})"
    if missing := sorted(set(promised) - tested):
        yield f"no matrix tests Python {', '.join(missing)}, which pyproject.toml lists"
    if len(places) > 1:
        listed = "; ".join(
            f"{v} in {', '.join(sorted(set(at)))}" for v, at in sorted(places.items())
        )
        yield f"hosted jobs use different versions of Python: {listed}: use one"


def _trees(root: Path, workflows: dict[str, Workflow]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the parsed YAML of each workflow and action."""
    for workflow in workflows.values():
        yield workflow.name, yaml.safe_load(workflow.text)
    for path in sorted((root / ".github/actions").glob("*/action.yml")):
        yield f"{path.parent.name}/{path.name}", yaml.safe_load(path.read_text(encoding="utf-8"))


def _python_versions(tree: Any) -> Iterator[Any]:
    """Yield every `python-version` in a tree."""
    if isinstance(tree, dict):
        for member, inner in tree.items():
            if member == "python-version":
                yield inner
            else:
                yield from _python_versions(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from _python_versions(inner)
