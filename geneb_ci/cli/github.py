"""The commands `reconcile`, `report` and `triage`, for GitHub jobs and maintainers."""

import os
import re
import shutil
import sys
from pathlib import Path

import click

from geneb_ci.cli.main import echo, is_plain, say
from geneb_ci.cli.shared import OLD_JSON_OPTION, STDOUT, Output, format_option, old_option, write
from geneb_ci.common.actions import set_output
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.github import report
from geneb_ci.github.api import ACTIONS_BOT_ID, connect
from geneb_ci.github.main_branch import configured_folders
from geneb_ci.github.queue import read_queue
from geneb_ci.github.queue_text import as_json, markdown, terminal
from geneb_ci.github.reconcile import (
    SweepResult,
    group_verdict,
    has_verdict,
    open_pull_at,
    pull_with_command,
    pull_with_head,
    sweep,
)
from geneb_ci.github.report import report_health
from geneb_ci.github.verdict.model import SUCCESS
from geneb_ci.github.verdict.verdict_line import decode, encode
from geneb_ci.render.plain import visible
from geneb_ci.situation.maintainer import pull_command
from geneb_ci.situation.servers import waiting_pull
from reference_harness.formats.text import next_line, plural, quoted

_COMMIT_ID = re.compile(r"[0-9a-f]{40}")
_AUTHOR_OPTION = click.option(
    "--author-id",
    "verdict_author_id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT_ID,
    show_default=True,
    help="Account that writes the verdicts; default: that of GitHub Actions.",
)
"""The option `--author-id`."""


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; default: GITHUB_REPOSITORY.")
@click.option(
    "--head-sha",
    metavar="SHA",
    help="Check the open pull request with this head, unless it has a verdict.",
)
@click.option(
    "--commented",
    type=click.IntRange(min=1),
    metavar="N",
    help="Check this pull request if a comment on it has a new command of a maintainer.",
)
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="Check this pull request.")
@click.option(
    "--group",
    "group_sha",
    metavar="SHA",
    help="Check the group of the merge queue with this commit, unless it has a verdict.",
)
@_AUTHOR_OPTION
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write the verdict to.")
def reconcile_command(
    repo: str | None,
    head_sha: str | None,
    commented: int | None,
    pr: int | None,
    group_sha: str | None,
    verdict_author_id: int,
    output: str,
) -> int:
    """Check pull requests, read by commit SHA, and print a verdict as one line of JSON.

    Without --head-sha, --commented, --pr and --group it checks open pull requests that have no
    verdict on their head and on the present main, the oldest first. Run it in a checkout of the
    base branch, with a read-only token (GH_TOKEN). In GitHub Actions the verdict is also the
    step's output `verdict`.
    The exit code is 4 if the pull request or main has new commits, which are queued. It is 3 if a
    limit or GitHub stopped the command before the last pull request, or if no pull request could be
    checked: finished verdicts are written all the same, and the remaining pull requests are named.
    """
    head_sha, group_sha = _commit_id(head_sha), _commit_id(group_sha)
    layout = find_layout(Path.cwd())
    is_single = any(option is not None for option in (pr, head_sha, commented))
    with connect(repo, own_account_id=verdict_author_id) as github:
        sha = group_sha or (head_sha if pr is None else None)
        if sha is not None and has_verdict(github, sha):
            say(f"commit {sha} already has a verdict: nothing to do")
            return Exit.CLEAN
        if group_sha is not None:
            sweep_result = group_verdict(github, layout, group_sha)
        elif pr is not None:
            sweep_result = sweep(github, layout, open_pull_at(github, pr, head_sha))
        elif head_sha is not None:
            sweep_result = sweep(github, layout, pull_with_head(github.open_pulls(), head_sha))
        elif commented is not None:
            pull = pull_with_command(github, commented)
            if pull is None:
                say(f"pull request {commented} has no new command of a maintainer: nothing to do")
                return Exit.CLEAN
            sweep_result = sweep(github, layout, pull)
        else:
            sweep_result = sweep(github, layout)
    if is_single and sweep_result.problems and not sweep_result.verdicts.pulls:
        raise sweep_result.problems[0]
    line = encode(sweep_result.verdicts)
    write(Output("json", output), f"{line}\n")
    # Without anything to write, the job with write access does not start.
    if not sweep_result.verdicts.is_empty:
        set_output("verdict", line)
    _print_result(sweep_result, is_single=is_single)
    sweep_result.progress.require_done()
    return Exit.CLEAN


def _print_result(sweep_result: SweepResult, *, is_single: bool) -> None:
    """Print which pull requests were checked, which wait, and which problems occurred."""
    for problem in sweep_result.problems:
        say(f"geneb-ci: {visible(problem.message)}")
    for trouble in sweep_result.verdicts.troubles:
        say(f"pull request {trouble.number} waits: {visible(trouble.reason)}")
    for group in sweep_result.verdicts.groups:
        say(f"group {group.head_sha}: {plural(len(group.models), 'model')} together")
    for progress_line in sweep_result.progress.lines[: 1 if is_single else None]:
        say(progress_line)


def _commit_id(text: str | None) -> str | None:
    """Return a commit id; None for an empty text, which schedules and dispatches pass.

    Raises UsageProblem for anything else.
    """
    if text and not _COMMIT_ID.fullmatch(text):
        raise UsageProblem(f"{quoted(text)} is not the SHA of a commit", "pass all 40 hex digits")
    return text or None


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; default: GITHUB_REPOSITORY.")
@click.option(
    "--author-id",
    "verdict_author_id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT_ID,
    show_default=True,
    help="Id of the token's account; default: the account of GitHub Actions.",
)
@click.option(
    "--health",
    type=click.Choice(("success", "failure"), case_sensitive=False),
    help="Instead of a verdict, write the result of the health check as an issue.",
)
@click.option("--run", default="", metavar="URL", help="Address of the workflow run.")
def report_command(repo: str | None, verdict_author_id: int, health: str | None, run: str) -> int:
    """Write the verdict from the environment variable VERDICT: a comment, labels, a status.

    The command reads only the verdict, which it validates, and no content of the pull request.
    Nothing is written twice, and nothing if the pull request has new commits since the verdict
    (exit code 4).
    """
    if health is not None:
        with connect(repo, own_account_id=verdict_author_id) as github:
            action = report_health(github, is_healthy=health == SUCCESS, run_address=run)
        say(f"issue {action}" if action else "nothing to write")
        return Exit.CLEAN
    with connect(repo, own_account_id=verdict_author_id) as github:
        verdict = decode(os.environ.get("VERDICT", ""), github.connection.repository)
        further_texts = tuple(configured_folders(find_layout(Path.cwd())))
        write_results = list(
            map(_print_written, report.write_verdicts(github, verdict, further_texts))
        )
    if verdict.is_empty:
        say("the verdict names no pull request: nothing to write")
    problems = [result.problem for result in write_results if result.problem is not None]
    if not problems:
        return Exit.CLEAN
    # Any other error is more important than a pull request with new commits.
    gravest_problem = next(
        (error for error in problems if error.exit_code is not Exit.MOVED), problems[0]
    )
    if gravest_problem.fix:
        say(f"  fix: {gravest_problem.fix}")
    return gravest_problem.exit_code


def _print_written(write_result: report.WriteResult) -> report.WriteResult:
    """Print what was written to one pull request, and return the result unchanged."""
    if write_result.problem is not None:
        say(f"geneb-ci: {write_result.subject}: {visible(write_result.problem.message)}")
    if write_result.written is not None:
        written_parts = [name for name, is_new in write_result.written._asdict().items() if is_new]
        sentence = (
            f"wrote {', '.join(written_parts)}"
            if written_parts
            else "nothing to write, already up to date"
        )
        say(f"{write_result.subject}: {write_result.outcome}; {sentence}")
    return write_result


LIST_WIDTH_MIN = 80
"""Minimum width in columns of the list of pull requests."""


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; default: GITHUB_REPOSITORY.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    metavar="N",
    help="Number of pull requests to list.",
)
@format_option(["text", "json", "markdown"])
@OLD_JSON_OPTION
@old_option("--markdown", "--format markdown", "format_", "markdown")
@_AUTHOR_OPTION
@click.option(
    "--cache/--no-cache", hidden=True, expose_value=False, help="Has no effect: nothing is cached."
)
def triage_command(repo: str | None, limit: int, format_: str, verdict_author_id: int) -> int:
    """List the open pull requests: author, age, verdict, effect on the board, who does what next.

    Pull requests that wait for a maintainer come first, the oldest on top; "!" marks those that
    have waited for more than a week. Only comments of geneb-ci are read, not the content of pull
    requests. Weight is the sum of the scores of all warnings: if it is 10 or more, audit the row
    before the merge.
    """
    with connect(repo, own_account_id=verdict_author_id) as github:
        queue = read_queue(github)
    if format_ == "json":
        queue_report = as_json(queue, limit)
    elif format_ == "markdown":
        queue_report = markdown(queue, limit)
    else:
        is_terminal = sys.stdout.isatty()
        width = max(LIST_WIDTH_MIN, shutil.get_terminal_size((140, 24)).columns)
        color = is_terminal and not is_plain()
        queue_report = terminal(queue, limit, color=color, width=width)
    write(Output("text", STDOUT), queue_report)
    pull = waiting_pull(queue, github.connection.repository)
    if format_ == "text" and pull is not None:
        echo(next_line(pull_command(pull, github.connection.repository)))
    return Exit.NOT_CHECKED if queue.unreadable else Exit.CLEAN
