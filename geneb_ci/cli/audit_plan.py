"""`geneb-ci audit plan`: the tasks to rerun, drawn by the public beacon."""

import functools
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.draw import draw
from geneb_ci.audit.earlier import drawn_before, earlier_draws
from geneb_ci.audit.files import encoded, read_commitment
from geneb_ci.audit.history import earlier_plans
from geneb_ci.audit.policy import audit_policy
from geneb_ci.audit.recompute import recompute
from geneb_ci.audit.repository import Repository
from geneb_ci.audit.size import size_of
from geneb_ci.audit.source import Source, beacon_of
from geneb_ci.audit.target import targets_of
from geneb_ci.cli import drawing
from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.config import find_layout
from geneb_ci.report.plan import plan_text


@click.command()
@click.argument("commitment_file", metavar="COMMITMENT", type=click.Path(path_type=Path))
@click.option("--committed-at", metavar="T", help="When the digest became public, in UTC.")
@click.option("--drawn", type=click.IntRange(1), metavar="K", help="Draw more than is committed.")
@click.option("--detect", type=click.IntRange(1), metavar="M", help="Fabricated tasks to find.")
@click.option("--confidence", metavar="P", help="With this probability; needs --detect.")
@click.option("--task-power", default="1", metavar="Q", help="Chance that a rerun finds one.")
@click.option(
    "--targeted",
    type=click.IntRange(0),
    default=0,
    metavar="C",
    help="Add C tasks by the published rule.",
)
@click.option("--submission", type=click.Path(path_type=Path), help="For --targeted: the file.")
@drawing.earlier_option
@drawing.source_options
@click.option("--output", default=STDOUT, metavar="PLAN.json", help="Write here.")
def command(
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

    The moment at which the commitment became public fixes the round of the beacon; nobody knew its
    value then. With --detect and --confidence, the table of what a sample finds is printed, and the
    sample is made large enough; without --committed-at that is all.
    """
    commitment = read_commitment(commitment_file)
    to_stderr = output == STDOUT and committed_at is not None
    wanted = drawing.wanted(commitment, detect, confidence, task_power, to_stderr=to_stderr)
    if committed_at is None:
        drawing.table_was_all(detect)
        return
    layout, say = find_layout(Path.cwd()), functools.partial(click.echo, err=True)
    plans = earlier_plans(commitment, Repository(layout), earlier)
    history = earlier_draws(plans, commitment, committed_at)
    size = size_of(commitment, drawn, wanted, drawn_before(plans, commitment))
    beacon = beacon_of(commitment, committed_at, Source(**source), audit_policy(layout), say)
    plan = draw(commitment, committed_at, beacon, drawn=size, earlier=history)
    aimed = targets_of(plan, targeted, submission, layout)
    plan = draw(commitment, committed_at, beacon, drawn=size, earlier=history, targeted=aimed)
    recompute(plan)
    write(Output("json", output), encoded(plan))
    name = "PLAN.json" if output == STDOUT else output
    click.echo(plan_text(plan, targeted, name), nl=False, err=to_stderr)
