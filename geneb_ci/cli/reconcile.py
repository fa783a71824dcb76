"""`geneb-ci reconcile`: read pull requests, and write a verdict for `geneb-ci report`."""

import os
import re
from pathlib import Path

import click

from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.config import find_layout
from geneb_ci.errors import Exit, UsageProblem
from geneb_ci.finding import shown
from geneb_ci.forge.envelope import encode
from geneb_ci.forge.github import ACTIONS_BOT, connect
from geneb_ci.forge.reconcile import one_pull, pull_of, sweep, verdicts
from geneb_ci.report.plain import visible

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
def command(
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
            f"{shown(head_sha)} is not the SHA of a commit", "give all its 40 hex digits"
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
