"""The command `geneb-ci next`: the state of the work, and the next command."""

import click

from geneb_ci.api import next_step
from geneb_ci.cli.shared import format_option, list_width
from geneb_ci.situation.table import STEP_COLUMNS, Role


@click.command("next")
@click.option(
    "--as",
    "role",
    type=click.Choice([str(role) for role in Role], case_sensitive=False),
    help="Role whose next step is shown; default: the role whose work the folder contains.",
)
@click.option(
    "--repo",
    metavar="OWNER/NAME",
    help="Also ask GitHub, with the token in GH_TOKEN: for pull requests, and since when "
    "commitments have been public.",
)
@click.option(
    "--space", metavar="OWNER/NAME", help="Also ask the Hub which board is published there."
)
@format_option(["text", "json"])
def next_command(role: str | None, repo: str | None, space: str | None, format_: str) -> None:
    """Show the state of the work in at most ten lines, and print the next command.

    For a contributor the state is that of the branch, the row, its card, extractor and receipt; for
    a maintainer, of statements, started audits, rows and the published board. Replace each word in
    capitals in the command: no file has its value. The command writes nothing, runs no code of a
    submission, and asks only servers that an option names; it lists what it did not look at.
    """
    step = next_step(role, repository=repo, space=space)
    step_text = step.to_json() if format_ == "json" else step.text(min(list_width(), STEP_COLUMNS))
    click.echo(step_text, nl=False)
