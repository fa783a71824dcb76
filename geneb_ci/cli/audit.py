"""`geneb-ci audit`: commit, run, verify, withdraw, and keys."""

import functools
import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from geneb_ci.audit.canonical import FORMAT
from geneb_ci.audit.commit import commit
from geneb_ci.audit.keys import KEY_VARIABLE, new_key, private_key
from geneb_ci.audit.note import ED25519, NoteKey, is_key_name
from geneb_ci.audit.plan import committed_text, encoded, read_plan
from geneb_ci.audit.record import WITHDRAWN, check_can_record, read_record, record_files, record_of
from geneb_ci.audit.repository import AuditRepository
from geneb_ci.audit.rerun import rerun
from geneb_ci.audit.sources import DeclaredRun
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.audit.verify import StepState, Verification
from geneb_ci.audit.withdrawal import withdrawal_of
from geneb_ci.board.files import write_files
from geneb_ci.cli.audit_file import check_options
from geneb_ci.cli.audit_signing import (
    check_in_log,
    commit_in_log,
    keeps_log,
    sign_abort,
    sign_start,
    signing_options,
)
from geneb_ci.cli.main import LazyGroup
from geneb_ci.cli.shared import (
    STDOUT,
    Output,
    format_option,
    machine_of,
    machine_options,
    watched,
    write,
)
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import Exit, ExtractorRefused, NothingChecked, UsageProblem
from geneb_ci.render.audits import outcome_text, verification_json, verification_text
from geneb_ci.submission.kind import FileKind, require_file
from geneb_ci.submission.paths import is_folder, located


def declared_run(
    extractor: str | None,
    options: tuple[str, ...],
    model: str | None,
    revision: str | None,
    weights: tuple[str, ...],
    *,
    no_weights: bool,
) -> DeclaredRun | None:
    """Return the run that the options declare; None when they declare none.

    Raises UsageProblem for options that do not make a whole run.
    """
    if extractor is None:
        if options or model or revision or weights or no_weights:
            raise UsageProblem(
                "options or weights are given without --extractor",
                "add --extractor PATH:CLASS",
            )
        return None
    pinned = (model, revision, weights)
    if any(pinned) == no_weights or any(pinned) != all(pinned):
        raise UsageProblem(
            "incomplete weights: expected a repository, its commit and the digest of each weight "
            "file, or no weights",
            "pass --model REPO --revision COMMIT --weights NAME=SHA256, or --no-weights alone",
        )
    return DeclaredRun(extractor, model, revision, _pairs(weights), _pairs(options))


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in words)


@click.command()
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the private key; one that exists is never overwritten.",
)
@click.option(
    "--owner", default="replace by the name of the key's owner", help="Who holds the private key."
)
@click.option(
    "--log",
    "origin",
    metavar="NAME",
    help="Make the key of a log of this name, such as example.org/audits, and print its member.",
)
def keygen_command(output: Path, owner: str, origin: str | None) -> None:
    """Write a new private key (Ed25519, PEM, mode 0600), and print its entry for keys.json."""
    if origin is not None and not is_key_name(origin):
        raise UsageProblem(
            f"--log {origin!r} is not a name of a log",
            "pass an address without https://, spaces and plus signs: example.org/audits",
        )
    entry = new_key(output, owner, datetime.now(UTC).strftime(FORMAT))
    if origin is None:
        click.echo(json.dumps(entry.model_dump(exclude_none=True), indent=1))
    else:
        named = NoteKey(origin, ED25519, entry.raw).text
        click.echo(json.dumps({"log": {"origin": origin, "keys": [named]}}, indent=1))
    click.echo(
        f"wrote {output}: keep it secret; pass it by --key or {KEY_VARIABLE} to sign",
        err=True,
    )
    click.echo(
        "  next: add the entry above to leaderboard/policy/keys.json on the main branch", err=True
    )


STATUS = "geneb/audit-commit"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--output",
    default=STDOUT,
    metavar="C.json",
    help="File to write; standard output unless given.",
)
@click.option("--extractor", metavar="PATH:CLASS", help="For format 1.0: the code that ran.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="For format 1.0: option of the extractor. Repeatable.",
)
@click.option("--model", metavar="REPO", help="For format 1.0: repository of the weights.")
@click.option("--revision", metavar="COMMIT", help="For format 1.0: its 40-hex commit.")
@click.option(
    "--weights",
    multiple=True,
    metavar="NAME=SHA256",
    help="For format 1.0: digest of a weight file. Repeatable.",
)
@click.option("--no-weights", is_flag=True, help="For format 1.0: no weights.")
@signing_options
def commit_command(
    file: Path,
    output: str,
    key: Path | None,
    log_key: Path | None,
    extractor: str | None,
    options: tuple[str, ...],
    model: str | None,
    revision: str | None,
    weights: tuple[str, ...],
    no_weights: bool,
) -> None:
    """Commit to an audit of FILE: one digest of submission, code, weights, benchmark and policy.

    FILE has to pass every check. Format 1.0 does not say which code and weights ran: declare them
    by --extractor with --model, --revision and --weights, or --no-weights.
    """
    given = declared_run(extractor, options, model, revision, weights, no_weights=no_weights)
    found = commit(file, tolerance_digest(), given)
    layout = find_layout(Path.cwd())
    signer = private_key(key) if key is not None else None
    write(Output("json", output), committed_text(found))
    name = "C.json" if output == STDOUT else output
    if keeps_log(layout):
        say = functools.partial(click.echo, err=True)
        click.echo(commit_in_log(found, layout, signer, log_key, say, name), err=output == STDOUT)
        return
    click.echo(
        f"commitment {found.sha256}\n"
        f"{found.model_id}: {found.policy.drawn} of {len(found.tasks)} tasks will be drawn\n"
        f"next: publish the digest, as commit status {STATUS} or in the ledger, and note the\n"
        f"  time of publication according to that server; then draw the tasks:\n"
        f"  geneb-ci audit plan {name} --committed-at 2026-11-20T08:30:00Z",
        err=output == STDOUT,
    )


@click.command()
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
@click.option("--key", type=click.Path(path_type=Path), help="Private key to sign the record with.")
@click.option("--unsigned", is_flag=True, help="Print the outcome and write no record.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write the record below this folder; leaderboard/audits unless given.",
)
@machine_options
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps what is finished: the same command continues from it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def run_command(
    plan_file: Path,
    key: Path | None,
    unsigned: bool,
    output: Path | None,
    as_json: bool,
    work: Path | None,
    **machine: Any,  # noqa: ANN401 (click's own types)
) -> int:
    """Rerun the tasks of PLAN in a sandbox, compare the scores, and sign the record.

    Run it in the checkout that was committed to. The record goes to leaderboard/audits. The exit
    code is 11 when a claim differs.
    """
    check_options(None, key, output, None, unsigned=unsigned, gpu=False)
    layout = find_layout(Path.cwd())
    audits = output or layout.audits or layout.root / "leaderboard" / "audits"
    plan = read_plan(plan_file)
    signer = None
    if not unsigned:
        signer = private_key(key)
        check_can_record(signer, layout, audits / plan.commitment.model_id)
    # A service manager ends a process by SIGTERM, a person by Ctrl-C: both clean up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say = functools.partial(click.echo, err=True)
    if signer is not None and keeps_log(layout):
        check_in_log(plan, layout)
        sign_start(plan, signer, audits, say)
    try:
        outcome = rerun(plan, layout, machine_of(machine), time.time, say, work)
    except ExtractorRefused as error:
        if signer is None:
            error.fix += (
                "\n  this draw has no record: pass it to the next `audit plan`: --earlier "
                f"{plan_file}"
            )
        else:
            sign_abort(error, plan, signer, audits, say)
        raise
    if signer is not None:  # before anything is printed: a closed pipe must not lose the record
        record = record_of(outcome, signer)
        write_files((audits / record.place).parent, {record.place.name: record.content})
        click.echo(f"wrote {audits / record.place}", err=True)
    click.echo(encoded(outcome) if as_json else outcome_text(outcome), nl=False)
    return Exit.CLEAN if outcome.verdict == "agrees" else Exit.ERRORS


_RENDER = {"text": verification_text, "json": verification_json}


@click.command()
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--submissions",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of the submissions; that of the repository unless given.",
)
@format_option(_RENDER)
def verify_command(records: tuple[Path, ...], submissions: Path | None, format_: str) -> int:
    """Verify RECORDS, or every record in the repository, from public data.

    Keys, policy and benchmark are those of the folder the command is run in, not of the record's.
    The exit code is 11 when a step differs, 3 when something that a step needs is missing.
    """
    layout = find_layout(Path.cwd())
    repository = AuditRepository(layout, submissions.resolve() if submissions else None)
    files = _files(records) if records else repository.files
    lost = [] if records else list(repository.lost())
    if not files and not lost:
        raise NothingChecked(
            "there is no record to verify",
            "name one, or run the command in a repository with records",
        )
    names = {path: os.path.relpath(path) if not records else str(path) for path in files}
    found = [
        repository.verification(located(path), names[path])
        for path in watched(iter(files), len(files), "verifying")
    ]
    found += lost
    click.echo(_RENDER[format_](found), nl=False)
    return _exit_code(found)


def _files(arguments: tuple[Path, ...]) -> list[Path]:
    """Return the records that the arguments name: files, or folders such as leaderboard/audits."""
    found: list[Path] = []
    for path in arguments:
        inside = record_files(path) if is_folder(path) else [path]
        if not inside:
            raise NothingChecked(
                f"{path}: the folder contains no <model_id>/<audit_id>.json",
                "name a record, or a folder such as leaderboard/audits",
            )
        found += inside
    return found


def _exit_code(found: list[Verification]) -> Exit:
    if any(one.differs for one in found):
        return Exit.ERRORS
    unknown = any(step.state is StepState.UNKNOWN for one in found for step in one.steps)
    return Exit.NOT_CHECKED if unknown else Exit.CLEAN


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--reason", required=True, help="Why the audit is invalid; shown on the board.")
@click.option(
    "--key", type=click.Path(path_type=Path), help=f"Private key; default: {KEY_VARIABLE}."
)
def withdraw_command(record: Path, reason: str, key: Path | None) -> None:
    """Withdraw the audit RECORD: write a signed withdrawal next to it. The record is kept."""
    now = datetime.now(UTC).strftime(FORMAT)
    require_file(record, FileKind.RECORD)
    place = record.resolve()
    content = withdrawal_of(place.parent.name, read_record(place), reason, now, private_key(key))
    path = record.with_name(f"{record.stem}{WITHDRAWN}")
    try:
        with path.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise UsageProblem(
            f"{path}: cannot be written: {error.strerror}",
            "an audit is withdrawn only once",
        ) from error
    click.echo(f"wrote {path}: commit it to the main branch")


class _Audit(LazyGroup):
    table = {  # noqa: RUF012 (click's groups are made once)
        "file": (
            "audit_file",
            "`audit FILE`: all steps, from a submission to the signed record",
        ),
        "queue": ("audit_queue", "several submissions, one after another or one a device"),
        "commit": (
            "audit",
            "commit to a submission and its run, before any seed exists",
        ),
        "plan": ("audit_draw", "draw the tasks to rerun, by the public beacon"),
        "run": ("audit", "rerun the tasks in a sandbox, compare, and sign the record"),
        "verify": ("audit", "compute every step of a record again, from public data"),
        "fresh": ("audit_fresh", "labelled sequences that nobody has seen, for an audit"),
        "withdraw": ("audit", "take an audit back, with a reason, signed"),
        "log": ("audit_log", "the log of audits: append, show, verify, prove"),
        "keygen": ("audit", "make a maintainer's key for signing records"),
    }

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command `file` where the first word is the name of a file."""
        name = args[0]
        if name not in self.table and (
            "/" in name or name.endswith(".json") or Path(name).exists()
        ):
            return super().resolve_command(ctx, ["file", *args])
        return super().resolve_command(ctx, args)


@click.group(cls=_Audit)
def audit_command() -> None:
    """Audit a submission: commit, draw tasks, rerun them, sign; anybody can verify the record.

    `geneb-ci audit FILE` does all of that for one submission; `geneb-ci audit file --help` lists
    its options. A first word that is neither a command nor an option is the FILE.
    """
