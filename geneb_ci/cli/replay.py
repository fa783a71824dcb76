"""`geneb-ci replay`: which rows a change of rules would newly fail."""

from pathlib import Path

import click

from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.config import Kind, find_layout
from geneb_ci.errors import Exit, UsageProblem
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
    layout = find_layout(Path.cwd())
    if layout.kind is Kind.ALONE:
        raise UsageProblem(
            "this is no repository of submissions", "run it in a clone of one, at its top"
        )
    found = replay(layout, rules)
    write(Output(format_, output), WRITERS[format_](found))
    return Exit.ERRORS if found.fails else Exit.CLEAN
