"""`geneb-ci audit plan`: the tasks to rerun, drawn by the public beacon."""

from pathlib import Path

import click

from geneb_ci.audit.draw import draw
from geneb_ci.audit.earlier import drawn_before, earlier_draws
from geneb_ci.audit.files import encoded, read_commitment
from geneb_ci.audit.recompute import recompute
from geneb_ci.cli import drawing
from geneb_ci.cli.outputs import STDOUT, Output, write
from geneb_ci.errors import UsageProblem


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
    beacon_file: Path | None,
    relay: tuple[str, ...],
    fallback_key_file: Path | None,
    why: str,
    reveal: bool,
    output: str,
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
        if detect is None:
            raise UsageProblem(
                "nothing says when the commitment became public",
                "--committed-at T draws; --detect M --confidence P alone prints the table",
            )
        return
    plans = drawing.earlier_plans(commitment, earlier)
    history = earlier_draws(plans, commitment, committed_at)
    size = drawing.size(commitment, drawn, wanted, drawn_before(plans, commitment))
    source = drawing.Source(beacon_file, relay, fallback_key_file, why, reveal=reveal)
    beacon = drawing.beacon(commitment, committed_at, source)
    plan = draw(commitment, committed_at, beacon, drawn=size, earlier=history)
    aimed = drawing.targets(plan, targeted, submission)
    plan = draw(commitment, committed_at, beacon, drawn=size, earlier=history, targeted=aimed)
    recompute(plan)
    write(Output("json", output), encoded(plan))
    name = "PLAN.json" if output == STDOUT else output
    drawing.report(plan, targeted, name, to_stderr=to_stderr)
