"""Commands for GitHub jobs and maintainers: `reconcile`, `report`, `triage`."""

import os
import re
import shutil
import sys
from pathlib import Path

import click

from geneb_ci.cli.shared import STDOUT, Output, write
from geneb_ci.common.config import cache_folder, find_layout
from geneb_ci.common.errors import Exit, GenebError, UsageProblem
from geneb_ci.common.finding import quoted
from geneb_ci.github.api import ACTIONS_BOT, GitHub, connect
from geneb_ci.github.comment import publish
from geneb_ci.github.queue import as_json, markdown, read_queue, terminal
from geneb_ci.github.reconcile import one_pull, pull_of, sweep, verdicts
from geneb_ci.github.verdict import PullVerdict, decode, encode
from geneb_ci.github.wire import Etags
from geneb_ci.render.plain import visible

_SHA = re.compile(r"[0-9a-f]{40}")


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; default: GITHUB_REPOSITORY.")
@click.option("--head-sha", metavar="SHA", help="Check the open pull request with this head.")
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="Check this pull request.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account that writes the verdicts; default: that of GitHub Actions.",
)
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write the verdict to.")
def reconcile_command(
    repo: str | None, head_sha: str | None, pr: int | None, author_id: int, output: str
) -> int:
    """Check pull requests, read by commit SHA, and print a verdict: JSON on one line.

    Without --head-sha and --pr it checks open pull requests that have no verdict yet, the oldest
    first. Run it in a checkout of the base branch, with a read-only token (GH_TOKEN). In GitHub
    Actions the verdict is also the step's output `verdict`. The exit code is 4 if the pull request
    has new commits; they are queued.
    """
    if head_sha == "":  # a schedule or a dispatch has no head
        head_sha = None
    if head_sha is not None and not _SHA.fullmatch(head_sha):
        raise UsageProblem(
            f"{quoted(head_sha)} is not the SHA of a commit", "pass all 40 hex digits"
        )
    layout = find_layout(Path.cwd())
    with connect(repo, author=author_id) as github:
        if pr is not None:
            found = verdicts(github, layout, [one_pull(github, pr, head_sha)])
        elif head_sha is not None:
            found = verdicts(github, layout, [pull_of(github, head_sha)])
        else:
            found = sweep(github, layout, lambda text: click.echo(text, err=True))
    if found.problems and not found.verdict.pulls:
        raise found.problems[0]
    for problem in found.problems:
        click.echo(f"geneb-ci: {visible(problem.message)}", err=True)
    line = encode(found.verdict)
    write(Output("json", output), f"{line}\n")
    # Without a pull request there is nothing to report: the job with write access does not start.
    if os.environ.get("GITHUB_OUTPUT") and found.verdict.pulls:
        with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as outputs:
            outputs.write(f"verdict={line}\n")  # one line of ASCII: no delimiter to guess
    done = ", ".join(f"{pull.number}: {pull.outcome.value}" for pull in found.verdict.pulls)
    left = f"; {found.verdict.waiting} left for the next run" if found.verdict.waiting else ""
    click.echo(f"{done or 'every open pull request has its verdict'}{left}", err=True)
    return Exit.CLEAN


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; default: GITHUB_REPOSITORY.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account of the token; default: that of GitHub Actions.",
)
def report_command(repo: str | None, author_id: int) -> int:
    """Write the verdict from the environment variable VERDICT: a comment, labels, a status.

    It reads nothing of the pull request's content, only the verdict, which it validates. Nothing is
    written twice, and nothing if the pull request has new commits since (exit code 4).
    """
    with connect(repo, author=author_id) as github:
        verdict = decode(os.environ.get("VERDICT", ""), github.wire.repository)
        problems = [error for pull in verdict.pulls if (error := _written(github, pull))]
    if not verdict.pulls:
        click.echo("the verdict names no pull request: nothing to write", err=True)
    if not problems:
        return Exit.CLEAN
    # Any other error is more important than a pull request with new commits.
    worst = next((error for error in problems if error.exit_code is not Exit.MOVED), problems[0])
    if worst.fix:
        click.echo(f"  fix: {worst.fix}", err=True)
    return worst.exit_code


def _written(github: GitHub, pull: PullVerdict) -> GenebError | None:
    """Write one verdict and print what was done. Return the error, if there was one."""
    try:
        written = publish(github, pull)
    except GenebError as error:
        click.echo(f"geneb-ci: {pull.number}: {visible(error.message)}", err=True)
        return error
    done = [name for name, is_new in written._asdict().items() if is_new]
    what = f"wrote {', '.join(done)}" if done else "nothing to write, already up to date"
    click.echo(f"{pull.number}: {pull.outcome.value}; {what}", err=True)
    return None


NARROWEST = 80


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; default: GITHUB_REPOSITORY.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    metavar="N",
    help="Number of submissions to list.",
)
@click.option("--json", "style", flag_value="json", help="Print JSON.")
@click.option("--markdown", "style", flag_value="markdown", help="Print Markdown.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account that writes the verdicts; default: that of GitHub Actions.",
)
@click.option("--cache/--no-cache", default=True, help="Cache GitHub's responses.")
def triage_command(
    repo: str | None, limit: int, style: str | None, author_id: int, cache: bool
) -> int:
    """List the open submissions: age, verdict, weight of warnings, level, cost of an audit.

    Those that wait for a maintainer come first, oldest on top; "!" marks those waiting for more
    than a week. Only our own comments are read, not the content of pull requests. Weight is the sum
    of the scores of all warnings; from 10 on, audit before merging.
    """
    etags = Etags(cache_folder("github.json") if cache else None)
    with connect(repo, author=author_id, etags=etags) as github:
        try:
            queue = read_queue(github)
        finally:
            etags.save()  # also after a rate limit, so that the next run can continue
    if style == "json":
        text = as_json(queue, limit)
    elif style == "markdown":
        text = markdown(queue, limit)
    else:
        is_terminal = sys.stdout.isatty()
        width = max(NARROWEST, shutil.get_terminal_size((140, 24)).columns)
        color = is_terminal and not os.environ.get("NO_COLOR")
        text = terminal(queue, limit, color=color, width=width)
    write(Output("text", STDOUT), text)
    return Exit.CLEAN
