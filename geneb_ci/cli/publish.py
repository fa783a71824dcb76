"""`geneb-ci publish`: the board of the merged tree to the Space, in one commit, once."""

import click

from geneb_ci.cli.generations import HEAD, built, repository_here, space_name
from geneb_ci.errors import Exit
from geneb_ci.publish.difference import BOARD, file_changes, row_changes
from geneb_ci.publish.faults import Refused
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import Repository
from geneb_ci.publish.health import look
from geneb_ci.publish.manifest import NAME
from geneb_ci.publish.push import Newest, push
from geneb_ci.publish.retry import attempt
from geneb_ci.publish.space import Space
from geneb_ci.publish.token import find_token
from geneb_ci.report.published import changes, health_lines, published_line

SPACE = click.option(
    "--space", metavar="OWNER/NAME", help="The Space; else that of HF_OIDC_RESOURCE."
)


@click.command()
@SPACE
@click.option("--dry-run", is_flag=True, help="Show what would change, and send nothing.")
@click.option("--verify", is_flag=True, help="Compare what the Space serves with main.")
@click.option("--expect", metavar="GENERATION", help="Refuse to publish any other generation.")
def command(space: str | None, dry_run: bool, verify: bool, expect: str | None) -> int:
    """Build the board of HEAD, check it from zero, and publish it with one commit.

    Nothing is sent when nothing changed, or when the Space holds something newer.
    """
    name = space_name(space)
    repository = repository_here()
    code, made = built(repository, HEAD)
    if made is None:
        return code
    if expect is not None and expect != made.manifest.generation:
        raise Refused(
            f"this commit gives generation {made.manifest.generation}, expected {expect}",
            "publish with the version and the commit that the expected one was built with",
        )
    reading = dry_run or verify
    target = Space(name, token=find_token(f"spaces/{name}", required=not reading))
    if verify:
        return _verify(target, made, repository)
    if dry_run:
        return _dry_run(target, made)
    done = push(target, Newest(made, repository), say=_say)
    click.echo(published_line(target.resource, done))
    return Exit.CLEAN


def _verify(space: Space, made: Generation, repository: Repository) -> Exit:
    health = attempt(lambda: look(space, made, repository), say=_say)
    for line in health_lines(space.resource, health, made.manifest):
        click.echo(line)
    return Exit.CLEAN if health.sound else Exit.ERRORS


def _dry_run(space: Space, made: Generation) -> Exit:
    state = attempt(space.state, say=_say)
    live = attempt(lambda: space.read(BOARD, state.head)) if BOARD in state.files else None
    files = file_changes(state, made)
    ours = {change.name for change in files} | {NAME}
    rows = row_changes(live, made.files[BOARD])
    click.echo(f"{space.resource}: generation {made.manifest.generation} would be published")
    for line in changes(files, rows, len(state.files.keys() - ours)):
        click.echo(line)
    return Exit.CLEAN


def _say(line: str) -> None:
    click.echo(line, err=True)
