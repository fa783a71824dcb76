"""`geneb-ci audit log`: append to the log of audits, show it, verify it, and prove its entries."""

import functools
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.log.checkpoint import (
    LogKeys,
    NotANote,
    check_signed,
    hash_lines,
    parse_checkpoint,
)
from geneb_ci.audit.log.entries import LogBroken
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.signing import append_to_log, kept_log
from geneb_ci.audit.sampling.beacon import verify_round
from geneb_ci.audit.trust.applicability import LogContent
from geneb_ci.cli.main import LazyGroup, echo
from geneb_ci.cli.shared import format_option, row_width
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.render.audits import counted, log_json, log_text, witness_lines
from geneb_ci.render.table import wrapped_text
from geneb_ci.submission.reading import read_bytes
from reference_harness.formats.merkle import consistency_proof, inclusion_proof

RELAY_VARIABLE = "GENEB_RELAY"
"""Addresses of relays, separated by spaces, for a machine that reaches no public one."""


def relay_option(function: Any) -> Any:
    """Add the option `--relay`."""
    return click.option(
        "--relay",
        multiple=True,
        metavar="URL",
        envvar=RELAY_VARIABLE,
        help=f"Ask this relay instead of the public ones; else {RELAY_VARIABLE}. Repeatable.",
    )(function)


def signing_options(function: Any) -> Any:
    """Add the options that sign a commitment and append it to the log."""
    options = (
        click.option(
            "--key",
            type=click.Path(path_type=Path),
            help="Private key: sign the commitment, for the log.",
        ),
        log_key_option,
        relay_option,
    )
    return functools.reduce(
        lambda decorated, option: option(decorated), reversed(options), function
    )


def log_key_option(function: Any) -> Any:
    """Add the option `--log-key`."""
    return click.option(
        "--log-key",
        type=click.Path(path_type=Path),
        help="Private key of the log: append to it here, where this is its only writer.",
    )(function)


class _Log(LazyGroup):
    table = {  # noqa: RUF012 (click's groups are made once)
        "append": ("audit_log", "add what is signed and not in the log, and sign a checkpoint"),
        "show": ("audit_log", "list the entries, with the time before which none was made"),
        "verify": ("audit_log", "recompute the log, and compare it with earlier checkpoints"),
        "proof": ("audit_log", "prove that an entry is in the log, or that it only grew"),
    }


@click.group(cls=_Log)
def log_command() -> None:
    """Append to the log of audits, which only grows, and verify it without network access."""


def _here() -> tuple[AuditRepository, LogContent, LogKeys]:
    layout = find_layout(Path.cwd())
    keys, repository = kept_log(layout), AuditRepository(layout)
    logged = repository.logged
    if logged is None:
        raise LogBroken("it cannot be read")
    return repository, logged, keys


@click.command()
@click.option(
    "--log-key",
    type=click.Path(path_type=Path),
    help="Private key of the log; default: GENEB_LOG_KEY_FILE.",
)
@click.option(
    "--beacon-file",
    metavar="F",
    type=click.Path(path_type=Path),
    help="File with a recent round, as a relay answers.",
)
@relay_option
def append_command(log_key: Path | None, beacon_file: Path | None, relay: tuple[str, ...]) -> int:
    """Add every signed file that is not in the log yet, and sign a new checkpoint.

    The order is that of an audit: commitments, starts, aborts, records, withdrawals, revocations;
    in each by path. Nothing changes where nothing is new. One writer appends, on the main branch,
    so that two pull requests never conflict. The exit code is 11 when a file cannot be added.
    """
    batch, size = append_to_log(find_layout(Path.cwd()), log_key, relay, beacon_file)
    for entry in batch.entries:
        echo(f"{entry.kind} {entry.file or entry.signer[:16]}")
    for file, reason in batch.refused:
        echo(f"not added: {file}: {reason}", err=True)
    echo(f"{counted(len(batch.entries))} added, {size} in all", err=True)
    return Exit.ERRORS if batch.refused else Exit.CLEAN


_RENDER = {"text": log_text, "json": log_json}


@click.command()
@format_option(_RENDER)
def show_command(format_: str) -> int:
    """List the entries of the log; starts that nothing followed are marked as open."""
    repository, logged, _ = _here()
    text = _RENDER[format_](logged, repository.keys)
    click.echo(wrapped_text(text, row_width()) if format_ == "text" else text, nl=False)
    return Exit.ERRORS if logged.lost else Exit.CLEAN


@click.command()
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="An earlier checkpoint, such as one that was published. Repeatable.",
)
def verify_command(checkpoints: tuple[Path, ...]) -> int:
    """Recompute the log from its entries, and look for every file that it lists.

    With --checkpoint, also that the log still begins with the entries that it had then. No network
    is used. The exit code is 11 when anything differs.
    """
    _, logged, keys = _here()
    if logged.lost:
        raise LogBroken("; ".join(logged.lost.values()))
    for file in checkpoints:
        raw = read_bytes(file)
        try:
            earlier = parse_checkpoint(raw if isinstance(raw, bytes) else b"")
            check_signed(earlier, keys.signers)
        except NotANote as error:
            raise NothingChecked(
                f"{file}: this is not a checkpoint of the log: {error}",
                "name a checkpoint, such as audits/log/checkpoint of a published board",
            ) from error
        logged.log.check_follows(earlier)
        echo(f"{file}: the log follows it, from entry {earlier.size} on")
    for round_, signature in dict.fromkeys(
        (entry.round, entry.signature) for entry in logged.log.entries
    ):
        verify_round(round_, signature)
    checkpoint = logged.log.checkpoint
    echo(
        f"{checkpoint.origin}: {counted(checkpoint.size)}, root "
        f"{checkpoint.root.hex()}; every file that it lists is there"
    )
    for line in witness_lines(logged.log):
        echo(line)
    return Exit.CLEAN


@click.command()
@click.argument("number", required=False, type=click.IntRange(0), metavar="[ENTRY]")
@click.option(
    "--from",
    "old",
    type=click.IntRange(0),
    metavar="SIZE",
    help="Prove that the log begins with its first SIZE entries, as a witness asks for it.",
)
def proof_command(number: int | None, old: int | None) -> None:
    """Print the proof that ENTRY is in the log, or with --from the request to a witness.

    The first is a proof of c2sp.org/tlog-proof, which needs nothing but the log's key to be
    verified; the second the body of `add-checkpoint` of c2sp.org/tlog-witness.
    """
    _, logged, _ = _here()
    log = logged.log
    if (number is None) == (old is None):
        raise UsageProblem("one of ENTRY and --from SIZE is needed", "pass the number of an entry")
    at, size = old if number is None else number, len(log.leaves)
    if at is None or at > size - (number is not None):
        raise UsageProblem(f"the log has {counted(size)}", "pass a smaller number")
    if number is None:
        head, hashes = f"old {at}\n", consistency_proof(log.leaves, at)
    else:
        head = f"c2sp.org/tlog-proof@v1\nindex {at}\n"
        hashes = inclusion_proof(log.leaves, at)
    click.echo(f"{head}{hash_lines(hashes)}\n{log.checkpoint.note}", nl=False)
