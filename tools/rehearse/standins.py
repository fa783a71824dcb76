"""Stand-ins for what only GitHub, the Hub or another machine can do; `TABLE` lists them."""

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.rehearse.environments import CURRENT_INTERPRETER
from tools.rehearse.forge import APP_ACCOUNT, git
from tools.rehearse.interpreters import NoInterpreter, find
from tools.rehearse.workflow import Unsound

if TYPE_CHECKING:
    from tools.rehearse.job import Job


class StandIn(NamedTuple):
    """One thing of GitHub, the Hub or the machine that is replaced by a stand-in."""

    name: str
    instead: str
    """The description of its stand-in."""


TABLE = (
    StandIn("actions/checkout", "a clone of the loopback repository, at the commit of the run"),
    StandIn("actions/setup-python", "a new virtual environment of this machine's interpreter"),
    StandIn("actions/attest", "its inputs and permissions are checked; nothing is signed"),
    StandIn("actions/upload-pages-artifact", "a copy of the folder, which must have an index.html"),
    StandIn(
        "actions/create-github-app-token",
        "a token with the requested rights, if the key is the App's",
    ),
    StandIn(
        "actions/deploy-pages",
        "that copy becomes the site; permissions and environment are checked",
    ),
    StandIn(
        "GitHub",
        "the fake GitHub of tests/github on 127.0.0.1: events, job tokens, API; git over file://",
    ),
    StandIn("identity of a job", "an unsigned text with the same claims, from the same server"),
    StandIn(
        "the Hub", "the fake Hub of tests/publish on 127.0.0.1, which jobs find by HF_ENDPOINT"
    ),
    StandIn(
        "sudo, apt-get, make", "nothing is installed on this machine, and no task data fetched"
    ),
    StandIn(
        ".ci/run",
        "requirements/dev.txt is really installed; then only the tests run that need no torch",
    ),
    StandIn(
        "a runner for one audit",
        "this machine, with an empty home folder and without the job's token",
    ),
    StandIn("a Job of the Hub", "a process of this machine, with the environment of its spec"),
    StandIn("the beacon", "a published round; GitHub's clock shows the time that belongs to it"),
    StandIn("a relay of the beacon", "a file with a published round, named by GENEB_BEACON_FILE"),
    StandIn("a repeated install", "hard links to the files of the first install of that lock"),
)
APP = ("Iv23rehearsal", "the key of the rehearsal's App")
"""Id and key of the App that a board may have."""
_CHECKOUT = {"persist-credentials", "fetch-depth", "ref", "path", "repository", "token"}
_SETUP = {"python-version", "update-environment"}
_ATTEST = {"subject-name", "subject-digest"}


def _refuse_unknown_inputs(action: str, inputs: dict[str, str], expected: set[str]) -> None:
    if unknown := sorted(set(inputs) - expected):
        raise Unsound(f"{action}: the stand-in does not know the input {unknown[0]!r}")


def _require_scopes(job: "Job", action: str, *scopes: str) -> None:
    for scope in scopes:
        if scope not in job.granted:
            permission = scope.replace("_", "-").replace(":", ": ")
            raise Unsound(
                f"{action}: 403 Resource not accessible by integration: "
                f"the job lacks the permission `{permission}`"
            )
        job.world.forge.used.add(scope)


def checkout(job: "Job", inputs: dict[str, str]) -> dict[str, str]:
    """Clone as actions/checkout does: with the requested depth, with credentials unless refused."""
    _refuse_unknown_inputs("actions/checkout", inputs, _CHECKOUT)
    _require_scopes(job, "actions/checkout", "contents:read")
    if inputs.get("repository") not in {None, "", job.context["github"]["repository"]}:
        raise Unsound(f"actions/checkout: the rehearsal has no repository {inputs['repository']!r}")
    folder = job.workspace / inputs.get("path", "")
    if not folder.resolve().is_relative_to(job.workspace.resolve()):
        raise Unsound(f"actions/checkout: the path {inputs['path']!r} leads out of the workspace")
    clone(
        job.world.forge.repository,
        folder,
        inputs.get("ref") or job.event.sha,
        depth=int(inputs.get("fetch-depth", "1")),
    )
    if inputs.get("persist-credentials") != "false":
        header = f"http.{job.world.forge.address}/.extraheader"
        git(folder, "config", header, f"AUTHORIZATION: bearer {job.token}")
    return {"ref": inputs.get("ref") or job.event.ref, "commit": git(folder, "rev-parse", "HEAD")}


def clone(repository: Path, folder: Path, ref: str, *, depth: int) -> None:
    """Fetch a commit (with depth 0 every branch) and check it out."""
    folder.mkdir(parents=True, exist_ok=True)
    origin = f"file://{repository}"
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "remote", "add", "origin", origin)
    if depth:
        git(folder, "fetch", "--quiet", "--no-tags", f"--depth={depth}", "origin", ref)
    else:
        git(folder, "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*", ref)
    git(
        folder,
        "checkout",
        "--quiet",
        "--force",
        "--detach",
        "FETCH_HEAD" if depth else _remote_ref(ref),
    )


def _remote_ref(ref: str) -> str:
    return ref.replace("refs/heads/", "refs/remotes/origin/")


def setup_python(job: "Job", inputs: dict[str, str]) -> dict[str, str]:
    """Create an environment of the requested Python, and put it first on PATH unless refused."""
    _refuse_unknown_inputs("actions/setup-python", inputs, _SETUP)
    version = inputs.get("python-version", "")
    folder = job.tools / f"python-{version}"
    try:
        interpreter = CURRENT_INTERPRETER if job.world.borrow else find(version)
    except NoInterpreter as error:
        raise Unsound(f"actions/setup-python: {error}") from error
    # With --borrow nothing is installed, and creating pip would cost seconds.
    job.world.environments.create(interpreter, folder, pip=not job.world.borrow)
    python = folder / "bin/python"
    if inputs.get("update-environment") != "false":
        job.path.insert(0, str(python.parent))
        job.exported["pythonLocation"] = str(folder)
    return {"python-version": version, "python-path": str(python)}


def attest(job: "Job", inputs: dict[str, str]) -> dict[str, str]:
    """Store the digest that would be attested. Raises Unsound if it is malformed."""
    _refuse_unknown_inputs("actions/attest", inputs, _ATTEST)
    _require_scopes(job, "actions/attest", "id_token:write", "attestations:write")
    algorithm, _, digest = inputs.get("subject-digest", "").partition(":")
    if algorithm != "sha256" or len(digest) != 64 or set(digest) - set("0123456789abcdef"):  # noqa: PLR2004
        raise Unsound(f"actions/attest: {inputs.get('subject-digest')!r} is not a sha256 digest")
    job.world.attested[inputs["subject-name"]] = digest
    return {}


def upload_pages_artifact(job: "Job", inputs: dict[str, str]) -> dict[str, str]:
    """Store a site for the job that publishes it."""
    _refuse_unknown_inputs("actions/upload-pages-artifact", inputs, {"path"})
    folder = job.workspace / inputs.get("path", "_site/")
    if not (folder / "index.html").is_file():
        raise Unsound(f"actions/upload-pages-artifact: {inputs.get('path')} has no index.html")
    job.world.uploaded = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {}


def deploy_pages(job: "Job", inputs: dict[str, str]) -> dict[str, str]:
    """Publish the site that a job of the same run has uploaded."""
    _refuse_unknown_inputs("actions/deploy-pages", inputs, set())
    _require_scopes(job, "actions/deploy-pages", "pages:write", "id_token:write")
    if job.tree.get("environment") != "github-pages":
        raise Unsound("actions/deploy-pages: 400 Invalid environment: expected github-pages")
    if not job.world.uploaded:
        raise Unsound("actions/deploy-pages: 404 No artifacts named github-pages in this run")
    job.world.site, job.world.uploaded = job.world.uploaded, {}
    return {"page_url": "https://pages.invalid/"}


def create_app_token(job: "Job", inputs: dict[str, str]) -> dict[str, str]:
    """Create a token with the requested rights."""
    action, prefix = "actions/create-github-app-token", "permission-"
    rights = {name for name in inputs if name.startswith(prefix)}
    _refuse_unknown_inputs(action, inputs, {"client-id", "private-key", *rights})
    if (inputs["client-id"], inputs["private-key"]) != APP:
        raise Unsound(f"{action}: 401 A JSON web token could not be decoded")
    token = f"ghs_app_{len(job.world.forge.grants)}"
    # The right to write includes reading, and opening pull requests.
    scopes = {(name.removeprefix(prefix).replace("-", "_"), inputs[name]) for name in rights}
    granted = {f"{scope}:{access}" for scope, access in scopes}
    granted |= {f"{scope}:read" for scope, _ in scopes} | {"metadata:read"}
    if ("pull_requests", "write") in scopes:
        granted.add("pulls:open")
    job.world.forge.grants[token] = frozenset(granted)
    job.world.forge.accounts[token] = APP_ACCOUNT
    return {"token": token}


ACTIONS: dict[str, Any] = {
    "actions/create-github-app-token": create_app_token,
    "actions/checkout": checkout,
    "actions/setup-python": setup_python,
    "actions/attest": attest,
    "actions/upload-pages-artifact": upload_pages_artifact,
    "actions/deploy-pages": deploy_pages,
}
_HOST = ("sudo", "apt-get", "sysctl", "make")
_SILENT = '#!/bin/sh\necho "stand-in: ${0##*/} $*"\n'


def write_host_programs(folder: Path) -> None:
    """Write stand-ins for the programs that a job must not run on this machine."""
    folder.mkdir(parents=True)
    for program in _HOST:
        (folder / program).write_text(_SILENT, encoding="utf-8")
        (folder / program).chmod(0o755)


def replace_ci_run(job: "Job") -> None:
    """Replace `.ci/run` in a checkout by its stand-in, as it would start another rehearsal."""
    script = job.workspace / ".ci/run"
    if job.workflow.name != "ci.yml" or not script.exists():
        return
    shutil.copyfile(Path(__file__).with_name("ci-run"), script)
    script.chmod(0o755)
    subprocess.run(
        ["git", "-C", job.workspace, "update-index", "--assume-unchanged", ".ci/run"], check=False
    )
