"""Features of a board: verdicts, publishing, audits and merging, each with its state.

The secrets, variables, environments and runners that jobs use are read from the workflow files of
main. A workflow that a maintainer disabled counts as not set up.
"""

import enum
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from geneb_ci.github.api import VERDICT_APP, VERDICT_BOT
from geneb_ci.github.audit_ready import (
    APP,
    APP_KEY,
    ENVIRONMENT,
    FLAVOR,
    PROBED,
    RUNNER,
    VERDICT_ENVIRONMENT,
    VERDICT_KEY,
    WRITER,
)
from geneb_ci.github.errors import UnexpectedReply, UnreadableSetting
from geneb_ci.github.report import AUDIT_LABEL
from geneb_ci.github.settings.check import AUDIT_RUNNER, DISABLED, has_published, label_names
from geneb_ci.github.settings.check_files import WORKFLOWS, audit_key
from geneb_ci.github.settings.client import ADMINISTRATION, SettingsClient, variable_path
from geneb_ci.github.settings.required import SETTINGS
from geneb_ci.render.plain import visible

HUB_TOKEN, RESOURCE_VARIABLE = "HF_JOBS_TOKEN", "HF_OIDC_RESOURCE"
NEW_APP_COMMAND = "geneb-ci init --app"
WRITERS_MIN = 2
_READ_SETTING = re.compile(r"\b(secrets|vars)\.([A-Za-z_]\w*)")
_JOB = re.compile(r"^  ([\w-]+):[ \t]*$", re.MULTILINE)
_ENVIRONMENT = re.compile(r"^    environment:[ \t]+(?:\{name: )?([\w-]+)", re.MULTILINE)
_RUNS_ON = re.compile(r"^    runs-on:[ \t]+(\S[^#\n]*)", re.MULTILINE)


class FeatureState(enum.StrEnum):
    """State of a feature of a board."""

    WORKS = "works"
    NOT_SET_UP = "not set up"
    BROKEN = "broken, because"
    NOT_TRIED = "not tried"
    UNSEEN = "not seen"


class Feature(NamedTuple):
    """A feature of a board with its state; if it does not work, also the reason and a fix."""

    name: str
    state: FeatureState
    reason: str = ""
    fix: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines of a report about the feature."""
        text = f"{self.name}: {self.state}"
        if self.reason:
            text += f" {self.reason}" if self.state is FeatureState.BROKEN else f": {self.reason}"
        return [text, f"  fix: {self.fix}"] if self.fix else [text]


class JobSettings(NamedTuple):
    """Settings of the repository that a job reads according to its workflow file."""

    workflow: str
    job: str
    environment: str
    secrets: frozenset[str]
    variables: frozenset[str]
    runs_on: str


def settings_of_jobs(workflow: str, workflow_text: str) -> list[JobSettings]:
    """Return the settings that each job of a workflow file reads.

    What the file reads above `jobs:` counts for every job.
    """
    head, _, body = workflow_text.partition("\njobs:\n")
    shared_names = set(_READ_SETTING.findall(head))
    starts = [*_JOB.finditer(body)]
    ends = [*(match.start() for match in starts[1:]), len(body)]
    job_settings = []
    for match, end in zip(starts, ends, strict=True):
        job_text = body[match.start() : end]
        setting_names = shared_names | set(_READ_SETTING.findall(job_text))
        environment, runner = _ENVIRONMENT.search(job_text), _RUNS_ON.search(job_text)
        job_settings.append(
            JobSettings(
                workflow,
                match[1],
                environment[1] if environment else "",
                frozenset(name for kind, name in setting_names if kind == "secrets"),
                frozenset(name for kind, name in setting_names if kind == "vars"),
                runner[1].strip() if runner else "",
            )
        )
    return job_settings


class _FeatureFault(Exception):  # noqa: N818 (what a feature lacks, not an error)
    """A feature does not work or is not set up, with the reason and a fix."""

    def __init__(self, reason: str, fix: str, *, state: FeatureState = FeatureState.BROKEN) -> None:
        super().__init__(reason)
        self.because, self.fix, self.state = reason, fix, state


class _Board:
    """Settings that the jobs of main read, and the settings that exist."""

    def __init__(self, client: SettingsClient) -> None:
        self.client = client

    def jobs(self, workflow: str) -> list[JobSettings]:
        """Return what the jobs of a workflow read. Raises _FeatureFault if it does not run."""
        path = f"{WORKFLOWS}/{workflow}.yml"
        actions = self.client.get("/actions/permissions", ADMINISTRATION) or {}
        if actions.get("enabled") is False:
            raise _FeatureFault("Actions are off", "allow Actions at Settings > Actions > General")
        raw = self.client.content(path)
        if raw is None:
            raise _FeatureFault(
                f"main has no {path}",
                "run geneb-ci init, which writes this file, and commit the file",
                state=FeatureState.NOT_SET_UP,
            )
        workflows_reply = self.client.get("/actions/workflows", "Actions: read", per_page=100) or {}
        states = {item["path"]: item["state"] for item in workflows_reply.get("workflows", ())}
        state = states.get(path, "active")
        if state == DISABLED:
            fix = f"to enable the workflow again: gh workflow enable {workflow}.yml"
            raise _FeatureFault(f"a maintainer disabled {path}", fix, state=FeatureState.NOT_SET_UP)
        if state != "active":
            raise _FeatureFault(
                f"GitHub disabled {path} (state: {state})", f"gh workflow enable {workflow}.yml"
            )
        return settings_of_jobs(workflow, raw.decode("utf-8", "replace"))

    def has_secret(self, secret_name: str, environment: str) -> bool:
        """Whether a secret exists that a job of this environment can read."""
        paths = [f"/environments/{environment}/secrets/{secret_name}"] if environment else []
        needs = {True: "Environments: read", False: "Secrets: read"}
        return any(
            self.client.get(path, needs[path.startswith("/env")]) is not None
            for path in (*paths, f"/actions/secrets/{secret_name}")
        )

    def variable(self, name: str, environment: str = "") -> str:
        """Return the value of a variable as a job of this environment reads it; "" if not set."""
        value = self.client.value(variable_path(name, environment)) if environment else ""
        return value or self.client.value(variable_path(name))

    def require_environments(self, jobs: Sequence[JobSettings]) -> None:
        """Raise _FeatureFault if a job's environment does not exist."""
        for job in jobs:
            path = f"/environments/{job.environment}"
            if job.environment and self.client.get(path, "Actions: read") is None:
                reason = f"there is no environment {job.environment}, which {job.workflow} uses"
                raise _FeatureFault(
                    reason,
                    "run geneb-ci init --apply, which makes the environment and admits only main",
                )

    def require_secrets(self, jobs: Sequence[JobSettings], optional: frozenset[str]) -> None:
        """Raise _FeatureFault if a secret that a job reads is not stored."""
        for job in jobs:
            for secret in sorted(job.secrets - optional):
                if not self.has_secret(secret, job.environment):
                    fix = f"gh secret set {secret}" + (
                        f" --env {job.environment}" if job.environment else ""
                    )
                    of_environment = (
                        f" of the environment {job.environment}" if job.environment else ""
                    )
                    raise _FeatureFault(f"the secret {secret}{of_environment} is not stored", fix)


def _verdicts(board: _Board) -> str:
    for workflow in ("verdict", "pr-validate"):
        jobs = board.jobs(workflow)
        board.require_environments(jobs)
        board.require_secrets(jobs, frozenset({VERDICT_KEY}))
    try:
        app = board.variable(VERDICT_APP)
    except UnreadableSetting:
        return ""
    if not app:
        return f"all who can write can set the status; to allow only an App: {NEW_APP_COMMAND}"
    if not board.has_secret(VERDICT_KEY, VERDICT_ENVIRONMENT):
        reason = f"the variable {VERDICT_APP} names an App, but its key {VERDICT_KEY} is not stored"
        raise _FeatureFault(reason, f"gh variable delete {VERDICT_APP}; geneb-ci init --apply")
    if not board.variable(VERDICT_BOT):
        raise _FeatureFault(
            f"the variable {VERDICT_BOT} is not set, expected the account id of the App {app}",
            f"with SLUG from the App's page github.com/apps/SLUG: gh variable set {VERDICT_BOT} "
            "--body \"$(gh api 'users/SLUG[bot]' -q .id)\"",
        )
    return f"only the App {app} can set the status"


def _publishing(board: _Board) -> str:
    jobs = board.jobs("publish")
    board.require_environments(jobs)
    board.require_secrets(jobs, frozenset())
    for job in jobs:
        if RESOURCE_VARIABLE in job.variables and not board.variable(
            RESOURCE_VARIABLE, job.environment
        ):
            of_environment = f" of the environment {job.environment}" if job.environment else ""
            reason = f"the variable {RESOURCE_VARIABLE}{of_environment} names no Space"
            raise _FeatureFault(reason, "geneb-ci init --apply --space OWNER/NAME")
    (publisher,) = (setting for setting in SETTINGS if setting.check == "trusted_publisher")
    if not has_published(board.client, publisher):
        reason = (
            "no run of publish.yml has succeeded; every run fails until the Space trusts this "
            "workflow"
        )
        fix = f"{publisher.by_hand}; then: gh workflow run publish.yml"
        raise _FeatureFault(reason, fix, state=FeatureState.NOT_SET_UP)
    return ""


def _audits(board: _Board) -> str:
    jobs = board.jobs("audit")
    board.require_environments(jobs)
    if AUDIT_LABEL not in label_names(board.client):
        raise _FeatureFault(
            f"the label {AUDIT_LABEL} does not exist", f"gh label create {AUDIT_LABEL}"
        )
    flavor, runner = board.variable(FLAVOR), board.variable(RUNNER)
    if not flavor and not runner:
        reason = f"neither {FLAVOR} nor {RUNNER} is set, so audits are refused by a comment"
        fix = f"gh variable set {FLAVOR} --body l4x1, or {RUNNER} for a machine of your own"
        raise _FeatureFault(reason, fix, state=FeatureState.NOT_SET_UP)
    optional = {WRITER, APP_KEY} if flavor else {WRITER, APP_KEY, HUB_TOKEN}
    if board.variable(APP, ENVIRONMENT) and not board.has_secret(APP_KEY, ENVIRONMENT):
        reason = f"the variable {APP} names an App, but its key {APP_KEY} is not stored"
        raise _FeatureFault(
            reason, f"gh variable delete {APP} --env {ENVIRONMENT}; geneb-ci init --app"
        )
    board.require_secrets(jobs, frozenset(optional))
    (setting,) = (setting for setting in SETTINGS if setting.check == "audit_key")
    if problem := audit_key(board.client, setting):
        raise _FeatureFault(problem, setting.by_hand)
    if flavor and not board.variable(PROBED):
        raise _FeatureFault(
            f"audits run in a Job of the Hub, because {FLAVOR} is set, but it is unknown whether "
            "the sandbox works in such a Job",
            f"geneb-ci doctor --github {board.client.wire.repository} --hub-job",
            state=FeatureState.NOT_TRIED,
        )
    notes = []
    is_ours = any(AUDIT_RUNNER in job.runs_on for job in jobs)
    if not flavor and is_ours and not _has_runner(board):
        notes.append("no runner is registered now: register one for each audit")
    if app := board.variable(APP, ENVIRONMENT):
        notes.append(
            f"the first audit will show whether the App {app} is installed in this repository"
        )
    elif not board.has_secret(WRITER, ENVIRONMENT):
        notes.append("records are attached to comments; `geneb-ci audit propose` proposes them")
    return "; ".join(notes)


def _has_runner(board: _Board) -> bool:
    runners = board.client.settings("/actions/runners").get("runners", ())
    return any(AUDIT_RUNNER in {label["name"] for label in runner["labels"]} for runner in runners)


def _merging(board: _Board) -> str:
    if board.client.is_alone:
        return "by one maintainer, who merges his own pull requests, which is weaker"
    people = board.client.entries("/collaborators", "Metadata: read")
    writers = [person for person in people if (person.get("permissions") or {}).get("push")]
    if len(writers) < WRITERS_MIN:
        reason = "no account may write to the repository"
        if writers:
            writer = visible(str(writers[0].get("login", "")))
            reason = f"only {writer} may write, and nobody can approve his own pull request"
        fix = (
            "invite a second maintainer; to go on alone, which is weaker, run geneb-ci init "
            "--maintainers @ME --alone --force, commit the changed files, and run geneb-ci init "
            "--apply"
        )
        raise _FeatureFault(reason, fix)
    return ""


_FEATURES: dict[str, Callable[[_Board], str]] = {
    "verdicts": _verdicts,
    "merging": _merging,
    "publishing": _publishing,
    "audits": _audits,
}


def features_of(client: SettingsClient) -> Iterator[Feature]:
    """Yield the features of the board. Raises ForgeProblem if GitHub fails."""
    board = _Board(client)
    for feature, check in _FEATURES.items():
        try:
            yield Feature(feature, FeatureState.WORKS, check(board))
        except _FeatureFault as fault:
            yield Feature(feature, fault.state, visible(fault.because), fault.fix)
        except (UnreadableSetting, UnexpectedReply) as error:
            yield Feature(feature, FeatureState.UNSEEN, visible(error.message), error.fix)
