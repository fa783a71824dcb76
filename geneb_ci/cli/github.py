"""Commands of GitHub jobs and of maintainers: `reconcile`, `report`, `triage`."""

import os
import re
import shutil
import sys
from pathlib import Path

import click

from geneb_ci.cli.shared import STDOUT, Output, write
from geneb_ci.common.config import find_layout
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
@click.option("--repo", metavar="OWNER/NAME", help="Repository; GITHUB_REPOSITORY unless said.")
@click.option("--head-sha", metavar="SHA", help="Judge the open pull request with this head.")
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="Judge this pull request.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account that writes the verdicts; that of GitHub Actions unless said.",
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write the verdict here.")
def reconcile_command(
    repo: str | None, head_sha: str | None, pr: int | None, author_id: int, output: str
) -> int:
    """Read pull requests by SHA, check them, and print a verdict: JSON on one line.

    With neither --head-sha nor --pr it takes the open ones that have no verdict yet, the longest
    waiting first. Run it in a checkout of the base branch, with a token that may read (GH_TOKEN).
    In GitHub Actions the verdict is also the step's output `verdict`. The exit code is 4 where the
    head has moved: its new commits are queued.
    """
    if head_sha == "":  # a schedule or a dispatch has no head
        head_sha = None
    if head_sha is not None and not _SHA.fullmatch(head_sha):
        raise UsageProblem(
            f"{quoted(head_sha)} is not the SHA of a commit", "give all its 40 hex digits"
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
    # Without a pull request there is nothing to report: the job that may write is not started.
    if os.environ.get("GITHUB_OUTPUT") and found.verdict.pulls:
        with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as outputs:
            outputs.write(f"verdict={line}\n")  # one line of ASCII: no delimiter to guess
    done = ", ".join(f"{pull.number}: {pull.outcome.value}" for pull in found.verdict.pulls)
    left = f"; {found.verdict.waiting} left for the next run" if found.verdict.waiting else ""
    click.echo(f"{done or 'every open pull request has its verdict'}{left}", err=True)
    return Exit.CLEAN


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; GITHUB_REPOSITORY unless said.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account that the token writes as; that of GitHub Actions unless said.",
)
def report_command(repo: str | None, author_id: int) -> int:
    """Write the verdict in the environment variable VERDICT: a comment, labels, a status.

    It sees nothing of a pull request but the verdict, which it checks again. Nothing is written
    twice, and nothing where the head has moved since (exit code 4).
    """
    with connect(repo, author=author_id) as github:
        verdict = decode(os.environ.get("VERDICT", ""), github.wire.repository)
        problems = [error for pull in verdict.pulls if (error := _written(github, pull))]
    if not verdict.pulls:
        click.echo("the verdict names no pull request: nothing to write", err=True)
    if not problems:
        return Exit.CLEAN
    # A head that moved is nobody's fault: any other problem says more.
    worst = next((error for error in problems if error.exit_code is not Exit.MOVED), problems[0])
    if worst.fix:
        click.echo(f"  fix: {worst.fix}", err=True)
    return worst.exit_code


def _written(github: GitHub, pull: PullVerdict) -> GenebError | None:
    """Write one verdict and say so; gives what went wrong, which hides no other."""
    try:
        written = publish(github, pull)
    except GenebError as error:
        click.echo(f"geneb-ci: {pull.number}: {visible(error.message)}", err=True)
        return error
    done = [name for name, is_new in written._asdict().items() if is_new]
    what = f"wrote {', '.join(done)}" if done else "nothing to write, all of it is there"
    click.echo(f"{pull.number}: {pull.outcome.value}; {what}", err=True)
    return None


NARROWEST = 80


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; GITHUB_REPOSITORY unless said.")
@click.option("--limit", type=click.IntRange(min=1), default=30, show_default=True, metavar="N")
@click.option("--json", "style", flag_value="json", help="Print JSON.")
@click.option("--markdown", "style", flag_value="markdown", help="Print Markdown.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account that writes the verdicts; that of GitHub Actions unless said.",
)
@click.option("--cache/--no-cache", default=True, help="Keep GitHub's answers for the next time.")
def triage_command(
    repo: str | None, limit: int, style: str | None, author_id: int, cache: bool
) -> int:
    """List the open submissions: age, verdict, warnings by weight, level, cost of an audit.

    Those that wait for a maintainer stand first, the oldest above; "!" marks what waits for more
    than a week. It reads our own comments, nothing of what pull requests hold. Weight is the sum of
    the scores of all warnings; from 10 on, an audit comes before the merge.
    """
    etags = Etags(_cache() if cache else None)
    with connect(repo, author=author_id, etags=etags) as github:
        try:
            queue = read_queue(github)
        finally:
            etags.save()  # after a limit, the next run goes on from here
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


def _cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "geneb-ci" / "github.json"
