"""`geneb-ci audit plan`: draw the tasks, or compute the detection power of a sample size."""

import functools
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.beacon_source import BeaconSource, beacon_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.draw import draw, drawn_before, earlier_draws, recompute, targets_of
from geneb_ci.audit.plan import encoded, read_commitment
from geneb_ci.audit.policy import audit_policy
from geneb_ci.audit.power import design_of, detection, needed, probability, shown, size_of
from geneb_ci.audit.repository import AuditRepository, earlier_plans
from geneb_ci.cli.shared import STDOUT, Output, write
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import plural
from geneb_ci.render.audits import plan_text


def earlier_option(function: Any) -> Any:  # noqa: ANN401 (a decorator of click)
    """Add the option `--earlier`."""
    return click.option(
        "--earlier",
        multiple=True,
        metavar="PLAN",
        type=click.Path(path_type=Path),
        help="Earlier plan for this model; its tasks are rerun as well.",
    )(function)


def source_options(function: Any) -> Any:  # noqa: ANN401
    """Add the options for the source of the beacon value."""
    file = click.Path(path_type=Path)
    options = (
        click.option(
            "--beacon-file", metavar="F", type=file, help="Beacon round, as JSON from a relay."
        ),
        click.option(
            "--relay", multiple=True, metavar="URL", help="Use this relay, not the public ones."
        ),
        click.option(
            "--fallback-key-file",
            metavar="F",
            type=file,
            help="Key for the fallback, after an hour without the beacon.",
        ),
        click.option("--why", default="", metavar="TEXT", help="Fallback: what was unavailable."),
        click.option(
            "--reveal", is_flag=True, help="Fallback: reveal the key, which ends its use."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def wanted_design(
    commitment: Commitment,
    detect: int | None,
    confidence: str | None,
    task_power: str,
    *,
    to_stderr: bool,
) -> int:
    """Print the power table and return the sample size asked for; 0 without --detect."""
    if (detect is None) != (confidence is None):
        raise UsageProblem(
            "--detect and --confidence need each other", "write --detect 20 --confidence 0.95"
        )
    if detect is None or confidence is None:
        return 0
    from geneb_ci.render.audits import power_table  # noqa: PLC0415 (rich costs 30 ms to import)

    design = design_of(commitment.tasks, commitment.policy.strata)
    power = probability(task_power, "--task-power")
    size = needed(design, detect, probability(confidence, "--confidence"), power)
    committed = commitment.policy.drawn
    marked = {committed: "committed"}
    marked[size] = "committed, requested" if size == committed else "requested"
    click.echo(power_table(design, marked, power), nl=False, err=to_stderr)
    click.echo(
        f"{plural(size, 'drawn task')} of {design.tasks}: one of {detect} fabricated is found "
        f"with probability {shown(detection(design, detect, size, power))}; the committed "
        f"{committed} find it with {shown(detection(design, detect, committed, power))}",
        err=to_stderr,
    )
    return size


def table_was_all(detect: int | None) -> None:
    """Raise UsageProblem if neither a draw nor a table was requested."""
    if detect is None:
        raise UsageProblem(
            "--committed-at is missing: the time at which the commitment became public",
            "pass --committed-at T to draw, or only --detect M --confidence P for the table",
        )


@click.command()
@click.argument("commitment_file", metavar="COMMITMENT", type=click.Path(path_type=Path))
@click.option("--committed-at", metavar="T", help="Time of publication of the digest, UTC.")
@click.option(
    "--drawn",
    type=click.IntRange(1),
    metavar="K",
    help="Draw K tasks, at least as many as committed.",
)
@click.option(
    "--detect",
    type=click.IntRange(1),
    metavar="M",
    help="Size the sample to detect M fabricated tasks.",
)
@click.option("--confidence", metavar="P", help="Probability of detection; needs --detect.")
@click.option(
    "--task-power",
    default="1",
    metavar="Q",
    help="Probability that a rerun detects a fabricated task.",
)
@click.option(
    "--targeted",
    type=click.IntRange(0),
    default=0,
    metavar="C",
    help="Add C tasks by the published rule.",
)
@click.option(
    "--submission", type=click.Path(path_type=Path), help="Submission file, for --targeted."
)
@earlier_option
@source_options
@click.option("--output", default=STDOUT, metavar="PLAN.json", help="File to write.")
def plan_command(
    commitment_file: Path,
    committed_at: str | None,
    drawn: int | None,
    detect: int | None,
    confidence: str | None,
    task_power: str,
    targeted: int,
    submission: Path | None,
    earlier: tuple[Path, ...],
    output: str,
    **source: Any,  # noqa: ANN401 (click's own types)
) -> None:
    """Draw the tasks that an audit of COMMITMENT reruns.

    The time at which the commitment became public determines the round of the beacon, whose value
    nobody knew then. With --detect and --confidence, the detection power of sample sizes is printed
    and a large enough sample is drawn; without --committed-at, only the table is printed.
    """
    commitment = read_commitment(commitment_file)
    to_stderr = output == STDOUT and committed_at is not None
    wanted = wanted_design(commitment, detect, confidence, task_power, to_stderr=to_stderr)
    if committed_at is None:
        table_was_all(detect)
        return
    layout, say = find_layout(Path.cwd()), functools.partial(click.echo, err=True)
    plans = earlier_plans(commitment, AuditRepository(layout), earlier)
    history = earlier_draws(plans, commitment, committed_at)
    size = size_of(commitment, drawn, wanted, drawn_before(plans, commitment))
    beacon = beacon_of(commitment, committed_at, BeaconSource(**source), audit_policy(layout), say)
    plan = draw(commitment, committed_at, beacon, drawn=size, earlier=history)
    aimed = targets_of(plan, targeted, submission, layout)
    plan = draw(commitment, committed_at, beacon, drawn=size, earlier=history, targeted=aimed)
    recompute(plan)
    write(Output("json", output), encoded(plan))
    name = "PLAN.json" if output == STDOUT else output
    click.echo(plan_text(plan, targeted, name), nl=False, err=to_stderr)
