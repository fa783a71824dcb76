"""`geneb-ci audit run`: the rerun of a plan, in a sandbox, and its signed record."""

import signal
import time
from pathlib import Path

import click

from geneb_ci.audit.decoys import NOISE
from geneb_ci.audit.files import encoded, read_plan
from geneb_ci.audit.keys import private_key
from geneb_ci.audit.record import record_of, refuse_in_vain
from geneb_ci.audit.rerun import Machine, rerun
from geneb_ci.build.files import write_files
from geneb_ci.config import find_layout
from geneb_ci.errors import Exit, ExtractorRefused
from geneb_ci.report.outcome import outcome_text

_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
@click.option("--key", type=click.Path(path_type=Path), help="Private key to sign the record with.")
@click.option("--unsigned", is_flag=True, help="A trial: print the outcome, write no record.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder of records to write to.")
@click.option("--data", type=_FOLDER, help="Folder of task data; not for the practice benchmark.")
@click.option("--weights", type=click.Path(path_type=Path, file_okay=False), help="Keep them here.")
@click.option(
    "--noise",
    type=click.Choice(tuple(NOISE)),
    help="For format 1.0: dtype in which the model computes.",
)
@click.option("--copies", type=click.IntRange(16), default=16, show_default=True, metavar="N")
@click.option("--level", type=click.IntRange(0, 4), default=2, show_default=True)
@click.option("--throw-away-machine", "throw_away", is_flag=True, help="Level 4: it is one.")
@click.option("--i-wrote-this-code", "own_code", is_flag=True, help="Level 0; it never counts.")
@click.option("--gpu", is_flag=True, help="Show the sandbox the GPU devices.")
@click.option("--workers", type=click.IntRange(1), help="Probe processes; one a processor.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(
    plan_file: Path,
    key: Path | None,
    unsigned: bool,
    output: Path | None,
    as_json: bool,
    **machine: object,
) -> int:
    """Rerun the tasks of PLAN in a sandbox, compare, and sign the record.

    Run it in the checkout that was committed to. The record goes to leaderboard/audits.
    """
    layout = find_layout(Path.cwd())
    audits = output or layout.audits or layout.root / "leaderboard" / "audits"
    plan = read_plan(plan_file)
    signer = None
    if not unsigned:
        signer = private_key(key)
        refuse_in_vain(signer, layout, audits / plan.commitment.model_id)
    # A service manager ends with SIGTERM what a person ends with Ctrl-C: both leave nothing behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        outcome = rerun(
            plan,
            layout,
            Machine(**machine),  # type: ignore[arg-type]  # click's options bear the fields' names
            time.time,
            lambda said: click.echo(said, err=True),
        )
    except ExtractorRefused as error:
        error.fix += (
            f"\n  the draw stands, and has no record: draw the next with --earlier {plan_file}"
        )
        raise
    if signer is not None:  # before anything is printed: its reader may have gone away
        record = record_of(outcome, signer)
        write_files((audits / record.place).parent, {record.place.name: record.content})
        click.echo(f"wrote {audits / record.place}", err=True)
    click.echo(encoded(outcome) if as_json else outcome_text(outcome), nl=False)
    return Exit.CLEAN if outcome.verdict == "agrees" else Exit.ERRORS
