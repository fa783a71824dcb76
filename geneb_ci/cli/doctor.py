"""The command `geneb-ci doctor`: what a machine supports, or which settings on GitHub are wrong."""

import importlib.metadata
import os
import platform
import sys
import tempfile
from pathlib import Path

import click

from geneb_ci import __version__
from geneb_ci.cli.shared import (
    ALL_LINES_OPTION,
    OLD_JSON_OPTION,
    STDOUT,
    Output,
    format_option,
    width,
    write,
)
from geneb_ci.common.addresses import AllowedServers
from geneb_ci.common.connection import opener
from geneb_ci.common.errors import Exit, LeftOver, UsageProblem
from geneb_ci.render.table import wrapped_text
from geneb_ci.render.text import REPORT_LINES_MAX
from geneb_ci.sandbox import levels, mounts, processes
from reference_harness.formats.text import next_line

SHOWN_PACKAGES = (
    *("numpy", "torch", "transformers", "safetensors", "huggingface_hub", "cryptography"),
    "py_arkworks_bls12381",
)
"""Packages whose versions are shown."""
BEACON_ID = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
"""Id of the beacon drand quicknet."""
BEACON_ADDRESS = f"https://api.drand.sh/{BEACON_ID}/info"
"""Address of a small answer of the beacon's server."""
BEACON_SECONDS = 5
"""Maximum seconds to wait for this answer."""


@click.command("doctor")
@click.option("--network", is_flag=True, help="Also test the connection to the public beacon.")
@click.option(
    "--github", "repo", metavar="OWNER/NAME", help="Instead, check the settings of this repository."
)
@click.option("--space", metavar="OWNER/NAME", help="With --github: the Space of the board.")
@click.option(
    "--hub-job",
    is_flag=True,
    help="With --github: instead, start a Job of the Hub, and show the sandbox levels that work.",
)
@ALL_LINES_OPTION
@format_option(["text", "json"])
@OLD_JSON_OPTION
def doctor_command(
    network: bool,
    repo: str | None,
    space: str | None,
    hub_job: bool,
    format_: str,
    *,
    prints_all: bool,
) -> int:
    """Show what this machine supports: sandbox levels, limits, GPUs, packages.

    With --github, compare the settings of a repository with those that a board needs, and print for
    verdicts, merging, publishing and audits whether each works, is not set up, or is broken, and
    why. The command only reads, with the token in GH_TOKEN. The exit code is 11 if a setting is
    wrong or something is broken, 3 if a setting could not be read.

    With --hub-job, a Job on the cheapest machine of the Hub installs main and tries each level of
    the sandbox; the owner of HF_TOKEN pays. The exit code is 11 if the level that an audit needs
    does not work there.
    """
    if repo is not None and hub_job:
        return show_job_levels(repo)
    if repo is not None:
        from geneb_ci.publish.session import require_space

        space_id = require_space(space) if space else ""
        return check_settings(repo, space_id, as_json=format_ == "json", prints_all=prints_all)
    if space is not None or hub_job or format_ == "json":
        option = "--space" if space is not None else "--hub-job" if hub_job else "--format json"
        raise UsageProblem(
            f"{option} has no effect without --github",
            f"add --github OWNER/NAME, or omit {option}",
        )
    show_machine(network=network)
    print_line(next_line("geneb-ci next"))
    return Exit.CLEAN


def show_job_levels(repo: str) -> Exit:
    """Print which sandbox levels work in a Job of the Hub, and return the exit code."""
    from geneb_ci.github import hub_jobs  # of the extra `github`
    from geneb_ci.github.api import connect
    from geneb_ci.github.audit_ready import PROBED_LEVEL

    client = hub_jobs.hub_client(os.environ.get("HF_TOKEN", ""))
    with connect(repo) as github:
        working_levels = hub_jobs.probed_levels(
            client, repo, github.main().sha, print_line, hub_jobs.POLL_S
        )
    if levels.DEFAULT_LEVEL not in working_levels:
        print_line(
            f"an audit at level {levels.DEFAULT_LEVEL} cannot run as a Job of the Hub; levels that "
            f"work there: {', '.join(map(str, working_levels)) or 'none'}"
        )
        print_line(
            "  fix: gh variable delete AUDIT_FLAVOR, and run audits on your own machine or on a "
            "runner of GitHub Actions that is yours"
        )
        return Exit.ERRORS
    print_line(f"levels of the sandbox in a Job of the Hub: {', '.join(map(str, working_levels))}")
    print_line(
        f"  next: gh variable set {PROBED_LEVEL} --repo {repo} "
        f'--body "level {levels.DEFAULT_LEVEL}"'
    )
    return Exit.CLEAN


def check_settings(repo: str, space: str, *, as_json: bool, prints_all: bool) -> Exit:
    """Print which features of a board work and which settings are wrong; return the exit code."""
    # Imported here: they need the extra `github`, which the rest of this command does not.
    from geneb_ci.github.api import connect
    from geneb_ci.github.settings import diagnosis
    from geneb_ci.github.settings.client import SettingsClient
    from geneb_ci.github.settings.features import features_of

    with connect(repo) as github:
        client = SettingsClient(github.connection, space)
        diagnoses = diagnosis.diagnoses_of(client)
        features = list(features_of(client))
    report_text = (
        diagnosis.as_json(repo, diagnoses, features)
        if as_json
        else diagnosis.as_text(
            repo, diagnoses, width(), features, sys.maxsize if prints_all else REPORT_LINES_MAX
        )
    )
    write(Output("text", STDOUT), report_text)
    code = diagnosis.exit_code_of(diagnoses, features)
    if not as_json:
        next_command = "init --apply" if code == Exit.ERRORS else f"triage --repo {repo}"
        print_line(next_line(f"geneb-ci {next_command}"))
    return code


def show_machine(*, network: bool) -> None:
    """Print what this machine supports."""
    print_line(f"geneb-ci {__version__}, Python {platform.python_version()}, {platform.platform()}")
    print_line("sandbox levels")
    with tempfile.TemporaryDirectory() as folder:
        for level, name in levels.LEVELS.items():
            print_line(f"  {level}  {name}: {_level_support(level, Path(folder))}")
    print_line(f"number of processes limited by: {processes.process_limiter()}")
    print_line(f"GPU devices: {', '.join(mounts.gpu_devices()) or 'none'}")
    print_line(f"left from an earlier audit: {_leftovers_text()}")
    print_line(
        "packages: " + ", ".join(f"{name} {_installed_version(name)}" for name in SHOWN_PACKAGES)
    )
    print_line(f"public beacon: {_beacon_reply() if network else 'not tested (pass --network)'}")


def print_line(line: str) -> None:
    """Print a line, wrapped at the width of the terminal."""
    click.echo(wrapped_text(line, width()), nl=False)


def _level_support(level: int, folder: Path) -> str:
    """Return whether this machine supports a sandbox level, or why not."""
    cause = levels.level_failure(level, folder)
    if cause is not None:
        return f"no, {cause}"
    return {0: "only with --i-wrote-this-code", 4: "only with --throw-away-machine"}.get(
        level, "yes"
    )


def _leftovers_text() -> str:
    """Return what an earlier audit left on this machine, and how to remove it."""
    try:
        processes.refuse_leftovers(processes.scratch_folder())
    except LeftOver as error:
        return f"{error.message}; {error.fix}"
    return "nothing"


def _installed_version(package: str) -> str:
    """Return the version of an installed package, in words if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def _beacon_reply() -> str:
    """Return whether the server of the beacon answers, or why not."""
    try:
        with opener(AllowedServers(is_user_named=False)).open(
            BEACON_ADDRESS, timeout=BEACON_SECONDS
        ) as response:
            return f"reached, status {response.status}"
    except OSError as error:
        return f"not reached: {error}"
