"""`geneb-ci audit FILE`: from a submission to a signed record, in one command."""

import functools
import hashlib
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb_ci.api import audit
from geneb_ci.audit.canonical import AuditRefused
from geneb_ci.audit.commit import subject_of
from geneb_ci.audit.compare.embedding_outcome import RowOutcome
from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.record.signing import (
    append_to_log,
    audits_of,
    check_moment,
    check_record_options,
    keeps_log,
    known_time,
    sign_abort,
    sign_start,
)
from geneb_ci.audit.record.statement import check_can_record
from geneb_ci.audit.record.verify_embeddings import RERUN_BYTES_MAX
from geneb_ci.audit.rerun.embeddings import RERUN_ROWS, RowAuditResult, rows_of
from geneb_ci.audit.rerun.prepare import Ready, ready
from geneb_ci.audit.rerun.workspace import Work, open_work
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.audit.sampling.embedding_draw import rows_wanted
from geneb_ci.audit.sampling.plan import RowPlan, encoded, read_any_plan
from geneb_ci.audit.workflow import (
    OUTCOME,
    PLAN,
    AuditProgress,
    FileAudit,
    begun,
    by_hand,
    commitment_of,
    default_work,
    in_log,
    refuse_other,
)
from geneb_ci.cli.audit_draw import earlier_option, near_option, source_options
from geneb_ci.cli.audit_log import log_key_option
from geneb_ci.cli.audit_rows import (
    RowSources,
    before_the_draw,
    committed_receipt,
    drawn_row_plan,
    shown_rows,
    write_rows,
)
from geneb_ci.cli.main import echo, say
from geneb_ci.cli.shared import LayeredCommand, Output, machine_of, machine_options, width, write
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import Exit, ExtractorRefused, UsageProblem, unwritable
from geneb_ci.receipt.source import ReceiptFiles, receipt_files
from geneb_ci.render.audits import WIDTH as OUTCOME_WIDTH
from geneb_ci.render.results import AuditResult
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.submission import EmbeddingReceipt
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
        *("--committed-at", "--rows", "--dry-run", "--key", "--unsigned"),
        *("--data", "--weights", "--gpu"),
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--committed-at",
    metavar="TIME",
    help="When the digest became public, in UTC: 2026-11-20T08:30:00Z.",
)
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
@click.option(
    "--rows",
    metavar="standard|full|N",
    help="Audit by receipt: every cell from its rows, and some rows embedded again, as `audit plan "
    "--rows` draws them.",
)
@click.option(
    "--receipt",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="For --rows: folder of the receipt; fetched from where FILE says unless given.",
)
@near_option
@record_options
@log_key_option
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
    publish. With --committed-at it waits for the beacon, draws, reruns task by task (with --rows,
    drawn rows of the receipt), compares and signs. What is finished is kept: after any
    interruption, run the same command again. The exit code is 11 when a claim differs.
    """
    if options["rows"] is None and (options["receipt"] or options["near"]):
        raise UsageProblem(
            "--receipt and --near are for an audit by receipt",
            "add --rows standard, or leave them out",
        )
    check_options(
        committed_at,
        options["key"],
        options["output"],
        device,
        unsigned=options["unsigned"],
        gpu=options["gpu"],
    )
    source = BeaconSource(**{name: options.pop(name) for name in BeaconSource._fields})
    words = ctx.meta[WORDS]
    own = ("earlier", "work", "key", "unsigned", "output", "dry_run", "log_key")
    rest = {name: options.pop(name) for name in own if name in options}
    by_receipt = {name: options.pop(name) for name in ("rows", "receipt", "near")}
    rest |= {
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
    if by_receipt["rows"] is None:
        result = audit(file, say=say, show=_show, **rest)
    else:
        request = FileAudit(file=file, **rest, **by_receipt)
        end = audited_rows(request, find_layout(Path.cwd()), say, _show)
        result = AuditResult(**end._asdict())
    if result.outcome is not None:
        _show(result.text(width(widest=OUTCOME_WIDTH, unknown=OUTCOME_WIDTH)))
    text = result.to_json()
    if report is not None:
        write(Output("json", str(report)), text)
    if queued:
        _write_for_queue(Path(queued), text)
    return result.exit_code


def audited_rows(request: FileAudit, layout: Layout, say: Say, show: Say) -> AuditProgress:
    """Carry one audit by receipt as far as it goes now, as `audited` does one of tasks.

    Raises what `audited` and the parts of an audit by receipt do.
    """
    check_moment(request.committed_at)
    rows = rows_wanted(request.rows or "")
    commitment = commitment_of(request)
    drawn_from = committed_receipt(commitment, request.file, layout)
    files = functools.partial(receipt_files, folder=request.receipt, say=say)
    with files(drawn_from.receipt) as opened:
        lacking = opened.lacking(list(drawn_from.receipt.tasks))
    audits = request.output or audits_of(layout)
    is_logged = keeps_log(layout) and not request.unsigned
    at = known_time(commitment, layout, request.committed_at) if is_logged else request.committed_at
    signer = None if request.unsigned or request.dry_run else private_key(request.key)
    if signer is not None:
        check_can_record(signer, layout, audits / commitment.model_id)
    folder = request.work or default_work(commitment, "row-audits")
    if request.work is None and request.committed_at is not None:
        refuse_other(commitment, folder)
    with open_work(folder) as work:
        plan = begun(work, commitment, at, _row_plan)
        rows_done = _finished_rows(work, plan)
        if rows_done is None:
            subject = subject_of(commitment, layout)
            with ready(commitment, subject, layout, request.machine, work, say) as here:
                lines = before_the_draw(drawn_from, rows, layout, commitment, lacking)
                cost = "".join(f"{line}\n" for line in lines)
                show(cost)
                if request.dry_run:
                    return AuditProgress(Exit.CLEAN, "dry run", cost=cost)
                if plan is None:
                    publish = in_log if is_logged else by_hand
                    published_at = at or publish(request, here, layout, signer, say, show)
                    if isinstance(published_at, AuditProgress):
                        return published_at._replace(cost=cost)
                    sources = RowSources(request.earlier, request.receipt, request.near)
                    plan = drawn_row_plan(
                        commitment,
                        published_at,
                        layout,
                        request.source,
                        rows,
                        drawn_from,
                        sources,
                        say,
                    )
                    work.keep(PLAN, encoded(plan))
                rows_done = _run_rows(plan, here, files, signer if is_logged else None, audits, say)
    if signer is not None:
        write_rows(rows_done, signer, audits, say)
        if request.log_key is not None and is_logged:
            append_to_log(layout, request.log_key, request.source.relay)
    show(shown_rows(rows_done.outcome, as_json=False))
    agrees = rows_done.outcome.verdict == "agrees"
    return AuditProgress(Exit.CLEAN if agrees else Exit.ERRORS, rows_done.outcome.verdict)


def _run_rows(
    plan: RowPlan,
    here: Ready,
    files: Callable[[EmbeddingReceipt], ReceiptFiles],
    signer: "Ed25519PrivateKey | None",
    audits: Path,
    say: Say,
) -> RowAuditResult:
    """Run a plan of rows and keep what it came to; with a key, sign its start, and an abort."""
    if signer is not None:
        sign_start(plan, signer, audits, say)
    try:
        rows_done = rows_of(plan, here, files, time.time, say)
    except ExtractorRefused as error:
        if signer is not None:
            sign_abort(error, plan, signer, audits, say)
        raise
    here.work.keep_result(OUTCOME, encoded(rows_done.outcome))
    return rows_done


def _row_plan(path: Path) -> RowPlan:
    """Return the plan of rows that was drawn. Raises AuditRefused for one of tasks."""
    plan = read_any_plan(path)
    if not isinstance(plan, RowPlan):
        raise AuditRefused(
            f"{path}: this audit drew tasks, and --rows draws rows",
            "leave out --rows, or name another folder: --work DIR",
        )
    return plan


def _finished_rows(work: Work, plan: RowPlan | None) -> RowAuditResult | None:
    """Return what this audit finished, where its outcome, plan and rows are here and agree."""
    if plan is None or not work.has_result(OUTCOME):
        return None
    outcome = work.read_as(OUTCOME, RowOutcome)
    try:
        rerun = read_regular(work.folder / RERUN_ROWS, RERUN_BYTES_MAX)
    except NotReadable:
        return None
    digest = hashlib.sha256(rerun).hexdigest()
    if outcome is None or outcome.plan != plan or outcome.rerun_sha256 != digest:
        return None
    return RowAuditResult(outcome, rerun)


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
