"""`geneb-ci compare`: two models, or two checkpoints of one, with the intervals of pairs."""

from pathlib import Path

import click

from geneb_ci.cli.shared import format_option
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.receipt.compared import RESAMPLES, compared_regimes, scored_model
from geneb_ci.render.compared import compared_csv, compared_json, compared_svg, compared_text
from reference_harness.formats.text import plural

_FORMATS = {"text": compared_text, "csv": compared_csv, "json": compared_json, "svg": compared_svg}
TWO = 2
RESAMPLES_MAX = 100_000


@click.command(no_args_is_help=False)
@click.argument("words", metavar="A B", nargs=-1)
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
@format_option(_FORMATS)
def compare_command(
    words: tuple[str, ...], resamples: int, definition: Path | None, format_: str, *, by_task: bool
) -> int:
    """Compare A and B, two submissions or run records: differences in MCC with intervals.

    Where the predictions of both are available, beside a receipt, test sequences are drawn again,
    the same for both; otherwise tasks. X.json or X is the file X.json with the files of its receipt
    in the folder X; write FILE=DIR where they are elsewhere.
    """
    if len(words) != TWO:
        raise UsageProblem(
            f"two models are compared, found {plural(len(words), 'name')}",
            "name a submission or a run record of each: one.json two.json",
        )
    if words[0] == words[1]:
        raise UsageProblem(
            f"both models are {words[0]}, expected two different ones",
            "name another model second",
        )
    first, second = (scored_model(word, definition) for word in words)
    compared = compared_regimes(first, second, resamples)
    names = (first.model_id, second.model_id)
    click.echo(_FORMATS[format_](names, compared, by_task=by_task), nl=False)
    return Exit.CLEAN
