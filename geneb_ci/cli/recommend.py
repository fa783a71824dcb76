"""`geneb-ci recommend`: which model to take for a need, and why."""

from pathlib import Path

import click

from geneb_ci.build.analysed import advised
from geneb_ci.build.need import TRUST, parameters
from geneb_ci.build.recommend_shape import Need
from geneb_ci.cli.folder import FOLDER, Loaded, load
from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.config import benchmark_of
from geneb_ci.errors import Exit
from geneb_ci.report.advice import WRITERS


@click.command()
@FOLDER
@click.option("--category", help='As in "Splice Sites"; without it, the mean of all categories.')
@click.option("--regime", default="full", show_default=True, help="How much training data.")
@click.option("--max-params", metavar="COUNT", help="The most parameters, as in 500M or 1.2B.")
@click.option("--level", type=click.Choice(TRUST), help="The least trust level.")
@click.option(
    "--format", "format_", type=click.Choice(list(WRITERS)), default="text", show_default=True
)
@click.option("--output", default=STDOUT, metavar="FILE", help="Write here.")
def command(
    folder: Path | None,
    category: str | None,
    regime: str,
    max_params: str | None,
    level: str | None,
    format_: str,
    output: str,
) -> int:
    """Say which model of FOLDER scores best for a need, what ties with it, and which is smallest.

    Every submission is checked first. A tie is a difference of scores that is smaller than its
    uncertainty: docs/uncertainty.md. The exit code is 3 when no model meets size and level.
    """
    most = None if max_params is None else parameters(max_params)
    need = Need(category=category, regime=regime, max_params=most, level=level)
    loaded = load(folder, "nothing was recommended", "recommend FOLDER")
    if not isinstance(loaded, Loaded):
        return loaded
    advice = advised(need, loaded.entries, benchmark_of(loaded.layout))
    write(Output(format_, output), WRITERS[format_](advice))
    return Exit.NOT_CHECKED if advice.best is None else Exit.CLEAN
