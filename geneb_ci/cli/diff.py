"""`geneb-ci diff`: what a change does to the board."""

import click

from geneb_ci.cli.folder import layout_here
from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.errors import Exit
from geneb_ci.publish.comparison import compare
from geneb_ci.report.comparison import WRITERS


@click.command()
@click.option("--base", required=True, metavar="REF", help="Commit, branch or tag to compare with.")
@click.option(
    "--format", "format_", type=click.Choice(list(WRITERS)), default="text", show_default=True
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def command(base: str, format_: str, output: str) -> int:
    """Say what the working tree does to the board of REF.

    Rows added, changed and removed; rows that trade places, by macro MCC of each regime; and which
    of these moves are inside the noise of a finite test set. REF is read from git and never checked
    out; nothing of it is run. The exit code is 11 where a submission of the working tree has
    errors.
    """
    found = compare(layout_here(), base)
    write(Output(format_, output), WRITERS[format_](found))
    return Exit.ERRORS if found.refused else Exit.CLEAN
