"""The commands `geneb-ci audit open`, `job`, `send` and `deliver`, which audit a pull request."""

import os
import signal
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.commit import commit, read_submission
from geneb_ci.audit.rerun.credentials import refuse_credentials
from geneb_ci.audit.workflow import published_command
from geneb_ci.cli.audit_draw import relay_option
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import LayeredCommand, Seconds, device_option, machine_of, machine_options
from geneb_ci.common.actions import add_summary, set_output
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.common.finding import exact_name
from geneb_ci.github import audits, hub_jobs, report
from geneb_ci.github.api import ACTIONS_BOT_ID, connect
from geneb_ci.github.audit_ready import (
    FLAVOR,
    WRITER_VARIABLE,
    pull_request_client,
    require_trusted_key,
    signing_key,
)
from geneb_ci.github.audit_steps import (
    deliver_outcome,
    open_audit,
    propose_record,
    rerun_order,
    restart_fix,
)
from geneb_ci.github.audit_targets import pull_to_audit, row_to_audit
from geneb_ci.github.one_line import decode, encode
from reference_harness.formats.text import next_line

ORDER, OUTCOME = "AUDIT_ORDER", "AUDIT_OUTCOME"
"""Environment variables through which the jobs of a workflow run pass order and outcome."""


_REPO_OPTION = click.option(
    "--repo", metavar="OWNER/NAME", help="Repository; default: GITHUB_REPOSITORY."
)
_AUTHOR_OPTION = click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT_ID,
    show_default=True,
    help="Id of the token's account; default: the account of GitHub Actions.",
)


@click.command()
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="Audit this pull request.")
@click.option("--row", metavar="ID", help="Audit this row of main; its draws are kept in an issue.")
@_REPO_OPTION
@_AUTHOR_OPTION
@relay_option
def open_command(
    pr: int | None, row: str | None, repo: str | None, author_id: int, relay: tuple[str, ...]
) -> int:
    """Commit to the head of a pull request, publish the digest, and draw.

    Without --pr and --row, the command takes the oldest open pull request with the label `audit`.
    The time of the status geneb/audit-commit, by GitHub's clock, determines the beacon's round, for
    which the command waits. The command prints one line, for `audit job`, `send` and `deliver`; in
    GitHub Actions that line is also the step's output `order`. The reason of a refusal, and what to
    do next, is written as a comment.
    """
    if pr is not None and row is not None:
        raise UsageProblem("--pr and --row exclude each other", "leave one of them out")
    layout = find_layout(Path.cwd())
    with connect(repo, own_account_id=author_id) as github:
        target = (
            pull_to_audit(github, pr)
            if row is None
            else row_to_audit(github, exact_name(row, rows_of_main(layout), "row of main"))
        )
        if target is None:
            say(f"no open pull request has the label {report.AUDIT_LABEL}")
            return Exit.CLEAN
        order = open_audit(github, layout, target, relay, say)
    line = encode(order, restart_fix(order))
    echo(line)
    set_output("order", line)
    set_output("number", str(target.number))
    add_summary(audits.draw_comment(order))
    return Exit.CLEAN


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_REPO_OPTION
def publish_command(file: Path, repo: str | None) -> int:
    """Publish the commitment for an audit of a row of main on your own machine.

    The digest becomes the status geneb/audit-commit of the head of main, unless that status exists.
    The command prints the options for the next `audit FILE` or `audit plan`. It needs a GH_TOKEN
    that may write statuses.
    """
    commitment = commit(read_submission(file))
    with connect(repo) as github:
        head = github.main().sha
        committed_at, _ = audits.publish_commitment(github, head, commitment.sha256, ())
    say(f"commitment {commitment.sha256}, public since {committed_at} as a status of {head}")
    echo(f"--committed-at {committed_at} --shown-on {head}")
    say(next_line(published_command(commitment, file, committed_at, head)))
    return Exit.CLEAN


def rows_of_main(layout: Layout) -> list[str]:
    """Return the ids of the rows of a checkout of main."""
    return sorted(path.stem for path in Path(str(layout.submissions)).glob("*.json"))


def _order() -> audits.AuditOrder:
    """Return the order in the variable AUDIT_ORDER. Raises UsageProblem if it is empty."""
    line = os.environ.get(ORDER, "")
    if not line:
        raise UsageProblem(
            f"the variable {ORDER} is empty, expected the order of an audit",
            f"set {ORDER} to the line that `geneb-ci audit open` prints",
        )
    return decode(line, audits.AuditOrder, "the order", audits.RETRY_FIX)


@click.command(cls=LayeredCommand, common=("--data", "--weights", "--device", "--level"))
@device_option
@machine_options
def job_command(**machine: Any) -> int:
    """Run the audit of AUDIT_ORDER without any token, and print its unsigned outcome.

    Run it in a clone of the repository, at the commit of main that the order names. The files of
    the row are fetched without a token, into a folder without git. The command refuses to start
    where a token is in the environment or in the user's home folder.
    """
    refuse_credentials()
    order = _order()
    outcome = rerun_order(order, find_layout(Path.cwd()), machine_of(machine), say)
    line = encode(outcome, restart_fix(order))
    for output_line in hub_jobs.outcome_lines(line, order.nonce):
        echo(output_line)
    set_output("outcome", line)
    return Exit.CLEAN


@click.command()
@click.option(
    "--flavor",
    required=True,
    envvar=FLAVOR,
    metavar="NAME",
    help=f"Machine of the Hub, such as l4x1; default: {FLAVOR}.",
)
@click.option(
    "--timeout",
    type=Seconds(),
    default="4h",
    envvar="AUDIT_TIMEOUT",
    show_default=True,
    help="Time limit; default: AUDIT_TIMEOUT.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    envvar="AUDIT_COST",
    metavar="USD",
    help="Refuse a Job that may cost more; default: AUDIT_COST.",
)
@click.option(
    "--image",
    default=hub_jobs.JOB_IMAGE,
    envvar="AUDIT_IMAGE",
    show_default=True,
    help="Container image of the Job; default: AUDIT_IMAGE.",
)
@click.option("--namespace", metavar="NAME", help="Account that pays; default: HF_TOKEN's owner.")
@click.option("--poll", type=float, default=hub_jobs.POLL_S, help="Seconds between two requests.")
@click.option("--dry-run", is_flag=True, help="Show machine, time limit and cost, and stop.")
def send_command(
    flavor: str,
    timeout: int,
    max_cost: float | None,
    image: str,
    namespace: str | None,
    poll: float,
    dry_run: bool,
) -> int:
    """Run the audit of AUDIT_ORDER as a Job of the Hub, and print its unsigned outcome.

    Machine, time limit and maximum cost are shown first. The Job gets no secret: HF_TOKEN stays on
    this machine. The outcome is read from the Job's log. When this command ends, the Job is
    canceled.
    """
    order = _order()
    hub_jobs.require_time_limit(timeout)
    client = hub_jobs.hub_client(os.environ.get("HF_TOKEN", ""))
    machine = hub_jobs.machine_offer(client, flavor, timeout)
    say(machine.text)
    add_summary(machine.text)
    if max_cost is not None and machine.dollars > max_cost:
        raise UsageProblem(
            f"the Job may cost {machine.dollars:.2f} dollars, more than --max-cost {max_cost:.2f}",
            "pass a shorter --timeout, a smaller --flavor, or a higher --max-cost",
        )
    if dry_run:
        return Exit.CLEAN
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the Job is canceled
    request = hub_jobs.audit_request(order)
    job_end = hub_jobs.run_job(
        *(client, request, machine, image, namespace, say),
        lambda lines: hub_jobs.outcome_in(lines, order.nonce),
        poll,
    )
    line = hub_jobs.outcome_of_job(job_end, order, say)
    echo(line)
    set_output("outcome", line)
    return Exit.CLEAN


@click.command()
@_REPO_OPTION
def ready_command(repo: str | None) -> int:
    """Test, before anything is rerun, whether the outcome could be signed and proposed.

    AUDIT_KEY must be the private key of an entry of keys.json on main. AUDIT_TOKEN must be valid or
    not set: if it is not set, the signed record is attached to a comment.
    """
    layout = find_layout(Path.cwd())
    with signing_key(None) as signer:
        require_trusted_key(signer, layout)
    writer = pull_request_client(repo)
    if writer is None:
        say(f"{WRITER_VARIABLE} is not set: the signed record will be attached to a comment")
    else:
        writer.connection.close()
    return Exit.CLEAN


@click.command()
@click.option("--key", type=click.Path(path_type=Path), help="Private key; default: AUDIT_KEY.")
@_REPO_OPTION
@_AUTHOR_OPTION
def deliver_command(key: Path | None, repo: str | None, author_id: int) -> int:
    """Sign the outcome of AUDIT_ORDER, verify every step, and open a pull request with the record.

    AUDIT_OUTCOME is the line that `audit job` or `send` printed; if it is empty, a comment on the
    pull request says that there is no record. GH_TOKEN is used to comment and label, AUDIT_TOKEN to
    push the branch and open the pull request. The exit code is 11 when the record does not verify.
    """
    order, line = _order(), os.environ.get(OUTCOME, "")
    layout = find_layout(Path.cwd())
    with connect(repo, own_account_id=author_id) as github:
        deliver_outcome(github, layout, order, line, key, say)
    return Exit.CLEAN


@click.command()
@click.argument("number", type=click.IntRange(min=1))
@_REPO_OPTION
@_AUTHOR_OPTION
def propose_command(number: int, repo: str | None, author_id: int) -> int:
    """Open a pull request with the signed record that is attached to a comment.

    NUMBER is the number of the pull request or issue with that comment. Run the command in a
    checkout of main, with a GH_TOKEN that may write contents and pull requests. Every step of the
    record is verified first.
    """
    layout = find_layout(Path.cwd())
    with connect(repo, own_account_id=author_id) as github:
        attached, opened = propose_record(github, layout, number)
    echo(f"audit {attached.record}: {attached.verdict}")
    echo(f"opened pull request #{opened} with the record: merge it")
    return Exit.CLEAN
