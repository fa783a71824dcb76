"""The state that all jobs of a rehearsal share: repository, imitated GitHub and Hub, a runner."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from geneb_ci.github.settings.required import SETTINGS
from tests.github.server import REPOSITORY
from tests.github.serving import serving
from tests.house.workflow_file import Workflow
from tests.publish.hub import Hub
from tools.rehearse import workflow as reading
from tools.rehearse.environments import Environments
from tools.rehearse.expressions import (
    ExpressionError,
    StrictContext,
    condition,
    status_functions,
    substitute,
)
from tools.rehearse.forge import GitForge, git, git_raw, identity
from tools.rehearse.job import Job, Outcome, Step
from tools.rehearse.triggers import Event, starts
from tools.tutorials import snapshot

SPACE = "geneb/board"
RESOURCE = f"spaces/{SPACE}"
TRUSTED = {
    "repository": REPOSITORY,
    "ref": "refs/heads/main",
    "workflow": "publish.yml",
    "environment": "hf-publish",
}
"""The trusted publisher that a maintainer sets up on the Hub, by docs/maintainer/setup.md."""
AUDIT_VARIABLES = (
    *("AUDIT_FLAVOR", "AUDIT_RUNNER", "AUDIT_IMAGE", "AUDIT_TIMEOUT", "AUDIT_COST"),
    *("AUDIT_PYTHON", "AUDIT_OPTIONS", "AUDIT_APP"),
    *("VERDICT_APP", "VERDICT_BOT"),
)
"""Variables of the repository that a maintainer may set for audits."""
WITHOUT_TORCH = (
    *("tests/submission/test_engines_agree.py", "tests/submission/test_kind.py"),
    *("tests/check/test_edges.py", "tests/check/test_layouts.py"),
)
"""The tests that the stand-in for .ci/run runs on each Python: quick ones without torch."""


def environment_of(job: dict[str, Any]) -> str:
    """Return the name of a job's environment; "" if it has none."""
    environment = job.get("environment", "")
    return str(environment["name"] if isinstance(environment, dict) else environment)


@dataclass
class World:
    """The state of a rehearsal."""

    root: Path
    folder: Path
    forge: GitForge
    hub: Hub
    environments: Environments
    chosen: Callable[[str], bool]
    """Whether to run a job, given by a name such as publish.push."""
    say: Callable[[Outcome], None]
    borrow: bool = False
    """Whether all jobs use this program's packages instead of installing their own."""
    machine_variables: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(
        default_factory=lambda: dict.fromkeys(AUDIT_VARIABLES, "") | {"HF_OIDC_RESOURCE": RESOURCE}
    )
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    """Secrets by environment; only jobs in the environment see them."""
    outcomes: list[Outcome] = field(default_factory=list)
    used: dict[str, set[str]] = field(default_factory=dict)
    """Permissions that the runs of a job have used, by the job's name."""
    attested: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each attested file, by the file's name."""
    uploaded: dict[str, bytes] = field(default_factory=dict)
    """The site that a job of this run has uploaded, for another job to publish."""
    site: dict[str, bytes] = field(default_factory=dict)
    """The files that GitHub Pages serves."""

    @property
    def runner(self) -> Path:
        """The folder in which every job runs, as on a hosted machine."""
        return self.folder / "runner"

    @staticmethod
    def encoded(event: Event) -> str:
        """Return the payload of an event, with its inputs, as JSON."""
        return json.dumps(event.payload | ({"inputs": event.inputs} if event.inputs else {}))

    def new_identity_token(self, job: Job) -> str:
        """Return a new token with which a job can request its identity, and store its claims."""
        token = f"identity_{secrets.token_hex(18)}"
        self.forge.identities[token] = {
            "repository": REPOSITORY,
            "ref": job.event.ref,
            "workflow": job.workflow.name,
            "environment": environment_of(job.tree),
        }
        self.forge.grants[token] = frozenset({token})
        return token

    def dispatch(self, event: Event, only: str = "") -> dict[str, dict[str, Outcome]]:
        """Run each workflow that an event starts, or only one; return the jobs' outcomes."""
        outcomes = {}
        for workflow_name, workflow in reading.workflows(self._tree_of(event)).items():
            if starts(workflow, event) and only in {"", workflow_name}:
                outcomes[workflow_name] = self._run_workflow(workflow_name, workflow, event)
        return outcomes

    def _tree_of(self, event: Event) -> Path:
        """Check out the workflows of the event's commit, which GitHub runs; return the folder."""
        folder = self.folder / "workflows" / event.sha
        if not folder.exists():
            folder.mkdir(parents=True)
            raw = git_raw(self.forge.repository, "archive", event.sha, ".github")
            subprocess.run(["tar", "-x", "-C", folder], input=raw, check=True)
        return folder

    def _run_workflow(
        self, workflow_name: str, workflow: Workflow, event: Event
    ) -> dict[str, Outcome]:
        """Run the jobs of a workflow in order, passing on their outputs."""
        chosen = {job for job in workflow.jobs if self.chosen(f"{workflow_name}.{job}")}
        for job in reversed([job for job, _ in reading.in_order(workflow)]):
            if job in chosen:
                chosen |= set(reading.needs(workflow.jobs[job]))
        outcomes: dict[str, Outcome] = {}
        for job, tree in reading.in_order(workflow):
            if job in chosen:
                outcomes[job] = self._run_job(workflow_name, workflow, job, tree, event, outcomes)
        return outcomes

    def _run_job(
        self,
        name: str,
        workflow: Workflow,
        job: str,
        tree: dict[str, Any],
        event: Event,
        outcomes: dict[str, Outcome],
    ) -> Outcome:
        granted = reading.granted(workflow, tree, fork=event.fork)
        needed = {needed_job: outcomes[needed_job] for needed_job in reading.needs(tree)}
        dispatch = workflow.tree["on"]
        dispatch = dispatch.get("workflow_dispatch") if isinstance(dispatch, dict) else None
        declared = (dispatch or {}).get("inputs", {}) if isinstance(dispatch, dict) else {}
        contexts = {
            "inputs": StrictContext(dict.fromkeys(declared) | event.inputs),
            "vars": StrictContext(self.variables),
            "secrets": StrictContext(self.secrets.get(environment_of(tree), {})),
            "needs": StrictContext(
                {
                    needed_job: {"outputs": outcome.outputs, "result": outcome.conclusion}
                    for needed_job, outcome in needed.items()
                }
            ),
        }
        needed_succeeded = all(outcome.conclusion == "success" for outcome in needed.values())
        outcome_of_all = Outcome(f"{name}.{job}", "skipped")
        for combination in reading.matrix(tree):
            contexts["matrix"] = StrictContext(combination)
            run = Job(self, workflow, job, tree, event, contexts, granted)
            suffix = f" ({', '.join(combination.values())})" if combination else ""
            run.outcome.job += suffix
            run.context |= status_functions(success=needed_succeeded)
            try:
                started = condition(tree.get("if"), run.context, success=needed_succeeded)
                for text in (
                    tree.get("name", ""),
                    *_labels(tree["runs-on"]),
                    *dict(workflow.tree.get("concurrency", {})).values(),
                ):
                    substitute(text, run.context)
            except ExpressionError as error:
                run.outcome.conclusion = "failure"
                run.outcome.steps.append(Step("if", "failure", log=str(error)))
                started = False
            else:
                run.outcome.conclusion = "success" if started else "skipped"
            last = run.run() if started else run.outcome
            self.outcomes.append(last)
            self.say(last)
            # A job with a matrix fails if one of its combinations fails.
            if outcome_of_all.conclusion != "failure":
                last.outputs, last.intended = last.outputs or outcome_of_all.outputs, last.intended
                outcome_of_all = last
        return outcome_of_all


def _labels(label: str | list[str]) -> list[str]:
    """Return the labels of the runner that a job requires."""
    return [label] if isinstance(label, str) else label


@contextmanager
def world(
    root: Path,
    folder: Path,
    chosen: Callable[[str], bool],
    say: Callable[[Outcome], None],
    *,
    borrow: bool,
) -> Iterator[World]:
    """Set up GitHub with the files of `root` as main, and a Hub with an empty Space."""
    repository = snapshot(folder / "board.git", root)
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    forge = GitForge(folder)
    hub = Hub()
    try:
        hub.create(RESOURCE)
        hub.shelf.trusted = {identity(TRUSTED, hub.endpoint): RESOURCE}
        with serving(forge):
            forge.learn(git(repository, "rev-parse", "refs/heads/main"))
            forge.known_labels = {  # those that `geneb-ci init --apply` creates
                label for setting in SETTINGS for label in setting.required.get("labels", ())
            }
            rehearsed = World(
                root,
                folder,
                forge,
                hub,
                Environments(folder / "environments"),
                chosen,
                say,
                borrow,
            )
            rehearsed.machine_variables = _machine_variables(hub)
            yield rehearsed
    finally:
        hub.close()


def _machine_variables(hub: Hub) -> dict[str, str]:
    """Return the variables that the machine gives each job: the Hub's address, and the caches."""
    home = Path.home()
    cache = os.environ.get("XDG_CACHE_HOME") or str(home / ".cache")
    return {
        "HF_ENDPOINT": hub.endpoint,
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR") or f"{cache}/pip",
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or f"{cache}/uv",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # The hosted jobs themselves use pip.
        "REHEARSAL_UV": find_uv_bin(),
        "REHEARSAL_TESTS": " ".join(WITHOUT_TORCH),
    } | _index()


def _index() -> dict[str, str]:
    """Return the variable of the package index in this machine's settings; {} if there is none."""
    process = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {"PIP_INDEX_URL": process.stdout.strip()} if process.returncode == 0 else {}
