"""`geneb-ci next`: where things stand, and the one command that comes next."""

import click

from geneb_ci.api import next_step
from geneb_ci.cli.shared import format_option, row_width
from geneb_ci.situation.table import COLUMNS, Role


@click.command("next")
@click.option(
    "--as",
    "role",
    type=click.Choice([str(role) for role in Role], case_sensitive=False),
    help="Whose next step; default: that of whose work the folder has.",
)
@click.option(
    "--repo",
    metavar="OWNER/NAME",
    help="Ask GitHub too, by the token in GH_TOKEN: pull requests, and since when commitments are "
    "public.",
)
@click.option(
    "--space", metavar="OWNER/NAME", help="Ask the Hub too: which board is published there."
)
@format_option(["text", "json"])
def next_command(role: str | None, repo: str | None, space: str | None, format_: str) -> None:
    """Say where things stand in at most ten lines, and print the one command that comes next.

    For a contributor it looks at the branch, the row, its card, extractor and receipt; for a
    maintainer at statements, audits that began, the rows and the published board. A word in
    capitals in the command stands for what no file says. It writes nothing, runs no code of a
    submission, and asks no server that is not named; what was not looked at is named.
    """
    step = next_step(role, repository=repo, space=space)
    text = step.to_json() if format_ == "json" else step.text(min(row_width(), COLUMNS))
    click.echo(text, nl=False)
