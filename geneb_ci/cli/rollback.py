"""`geneb-ci rollback`: an earlier generation in the place of the live one."""

import click

from geneb_ci.cli.generations import HEAD, built, repository_here, space_name
from geneb_ci.cli.look import say
from geneb_ci.cli.publish import SPACE
from geneb_ci.errors import Exit
from geneb_ci.publish.generation import source_of
from geneb_ci.publish.push import push
from geneb_ci.publish.retry import attempt
from geneb_ci.publish.rollback import (
    AS_PUBLISHED,
    Earlier,
    as_published,
    find_generation,
    hold_against,
    must_be_of_main,
)
from geneb_ci.publish.space import Space
from geneb_ci.publish.token import find_token
from geneb_ci.report.published import published_line


@click.command()
@click.argument("generation")
@SPACE
@click.option(
    "--as-published",
    "fetched",
    is_flag=True,
    help="Take the bytes that the Space held, where this version builds others or none.",
)
def command(generation: str, space: str | None, *, fetched: bool) -> int:
    """Publish GENERATION again, in the place of all that HEAD holds.

    It is rebuilt from its commit and must equal what was published then. It stays live until main
    changes: a job for HEAD or an earlier commit is refused.
    """
    name = space_name(space)
    repository = repository_here()
    covers = source_of(repository, repository.resolve(HEAD))
    target = Space(name, token=find_token(f"spaces/{name}", say=say))
    held = attempt(lambda: find_generation(target, generation), say=say)
    must_be_of_main(held.manifest, covers, repository)
    if fetched:
        made = attempt(lambda: as_published(target, held), say=say)
    else:
        code, rebuilt = built(repository, held.manifest.source_commit)
        if rebuilt is None:
            click.echo(f"  fix: {AS_PUBLISHED}", err=True)
            return code
        hold_against(held.manifest, rebuilt)
        made = rebuilt
    done = push(target, Earlier(made, covers, repository), say=say)
    click.echo(published_line(target.resource, done))
    return Exit.CLEAN
