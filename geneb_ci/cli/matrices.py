"""`geneb-ci matrices`: the confusion matrices behind printed scores."""

from pathlib import Path

import click

from geneb_ci.build.matrices import recovered
from geneb_ci.check.runner import Checker
from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.finding import shown
from geneb_ci.report.matrices import WRITERS


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--regime", default="full", show_default=True, help="Regime whose cells are taken.")
@click.option(
    "--format", "format_", type=click.Choice(list(WRITERS)), default="text", show_default=True
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def command(file: Path, regime: str, format_: str, output: str) -> int:
    """Recover the confusion matrix behind each two-class cell of a submission.

    Scores with all their digits leave one; rounded ones leave several, and the one nearest to what
    was printed stands for them. A mean over seeds has none: the seeds of format 1.1 are taken.
    The exit code is 11 where a cell has no matrix.
    """
    context = Checker(()).context(file)
    if regime not in context.benchmark.regimes:
        raise UsageProblem(
            f"{shown(regime)} is not a regime of {context.benchmark.name}",
            f"name one of {', '.join(context.benchmark.regimes)}",
        )
    cells = list(recovered(context, regime))
    if not cells:
        raise NothingChecked(
            f'{file}: "{regime}" has no two-class scores of one fit',
            "means over seeds have no matrix: take `--regime full`, or a file of format 1.1; and "
            "see what `geneb-ci check` says",
        )
    write(Output(format_, output), WRITERS[format_](cells))
    return Exit.CLEAN if all(cell.matrices for cell in cells) else Exit.ERRORS
