"""The commands `geneb-ci audit commit`, `run`, `verify` and `withdraw`."""

import os
import shlex
import signal
from pathlib import Path
from typing import Any, ClassVar

import click

from geneb_ci.api import verify
from geneb_ci.audit.canonical import current_moment
from geneb_ci.audit.commit import commit, read_submission
from geneb_ci.audit.record.events import withdrawal_of
from geneb_ci.audit.record.keys import KEY_VARIABLE, private_key
from geneb_ci.audit.record.published import require_published
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.signing import (
    Signing,
    audits_folder_of,
    check_shown_on,
    heads_for_statement,
)
from geneb_ci.audit.record.statement import WITHDRAWN_SUFFIX, check_can_record, read_record
from geneb_ci.audit.record.verify import StepState
from geneb_ci.audit.rerun.sources import DeclaredRun
from geneb_ci.audit.sampling.plan import commitment_text, json_text_of, read_any_plan
from geneb_ci.audit.workflow import EXAMPLE_TIME, rerun_plan
from geneb_ci.cli.audit_draw import shown_option
from geneb_ci.cli.audit_file import KEY_OPTION, RECORDS_OPTION, UNSIGNED_OPTION, check_options
from geneb_ci.cli.main import LazyGroup, echo, say
from geneb_ci.cli.shared import (
    OLD_JSON_OPTION,
    STDOUT,
    LayeredCommand,
    Output,
    device_option,
    format_option,
    list_width,
    machine_of,
    machine_options,
    width,
    with_progress,
    write,
)
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.common.types import EVIDENCE_ORDER
from geneb_ci.render.audits import OUTCOME_WIDTH, outcome_text, verification_json, verification_text
from geneb_ci.render.results import Verifications
from geneb_ci.render.table import wrapped_text
from geneb_ci.situation.after_record import command_after_record
from geneb_ci.submission.reading import FileKind, require_file
from reference_harness.formats.text import next_line


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

    Raises UsageProblem if options of a run are missing, or exclude each other.
    """
    weight_options = {"--model": model, "--revision": revision, "--weights": weights}
    given = [name for name, value in weight_options.items() if value]
    if extractor is None:
        given += ["--option"] * bool(options) + ["--no-weights"] * no_weights
        if given:
            raise UsageProblem(
                f"{', '.join(given)} can only be passed with --extractor",
                f"add --extractor PATH:CLASS, or leave out {', '.join(given)}",
            )
        return None
    if no_weights and given:
        raise UsageProblem(
            f"--no-weights contradicts {', '.join(given)}",
            f"leave out --no-weights, or leave out {', '.join(given)}",
        )
    if not no_weights and len(given) < len(weight_options):
        missing = [name for name in weight_options if name not in given]
        raise UsageProblem(
            f"--extractor is given without {', '.join(missing)}",
            "pass --model REPO --revision COMMIT --weights NAME=SHA256, or --no-weights if the "
            "extractor has no weights",
        )
    return DeclaredRun(
        extractor, model, revision, _values_by_name(weights), _values_by_name(options)
    )


def _values_by_name(arguments: tuple[str, ...]) -> dict[str, str]:
    """Return the values of arguments of the form NAME=VALUE, by name."""
    return dict(argument.partition("=")[::2] for argument in arguments)


COMMIT_STATUS = "geneb/audit-commit"
"""Name of the commit status on GitHub that contains the digest of a commitment."""


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
@click.option(
    "--revision", metavar="COMMIT", help="For format 1.0: commit of --model, 40 hex digits."
)
@click.option(
    "--weights",
    multiple=True,
    metavar="NAME=SHA256",
    help="For format 1.0: digest of a weight file. Repeatable.",
)
@click.option("--no-weights", is_flag=True, help="For format 1.0: no weights.")
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help="Private key that signs the commitment, so that nobody can omit this audit later.",
)
def commit_command(
    file: Path,
    output: str,
    key: Path | None,
    extractor: str | None,
    options: tuple[str, ...],
    model: str | None,
    revision: str | None,
    weights: tuple[str, ...],
    no_weights: bool,
) -> None:
    """Commit to an audit of FILE: one digest of submission, code, weights, benchmark and policy.

    FILE has to pass every check. A file of format 1.0 does not name the code and weights that ran:
    declare them with --extractor and either --model, --revision and --weights, or --no-weights.
    """
    declared = declared_run(extractor, options, model, revision, weights, no_weights=no_weights)
    commitment = commit(read_submission(file), declared)
    layout = find_layout(Path.cwd())
    signer = private_key(key) if key is not None else None
    signing = Signing(layout, signer, audits_folder_of(layout), say)
    write(Output("json", output), commitment_text(commitment))
    commitment_name = "C.json" if output == STDOUT else output
    git_advice = ""
    path = signing.sign_commitment(commitment)
    if path is not None:
        git_advice = f"commit {os.path.relpath(path)} to the main branch\n"
    echo(
        f"commitment {commitment.sha256}\n"
        f"{commitment.model_id}: {commitment.policy.drawn} of {len(commitment.tasks)} "
        f"tasks will be drawn\n{git_advice}"
        f"publish the digest, as commit status {COMMIT_STATUS} or in the ledger, and note the\n"
        "time of publication by the server's clock; then draw the tasks\n"
        + next_line(
            shlex.join(
                ["geneb-ci", "audit", "plan", commitment_name, "--committed-at", EXAMPLE_TIME]
            )
            + " --shown-on COMMIT"
        ),
        err=output == STDOUT,
    )


@click.command(
    cls=LayeredCommand,
    common=(
        *("--key", "--unsigned", "--output", "--receipt", "--data", "--weights"),
        *("--device", "--work"),
    ),
)
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
@KEY_OPTION
@click.option(
    "--receipt",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="For a plan of embeddings: folder with the receipt's files; fetched unless given.",
)
@UNSIGNED_OPTION
@RECORDS_OPTION
@shown_option
@device_option
@machine_options
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps finished results: the same command continues from them.",
)
@format_option(["text", "json"])
@OLD_JSON_OPTION
def run_command(
    plan_file: Path,
    key: Path | None,
    receipt: Path | None,
    unsigned: bool,
    output: Path | None,
    shown_on: str | None,
    format_: str,
    work: Path | None,
    **machine: Any,
) -> int:
    """Rerun the tasks of PLAN in a sandbox, compare the scores, and sign the record.

    For a plan of embeddings, the command computes every cell from the receipt, and embeds the drawn
    sequences again.

    Run it in the checkout that was committed to. The record is written below leaderboard/audits.
    The exit code is 11 when a claim differs.
    """
    check_options(None, key, output, unsigned=unsigned)
    layout = find_layout(Path.cwd())
    audits = output or audits_folder_of(layout)
    plan = read_any_plan(plan_file)
    check_shown_on(shown_on, plan.committed_at)
    signer = None
    if not unsigned:
        signer = private_key(key)
        check_can_record(signer, layout, audits / plan.commitment.model_id)
    signing = Signing(layout, signer, audits, say, shown_on)
    # A service manager ends a process by SIGTERM, a person by Ctrl-C: both clean up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    advice = (
        "\n  this draw has no record: pass its plan to the next `audit plan`: "
        f"--earlier {plan_file}"
    )
    result = rerun_plan(
        plan,
        signing,
        machine_of(machine),
        work=work,
        receipt=receipt,
        advice=advice if signer is None else "",
    )
    # Before anything is printed: a closed pipe must not lose the record.
    record = signing.sign_record(result)
    if record is None and result.embeddings is not None and work is None:
        say(
            "the rerun embeddings, which a record needs, are not kept: pass --work DIR to keep them"
        )
    outcome = result.outcome
    click.echo(
        json_text_of(outcome) if format_ == "json" else outcome_text(outcome, _outcome_columns()),
        nl=False,
    )
    if record is not None:
        say(next_line(command_after_record(record)))
    return Exit.CLEAN if outcome.verdict == "agrees" else Exit.ERRORS


def _outcome_columns() -> int:
    """Return the width of an outcome in columns: the terminal's, or in a pipe that of its table."""
    return width(widest=OUTCOME_WIDTH, unknown=OUTCOME_WIDTH)


_VERIFICATION_WRITERS = {"text": verification_text, "json": verification_json}
"""Functions that write the result of a verification, by format."""


@click.command()
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--submissions",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of the submissions; default: the repository's.",
)
@click.option(
    "--cells",
    is_flag=True,
    help="For audits by receipt: compute cells, drawn embeddings and direction from the receipt.",
)
@click.option(
    "--receipt",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="For --cells: folder with the receipt's files; fetched unless given.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="For --cells: folder of task data; the practice benchmark needs none.",
)
@click.option(
    "--evidence",
    type=click.Choice(list(map(str, EVIDENCE_ORDER[1:])), case_sensitive=False),
    help="Evidence that every submission must have, by all records of the repository.",
)
@click.option(
    "--published",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="audits/statements.json of a published board: fail if one of its statements is missing.",
)
@format_option(_VERIFICATION_WRITERS)
def verify_command(
    records: tuple[Path, ...],
    submissions: Path | None,
    cells: bool,
    receipt: Path | None,
    data: Path | None,
    evidence: str | None,
    published: tuple[Path, ...],
    format_: str,
) -> int:
    """Verify RECORDS, or every record in the repository, from public data.

    If a named record is of an audit by receipt, the drawn embeddings are compared again with the
    rerun ones, which are in the file beside the record. Keys, policy and benchmark come from the
    folder in which the command runs, not from the record's folder. A record proves only what its
    one signer states: with --evidence reproduced, a submission that only one person audited is
    refused. The exit code is 11 when a step differs or a submission has less evidence, 3 when
    something that a step needs is missing.
    """
    require_published(published, find_layout(Path.cwd()))
    verifications = verify(
        *records,
        submissions=submissions,
        cells=cells,
        receipt=receipt,
        data=data,
        evidence=evidence,
        say=say,
        progress=lambda results, total: with_progress(results, total, "verifying"),
    )
    report = _VERIFICATION_WRITERS[format_](verifications, verifications.rated)
    click.echo(wrapped_text(report, list_width()) if format_ == "text" else report, nl=False)
    return _exit_code(verifications)


def _exit_code(verifications: Verifications) -> Exit:
    """Return the exit code of a verification of records."""
    if any(result.differs for result in verifications) or not verifications.suffice:
        return Exit.ERRORS
    has_unknown = any(
        step.state is StepState.UNKNOWN for result in verifications for step in result.steps
    )
    return Exit.NOT_CHECKED if has_unknown else Exit.CLEAN


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--reason", required=True, help="Why the audit is invalid; shown on the board.")
@click.option(
    "--key", type=click.Path(path_type=Path), help=f"Private key; default: {KEY_VARIABLE}."
)
def withdraw_command(record: Path, reason: str, key: Path | None) -> None:
    """Withdraw the audit of RECORD: write a signed withdrawal beside it. The record is kept."""
    now = current_moment()
    require_file(record, FileKind.RECORD)
    file = record.resolve()
    raw, signer = read_record(file), private_key(key)
    repository = AuditRepository(find_layout(file.parent))
    heads = heads_for_statement(repository, f"{file.parent.name}/{file.name}")
    content = withdrawal_of(file.parent.name, raw, reason, now, signer, heads)
    path = record.with_name(f"{record.stem}{WITHDRAWN_SUFFIX}")
    try:
        with path.open("xb") as stream:
            stream.write(content)
    except FileExistsError as error:
        raise UsageProblem(
            f"{path} exists: the audit is withdrawn already",
            f"commit {path} to the main branch, if it is not there",
        ) from error
    except OSError as error:
        raise UsageProblem(
            f"{path}: cannot be written: {error.strerror}",
            f"make the folder {path.parent} writable, and run the command again",
        ) from error
    echo(f"wrote {path}: the withdrawal counts once this file is on the main branch")
    record_path = os.path.relpath(path)
    add = shlex.join(["git", "add", record_path])
    echo(next_line(f"{add} && {shlex.join(['git', 'commit', record_path])}"))


class _Audit(LazyGroup):
    """The commands `geneb-ci audit`."""

    table = {  # noqa: RUF012 (click's groups are made once)
        "file": (
            "audit_file",
            "`audit FILE`: take all steps, from a submission to the signed record",
        ),
        "queue": ("audit_queue", "audit several submissions, one at a time on each device"),
        "commit": (
            "audit",
            "commit to a submission and its run, before the draw",
        ),
        "publish": ("audit_pull", "publish the digest of a row's commitment on GitHub"),
        "plan": ("audit_draw", "draw what to rerun, by the public beacon"),
        "run": ("audit", "rerun what was drawn in a sandbox, compare, sign the record"),
        "verify": ("audit", "compute every step of a record again, from public data"),
        "fresh": ("audit_prepare", "prepare labelled sequences that are not public, for an audit"),
        "open": ("audit_pull", "for a pull request: commit, publish the digest, draw"),
        "job": ("audit_pull", "for a pull request: rerun, where there is no token"),
        "send": ("audit_pull", "for a pull request: rerun as a Job of the Hub"),
        "ready": ("audit_pull", "for a pull request: test whether its outcome could be signed"),
        "deliver": ("audit_pull", "for a pull request: sign, verify, propose the record"),
        "propose": ("audit_pull", "open a pull request with a record attached to a comment"),
        "withdraw": ("audit", "withdraw an audit by a signed statement with a reason"),
        "keygen": ("audit_prepare", "make a maintainer's key for signing records"),
        "statement": ("audit_prepare", "print the bytes that a workflow has to sign"),
    }
    sections: ClassVar[dict[str, tuple[str, ...]]] = {
        "Commands": ("file", "queue", "verify", "withdraw", "keygen"),
        "Steps of an audit, one by one": ("commit", "publish", "plan", "run", "fresh"),
    }

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; it is `file` if the first word is the name of a file."""
        word = args[0]
        if word not in self.table and (
            "/" in word or word.endswith(".json") or Path(word).exists()
        ):
            return super().resolve_command(ctx, ["file", *args])
        return super().resolve_command(ctx, args)


@click.group(cls=_Audit)
def audit_command() -> None:
    """Audit a submission: commit, draw tasks or embeddings, rerun, and sign the record.

    Anybody can verify a record. `geneb-ci audit FILE` takes all these steps for one submission;
    `geneb-ci audit file --help` lists its options. A first word that is neither a command nor an
    option is the FILE.
    """
