"""What the commands of an audit do where it is of rows of a receipt, and not of tasks."""

import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.audit.canonical import AuditRefused
from geneb_ci.audit.commit import read_submission
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import RowOutcome
from geneb_ci.audit.compare.embeddings import OwnReceipt, near_roots
from geneb_ci.audit.log.check import check_drawn, committed_index
from geneb_ci.audit.record.repository import AuditRepository, earlier_plans
from geneb_ci.audit.record.signing import sign_start
from geneb_ci.audit.record.statement import RERUN, record_of
from geneb_ci.audit.rerun.embedder import row_cost, row_cost_lines
from geneb_ci.audit.rerun.embeddings import RowAuditResult, rerun_rows
from geneb_ci.audit.sampling.beacon_source import BeaconSource, beacon_of
from geneb_ci.audit.sampling.embedding_draw import (
    SubmissionWithReceipt,
    draw_rows,
    earlier_row_draws,
    receipt_of,
    require_not_lowered,
    rows_wanted,
)
from geneb_ci.audit.sampling.plan import RowCounts, RowPlan, encoded
from geneb_ci.cli.main import echo
from geneb_ci.cli.shared import STDOUT, Output, machine_of, write
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.files import write_files
from geneb_ci.receipt.cells import cost_of
from geneb_ci.receipt.row_rule import BINARY, RAISES, cells_of, found_test
from geneb_ci.receipt.source import receipt_files
from geneb_ci.render.receipts import power_lines, row_outcome_text, row_plan_text
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import SubmissionV12
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def committed_receipt(
    commitment: Commitment, submission: Path | None, layout: Layout
) -> SubmissionWithReceipt:
    """Return the committed submission, whose receipt rows are drawn from.

    Raises UsageProblem where it is not here, AuditRefused for another one or one without rows that
    can be drawn.
    """
    file = submission
    if file is None and layout.submissions is not None:
        file = layout.submissions / f"{commitment.model_id}.json"
    if file is None or not file.is_file():
        raise UsageProblem(
            "--rows needs the submission, and there is none here", "name it: --submission FILE"
        )
    document = read_submission(file).document
    if document.sha256 != commitment.submission_sha256:
        raise AuditRefused(
            f"{file}: this is not the submission that was committed to",
            "name the file with the sha256 of the commitment: --submission FILE",
        )
    parsed = check_structure(document.value)[0]
    return receipt_of(parsed, benchmark_of(layout))


def finds(
    submission: SubmissionV12, rows: RowCounts, benchmark: Benchmark, commitment: Commitment
) -> list[str]:
    """Return what a draw of rows finds, by the submission's own matrices, as lines of text."""
    detected, binary = {}, 0
    tasks = [task for task in benchmark.task_ids if task in commitment.tasks]
    for regime in benchmark.regimes:
        matrices = {}
        for task in tasks:
            evidence = submission.evidence.get(regime, {}).get(task)
            if evidence is not None and evidence.canonical is not None:
                probes = evidence.canonical.confusion
                few = regime in benchmark.protocol.few_shot_k
                matrices[task] = probes if few else probes[:1]
        if not matrices:
            continue
        cells = cells_of(matrices, benchmark.categories)
        binary = sum(len(task_matrices[0]) == BINARY for task_matrices in matrices.values())
        detected[regime] = [found_test(cells, raise_, rows.test) for raise_ in RAISES]
    return list(power_lines(rows.test, rows.training, len(tasks), detected, binary))


def before_the_draw(
    drawn_from: SubmissionWithReceipt,
    rows: RowCounts,
    layout: Layout,
    commitment: Commitment,
    fetched: int = 0,
) -> list[str]:
    """Return what a draw finds and what it costs, as lines of text; `fetched` is in bytes."""
    benchmark, receipt = benchmark_of(layout), drawn_from.receipt
    cost = row_cost(rows, receipt, benchmark, drawn_from.submission.meta.params)
    return [
        *finds(drawn_from.submission, rows, benchmark, commitment),
        *row_cost_lines(cost, cost_of(receipt, receipt.tasks, fetched)),
    ]


class RowSources(NamedTuple):
    """Where earlier draws of rows are looked for, beside the repository."""

    earlier: Sequence[Path] = ()
    """Plans without a record."""
    receipt: Path | None = None
    """Folder of the own receipt; None: it is fetched where it is compared."""
    others: Path | None = None
    """Folder of other receipts, with a folder for each model; None: they are fetched."""


def drawn_row_plan(
    commitment: Commitment,
    committed_at: str,
    layout: Layout,
    source: BeaconSource,
    rows: RowCounts,
    drawn_from: SubmissionWithReceipt,
    sources: RowSources,
    say: Say,
) -> RowPlan:
    """Draw rows of a receipt, with those of earlier draws for this method and near receipts.

    Waits for the beacon's round. Raises what its parts do.
    """
    repository, receipt = AuditRepository(layout), drawn_from.receipt
    own = OwnReceipt(
        commitment,
        receipt,
        lambda: receipt_files(receipt, sources.receipt, say=say),
        repository.inputs.benchmark,
    )
    near = near_roots(own, repository, sources.others, say)
    for why in near.values():
        say(f"near {why}: its draws are made again here")
    plans = earlier_plans(RowPlan, commitment, committed_at, repository, sources.earlier, near)
    require_not_lowered(rows, plans, commitment)
    if (logged := repository.logged) is not None:
        index = committed_index(commitment.sha256, logged)
        check_drawn(commitment, len(logged.log.entries) if index is None else index, logged)
    beacon = beacon_of(commitment, committed_at, source, repository.inputs.policy, say)
    earlier = earlier_row_draws(plans, commitment, near)
    return draw_rows(commitment, committed_at, beacon, receipt.root, rows, earlier)


def plan_rows(
    commitment: Commitment,
    committed_at: str | None,
    layout: Layout,
    source: BeaconSource,
    design: str,
    submission: Path | None,
    sources: RowSources,
    output: str,
    signer: "Ed25519PrivateKey | None",
    audits: Path,
) -> None:
    """Draw rows of a receipt: print what the draw finds and costs, then write the plan.

    Without a time, what it finds and costs is all. Raises what its parts do.
    """
    say = functools.partial(echo, err=True)
    rows = rows_wanted(design)
    with_receipt = committed_receipt(commitment, submission, layout)
    lines = before_the_draw(with_receipt, rows, layout, commitment)
    if committed_at is None:
        lines += [
            "next: publish the digest of the commitment; then, with the time of publication:",
            f"  geneb-ci audit plan C.json --rows {design} --committed-at TIME --output PLAN.json",
        ]
        echo("\n".join(lines))
        return
    plan = drawn_row_plan(
        commitment, committed_at, layout, source, rows, with_receipt, sources, say
    )
    write(Output("json", output), encoded(plan))
    if signer is not None:
        sign_start(plan, signer, audits, say)
    name = "PLAN.json" if output == STDOUT else output
    echo(row_plan_text(plan, lines, name).rstrip("\n"), err=output == STDOUT)


def run_rows(
    plan: RowPlan,
    layout: Layout,
    machine: dict[str, object],
    folder: Path | None,
    say: Say,
    work: Path | None,
) -> RowAuditResult:
    """Run a plan of rows; the receipt is in a folder, or is fetched. Raises what its parts do."""
    return rerun_rows(
        plan,
        layout,
        machine_of(machine),
        lambda receipt: receipt_files(receipt, folder, say=say),
        time.time,
        say,
        work,
    )


def write_rows(
    rows_done: RowAuditResult, signer: "Ed25519PrivateKey", audits: Path, say: Say
) -> None:
    """Write the signed record of an audit by receipt, and the rerun rows beside it."""
    record = record_of(rows_done.outcome, signer)
    path = audits / record.path
    rerun = f"{record.audit_id}{RERUN}"
    write_files(path.parent, {rerun: rows_done.rerun, path.name: record.content})
    say(f"wrote {path}, and {rerun} beside it")


def keep_rows(
    rows_done: RowAuditResult,
    signer: "Ed25519PrivateKey | None",
    audits: Path,
    work: Path | None,
    say: Say,
) -> None:
    """Write the record, or say what has to be kept for one."""
    if signer is not None:
        write_rows(rows_done, signer, audits, say)
    elif work is None:
        say("the rerun rows, which a record needs beside it, are not kept: pass --work DIR")


def shown_rows(outcome: RowOutcome, *, as_json: bool) -> str:
    """Return an outcome as text or as JSON."""
    return encoded(outcome) if as_json else row_outcome_text(outcome)
