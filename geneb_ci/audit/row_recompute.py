"""An audit by receipt computed again: its files beside the record, and all from the receipt."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.applicability import TrustInputs
from geneb_ci.audit.canonical import StepMismatch
from geneb_ci.audit.embedding import variant_seed
from geneb_ci.audit.embedding_checks import VariantResult
from geneb_ci.audit.envelope import RESTORE
from geneb_ci.audit.record import RERUN as RERUN_SUFFIX
from geneb_ci.audit.repository import AuditRepository
from geneb_ci.audit.row_draw import task_shares
from geneb_ci.audit.row_embedding import Varied, changes_of, row_variants, varied
from geneb_ci.audit.row_files import (
    FULL,
    DrawnTask,
    compared_cells,
    directions,
    drawn_task,
    read_task,
)
from geneb_ci.audit.row_outcome import Direction, RowOutcome
from geneb_ci.audit.row_verify import (
    CELLS,
    PROOFS,
    RERUN,
    RERUN_BYTES_MAX,
    ROWS,
    RerunRows,
    audited_receipt,
    check_comparisons,
    check_proofs,
    read_rerun,
)
from geneb_ci.audit.verify import StepState, Verification, VerificationStep, message_of
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.harness.process import HarnessProcess, TaskSource, task_source
from geneb_ci.receipt.cells import recompute
from geneb_ci.receipt.draw import drawn_rows
from geneb_ci.receipt.embeddings import LEVEL
from geneb_ci.receipt.row_rule import direction_test
from geneb_ci.receipt.source import ReceiptFiles, Say, receipt_files
from geneb_ci.submission.models import EmbeddingReceipt, SubmissionV12
from reference_harness.formats.files import NotReadable, read_regular

FURTHER = (RERUN, PROOFS, ROWS)
STATISTIC_SLACK = 0.01
"""Standard deviations. The weights of another machine differ by 1e-10, which swaps two ranks of
nearly equal rows now and then."""


class FromReceipt(NamedTuple):
    """What `--cells` needs: the receipt's files, the task data, and the harness."""

    files: Callable[[EmbeddingReceipt], ReceiptFiles]
    source: TaskSource
    say: Say


def with_files(
    found: Verification, path: Path, inputs: TrustInputs, receipt: FromReceipt | None = None
) -> Verification:
    """Return a verification with the steps that need more than the record.

    From the file of rerun rows beside the record at `path`: its digest, the proofs, and every
    comparison. With `receipt`, also the drawn rows, the cells and the direction, from the receipt.
    """
    outcome = found.record.outcome if found.record is not None else None
    if not isinstance(outcome, RowOutcome):
        return found
    steps, rows = [], None
    said = audited_receipt(outcome, inputs)
    if said is None:
        missing = "the audited submission is not here"
        steps = [
            VerificationStep(name, StepState.UNKNOWN, missing, _SUBMISSION) for name in FURTHER
        ]
    else:
        rows = _rerun_of(path, outcome, steps)
        steps += _compared(rows, outcome, said)
        if receipt is not None:
            steps.append(_from_receipt(rows, outcome, said, inputs, receipt))
    return found._replace(steps=(*found.steps, *steps))


_SUBMISSION = "name the folder of submissions: --submissions DIR"


def _rerun_of(path: Path, outcome: RowOutcome, steps: list[VerificationStep]) -> RerunRows | None:
    place = path.with_name(f"{path.stem}{RERUN_SUFFIX}")
    try:
        rows = read_rerun(read_regular(place, RERUN_BYTES_MAX), outcome)
    except NotReadable as error:
        fix = "fetch it from where the record is published, and put it beside the record"
        steps.append(
            VerificationStep(RERUN, StepState.UNKNOWN, f"{place.name}: {error.reason}", fix)
        )
        return None
    except StepMismatch as error:
        steps.append(_failed(RERUN, error))
        return None
    steps.append(VerificationStep(RERUN, StepState.HOLDS))
    return rows


def _compared(
    rows: RerunRows | None, outcome: RowOutcome, receipt: EmbeddingReceipt
) -> Iterator[VerificationStep]:
    for name, check in ((PROOFS, check_proofs), (ROWS, check_comparisons)):
        if rows is None:
            yield VerificationStep(name, StepState.UNKNOWN)
            continue
        try:
            check(rows, outcome, receipt)
        except StepMismatch as error:
            yield _failed(name, error)
        else:
            yield VerificationStep(name, StepState.HOLDS)


def _from_receipt(
    rows: RerunRows | None,
    outcome: RowOutcome,
    receipt: EmbeddingReceipt,
    inputs: TrustInputs,
    given: FromReceipt,
) -> VerificationStep:
    """Compute cells, drawn rows and direction from the receipt, and compare them."""
    current = inputs.submission(outcome.plan.commitment.model_id)
    submission = current.submission if current is not None else None
    if current is None or not isinstance(submission, SubmissionV12):
        return VerificationStep(CELLS, StepState.UNKNOWN, "the submission is not here", _SUBMISSION)
    plan, benchmark = outcome.plan, inputs.benchmark
    shares = task_shares(plan.rows, receipt, benchmark)
    seeds = [plan.seed, *(one.seed for one in plan.earlier)]
    drawn: dict[str, DrawnTask] = {}
    made: dict[str, Varied] = {}
    with (
        tempfile.TemporaryDirectory(prefix="geneb-ci-rows-") as place,
        HarnessProcess() as harness,
        given.files(receipt) as files,
    ):

        def take(task: str, file: Path) -> None:
            read = read_task(Path(place), task, benchmark)
            own = drawn_rows(seeds, read.strata, shares[task])
            drawn[task] = drawn_task(task, receipt, file, read, own)

        cells = recompute(
            current.path, receipt, files, given.source, harness,
            [one.task for one in outcome.tasks], benchmark=benchmark, say=given.say,
            strata=Path(place), each=take,
        )  # fmt: skip
        if outcome.variants is not None:
            seed = variant_seed(plan.seed, outcome.variants.nonce)
            path = Path(place) / "variants.json"
            made = {
                one.task: varied(one.task, given.source, harness, seed, path)
                for one in outcome.tasks
            }
    other = [
        one.task
        for one in outcome.tasks
        if (one.rows, one.strata) != (drawn[one.task].drawn.rows, drawn[one.task].drawn.sizes)
    ]
    wrong = {
        f"other rows of {', '.join(other)} follow from the seed": bool(other),
        "its cells are not those of the receipt": (
            compared_cells(submission, cells) != outcome.cells
        ),
        "its test of direction is another": rows is not None
        and not other
        and not _is_near(_direction(outcome, rows, drawn), outcome.direction),
        "its variants are not those of the seed, or the probes decide otherwise on them": (
            rows is not None
            and outcome.variants is not None
            and _variants(outcome.variants, outcome, rows, drawn, made) != outcome.variants
        ),
    }
    said = [text for text, holds in wrong.items() if holds]
    if said:
        return VerificationStep(CELLS, StepState.DIFFERS, "; ".join(said), RESTORE)
    return VerificationStep(CELLS, StepState.HOLDS)


def _direction(outcome: RowOutcome, rows: RerunRows, drawn: dict[str, DrawnTask]) -> Direction:
    strata = [
        one
        for number, task in enumerate(outcome.tasks)
        for one in directions(drawn[task.task], rows.rerun[rows.task == number])
    ]
    found = direction_test(strata, outcome.plan.seed)
    return Direction(rows=found.rows, statistic=found.statistic, p=found.p)


def _variants(
    said: VariantResult,
    outcome: RowOutcome,
    rows: RerunRows,
    drawn: dict[str, DrawnTask],
    made: dict[str, Varied],
) -> VariantResult | None:
    """Return what the kept rows of the variants show; None where they are of other variants."""
    kept = rows.variants
    if kept is None:
        return None
    due = [(number, row) for number, one in enumerate(outcome.tasks) for row in made[one.task].rows]
    if list(zip(kept.task.tolist(), kept.row.tolist(), strict=True)) != due:
        return None
    changes = []
    for number, one in enumerate(outcome.tasks):
        task, own = drawn[one.task], kept.task == number
        values = kept.values[own]
        changes.append(
            changes_of(task.strata, task.probes, task.said.scale_log2, made[one.task].rows, values)
        )
    return row_variants(changes, FULL, said.nonce)


def _is_near(one: Direction, other: Direction) -> bool:
    """Whether two tests came to the same, but for how a machine sums."""
    return (
        one.rows == other.rows
        and abs(one.statistic - other.statistic) <= STATISTIC_SLACK
        and (one.p < LEVEL) == (other.p < LEVEL)
    )


def _failed(name: str, error: StepMismatch) -> VerificationStep:
    return VerificationStep(name, StepState.DIFFERS, message_of(error), error.fix)


def from_receipt(layout: Layout, folder: Path | None, data: Path | None, say: Say) -> FromReceipt:
    """Return what computes an audit again from the receipt, in a folder or fetched.

    Raises UsageProblem when the benchmark needs a folder of task data.
    """
    return FromReceipt(
        lambda receipt: receipt_files(receipt, folder, say=say),
        task_source(benchmark_of(layout), layout.benchmark, data),
        say,
    )


def with_rows(
    repository: AuditRepository, path: Path, name: str, again: FromReceipt | None, *, named: bool
) -> Verification:
    """Verify a record; of an audit by receipt also its rows, where it is named or they are here."""
    found = repository.verification(path, name)
    if named or again is not None or path.with_name(f"{path.stem}{RERUN_SUFFIX}").exists():
        return with_files(found, path, repository.inputs, again)
    return found
