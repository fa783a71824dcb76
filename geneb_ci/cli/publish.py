"""Commands of publication: `publish`, `rollback`, `ledger`, `replay`."""

import click

from geneb_ci.board.files import encode
from geneb_ci.cli.repository import HEAD, built, layout_here, repository_here, space_name
from geneb_ci.cli.shared import STDOUT, Output, write
from geneb_ci.common.errors import Exit
from geneb_ci.publish.difference import BOARD, file_changes, look, models_of, row_changes
from geneb_ci.publish.faults import HubRefused
from geneb_ci.publish.generation import LEDGER, Generation, source_of
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.push import (
    AS_PUBLISHED,
    Earlier,
    Newest,
    as_published,
    find_generation,
    hold_against,
    must_be_of_main,
    push,
)
from geneb_ci.publish.replay import replay
from geneb_ci.publish.session import attempt, find_token, token_to_read
from geneb_ci.publish.space import Space
from geneb_ci.render.comparison import REPLAY_WRITERS
from geneb_ci.render.published import (
    Preview,
    changes,
    health_lines,
    named,
    preview_line,
    published_line,
    table,
)


def show_health(space: Space, made: Generation, repository: GitRepository) -> Exit:
    """Say which generation is live; exit 11 where it is not the right one, whole."""
    health = attempt(lambda: look(space, made, repository), say=say)
    for line in health_lines(space.resource, health, made.manifest):
        click.echo(line)
    return Exit.CLEAN if health.sound else Exit.ERRORS


def show_changes(space: Space, intent: Newest) -> Exit:
    """Show what a publish would change. Raises Overtaken where it would be refused."""
    made = intent.made
    state = attempt(space.state, say=say)
    if intent.is_live(state):
        click.echo(f"{space.resource}: nothing would change; {named(made.manifest)} is live")
        return Exit.CLEAN
    intent.generation(state)
    live = attempt(lambda: space.read(BOARD, state.head), say=say) if BOARD in state.files else None
    files = file_changes(state, made)
    others = len(state.files.keys() - {change.name for change in files})
    board = made.files[BOARD]
    click.echo(preview_line(space.resource, made.manifest, state.manifest))
    for line in changes(Preview(files, row_changes(live, board), others, models_of(board))):
        click.echo(line)
    return Exit.CLEAN


def say(line: str) -> None:
    """Tell a maintainer what is going on, beside the result."""
    click.echo(line, err=True)


SPACE = click.option(
    "--space", metavar="OWNER/NAME", help="The Space; else that of HF_OIDC_RESOURCE."
)


@click.command()
@SPACE
@click.option("--dry-run", is_flag=True, help="Show what would change, and send nothing.")
@click.option("--verify", is_flag=True, help="Compare what the Space serves with main.")
@click.option("--expect", metavar="GENERATION", help="Refuse to publish any other generation.")
def publish_command(space: str | None, dry_run: bool, verify: bool, expect: str | None) -> int:
    """Build the board of HEAD, check it from zero, and publish it with one commit.

    Nothing is sent when nothing changed, or when the Space holds something newer.
    """
    name = space_name(space)
    repository = repository_here()
    code, made = built(repository, HEAD)
    if made is None:
        return code
    if expect is not None and expect != made.manifest.generation:
        raise HubRefused(
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


@click.command()
@click.argument("generation")
@SPACE
@click.option(
    "--as-published",
    "fetched",
    is_flag=True,
    help="Take the bytes that the Space held, where this version builds others or none.",
)
def rollback_command(generation: str, space: str | None, *, fetched: bool) -> int:
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


@click.command()
@click.option("--at", "commit", default=HEAD, show_default=True, metavar="COMMIT")
@click.option("--format", "shape", type=click.Choice(["text", "json"]), default="text")
def ledger_command(commit: str, shape: str) -> int:
    """List every event of every row up to a commit, oldest first."""
    repository = repository_here()
    found = ledger(repository, repository.resolve(commit))
    if shape == "json":
        click.echo(encode(LEDGER, found.model_dump(mode="json")).decode())
        return Exit.CLEAN
    for line in table(found):
        click.echo(line)
    return Exit.CLEAN


@click.command()
@click.option(
    "--rules", required=True, metavar="REF", help="Commit, branch or tag that holds the rules."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(REPLAY_WRITERS)),
    default="text",
    show_default=True,
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def replay_command(rules: str, format_: str, output: str) -> int:
    """Say which rows of the working tree the rules of REF would newly fail, before they land.

    Rules, benchmark and policy are those of REF, the rows those of the working tree; what the rules
    of this installation find is known already. The rules of REF are code, and are run: never name
    a commit of a stranger's pull request. The exit code is 11 where a row would newly fail.
    """
    found = replay(layout_here(), rules)
    write(Output(format_, output), REPLAY_WRITERS[format_](found))
    return Exit.ERRORS if found.fails else Exit.CLEAN
