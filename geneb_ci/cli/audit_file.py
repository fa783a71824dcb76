"""The command `geneb-ci audit FILE`: from a submission to a signed record."""

import os
import shlex
import signal
import threading
from pathlib import Path
from typing import Any

import click

from geneb_ci.api import audit
from geneb_ci.audit.record.signing import check_committed_at, check_record_options, check_shown_on
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.cli.audit_draw import (
    COMMITTED_AT_OPTION,
    earlier_option,
    pop_sample_arguments,
    sample_options,
    shown_option,
    source_options,
)
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import (
    LayeredCommand,
    Output,
    device_option,
    machine_of,
    machine_options,
    width,
    write,
)
from geneb_ci.common.errors import unwritable
from geneb_ci.render.audits import OUTCOME_WIDTH
from reference_harness.formats.text import next_line

ARGUMENTS_KEY = "geneb_ci.words"
"""Key of the arguments as typed, among the metadata of a command of click."""
QUEUE_REPORT_VARIABLE = "GENEB_CI_QUEUED"
"""Variable that a queue sets for its processes: the file in which they write their report."""


class _CommandWithArguments(LayeredCommand):
    """A command that keeps its arguments, so that it can print itself with one more option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, then parse them as click does."""
        ctx.meta[ARGUMENTS_KEY] = list(args)
        return super().parse_args(ctx, args)


def record_options(function: Any) -> Any:
    """Add the options that select the output: a cost, an outcome or a record."""
    for option in reversed(_RECORD_OPTIONS):
        function = option(function)
    return function


KEY_OPTION = click.option(
    "--key", type=click.Path(path_type=Path), help="Private key to sign the record with."
)
"""The option `--key`."""
UNSIGNED_OPTION = click.option(
    "--unsigned", is_flag=True, help="Print the outcome and write no record."
)
"""The option `--unsigned`."""
RECORDS_OPTION = click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write the record below this folder; leaderboard/audits unless given.",
)
_RECORD_OPTIONS = (
    click.option("--dry-run", is_flag=True, help="Show the cost on this machine, and stop."),
    KEY_OPTION,
    UNSIGNED_OPTION,
    RECORDS_OPTION,
)
"""Options that select the output: a cost, an outcome or a record."""


def _show(text: str) -> None:
    """Print a text that ends with a line end."""
    echo(text.removesuffix("\n"))


@click.command(
    cls=_CommandWithArguments,
    common=(
        *("--committed-at", "--sample", "--dry-run", "--key", "--unsigned"),
        *("--data", "--weights", "--device"),
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@COMMITTED_AT_OPTION
@shown_option
@click.option(
    "--commitment",
    metavar="C.json",
    type=click.Path(path_type=Path),
    help="For format 1.0: file that `audit commit` wrote, with the declared run.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps finished results; default: one per commitment in the user's cache.",
)
@click.option(
    "--report",
    metavar="R.json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the state of the audit as JSON: exit_code, state, commitment, next, cost.",
)
@sample_options
@record_options
@earlier_option
@source_options
@device_option
@machine_options
@click.pass_context
def file_command(
    ctx: click.Context,
    /,
    file: Path,
    committed_at: str | None,
    commitment: Path | None,
    report: Path | None,
    **options: Any,
) -> int:
    """Audit FILE from its commitment to the signed record; `geneb-ci audit FILE` is the same.

    The first call checks the file and the options, shows the cost, and stops with the digest to
    publish. With --committed-at the command waits for the beacon, draws, reruns the sample,
    compares and signs. Finished results are kept: after an interruption, run the same command
    again. The exit code is 11 when a claim differs.
    """
    check_options(committed_at, options["key"], options["output"], unsigned=options["unsigned"])
    check_shown_on(options["shown_on"], committed_at)
    beacon = BeaconSource(**{name: options.pop(name) for name in BeaconSource._fields})
    typed_arguments = ctx.meta[ARGUMENTS_KEY]
    plain_options = ("earlier", "work", "key", "unsigned", "output", "dry_run", "shown_on")
    arguments = {name: options.pop(name) for name in plain_options if name in options}
    arguments |= pop_sample_arguments(options)
    arguments |= {
        "machine": machine_of(options),
        "source": beacon,
        "commitment": commitment,
        "committed_at": committed_at,
        "again": shlex.join(
            ["geneb-ci", "audit", *(word for word in typed_arguments if word != "--dry-run")]
        ),
    }
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    queue_report = os.environ.get(QUEUE_REPORT_VARIABLE)
    if queue_report:
        _end_with_the_queue()
    audit_result = audit(file, say=say, show=_show, **arguments)
    if audit_result.outcome is not None:
        _show(audit_result.text(width(widest=OUTCOME_WIDTH, unknown=OUTCOME_WIDTH)))
    if audit_result.next and not audit_result.commitment:
        say(next_line(audit_result.next))
    report_json = audit_result.to_json()
    if report is not None:
        write(Output("json", str(report)), report_json)
    if queue_report:
        _write_for_queue(Path(queue_report), report_json)
    return audit_result.exit_code


def _write_for_queue(report: Path, report_json: str) -> None:
    """Write the report that the queue reads.

    Raises UsageProblem or MachineFault where it cannot be written.
    """
    try:
        report.write_text(report_json, encoding="utf-8")
    except OSError as error:
        raise unwritable(
            str(report), error, "set TMPDIR to a folder that can be written"
        ) from error


def check_options(
    committed_at: str | None,
    key: Path | None,
    output: Path | None,
    *,
    unsigned: bool,
) -> None:
    """Raise UsageProblem for an invalid time, and for --unsigned with --key or --output."""
    check_committed_at(committed_at)
    check_record_options(key, output, unsigned=unsigned)


def _end_with_the_queue() -> None:
    """Start a thread that sends this process SIGTERM when the queue that started it has ended.

    The queue holds the other end of standard input and never writes to it, so that reading it ends
    when the queue does.
    """

    def watch() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
