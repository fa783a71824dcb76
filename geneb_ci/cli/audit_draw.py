"""`geneb-ci audit plan`: draw the tasks, or show what a sample of some size would detect."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from geneb_ci.audit.beacon_source import BeaconSource, beacon_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.draw import (
    CROWNS_MAX,
    crowns_of,
    draw,
    drawn_before,
    earlier_draws,
    targets_of,
)
from geneb_ci.audit.keys import private_key
from geneb_ci.audit.log_check import check_drawn, committed_index
from geneb_ci.audit.plan import Plan, encoded
from geneb_ci.audit.power import (
    design_of,
    detection,
    needed,
    probability,
    probability_text,
    size_of,
)
from geneb_ci.audit.repository import AuditRepository, earlier_plans
from geneb_ci.cli.audit_signing import (
    audits_of,
    logged_time,
    read_committed,
    sign_start,
    time_in_log,
)
from geneb_ci.cli.shared import STDOUT, Output, write
from geneb_ci.common.config import Layout, find_layout
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
        help="Plan of an earlier draw for this model; its tasks are rerun too. Repeatable.",
    )(function)


def source_options(function: Any) -> Any:  # noqa: ANN401
    """Add the options that say where the value of the beacon comes from, in this order."""
    file = click.Path(path_type=Path)
    options = (
        click.option(
            "--beacon-file", metavar="F", type=file, help="File with the round, as a relay answers."
        ),
        click.option(
            "--relay",
            multiple=True,
            metavar="URL",
            help="Ask this relay instead of the public ones. Repeatable.",
        ),
        click.option(
            "--fallback-key-file",
            metavar="F",
            type=file,
            help="After an outage of an hour: draw by this key.",
        ),
        click.option(
            "--why",
            default="",
            metavar="TEXT",
            help="For the fallback: what was unreachable, since when.",
        ),
        click.option(
            "--reveal",
            is_flag=True,
            help="For the fallback: publish the key in this plan, its last.",
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
    """Print the table of detection, and return the sample size asked for; 0 when none is.

    Raises UsageProblem for options that contradict each other or cannot be met.
    """
    if (detect is None) != (confidence is None):
        raise UsageProblem(
            "--detect and --confidence need each other", "pass both: --detect 20 --confidence 0.95"
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
    asked, least = (
        probability_text(detection(design, detect, count, power)) for count in (size, committed)
    )
    click.echo(
        f"{plural(size, 'drawn task')} of {design.tasks}: at least one of {detect} fabricated is "
        f"found with probability {asked}; with {least} by the {committed} committed",
        err=to_stderr,
    )
    return size


def table_was_all(detect: int | None) -> None:
    """Raise UsageProblem where neither a draw nor a table was asked for."""
    if detect is None:
        raise UsageProblem(
            "--committed-at is missing: the time at which the commitment became public",
            "pass --committed-at 2026-11-20T08:30:00Z to draw, or --detect M --confidence P to "
            "print the table alone",
        )


class Wanted(NamedTuple):
    """What a draw adds to the committed sample."""

    drawn: int | None = None
    """Size of the sample; None: as committed."""
    at_least: int = 0
    """Size that a power asks for."""
    targeted: int | None = None
    """Suspicious tasks to add; None: one of each category that the row leads."""
    submission: Path | None = None
    """The committed file, for targeted tasks."""
    earlier: tuple[Path, ...] = ()
    """Plans of earlier draws without a record."""


def drawn_plan(
    commitment: Commitment,
    committed_at: str,
    layout: Layout,
    source: BeaconSource,
    wanted: Wanted,
    say: Callable[[str], None],
) -> Plan:
    """Draw the tasks of a commitment that became public at a time; waits for the beacon's round.

    Raises what `earlier_plans`, `targets_of`, `beacon_of` and `draw` do.
    """
    repository = AuditRepository(layout)
    plans = earlier_plans(commitment, repository, wanted.earlier)
    if (logged := repository.logged) is not None:
        index = committed_index(commitment.sha256, logged)
        check_drawn(commitment, len(logged.log.entries) if index is None else index, logged)
    history = earlier_draws(plans, commitment, committed_at)
    size = size_of(commitment, wanted.drawn, wanted.at_least, drawn_before(plans, commitment))
    if wanted.targeted is None:
        count, aimed = CROWNS_MAX, crowns_of(commitment, wanted.submission, layout)
    else:
        count = wanted.targeted
        aimed = targets_of(commitment, count, wanted.submission, layout)
    beacon = beacon_of(commitment, committed_at, source, repository.inputs.policy, say)
    return draw(
        commitment,
        committed_at,
        beacon,
        drawn=size,
        earlier=history,
        targeted=aimed,
        targeted_max=count,
    )


@click.command()
@click.argument("commitment_file", metavar="COMMITMENT", type=click.Path(path_type=Path))
@click.option(
    "--committed-at",
    metavar="TIME",
    help="When the digest became public, in UTC: 2026-11-20T08:30:00Z.",
)
@click.option(
    "--drawn",
    type=click.IntRange(1),
    metavar="K",
    help="Draw K tasks: at least as many as are committed.",
)
@click.option(
    "--detect",
    type=click.IntRange(1),
    metavar="M",
    help="Number of fabricated tasks of which one is to be detected.",
)
@click.option(
    "--confidence", metavar="P", help="Probability of that, such as 0.95; needs --detect."
)
@click.option(
    "--task-power",
    default="1",
    show_default=True,
    metavar="Q",
    help="Probability that a rerun detects a drawn fabricated task.",
)
@click.option(
    "--targeted",
    type=click.IntRange(0),
    metavar="C",
    help="Add the C most suspicious tasks, by the published rule; unless given, one of each "
    f"category that the row leads, {CROWNS_MAX} at most, where the submission is here.",
)
@click.option(
    "--submission", type=click.Path(path_type=Path), help="For --targeted: the committed file."
)
@earlier_option
@source_options
@click.option(
    "--output",
    default=STDOUT,
    metavar="PLAN.json",
    help="File to write; standard output unless given.",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help="Private key: sign the draw as a start, for the log.",
)
def plan_command(
    commitment_file: Path,
    committed_at: str | None,
    drawn: int | None,
    detect: int | None,
    confidence: str | None,
    task_power: str,
    targeted: int | None,
    submission: Path | None,
    earlier: tuple[Path, ...],
    output: str,
    key: Path | None,
    **source: Any,  # noqa: ANN401 (click's own types)
) -> None:
    """Draw the tasks that an audit of COMMITMENT reruns.

    The time at which the commitment became public decides the round of the beacon, whose value
    nobody knew then. Where a log is kept, its entry gives the time, and --committed-at is refused;
    COMMITMENT may be the signed one among the audits. --detect and --confidence print the table of
    what a sample detects, and make the sample large enough; without a time the table is all that is
    printed.
    """
    layout, say = find_layout(Path.cwd()), functools.partial(click.echo, err=True)
    commitment = read_committed(commitment_file, layout)
    if committed_at is None and detect is not None:
        committed_at = time_in_log(commitment, layout)
    else:
        committed_at = logged_time(commitment, layout, committed_at)
    to_stderr = output == STDOUT and committed_at is not None
    wanted = wanted_design(commitment, detect, confidence, task_power, to_stderr=to_stderr)
    if committed_at is None:
        table_was_all(detect)
        return
    signer = private_key(key) if key is not None else None
    plan = drawn_plan(
        commitment,
        committed_at,
        layout,
        BeaconSource(**source),
        Wanted(drawn, wanted, targeted, submission, earlier),
        say,
    )
    write(Output("json", output), encoded(plan))
    if signer is not None:
        sign_start(plan, signer, audits_of(layout), say)
    name = "PLAN.json" if output == STDOUT else output
    click.echo(plan_text(plan, targeted or 0, name), nl=False, err=to_stderr)
