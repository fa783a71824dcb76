"""`geneb-ci report`: write a verdict to its pull request."""

import os

import click

from geneb_ci.errors import Exit, GenebError
from geneb_ci.forge.envelope import decode
from geneb_ci.forge.github import ACTIONS_BOT, GitHub, connect
from geneb_ci.forge.publish import publish
from geneb_ci.forge.verdict import PullVerdict
from geneb_ci.report.plain import visible


@click.command()
@click.option("--repo", metavar="OWNER/NAME", help="Repository; GITHUB_REPOSITORY unless said.")
@click.option(
    "--author-id",
    type=click.IntRange(min=1),
    default=ACTIONS_BOT,
    show_default=True,
    help="Account that the token writes as; that of GitHub Actions unless said.",
)
def command(repo: str | None, author_id: int) -> int:
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
