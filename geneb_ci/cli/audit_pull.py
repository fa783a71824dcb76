"""`geneb-ci audit open`, `job`, `send`, `deliver`: an open pull request audited by jobs."""

import os
import signal
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.commit import commit, read_submission
from geneb_ci.audit.compare.tolerance import tolerance_digest
from geneb_ci.audit.rerun.credentials import refuse_tokens
from geneb_ci.audit.workflow import published_command
from geneb_ci.cli.audit_draw import relay_option
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import LayeredCommand, Seconds, machine_of, machine_options
from geneb_ci.common.actions import add_summary, set_output
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.common.finding import exact_name
from geneb_ci.github import audits, hub_jobs, report
from geneb_ci.github.api import ACTIONS_BOT, connect
from geneb_ci.github.audit_ready import (
    FLAVOR,
    WRITER,
    require_trusted,
    signing_key,
    writer_of,
)
from geneb_ci.github.audit_steps import (
    deliver_outcome,
    open_again,
    open_audit,
    propose_record,
    rerun_order,
)
from geneb_ci.github.audit_targets import pull_to_audit, row_to_audit
from geneb_ci.github.one_line import decode, encode
from reference_harness.formats.text import next_line

ORDER, OUTCOME = "AUDIT_ORDER", "AUDIT_OUTCOME"
"""Variables of the environment: what the jobs of one run pass on."""


_repo = click.option("--repo", metavar="OWNER/NAME", help="Repository; else GITHUB_REPOSITORY.")
_author = click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account of the token; default: that of GitHub Actions.",
)


@click.command()
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="Audit this pull request.")
@click.option("--row", metavar="ID", help="Audit this row of main; an issue keeps its draws.")
@_repo
@_author
@relay_option
def open_command(
    pr: int | None, row: str | None, repo: str | None, author_id: int, relay: tuple[str, ...]
) -> int:
    """Commit to the head of a pull request, publish the digest, and draw.

    Without --pr and --row, the oldest open pull request with the label `audit`. The time of the
    status geneb/audit-commit, by GitHub's clock, decides the round, which is waited for. Prints one
    line, for `audit job`, `send` and `deliver`; in GitHub Actions it is also the step's output
    `order`. What is refused is a comment with what to do.
    """
    if pr is not None and row is not None:
        raise UsageProblem("--pr and --row exclude each other", "leave one of them out")
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        target = (
            pull_to_audit(github, pr)
            if row is None
            else row_to_audit(github, exact_name(row, rows_of_main(layout), "row of main"))
        )
        if target is None:
            say(f"no open pull request has the label {report.AUDIT_LABEL}")
            return Exit.CLEAN
        order = open_audit(github, layout, target, relay, say)
    line = encode(order, open_again(order))
    echo(line)
    set_output("order", line)
    set_output("number", str(target.number))
    add_summary(audits.begun_text(order))
    return Exit.CLEAN


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_repo
def publish_command(file: Path, repo: str | None) -> int:
    """Publish the commitment to a row of main, for an audit on your own machine.

    The digest becomes the status geneb/audit-commit of the head of main, unless it is there. It
    prints the options of `audit FILE` and `audit plan` that follow. GH_TOKEN may write statuses.
    """
    commitment = commit(read_submission(file), tolerance_digest())
    with connect(repo) as github:
        head = github.main().sha
        at, _ = audits.publish(github, head, commitment.sha256, ())
    say(f"commitment {commitment.sha256}, public since {at} as a status of {head}")
    echo(f"--committed-at {at} --shown-on {head}")
    say(next_line(published_command(commitment, file, at, head)))
    return Exit.CLEAN


def rows_of_main(layout: Layout) -> list[str]:
    """Return the ids of the rows of a checkout of main."""
    return sorted(path.stem for path in Path(str(layout.submissions)).glob("*.json"))


def _order() -> audits.AuditOrder:
    line = os.environ.get(ORDER, "")
    if not line:
        raise UsageProblem(
            f"there is no order: {ORDER} is empty", "pass what `geneb-ci audit open` prints"
        )
    return decode(line, audits.AuditOrder, "the order", audits.RETRY_FIX)


@click.command(cls=LayeredCommand, common=("--data", "--weights", "--gpu", "--level"))
@machine_options
def job_command(**machine: Any) -> int:
    """Run the audit of AUDIT_ORDER, where there is no token, and print its outcome, unsigned.

    Run it in a clone of the repository, at the commit of main that the order names. The files of
    the row are fetched without a token and laid out beside nothing of git. It refuses to start
    where a token is in the environment or in the home of the user.
    """
    refuse_tokens()
    order = _order()
    outcome = rerun_order(order, find_layout(Path.cwd()), machine_of(machine), say)
    line = encode(outcome, open_again(order))
    for text in hub_jobs.outcome_lines(line, order.nonce):
        echo(text)
    set_output("outcome", line)
    return Exit.CLEAN


@click.command()
@click.option(
    "--flavor",
    required=True,
    envvar=FLAVOR,
    metavar="NAME",
    help=f"Machine of the Hub, such as l4x1; else {FLAVOR}.",
)
@click.option(
    "--timeout",
    type=Seconds(),
    default="4h",
    envvar="AUDIT_TIMEOUT",
    show_default=True,
    help="Time limit; else AUDIT_TIMEOUT.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    envvar="AUDIT_COST",
    metavar="USD",
    help="Refuse above this; else AUDIT_COST.",
)
@click.option(
    "--image",
    default=hub_jobs.IMAGE,
    envvar="AUDIT_IMAGE",
    show_default=True,
    help="Image of the Job; else AUDIT_IMAGE.",
)
@click.option("--namespace", metavar="NAME", help="Who pays; else the owner of HF_TOKEN.")
@click.option("--poll", type=float, default=hub_jobs.POLL_S, help="Seconds between two looks.")
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
    """Run the audit of AUDIT_ORDER as a Job of the Hub, and print its outcome, unsigned.

    Machine, time limit and the most that it costs are shown first. The Job gets no secret; HF_TOKEN
    stays here. The outcome comes back in its log. Whatever ends this command cancels the Job.
    """
    order = _order()
    hub_jobs.require_time(timeout)
    client = hub_jobs.api(os.environ.get("HF_TOKEN", ""))
    machine = hub_jobs.offer(client, flavor, timeout)
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
    ended = hub_jobs.run_job(
        *(client, request, machine, image, namespace, say),
        lambda lines: hub_jobs.outcome_in(lines, order.nonce),
        poll,
    )
    line = hub_jobs.outcome_of_job(ended, order, say)
    echo(line)
    set_output("outcome", line)
    return Exit.CLEAN


@click.command()
@_repo
def ready_command(repo: str | None) -> int:
    """Look, before anything is rerun, whether its outcome could be signed and proposed.

    AUDIT_KEY is the private key of an entry of keys.json on main. AUDIT_TOKEN may be missing: then
    the signed record is attached to a comment. One that is there has to be valid.
    """
    layout = find_layout(Path.cwd())
    with signing_key(None) as signer:
        require_trusted(signer, layout)
    writer = writer_of(repo)
    if writer is None:
        say(f"{WRITER} is not set: the signed record will be attached to a comment")
    else:
        writer.wire.close()
    return Exit.CLEAN


@click.command()
@click.option("--key", type=click.Path(path_type=Path), help="Private key; else AUDIT_KEY.")
@_repo
@_author
def deliver_command(key: Path | None, repo: str | None, author_id: int) -> int:
    """Sign the outcome of AUDIT_ORDER, verify every step, and open a pull request with the record.

    AUDIT_OUTCOME is what `audit job` or `send` printed; where it is empty, the pull request is told
    that there is no record. GH_TOKEN comments and labels; AUDIT_TOKEN makes the branch and opens
    the pull request. The exit code is 11 when the record does not verify.
    """
    order, line = _order(), os.environ.get(OUTCOME, "")
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        deliver_outcome(github, layout, order, line, key, say)
    return Exit.CLEAN


@click.command()
@click.argument("number", type=click.IntRange(min=1))
@_repo
@_author
def propose_command(number: int, repo: str | None, author_id: int) -> int:
    """Propose the signed record that a comment on a pull request or an issue has.

    NUMBER is that of the pull request or issue. Run it in a checkout of main, with a token
    (GH_TOKEN) that may write contents and pull requests. Every step of the record is verified
    first.
    """
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        attached, opened = propose_record(github, layout, number)
    echo(f"audit {attached.record}: {attached.verdict}; merge #{opened}")
    return Exit.CLEAN
