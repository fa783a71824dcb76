"""`publish --dry-run` and `publish --verify`: looking at the Space without sending anything."""

import click

from geneb_ci.errors import Exit
from geneb_ci.publish.difference import BOARD, file_changes, models_of, row_changes
from geneb_ci.publish.generation import Generation
from geneb_ci.publish.git import Repository
from geneb_ci.publish.health import look
from geneb_ci.publish.push import Newest
from geneb_ci.publish.retry import attempt
from geneb_ci.publish.space import Space
from geneb_ci.report.published import Preview, changes, health_lines, named, preview_line


def show_health(space: Space, made: Generation, repository: Repository) -> Exit:
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
