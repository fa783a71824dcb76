"""The command `geneb-ci audit plan`: draw tasks or embeddings, or show what a sample detects."""

from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.commit import committed_submission_file
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.record.signing import (
    Signing,
    audits_folder_of,
    check_committed_at,
    check_shown_on,
    read_any_commitment,
)
from geneb_ci.audit.samples import (
    SAMPLE_NAMES,
    AnySample,
    EmbeddingSample,
    Sample,
    TaskSample,
    file_with_receipt,
    sample_by_name,
)
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.audit.sampling.design import (
    detection_probability,
    draw_population,
    needed_sample_size,
    parse_probability,
    probability_text,
)
from geneb_ci.audit.sampling.plan import AnyPlan, json_text_of
from geneb_ci.audit.sampling.task_draw import LED_TASKS_MAX
from geneb_ci.audit.workflow import draw_plan, practice_time
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import STDOUT, LayeredCommand, Output, write
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.render.audits import plan_text, power_table
from reference_harness.formats.old_options import print_new_name
from reference_harness.formats.text import next_line, plural

RELAY_VARIABLE = "GENEB_RELAY"
"""Environment variable with addresses of relays of the beacon, separated by spaces, for a machine
that reaches no public relay."""


COMMITTED_AT_OPTION = click.option(
    "--committed-at",
    metavar="TIME",
    help="Time at which the commitment became public, in UTC: 2026-11-20T08:30:00Z.",
)
"""The option `--committed-at`."""


def relay_option(function: Any) -> Any:
    """Add the option `--relay`."""
    return click.option(
        "--relay",
        multiple=True,
        metavar="URL",
        envvar=RELAY_VARIABLE,
        help="Ask this relay of the beacon instead of the public ones; default: "
        f"{RELAY_VARIABLE}. Repeatable.",
    )(function)


def shown_option(function: Any) -> Any:
    """Add the option `--shown-on`."""
    return click.option(
        "--shown-on",
        metavar="COMMIT",
        help="Commit on GitHub whose status with the digest was created at --committed-at.",
    )(function)


def earlier_option(function: Any) -> Any:
    """Add the option `--earlier`."""
    return click.option(
        "--earlier",
        multiple=True,
        metavar="PLAN",
        type=click.Path(path_type=Path),
        help="Plan of an earlier draw for this model, whose tasks are rerun too. Repeatable.",
    )(function)


_SAMPLE_OPTIONS = (
    click.option(
        "--sample",
        type=click.Choice(SAMPLE_NAMES, case_sensitive=False),
        default=TaskSample.name,
        show_default=True,
        help="What is embedded again: whole tasks, or embeddings of the receipt.",
    ),
    click.option(
        "--size",
        metavar="standard|full|N",
        help="For --sample embeddings: number of test embeddings drawn for each regime, with "
        "training and support embeddings. standard: 1,500; full: also all embeddings of small "
        "tasks.",
    ),
    click.option(
        "--rows",
        metavar="standard|full|N",
        hidden=True,
        help="Former spelling of --sample embeddings --size.",
    ),
    click.option(
        "--receipt",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="For --sample embeddings: folder of the receipt; fetched unless given.",
    ),
    click.option(
        "--near",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="For --sample embeddings: folder with other models' receipts, one subfolder each; "
        "fetched unless given. Samples drawn earlier for near-identical receipts are repeated.",
    ),
)
"""Options that select what is drawn."""


def sample_options(function: Any) -> Any:
    """Add the options that select what is drawn; `pop_sample_arguments` reads them."""
    for option in reversed(_SAMPLE_OPTIONS):
        function = option(function)
    return function


def pop_sample_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the sample as arguments by name, and remove them from `options`.

    --rows N is the same as --sample embeddings --size N.
    """
    arguments = {name: options.pop(name) for name in ("sample", "size", "receipt", "near")}
    rows = options.pop("rows")
    if rows is not None:
        print_new_name("--rows", "--sample embeddings --size")
        arguments |= {"sample": EmbeddingSample.name, "size": rows}
    return arguments


def source_options(function: Any) -> Any:
    """Add the options that select the source of the beacon's value."""
    file = click.Path(path_type=Path)
    options = (
        click.option(
            "--beacon-file",
            metavar="F",
            type=file,
            help="File with a relay's answer for the round.",
        ),
        relay_option,
        click.option(
            "--practice",
            is_flag=True,
            help="For GENEB-mini: draw at once and offline, with a value that anybody can predict.",
        ),
        click.option(
            "--fallback-key-file",
            metavar="F",
            type=file,
            help="If the beacon has been down for an hour: draw with this secret key instead.",
        ),
        click.option(
            "--why",
            default="",
            metavar="TEXT",
            help="For the fallback: which server was unreachable, and since when.",
        ),
        click.option(
            "--reveal",
            is_flag=True,
            help="For the fallback: publish the key in this plan, the last one that uses it.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def requested_sample_size(
    commitment: Commitment,
    detect: int | None,
    confidence: str | None,
    task_power: str,
    *,
    to_stderr: bool,
) -> int:
    """Print which samples detect fabricated tasks, and return the sample size for --detect.

    Without --detect, print nothing and return 0. Raises UsageProblem for --detect without
    --confidence or the reverse, and for values that no sample fulfils.
    """
    if (detect is None) != (confidence is None):
        raise UsageProblem(
            "only one of --detect and --confidence is given, expected both or neither",
            "pass both: --detect 20 --confidence 0.95",
        )
    if detect is None or confidence is None:
        return 0
    population = draw_population(commitment.tasks, commitment.policy.strata)
    power = parse_probability(task_power, "--task-power")
    size = needed_sample_size(
        population, detect, parse_probability(confidence, "--confidence"), power
    )
    committed_size = commitment.policy.drawn
    label_by_size = {committed_size: "committed"}
    label_by_size[size] = "committed, requested" if size == committed_size else "requested"
    echo(power_table(population, label_by_size, power).removesuffix("\n"), err=to_stderr)
    requested_text, commitment_text = (
        probability_text(detection_probability(population, detect, count, power))
        for count in (size, committed_size)
    )
    echo(
        f"{plural(size, 'drawn task')} of {population.task_count}: at least one of {detect} "
        f"fabricated tasks is found with probability {requested_text}; the {committed_size} of the "
        f"commitment find one with probability {commitment_text}",
        err=to_stderr,
    )
    return size


def end_without_draw(detect: int | None, sample: AnySample) -> None:
    """Print the command that draws a sample of embeddings.

    Raises UsageProblem for a sample of tasks without --detect: nothing was drawn or printed.
    """
    if isinstance(sample, EmbeddingSample):
        echo(
            "publish the digest of the commitment; then draw, with the time of publication\n"
            + next_line(
                f"geneb-ci audit plan C.json --sample embeddings --size {sample.size} "
                "--committed-at TIME --output PLAN.json"
            )
        )
    elif detect is None:
        raise UsageProblem(
            "--committed-at is missing: the time at which the commitment became public",
            "pass --committed-at 2026-11-20T08:30:00Z to draw, or --detect M --confidence P to "
            "print the table alone",
        )


@click.command(
    cls=LayeredCommand,
    common=(
        *("--committed-at", "--drawn", "--detect", "--targeted", "--sample"),
        *("--earlier", "--output", "--key"),
    ),
)
@click.argument("commitment_file", metavar="COMMITMENT", type=click.Path(path_type=Path))
@COMMITTED_AT_OPTION
@shown_option
@click.option(
    "--drawn",
    type=click.IntRange(1),
    metavar="K",
    help="Draw K tasks, at least as many as the commitment says.",
)
@click.option(
    "--detect",
    type=click.IntRange(1),
    metavar="M",
    help="Number of fabricated tasks of which the sample should contain at least one.",
)
@click.option("--confidence", metavar="P", help="Probability for --detect, such as 0.95.")
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
    help="Add the C most suspicious tasks, by the published rule; default: one of each category "
    f"that the row leads, at most {LED_TASKS_MAX}, if the submission is in this repository.",
)
@sample_options
@click.option(
    "--submission",
    type=click.Path(path_type=Path),
    help="For --targeted and --sample embeddings: the committed file.",
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
    help="Private key that signs the start of the audit, so that nobody can omit this draw later.",
)
def plan_command(
    commitment_file: Path,
    committed_at: str | None,
    shown_on: str | None,
    drawn: int | None,
    detect: int | None,
    confidence: str | None,
    task_power: str,
    targeted: int | None,
    submission: Path | None,
    earlier: tuple[Path, ...],
    output: str,
    key: Path | None,
    **options: Any,
) -> None:
    """Draw what an audit of COMMITMENT reruns.

    The time at which the commitment became public determines the round of the beacon, whose value
    nobody knew then. COMMITMENT may also be a signed commitment below leaderboard/audits. --detect
    and --confidence print a table of what a sample of tasks detects, and make the sample large
    enough. Nothing is drawn without --committed-at: only that table is printed, or what a sample of
    embeddings detects and costs.
    """
    layout = find_layout(Path.cwd())
    commitment = read_any_commitment(commitment_file, layout)
    arguments = pop_sample_arguments(options)
    draws_tasks = arguments["sample"] == TaskSample.name
    check_committed_at(committed_at)
    check_shown_on(shown_on, committed_at)
    if options["practice"] and committed_at is None:
        committed_at = practice_time()
    to_stderr = output == STDOUT and committed_at is not None
    minimum_size = (
        requested_sample_size(commitment, detect, confidence, task_power, to_stderr=to_stderr)
        if draws_tasks
        else detect or 0
    )
    sample = sample_by_name(
        arguments.pop("sample"),
        **arguments,
        earlier=earlier,
        drawn=drawn,
        targeted=targeted,
        drawn_min=minimum_size,
    )
    submission_file = committed_submission_file(commitment, submission, layout)
    if isinstance(sample, EmbeddingSample):
        benchmark = benchmark_of(layout)
        cost_text = sample.power_and_cost(
            file_with_receipt(submission_file, benchmark), commitment, benchmark
        )
        echo(cost_text.removesuffix("\n"), err=to_stderr)
    if committed_at is None:
        end_without_draw(detect, sample)
        return
    signer = private_key(key) if key is not None else None
    sample_drawn: Sample[Any] = sample
    plan: AnyPlan = draw_plan(
        commitment,
        committed_at,
        submission_file,
        sample_drawn,
        layout,
        BeaconSource(**options),
        say,
    )
    write(Output("json", output), json_text_of(plan))
    Signing(layout, signer, audits_folder_of(layout), say, shown_on).sign_start(plan)
    plan_name = "PLAN.json" if output == STDOUT else output
    echo(plan_text(plan, targeted or 0, plan_name).removesuffix("\n"), err=to_stderr)
