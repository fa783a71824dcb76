"""What no workflow may do, one function a row of the threat table: each gives what it found.

The rows are those of the threat table in docs/maintainer/github.md.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.house.workflow_file import Workflow, inputs, rights, runs, steps

RUNNERS = {"ubuntu-24.04"}
ONE_JOB = ["self-hosted", "geneb-audit"]
"""Labels of a runner that takes one job and is gone."""
_RERUNS = re.compile(r"tools/audit-job|geneb_ci audit (job|run)\b")
_PIN = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
_PIN_WITH_VERSION = re.compile(r"uses: +(\S+@[0-9a-f]{40}) # v\d+\.\d+\.\d+$")
_FETCHES = re.compile(r"\bgit +(fetch|checkout|clone|pull|worktree|switch)\b|\bgh +(pr|run|repo)\b")
_BUILDS = re.compile(r"\bpip3? +install\b.*(?:\s-e\b|--editable|\s\.(?:\s|/|\[|$))|\bsetup\.py\b")
_PACKAGES = re.compile(r"\b(pip3?|pipx|uv|npm|npx|curl|wget)\b.*")
_LOOSE_PYTHON = re.compile(r"(?:^|[;&|(])[ \t]*python3? (?!-I )", re.MULTILINE)
_COMMANDS = re.compile(r"::[\w-]+.*::|GITHUB_ENV|GITHUB_PATH|set-output|add-path")
_COMMENT = re.compile(r"github\.event\.(comment|issue\.(?!number\b)|sender)|toJSON\(github")
_SEEN = ("env", "name", "steps", "outputs", "environment", "concurrency", "with")
"""Keys of a job whose values reach its steps or are shown; a condition reaches nothing."""
_SITE = "actions/upload-pages-artifact@"
_OF_COMMENT = ("issue.number", "issue.pull_request", "comment.body")
_FORK = "github.event.repository.fork"
_OF_OWN = {_FORK, *(f"github.event.workflow_run.{name}" for name in ("conclusion", "event"))}
_OTHERS = "${{ github.event_name == 'issue_comment' && !startsWith(github.event.comment.body, '/')"
_NUMBER = "${{ needs.open.outputs.number }}"
_SERIAL = {"cancel-in-progress": "false", "queue": "max"}

Rule = Callable[[Workflow], Iterator[str]]


def row_01_pwn_request(workflow: Workflow) -> Iterator[str]:
    """No privileged job runs code of a pull request."""
    if "pull_request_target" in workflow.events:
        yield "starts on an event that strangers send, with rights"
    if "issue_comment" in workflow.events and any(
        _COMMENT.search(str(job.get(key))) for job in workflow.jobs.values() for key in _SEEN
    ):
        yield "hands on what a stranger's comment says"
    if not workflow.is_privileged:
        return
    for name, job in workflow.jobs.items():
        for step in steps(job, "actions/checkout"):
            if arguments := set(inputs(step)) & {"ref", "repository", "allow-unsafe-pr-checkout"}:
                yield f"{name}: checks out something else than main: {sorted(arguments)}"
        if any(step["uses"].startswith(("./", "$/")) for step in steps(job) if "uses" in step):
            yield f"{name}: runs an action from the tree"
        if _FETCHES.search(runs(job)) and not is_bare(job):
            yield f"{name}: fetches code"
        if _BUILDS.search(runs(job)):
            yield f"{name}: builds a tree, which runs its code"


def row_02_artifact_or_cache(workflow: Workflow) -> Iterator[str]:
    """Nothing that another run wrote is read: no cache, and no artifact but a site for Pages.

    The action that publishes it takes that of its own run alone, and starts none of its code.
    """
    for name, job in workflow.jobs.items():
        for step in steps(job):
            if "cache" in step.get("uses", "") or "cache" in inputs(step):
                yield f"{name}: uses a cache"
            is_site = step.get("uses", "").startswith(_SITE) and "write" not in rights(job).values()
            if "artifact" in step.get("uses", "") and not is_site:
                yield f"{name}: hands over an artifact, or takes one"


def row_03_injection(workflow: Workflow) -> Iterator[str]:
    """Values come by `env`; no expression stands in a script, and no script writes commands."""
    for name, job in workflow.jobs.items():
        for step in steps(job):
            for text in (
                step.get("run", ""),
                step.get("shell", ""),
                inputs(step).get("script", ""),
            ):
                if "${{" in text:
                    yield f"{name}: an expression in a script"
                if _COMMANDS.search(text):
                    yield f"{name}: a script that steers the runner"
            if "github-script" in step.get("uses", ""):
                yield f"{name}: a script in an action's input"


def row_04_forged_check(workflow: Workflow) -> Iterator[str]:
    """No verdict of another run is trusted: who publishes has what was checked from zero."""
    for name, job in workflow.jobs.items():
        if {"checks", "actions"} & set(rights(job)):
            yield f"{name}: can read or write the results of other runs"
        if "id-token" in rights(job) and not deploys_pages(job):
            first = workflow.jobs.get(job.get("needs", ""), {})
            arguments = {"GENERATION": "${{ needs.build.outputs.generation }}"}
            taken = [
                step for step in steps(job) if arguments.items() <= step.get("env", {}).items()
            ]
            pushed = [line for line in runs(job).splitlines() if "geneb_ci publish" in line]
            held = all(line.endswith('publish --expect "$GENERATION"') for line in pushed)
            if "geneb_ci build --at" not in runs(first) or not (taken and pushed and held):
                yield f"{name}: publishes what no job of its own run has built"


def deploys_pages(job: dict[str, Any]) -> bool:
    """Whether a job publishes the site of its own run, and does nothing else."""
    done = [step.get("uses", "").partition("@")[0] for step in steps(job)]
    return set(rights(job)) == {"pages", "id-token"} and done == ["actions/deploy-pages"]


def row_06_moved_head(workflow: Workflow) -> Iterator[str]:
    """A doorbell hands over one commit id, a comment one number; who writes sees the verdict."""
    rung_by = _on(workflow).get("workflow_run", {}).get("workflows", [])
    if rung_by == ["verdict"]:  # a file of main, whose runs no stranger writes
        taken = set(re.findall(r"github\.event\.[\w.]+", workflow.text))
        if taken != _OF_OWN:
            yield f"takes {sorted(taken)} from the event"
        return
    if not rung_by:
        return
    taken = set(re.findall(r"github\.event\.[\w.]+", workflow.text)) - {_FORK}
    doorbell = {f"github.event.workflow_run.{name}" for name in ("event", "head_sha")}
    comment = {f"github.event.{name}" for name in _OF_COMMENT}
    if taken != doorbell | (comment if "issue_comment" in workflow.events else set()):
        yield f"takes {sorted(taken)} from the event"
    for name, job in workflow.jobs.items():
        if "write" in rights(job).values():
            keys = {key for step in steps(job) for key in step.get("env", {})}
            if keys != {"GH_TOKEN", "VERDICT", "VERDICT_TOKEN"} or "geneb_ci report" not in runs(
                job
            ):
                yield f"{name}: writes, and sees {sorted(keys)}"


def _on(workflow: Workflow) -> dict[str, Any]:
    """Return what starts a workflow, with its filters."""
    events = workflow.tree.get("on", {})
    return events if isinstance(events, dict) else {}


def row_07_self_hosted(workflow: Workflow) -> Iterator[str]:
    """Every job runs on a hosted machine, by a name that no expression changes.

    Only a job without token, secret and action may run on a machine of ours, and only such a job
    may run the contributor's code.
    """
    if not workflow.is_action:
        if _names_a_token(workflow.tree.get("env", "")):
            yield "a token in every job"
        for name, job in workflow.jobs.items():
            ours = job.get("runs-on") == ONE_JOB and is_bare(job)
            if str(job.get("runs-on")) not in RUNNERS and not ours:
                yield f"{name}: runs on {job.get('runs-on')}"
            if _RERUNS.search(runs(job)) and not is_bare(job):
                yield f"{name}: runs the contributor's code beside a token"


def is_bare(job: dict[str, Any]) -> bool:
    """Whether nothing in a job has a token: no right, no secret, no action, no environment."""
    return rights(job) == {} and not (steps(job) and _names_a_token(job)) and not _actions(job)


def _names_a_token(part: Any) -> bool:
    return any(word in str(part) for word in ("secrets", "github.token", "github['token']"))


def _actions(job: dict[str, Any]) -> bool:
    return "environment" in job or any("uses" in step for step in steps(job))


def row_24_hijack(workflow: Workflow) -> Iterator[str]:
    """Actions are pinned to commits that name their version; packages come from a hashed lock."""
    named = {m for line in workflow.text.splitlines() for m in _PIN_WITH_VERSION.findall(line)}
    for name, job in workflow.jobs.items():
        for uses in [step["uses"] for step in steps(job) if "uses" in step]:
            if not uses.startswith("$/") and (not _PIN.fullmatch(uses) or uses not in named):
                yield f"{name}: {uses} is no commit with its version beside it"
        if "uses" in job or "container" in job or "services" in job:
            yield f"{name}: foreign code by another door"
        for line in runs(job).splitlines():
            if _PACKAGES.search(line):
                yield f"{name}: fetches packages: {line.strip()}"


def row_25_lost_update(workflow: Workflow) -> Iterator[str]:
    """What writes waits its turn, and is never cancelled half-way."""
    if not any("write" in rights(job).values() for job in workflow.jobs.values()):
        return
    own = workflow.name.removesuffix(".yml")
    apart = f"{own}{_OTHERS} && format('-{{0}}', github.run_id) || '' }}}}"
    whole = [{"group": group, **_SERIAL} for group in (own, apart)]
    if workflow.tree.get("concurrency") in whole:
        return
    of_jobs = [{"group": group, **_SERIAL} for group in (f"{own}-open", f"{own}-{_NUMBER}")]
    for name, job in workflow.jobs.items():
        if "write" in rights(job).values() and job.get("concurrency") not in of_jobs:
            yield f"{name}: writes without waiting for its turn: {job.get('concurrency')}"


def row_26_token(workflow: Workflow) -> Iterator[str]:
    """Nothing by default, no secret without an environment, nothing left behind by a checkout."""
    if not workflow.is_action and workflow.tree.get("permissions") != {}:
        yield "does not begin with no permission"
    for name, job in workflow.jobs.items():
        if not workflow.is_action and ("permissions" not in job or "timeout-minutes" not in job):
            yield f"{name}: has no permissions or no end"
        if "id-token" in rights(job) and "environment" not in job:
            yield f"{name}: has an identity outside an environment"
        if "secrets" in str(job) and "environment" not in job:
            yield f"{name}: a secret outside an environment"
        for step in steps(job, "actions/checkout"):
            if inputs(step).get("persist-credentials") != "false":
                yield f"{name}: a checkout that leaves its token behind"
        if _LOOSE_PYTHON.search(runs(job)):
            yield f"{name}: a Python that imports from where it stands"


RULES: tuple[Rule, ...] = (
    *(row_01_pwn_request, row_02_artifact_or_cache, row_03_injection, row_04_forged_check),
    *(row_06_moved_head, row_07_self_hosted, row_24_hijack, row_25_lost_update, row_26_token),
)
