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
    AUDIT_APP,
    AUDIT_APP_KEY,
    AUDIT_ENVIRONMENT,
    FLAVOR,
    PROBED_LEVEL,
    RUNNER,
    VERDICT_ENVIRONMENT,
    VERDICT_KEY,
    WRITER_VARIABLE,
)
from geneb_ci.github.errors import UnexpectedReply, UnreadableSetting
from geneb_ci.github.report import AUDIT_LABEL
from geneb_ci.github.settings.check import (
    AUDIT_RUNNER_LABEL,
    DISABLED_BY_MAINTAINER,
    has_published,
    label_names,
)
from geneb_ci.github.settings.check_files import WORKFLOWS, audit_key_problem
from geneb_ci.github.settings.client import ADMINISTRATION_READ, SettingsClient, variable_path
from geneb_ci.github.settings.required import SETTINGS
from geneb_ci.render.plain import visible

HUB_TOKEN_SECRET, SPACE_VARIABLE = "HF_JOBS_TOKEN", "HF_OIDC_RESOURCE"
NEW_APP_COMMAND = "geneb-ci init --app"
WRITING_ACCOUNTS_MIN = 2
"""Number of accounts that may write, so that one can approve the pull requests of another."""
_SETTING_OF_JOB = re.compile(r"\b(secrets|vars)\.([A-Za-z_]\w*)")
"""Place in a workflow file where a job reads a secret or a variable."""
_JOB_START = re.compile(r"^  ([\w-]+):[ \t]*$", re.MULTILINE)
"""Line of a workflow file with which a job begins."""
_ENVIRONMENT = re.compile(r"^    environment:[ \t]+(?:\{name: )?([\w-]+)", re.MULTILINE)
"""Line of a workflow file that names a job's environment."""
_RUNS_ON = re.compile(r"^    runs-on:[ \t]+(\S[^#\n]*)", re.MULTILINE)
"""Line of a workflow file that says on which machines a job runs."""


class FeatureState(enum.StrEnum):
    """Whether a feature of a board works, in the words of the report."""

    WORKS = "works"
    NOT_SET_UP = "not set up"
    BROKEN = "broken, because"
    NOT_TRIED = "not tried"
    """It is set up, but whether it works will show only when it is used."""
    UNSEEN = "not seen"
    """This token cannot read a setting that decides it."""


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
    """Name of the workflow."""
    job: str
    """Name of the job in its workflow file."""
    environment: str
    """Name of the job's environment; "" without one."""
    secrets: frozenset[str]
    """Names of the secrets that the job reads."""
    variables: frozenset[str]
    """Names of the variables that the job reads."""
    runs_on: str
    """The machines on which the job runs, as the workflow file names them."""


def settings_of_jobs(workflow: str, workflow_text: str) -> list[JobSettings]:
    """Return the settings that each job of a workflow file reads.

    What the file reads above `jobs:` counts for every job.
    """
    head, _, body = workflow_text.partition("\njobs:\n")
    shared_names = set(_SETTING_OF_JOB.findall(head))
    starts = [*_JOB_START.finditer(body)]
    ends = [*(match.start() for match in starts[1:]), len(body)]
    job_settings = []
    for match, end in zip(starts, ends, strict=True):
        job_text = body[match.start() : end]
        setting_names = shared_names | set(_SETTING_OF_JOB.findall(job_text))
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


class _BoardSettings:
    """Reader of the settings that the jobs of main need, and of those that the board has."""

    def __init__(self, client: SettingsClient) -> None:
        self.client = client

    def jobs(self, workflow: str) -> list[JobSettings]:
        """Return the settings that each job of a workflow reads.

        Raises _FeatureFault if the workflow does not run.
        """
        path = f"{WORKFLOWS}/{workflow}.yml"
        actions = self.client.get("/actions/permissions", ADMINISTRATION_READ) or {}
        if actions.get("enabled") is False:
            raise _FeatureFault("Actions are off", "allow Actions at Settings > Actions > General")
        raw = self.client.file_bytes(path)
        if raw is None:
            raise _FeatureFault(
                f"main has no {path}",
                "run geneb-ci init, which writes this file, and commit the file",
                state=FeatureState.NOT_SET_UP,
            )
        workflows_reply = self.client.get("/actions/workflows", "Actions: read", per_page=100) or {}
        states = {item["path"]: item["state"] for item in workflows_reply.get("workflows", ())}
        state = states.get(path, "active")
        if state == DISABLED_BY_MAINTAINER:
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
        value = self.client.variable_value(variable_path(name, environment)) if environment else ""
        return value or self.client.variable_value(variable_path(name))

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


def _note_on_verdicts(board: _BoardSettings) -> str:
    """Return a note on who sets verdicts. Raises _FeatureFault if verdicts do not work."""
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
            f"gh variable set {VERDICT_BOT} --body \"$(gh api 'users/SLUG[bot]' -q .id)\", where "
            "SLUG is the last part of the address of the App's page, github.com/apps/SLUG",
        )
    return f"only the App {app} can set the status"


def _note_on_publishing(board: _BoardSettings) -> str:
    """Return "", for no note. Raises _FeatureFault if the board cannot be published."""
    jobs = board.jobs("publish")
    board.require_environments(jobs)
    board.require_secrets(jobs, frozenset())
    for job in jobs:
        if SPACE_VARIABLE in job.variables and not board.variable(SPACE_VARIABLE, job.environment):
            of_environment = f" of the environment {job.environment}" if job.environment else ""
            reason = f"the variable {SPACE_VARIABLE}{of_environment} names no Space"
            raise _FeatureFault(reason, "geneb-ci init --apply --space OWNER/NAME")
    (publisher,) = (setting for setting in SETTINGS if setting.check == "trusted_publisher_problem")
    if not has_published(board.client, publisher):
        reason = (
            "no run of publish.yml has succeeded; every run fails until the Space trusts this "
            "workflow"
        )
        fix = f"{publisher.by_hand}; then: gh workflow run publish.yml"
        raise _FeatureFault(reason, fix, state=FeatureState.NOT_SET_UP)
    return ""


def _note_on_audits(board: _BoardSettings) -> str:
    """Return a note on audits by workflows. Raises _FeatureFault if they do not work."""
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
    optional = (
        {WRITER_VARIABLE, AUDIT_APP_KEY}
        if flavor
        else {WRITER_VARIABLE, AUDIT_APP_KEY, HUB_TOKEN_SECRET}
    )
    if board.variable(AUDIT_APP, AUDIT_ENVIRONMENT) and not board.has_secret(
        AUDIT_APP_KEY, AUDIT_ENVIRONMENT
    ):
        reason = f"the variable {AUDIT_APP} names an App, but its key {AUDIT_APP_KEY} is not stored"
        raise _FeatureFault(
            reason, f"gh variable delete {AUDIT_APP} --env {AUDIT_ENVIRONMENT}; geneb-ci init --app"
        )
    board.require_secrets(jobs, frozenset(optional))
    (setting,) = (setting for setting in SETTINGS if setting.check == "audit_key_problem")
    if problem := audit_key_problem(board.client, setting):
        raise _FeatureFault(problem, setting.by_hand)
    if flavor and not board.variable(PROBED_LEVEL):
        raise _FeatureFault(
            f"audits run in a Job of the Hub, because {FLAVOR} is set, but it is unknown whether "
            "the sandbox works in such a Job",
            f"geneb-ci doctor --github {board.client.connection.repository} --hub-job",
            state=FeatureState.NOT_TRIED,
        )
    notes = []
    is_ours = any(AUDIT_RUNNER_LABEL in job.runs_on for job in jobs)
    if not flavor and is_ours and not _has_runner(board):
        notes.append("no runner is registered now: register one for each audit")
    if app := board.variable(AUDIT_APP, AUDIT_ENVIRONMENT):
        notes.append(
            f"the first audit will show whether the App {app} is installed in this repository"
        )
    elif not board.has_secret(WRITER_VARIABLE, AUDIT_ENVIRONMENT):
        notes.append("records are attached to comments; `geneb-ci audit propose` proposes them")
    return "; ".join(notes)


def _has_runner(board: _BoardSettings) -> bool:
    """Whether a machine that runs audits is registered now."""
    runners = board.client.settings("/actions/runners").get("runners", ())
    return any(
        AUDIT_RUNNER_LABEL in {label["name"] for label in runner["labels"]} for runner in runners
    )


def _note_on_merging(board: _BoardSettings) -> str:
    """Return a note on who can merge. Raises _FeatureFault if nobody can."""
    if board.client.has_sole_maintainer:
        return "by one maintainer, who merges his own pull requests, which is weaker"
    people = board.client.entries("/collaborators", "Metadata: read")
    writers = [person for person in people if (person.get("permissions") or {}).get("push")]
    if len(writers) < WRITING_ACCOUNTS_MIN:
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


_NOTE_BY_FEATURE: dict[str, Callable[[_BoardSettings], str]] = {
    "verdicts": _note_on_verdicts,
    "merging": _note_on_merging,
    "publishing": _note_on_publishing,
    "audits": _note_on_audits,
}
"""The function that returns a note on a feature, or raises why it does not work."""


def features_of(client: SettingsClient) -> Iterator[Feature]:
    """Yield the features of the board. Raises GitHubProblem if GitHub fails."""
    board = _BoardSettings(client)
    for feature, check in _NOTE_BY_FEATURE.items():
        try:
            yield Feature(feature, FeatureState.WORKS, check(board))
        except _FeatureFault as fault:
            yield Feature(feature, fault.state, visible(fault.because), fault.fix)
        except (UnreadableSetting, UnexpectedReply) as error:
            yield Feature(feature, FeatureState.UNSEEN, visible(error.message), error.fix)
