"""The commands `geneb-ci audit keygen`, `statement` and `fresh`, which prepare an audit."""

import json
import shlex
from pathlib import Path

import click
from pydantic import ValidationError

from geneb_ci.audit.canonical import current_moment
from geneb_ci.audit.compare.embedding_outcome import AnyOutcome, EmbeddingOutcome
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.record.events import AuditStart, event_payload_and_path
from geneb_ci.audit.record.keys import KEY_VARIABLE, new_key, trusted_keys
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.signing import (
    check_shown_on,
    heads_for_record,
    heads_for_statement,
    signed_commitment_name,
)
from geneb_ci.audit.record.statement import (
    RERUN_SUFFIX,
    parse_record,
    payload_and_path_of,
    read_record,
)
from geneb_ci.audit.rerun.embeddings import RERUN_EMBEDDINGS_FILE
from geneb_ci.audit.rerun.fresh import (
    check_release,
    commit_to_fresh_set,
    fresh_release,
    read_fresh_commitment,
    read_fresh_set,
    read_release,
    refuse_public_sequences,
    require_used_set,
)
from geneb_ci.audit.rerun.honesty import fresh_power
from geneb_ci.audit.sampling.plan import json_text_of, read_any_plan, read_commitment
from geneb_ci.cli.audit_draw import shown_option
from geneb_ci.cli.main import LazyGroup, echo
from geneb_ci.cli.shared import DATA_OPTION, STDOUT, Output, write
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.harness.process import task_source
from geneb_ci.submission.reading import FileKind, read_bytes, refusal_of, require_file
from reference_harness.formats.base import first_error
from reference_harness.formats.text import next_line, plural


@click.command()
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the private key; an existing file is never overwritten.",
)
@click.option(
    "--owner",
    default="replace by the name of the key's owner",
    help="Name of the person who has the private key.",
)
def keygen_command(output: Path, owner: str) -> None:
    """Write a new private key (Ed25519, PEM, mode 0600), and print its entry for keys.json."""
    trusted_key = new_key(output, owner, current_moment())
    click.echo(json.dumps(trusted_key.model_dump(exclude_none=True), indent=1))
    echo(
        f"wrote {output}: keep it secret; pass it by --key or {KEY_VARIABLE} to sign",
        err=True,
    )
    echo(
        "add the entry above to leaderboard/policy/keys.json; the key is trusted once this entry "
        "is on main",
        err=True,
    )
    echo(next_line("git commit leaderboard/policy/keys.json"), err=True)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@shown_option
def statement_command(file: Path, shown_on: str | None) -> None:
    """Print the statement of FILE, the bytes that a workflow signs into a Sigstore bundle.

    FILE is a commitment; or a plan, for the statement that its rerun starts; or the output of
    `audit run --unsigned --format json`, for the record. The statement links to the newest
    statements of this repository. The path of the bundle is printed on standard error; for an audit
    by receipt, also the path of the rerun embeddings, which `--work` keeps.
    """
    repository = AuditRepository(find_layout(Path.cwd()))
    require_file(file, FileKind.OUTCOME)
    raw = read_bytes(file)
    file_bytes = raw if isinstance(raw, bytes) else b""
    outcome = None
    if FileKind.COMMITMENT.fits_text(file_bytes):
        payload, path = event_payload_and_path(
            read_commitment(file), heads_for_statement(repository)
        )
    elif FileKind.PLAN.fits_text(file_bytes) or FileKind.EMBEDDING_PLAN.fits_text(file_bytes):
        plan = read_any_plan(file)
        check_shown_on(shown_on, plan.committed_at)
        start = AuditStart(schema_version="1.0", plan=plan, shown_on=shown_on)
        payload, path = event_payload_and_path(
            start, heads_for_statement(repository, signed_commitment_name(plan))
        )
    else:
        outcome = _read_outcome(file)
        payload, path = payload_and_path_of(outcome, heads_for_record(outcome.plan, repository))
    click.echo(payload, nl=False)
    echo(f"sign these bytes into leaderboard/audits/{path}", err=True)
    if isinstance(outcome, EmbeddingOutcome):
        embeddings_path = path.with_name(f"{path.stem}{RERUN_SUFFIX}")
        echo(
            f"  and copy {RERUN_EMBEDDINGS_FILE} of the work folder, which has the rerun "
            "embeddings, to "
            f"leaderboard/audits/{embeddings_path}; its sha256 is {outcome.rerun_sha256}",
            err=True,
        )


def _read_outcome(path: Path) -> AnyOutcome:
    """Return the unsigned outcome in a file, of tasks or of embeddings.

    Raises NothingChecked for another file.
    """
    require_file(path, FileKind.OUTCOME)
    raw = read_bytes(path)
    if not isinstance(raw, bytes):
        raise NothingChecked(f"{path}: {raw.message}", FileKind.OUTCOME.fix)
    is_of_embeddings = FileKind.EMBEDDING_OUTCOME.fits_text(raw)
    file_kind = FileKind.EMBEDDING_OUTCOME if is_of_embeddings else FileKind.OUTCOME
    try:
        return (EmbeddingOutcome if is_of_embeddings else AuditOutcome).model_validate_json(raw)
    except ValidationError as error:
        refusal = refusal_of(raw, file_kind, first_error(error))
        raise NothingChecked(f"{path}: {refusal.message}", refusal.fix) from error


_OUTPUT_OPTION = click.option(
    "--output", default=STDOUT, metavar="F.json", help="File to write; default: standard output."
)
SHOWN_ACCURACY_LOSSES = (0.1, 0.15, 0.2, 0.3)
"""Losses of accuracy, as fractions of 1, for which is shown how likely an audit detects them."""
_FILE_PATH = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("file", metavar="SET.csv", type=_FILE_PATH)
@DATA_OPTION
@_OUTPUT_OPTION
def commit_command(file: Path, data: Path | None, output: str) -> None:
    """Commit to the labelled sequences of SET.csv, which has the columns task, label, sequence.

    Sequences of the public data are refused. The salt is written beside the set; keep both secret
    until the audit is recorded, and publish what this command prints.
    """
    layout = find_layout(Path.cwd())
    benchmark = benchmark_of(layout)
    commitment = commit_to_fresh_set(
        file, benchmark, task_source(benchmark, layout.benchmark, data)
    )
    write(Output("json", output), json_text_of(commitment))
    sequence_count = sum(commitment.tasks.values())
    public_count = (
        sum(benchmark.by_id[task].n_test or 0 for task in commitment.tasks) or sequence_count
    )
    power = ", ".join(
        f"{fresh_power(loss, sequence_count, public_count):.0%} for {loss:g}"
        for loss in SHOWN_ACCURACY_LOSSES
    )
    echo(
        f"{plural(sequence_count, 'sequence')} of {plural(len(commitment.tasks), 'task')}: "
        f"{commitment.sha256}\n"
        f"probability that an audit of all these tasks finds a loss of accuracy: {power}\n"
        "publish the commitment; then pass set and commitment to the audit\n"
        + next_line(
            shlex.join(["geneb-ci", "audit", "SUBMISSION.json", "--fresh", str(file)])
            + f" --fresh-commitment {'F.json' if output == STDOUT else shlex.quote(output)}"
        ),
        err=True,
    )


@click.command()
@click.argument("file", metavar="SET.csv", type=_FILE_PATH)
@click.argument("commitment", metavar="F.json", type=_FILE_PATH)
@_OUTPUT_OPTION
def release_command(file: Path, commitment: Path, output: str) -> None:
    """Write the set and its salt as one file, which is published after the audit."""
    benchmark = benchmark_of(find_layout(Path.cwd()))
    read_fresh_set(file, read_fresh_commitment(commitment), benchmark)
    write(Output("json", output), json_text_of(fresh_release(file)))


@click.command()
@click.argument("release", metavar="R.json", type=_FILE_PATH)
@click.argument("commitment", metavar="F.json", type=_FILE_PATH)
@click.option(
    "--record",
    type=_FILE_PATH,
    help="Audit record: check that it used all of this set.",
)
@DATA_OPTION
def check_command(release: Path, commitment: Path, record: Path | None, data: Path | None) -> None:
    """Compare a released set with its commitment, the public data, and an audit record."""
    layout = find_layout(Path.cwd())
    benchmark = benchmark_of(layout)
    fresh = check_release(
        read_release(release), read_fresh_commitment(commitment), benchmark, str(release)
    )
    refuse_public_sequences(fresh.sequences, task_source(benchmark, layout.benchmark, data))
    result_text = "agrees with the commitment, and none of its sequences is public"
    if record is not None:
        outcome = parse_record(read_record(record), trusted_keys(layout)).outcome
        require_used_set(outcome, fresh)
        result_text += "; the record scored all of them"
    echo(f"{release}: {plural(len(fresh.sequences), 'sequence')}: the set {result_text}")


class _Fresh(LazyGroup):
    """The commands `geneb-ci audit fresh`."""

    table = {  # noqa: RUF012 (click's groups are made once)
        "commit": ("audit_prepare", "commit to labelled sequences, before an audit"),
        "release": ("audit_prepare", "write the sequences with their salt, after the audit"),
        "check": ("audit_prepare", "compare a released set with its commitment and a record"),
    }


@click.group(cls=_Fresh)
def fresh_command() -> None:
    """Prepare fresh labelled sequences, which show whether an extractor uses the public labels."""
