"""`geneb-ci audit FILE`: from a submission to a signed record, in one command."""

import os
import shlex
import signal
import threading
from pathlib import Path
from typing import Any

import click

from geneb_ci.api import audit
from geneb_ci.audit.record.signing import check_moment, check_record_options, check_shown_on
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.cli.audit_draw import (
    earlier_option,
    sample_options,
    sample_words,
    shown_option,
    source_options,
)
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import LayeredCommand, Output, machine_of, machine_options, width, write
from geneb_ci.common.errors import UsageProblem, unwritable
from geneb_ci.render.audits import WIDTH as OUTCOME_WIDTH
from reference_harness.formats.text import next_line

WORDS = "geneb_ci.words"
QUEUED = "GENEB_CI_QUEUED"
"""Variable by which a queue marks its processes; it names the file for their report."""


class _Repeatable(LayeredCommand):
    """A command that keeps its words, so that it can print itself with one option more."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, then parse as click does."""
        ctx.meta[WORDS] = list(args)
        return super().parse_args(ctx, args)


def record_options(function: Any) -> Any:
    """Add the options that say what comes out: a cost, an outcome or a record."""
    for option in reversed(_RECORD):
        function = option(function)
    return function


_RECORD = (
    click.option("--dry-run", is_flag=True, help="Show what it will cost here, and stop."),
    click.option(
        "--key", type=click.Path(path_type=Path), help="Private key to sign the record with."
    ),
    click.option("--unsigned", is_flag=True, help="Print the outcome and write no record."),
    click.option(
        "--output",
        type=click.Path(path_type=Path),
        help="Write the record below this folder; leaderboard/audits unless given.",
    ),
)


def _show(text: str) -> None:
    echo(text.removesuffix("\n"))


@click.command(
    cls=_Repeatable,
    common=(
        *("--committed-at", "--sample", "--dry-run", "--key", "--unsigned"),
        *("--data", "--weights", "--gpu"),
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--committed-at",
    metavar="TIME",
    help="When the digest became public, in UTC: 2026-11-20T08:30:00Z.",
)
@shown_option
@click.option(
    "--commitment",
    metavar="C.json",
    type=click.Path(path_type=Path),
    help="For format 1.0: what `audit commit` wrote, with the declared run.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps what is finished; default: below the user's cache, by commitment.",
)
@click.option(
    "--report",
    metavar="R.json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write how far the audit came, as JSON: exit_code, state, commitment, next, cost.",
)
@sample_options
@record_options
@earlier_option
@source_options
@click.option("--device", metavar="D", help="cpu, cuda, or cuda:1 for one of several GPUs.")
@machine_options
@click.pass_context
def file_command(
    ctx: click.Context,
    /,
    file: Path,
    committed_at: str | None,
    commitment: Path | None,
    device: str | None,
    report: Path | None,
    **options: Any,
) -> int:
    """Audit FILE from its commitment to the signed record; `geneb-ci audit FILE` is the same.

    The first call checks all that can be refused, shows the cost, and stops with the digest to
    publish. With --committed-at it waits for the beacon, draws, reruns what is drawn, compares and
    signs. What is finished is kept: after any interruption, run the same command again. The exit
    code is 11 when a claim differs.
    """
    check_options(
        committed_at,
        options["key"],
        options["output"],
        device,
        unsigned=options["unsigned"],
        gpu=options["gpu"],
    )
    check_shown_on(options["shown_on"], committed_at)
    source = BeaconSource(**{name: options.pop(name) for name in BeaconSource._fields})
    words = ctx.meta[WORDS]
    further_options = ("earlier", "work", "key", "unsigned", "output", "dry_run", "shown_on")
    further = {name: options.pop(name) for name in further_options if name in options}
    further |= sample_words(options)
    further |= {
        "machine": machine_of(options, device_of(device)),
        "source": source,
        "commitment": commitment,
        "committed_at": committed_at,
        "again": shlex.join(
            ["geneb-ci", "audit", *(word for word in words if word != "--dry-run")]
        ),
    }
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    queued = os.environ.get(QUEUED)
    if queued:
        _end_with_the_queue()
    result = audit(file, say=say, show=_show, **further)
    if result.outcome is not None:
        _show(result.text(width(widest=OUTCOME_WIDTH, unknown=OUTCOME_WIDTH)))
    if result.next and not result.commitment:
        say(next_line(result.next))
    text = result.to_json()
    if report is not None:
        write(Output("json", str(report)), text)
    if queued:
        _write_for_queue(Path(queued), text)
    return result.exit_code


def _write_for_queue(report: Path, text: str) -> None:
    """Write the report that the queue reads. Raises UsageProblem or MachineFault."""
    try:
        report.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(
            str(report), error, "set TMPDIR to a folder that can be written"
        ) from error


def check_options(
    committed_at: str | None,
    key: Path | None,
    output: Path | None,
    device: str | None,
    *,
    unsigned: bool,
    gpu: bool,
) -> None:
    """Refuse options that are wrong or contradict each other, before anything runs.

    Raises UsageProblem.
    """
    check_moment(committed_at)
    device_of(device)
    check_record_options(key, output, unsigned=unsigned)
    if gpu and device == "cpu":
        raise UsageProblem(
            "--gpu shows the GPU devices to the extractor, and --device cpu runs it without",
            "pass --device cuda, or leave out --gpu",
        )


def _end_with_the_queue() -> None:
    """End this process, as SIGTERM does, when the queue that started it is gone.

    The queue holds the other end of standard input, and never writes to it.
    """

    def watch() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def device_of(name: str | None) -> str | None:
    """Return a device. Raises UsageProblem for a name that is none."""
    if name is None or name in {"cpu", "cuda"}:
        return name
    kind, colon, number = name.partition(":")
    if (kind, colon) != ("cuda", ":") or not number.isdecimal():
        raise UsageProblem(
            f"--device {name!r} is not a device", "pass cpu, cuda, or cuda:N such as cuda:1"
        )
    return name
