"""`geneb-ci replay`: which rows a change of rules would newly fail."""

import click

from geneb_ci.cli.folder import layout_here
from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.errors import Exit
from geneb_ci.publish.replay import replay
from geneb_ci.report.replay import WRITERS


@click.command()
@click.option(
    "--rules", required=True, metavar="REF", help="Commit, branch or tag that holds the rules."
)
@click.option(
    "--format", "format_", type=click.Choice(list(WRITERS)), default="text", show_default=True
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def command(rules: str, format_: str, output: str) -> int:
    """Say which rows of the working tree the rules of REF would newly fail, before they land.

    Rules, benchmark and policy are those of REF, the rows those of the working tree; what the rules
    of this installation find is known already. The rules of REF are code, and are run: never name
    a commit of a stranger's pull request. The exit code is 11 where a row would newly fail.
    """
    found = replay(layout_here(), rules)
    write(Output(format_, output), WRITERS[format_](found))
    return Exit.ERRORS if found.fails else Exit.CLEAN
