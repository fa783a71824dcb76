"""The command `geneb-ci compare`: two models or checkpoints, with intervals of differences."""

from pathlib import Path

import click

from geneb_ci.api import compare
from geneb_ci.cli.shared import format_option
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.receipt.compared import RESAMPLES
from geneb_ci.render.compared import COMPARED_WRITERS
from reference_harness.formats.text import plural

MODELS_COMPARED = 2
"""Number of models that a comparison takes."""
RESAMPLES_MAX = 100_000
"""Maximum number of resamples from which intervals are computed."""


@click.command(no_args_is_help=False)
@click.argument("arguments", metavar="A B", nargs=-1)
@click.option(
    "--by-task", is_flag=True, help="Also print a line for each task, with McNemar's exact test."
)
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
    help="Benchmark definition; default: the one that `geneb-ci check` uses, or a shipped one.",
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

    If the predictions of both are available, beside their receipts, the intervals come from
    resampled test sequences, the same for both; otherwise from resampled tasks. X.json or X means
    the file X.json with the files of its receipt in the folder X, or the row X of this repository;
    write FILE=DIR if the receipt is in another folder.
    """
    if len(arguments) != MODELS_COMPARED:
        raise UsageProblem(
            f"found {plural(len(arguments), 'name')}, expected the names of two models",
            "name a submission or a run record of each model: geneb-ci compare one.json two.json",
        )
    first, second = arguments
    compared = compare(first, second, resamples=resamples, benchmark=definition)
    models = (compared.a, compared.b)
    click.echo(COMPARED_WRITERS[format_](models, compared.regimes, by_task=by_task), nl=False)
    return Exit.CLEAN
