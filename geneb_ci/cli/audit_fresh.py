"""`geneb-ci audit fresh`: commit to labelled sequences before an audit, release them after it."""

from pathlib import Path

import click

from geneb_ci.audit.fresh import (
    check_release,
    check_used,
    commit_to,
    open_set,
    read_fresh_commitment,
    read_release,
    refuse_public,
    released,
)
from geneb_ci.audit.keys import trusted_keys
from geneb_ci.audit.memorised import fresh_power
from geneb_ci.audit.plan import encoded
from geneb_ci.audit.record import parse_record, read_record
from geneb_ci.audit.scoring import task_source
from geneb_ci.cli.main import LazyGroup
from geneb_ci.cli.shared import STDOUT, Output, write
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.finding import plural

_DATA = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of task data; the practice benchmark needs none.",
)
_OUTPUT = click.option(
    "--output", default=STDOUT, metavar="F.json", help="File to write; default: standard output."
)
LOSSES = (0.1, 0.15, 0.2, 0.3)
"""Losses of accuracy whose power is shown."""
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("file", metavar="SET.csv", type=_FILE)
@_DATA
@_OUTPUT
def commit_command(file: Path, data: Path | None, output: str) -> None:
    """Commit to the labelled sequences of SET.csv, which has the columns task, label, sequence.

    Sequences of the public data are refused. The salt is written beside the set; keep both secret
    until the audit is recorded, and publish what this command prints.
    """
    layout = find_layout(Path.cwd())
    benchmark = benchmark_of(layout)
    found = commit_to(file, benchmark, task_source(benchmark, layout.benchmark, data))
    write(Output("json", output), encoded(found))
    rows = sum(found.tasks.values())
    public = sum(benchmark.by_id[task].n_test or 0 for task in found.tasks) or rows
    power = ", ".join(f"{loss:g} with {fresh_power(loss, rows, public):.0%}" for loss in LOSSES)
    click.echo(
        f"{plural(rows, 'sequence')} of {plural(len(found.tasks), 'task')}: {found.sha256}\n"
        f"an audit of all these tasks finds a loss of accuracy of {power}\n"
        "next: publish the commitment; then, in an audit: "
        f"--fresh {file} --fresh-commitment F.json",
        err=True,
    )


@click.command()
@click.argument("file", metavar="SET.csv", type=_FILE)
@click.argument("commitment", metavar="F.json", type=_FILE)
@_OUTPUT
def release_command(file: Path, commitment: Path, output: str) -> None:
    """Write set and salt as one file, to be published after the audit."""
    benchmark = benchmark_of(find_layout(Path.cwd()))
    open_set(file, read_fresh_commitment(commitment), benchmark)
    write(Output("json", output), encoded(released(file)))


@click.command()
@click.argument("release", metavar="R.json", type=_FILE)
@click.argument("commitment", metavar="F.json", type=_FILE)
@click.option(
    "--record",
    type=_FILE,
    help="Audit record: whether it used this set, all of it.",
)
@_DATA
def check_command(release: Path, commitment: Path, record: Path | None, data: Path | None) -> None:
    """Compare a released set with its commitment, the public data, and an audit record."""
    layout = find_layout(Path.cwd())
    benchmark = benchmark_of(layout)
    fixed = read_fresh_commitment(commitment)
    found = check_release(read_release(release), fixed, benchmark, str(release))
    refuse_public(found.rows, task_source(benchmark, layout.benchmark, data))
    said = "is what was committed to, and none of it is public"
    if record is not None:
        check_used(parse_record(read_record(record), trusted_keys(layout)).outcome, found)
        said += "; the record scored all of it"
    click.echo(f"{release}: {plural(len(found.rows), 'sequence')}, {said}")


class _Fresh(LazyGroup):
    table = {  # noqa: RUF012 (click's groups are made once)
        "commit": ("audit_fresh", "commit to labelled sequences, before an audit"),
        "release": ("audit_fresh", "write them with their salt, after the audit"),
        "check": ("audit_fresh", "compare a released set with its commitment and a record"),
    }


@click.group(cls=_Fresh)
def fresh_command() -> None:
    """Fresh labelled sequences, which show whether an extractor knows the public labels."""
