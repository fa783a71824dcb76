"""Options of `geneb-ci audit plan`, and its table of what a sample finds."""

from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.power import detection, needed, shown
from geneb_ci.audit.size import design_of, probability
from geneb_ci.errors import UsageProblem
from geneb_ci.finding import counted


def earlier_option(function: Any) -> Any:  # noqa: ANN401 (a decorator of click)
    """Add the option that names earlier draws."""
    return click.option(
        "--earlier",
        multiple=True,
        metavar="PLAN",
        type=click.Path(path_type=Path),
        help="An earlier draw for this model; its tasks are rerun, too.",
    )(function)


def source_options(function: Any) -> Any:  # noqa: ANN401
    """Add the options that say where the beacon's value comes from, in this order."""
    file = click.Path(path_type=Path)
    options = (
        click.option(
            "--beacon-file", metavar="F", type=file, help="The round, as a relay gives it."
        ),
        click.option(
            "--relay", multiple=True, metavar="URL", help="Ask here, not the public relays."
        ),
        click.option(
            "--fallback-key-file", metavar="F", type=file, help="After an hour without the beacon."
        ),
        click.option("--why", default="", metavar="TEXT", help="For the fallback: what was out."),
        click.option("--reveal", is_flag=True, help="For the fallback: the last use of its key."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def wanted(
    commitment: Commitment,
    detect: int | None,
    confidence: str | None,
    task_power: str,
    *,
    to_stderr: bool,
) -> int:
    """Find the size of sample that is asked for, and print the table; 0 when none is."""
    if (detect is None) != (confidence is None):
        raise UsageProblem(
            "--detect and --confidence belong together", "write --detect 20 --confidence 0.95"
        )
    if detect is None or confidence is None:
        return 0
    from geneb_ci.report.power import power_table  # noqa: PLC0415 (rich costs 30 ms to import)

    design = design_of(commitment.tasks, commitment.policy.strata)
    power = probability(task_power, "--task-power")
    size = needed(design, detect, probability(confidence, "--confidence"), power)
    committed = commitment.policy.drawn
    marked = {committed: "committed"}
    marked[size] = "committed, asked for" if size == committed else "asked for"
    click.echo(power_table(design, marked, power), nl=False, err=to_stderr)
    click.echo(
        f"{counted(size, 'drawn task')} of {design.tasks}: one of {detect} fabricated is found "
        f"with probability {shown(detection(design, detect, size, power))}; the committed "
        f"{committed} find it with {shown(detection(design, detect, committed, power))}",
        err=to_stderr,
    )
    return size


def table_was_all(detect: int | None) -> None:
    """Refuse to end without a draw where no table was asked for either. Raises UsageProblem."""
    if detect is None:
        raise UsageProblem(
            "nothing says when the commitment became public",
            "--committed-at T draws; --detect M --confidence P alone prints the table",
        )
