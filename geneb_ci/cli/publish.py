"""Commands for publishing: `publish`, `rollback`, `ledger`, `replay`."""

import click

from geneb_ci.board.files import encode
from geneb_ci.cli.repository import HEAD, built, layout_here, repository_here, space_name
from geneb_ci.cli.shared import STDOUT, Output, format_option, write
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
    """Print which generation is live; return 11 if it is not the expected one or incomplete."""
    health = attempt(lambda: look(space, made, repository), say=say)
    for line in health_lines(space.resource, health, made.manifest):
        click.echo(line)
    return Exit.CLEAN if health.sound else Exit.ERRORS


def show_changes(space: Space, intent: Newest) -> Exit:
    """Show what a publish would change. Raises NotFastForward if it would be rejected."""
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
    """Print a progress message to standard error."""
    click.echo(line, err=True)


SPACE = click.option("--space", metavar="OWNER/NAME", help="Space; default: HF_OIDC_RESOURCE.")


@click.command()
@SPACE
@click.option("--dry-run", is_flag=True, help="Show what would change, without uploading.")
@click.option("--verify", is_flag=True, help="Compare the Space with main.")
@click.option("--expect", metavar="GENERATION", help="Fail unless this is the generation.")
def publish_command(space: str | None, dry_run: bool, verify: bool, expect: str | None) -> int:
    """Check all rows, build the board of HEAD, and publish it in one commit.

    Nothing is uploaded if nothing changed, or if the Space has a newer generation.
    """
    name = space_name(space)
    repository = repository_here()
    code, made = built(repository, HEAD)
    if made is None:
        return code
    if expect is not None and expect != made.manifest.generation:
        raise HubRefused(
            f"this commit gives generation {made.manifest.generation}, expected {expect}",
            "use the geneb-ci version and the commit of the expected generation",
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
    help="Publish the bytes that the Space had, if this version cannot rebuild them.",
)
def rollback_command(generation: str, space: str | None, *, fetched: bool) -> int:
    """Publish an earlier GENERATION again, instead of that of HEAD.

    It is rebuilt from its commit and must equal what was published. It stays live until main
    changes: publishing HEAD or an earlier commit is rejected.
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
@click.option(
    "--at",
    "commit",
    default=HEAD,
    show_default=True,
    metavar="COMMIT",
    help="Commit, branch or tag up to which events are listed.",
)
@format_option(["text", "json"])
def ledger_command(commit: str, format_: str) -> int:
    """List the events of all rows up to a commit, oldest first."""
    repository = repository_here()
    found = ledger(repository, repository.resolve(commit))
    if format_ == "json":
        click.echo(encode(LEDGER, found.model_dump(mode="json")).decode())
        return Exit.CLEAN
    for line in table(found):
        click.echo(line)
    return Exit.CLEAN


@click.command()
@click.option("--rules", required=True, metavar="REF", help="Commit, branch or tag with the rules.")
@format_option(REPLAY_WRITERS)
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def replay_command(rules: str, format_: str, output: str) -> int:
    """List the rows of the working tree that the rules of REF would newly reject.

    Rules, benchmark and policy are those of REF, rows those of the working tree; errors that the
    installed rules find are not listed. The rules of REF are executed: never pass a commit of an
    untrusted pull request. The exit code is 11 if a row would newly be rejected.
    """
    found = replay(layout_here(), rules)
    write(Output(format_, output), REPLAY_WRITERS[format_](found))
    return Exit.ERRORS if found.fails else Exit.CLEAN
