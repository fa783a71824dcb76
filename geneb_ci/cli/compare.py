"""`geneb-ci compare`: two models, or two checkpoints of one, with the intervals of pairs."""

from pathlib import Path

import click

from geneb_ci.api import compare
from geneb_ci.cli.shared import format_option
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.receipt.compared import RESAMPLES
from geneb_ci.render.compared import COMPARED_WRITERS
from reference_harness.formats.text import plural

TWO = 2
RESAMPLES_MAX = 100_000


@click.command(no_args_is_help=False)
@click.argument("arguments", metavar="A B", nargs=-1)
@click.option("--by-task", is_flag=True, help="Also a line a task, with McNemar's exact test.")
@click.option(
    "--resamples",
    type=click.IntRange(100, RESAMPLES_MAX),
    default=RESAMPLES,
    show_default=True,
    help="Number of resamples of the intervals.",
)
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Benchmark definition; default: that of `geneb-ci check`, or a shipped one.",
)
@format_option(COMPARED_WRITERS)
def compare_command(
    arguments: tuple[str, ...],
    resamples: int,
    definition: Path | None,
    format_: str,
    *,
    by_task: bool,
) -> int:
    """Compare A and B, two submissions or run records: differences in MCC with intervals.

    Where the predictions of both are available, beside a receipt, test sequences are drawn again,
    the same for both; otherwise tasks. X.json or X is the file X.json with the files of its receipt
    in the folder X, or else the row X of this repository; write FILE=DIR where they are elsewhere.
    """
    if len(arguments) != TWO:
        raise UsageProblem(
            f"two models are compared, found {plural(len(arguments), 'name')}",
            "name a submission or a run record of each: one.json two.json",
        )
    first, second = arguments
    compared = compare(first, second, resamples=resamples, benchmark=definition)
    names = (compared.a, compared.b)
    click.echo(COMPARED_WRITERS[format_](names, compared.regimes, by_task=by_task), nl=False)
    return Exit.CLEAN
