"""`geneb-ci publish`: the board of the merged tree to the Space, in one commit, once."""

import click

from geneb_ci.cli.generations import HEAD, built, repository_here, space_name
from geneb_ci.cli.look import say, show_changes, show_health
from geneb_ci.errors import Exit
from geneb_ci.publish.faults import Refused
from geneb_ci.publish.push import Newest, push
from geneb_ci.publish.space import Space
from geneb_ci.publish.token import find_token, token_to_read
from geneb_ci.report.published import published_line

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
    resource = f"spaces/{name}"
    reading = dry_run or verify
    target = Space(
        name, token=token_to_read(resource) if reading else find_token(resource, say=say)
    )
    if verify:
        return show_health(target, made, repository)
    if dry_run:
        return show_changes(target, Newest(made, repository))
    done = push(target, Newest(made, repository), say=say)
    click.echo(published_line(target.resource, done))
    return Exit.CLEAN
