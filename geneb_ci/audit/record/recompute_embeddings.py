"""An audit by receipt computed again: its files beside the record, and all from the receipt."""

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.audit.compare.embedding_outcome import (
    BY_EMBEDDING,
    NOT_REFITTED,
    WITHOUT_BOUNDS,
    WITHOUT_FEW_SHOT,
    Direction,
    Effect,
    EmbeddingOutcome,
)
from geneb_ci.audit.compare.embeddings import (
    DrawnTask,
    compared_cells,
    directions,
    drawn_task,
    effect_of,
    influences,
    read_task,
    room_of,
)
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import RESTORE
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import RERUN as RERUN_SUFFIX
from geneb_ci.audit.record.verify import StepState, Verification, VerificationStep, message_of
from geneb_ci.audit.record.verify_embeddings import (
    CELLS,
    EMBEDDINGS,
    PROOFS,
    RERUN,
    RERUN_BYTES_MAX,
    STRONGEST_PART,
    RerunEmbeddings,
    VariantEmbeddings,
    audited_receipt,
    check_comparisons,
    check_proofs,
    read_rerun,
)
from geneb_ci.audit.rerun.few_shot import FewShotResult, without_tests
from geneb_ci.audit.rerun.honesty import VariantResult
from geneb_ci.audit.rerun.receipt_variants import (
    MAIN_PROBE,
    Refit,
    SampleVariants,
    TaskVariants,
    decision_changes,
    receipt_few_shot,
    receipt_variant_result,
    refit,
    sample_variants,
)
from geneb_ci.audit.sampling.embedding_draw import task_shares
from geneb_ci.audit.trust.applicability import TrustInputs
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.harness.process import DERIVED, HarnessProcess, TaskSource, task_source
from geneb_ci.receipt.cells import limits_of, recompute
from geneb_ci.receipt.direction import direction_test
from geneb_ci.receipt.draw import TaskShare, drawn_embeddings
from geneb_ci.receipt.embeddings import LEVEL
from geneb_ci.receipt.source import ReceiptFiles, receipt_files
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.receipt_cells import ReceiptCells
from reference_harness.formats.submission import EmbeddingReceipt, SubmissionV12
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EMBEDDING_STEPS = (RERUN, PROOFS, EMBEDDINGS)
STATISTIC_SLACK = 0.01
"""Allowed difference of the directional statistic, in standard deviations: weights differ by 1e-10
between machines, which sometimes swaps the ranks of nearly equal embeddings."""
EFFECT_SLACK = 0.05
"""Allowed difference of the effect, in standard deviations: influences differ by 1e-4."""
BOUND_SLACK = 1.5e-4
"""Allowed difference of a bound of MCC, which is rounded up to four digits."""
ROOM_SLACK = 0.02
"""Allowed relative difference of the room, of which a record has three digits."""


class ReceiptTools(NamedTuple):
    """The inputs of `--cells`: the receipt's files, the task data, and the harness."""

    files: Callable[[EmbeddingReceipt], ReceiptFiles]
    source: TaskSource
    say: Say


def with_files(
    verification: Verification, path: Path, inputs: TrustInputs, receipt: ReceiptTools | None = None
) -> Verification:
    """Return a verification with the steps that need more than the record.

    The file of rerun embeddings beside the record at `path` gives its digest, the proofs and every
    comparison. With `receipt`, drawn embeddings, cells, direction and effect are computed as well.
    """
    outcome = verification.record.outcome if verification.record is not None else None
    if not isinstance(outcome, EmbeddingOutcome):
        return verification
    steps, rows = [], None
    audited = audited_receipt(outcome, inputs)
    if audited is None:
        missing = "the audited submission is not here"
        steps = [
            VerificationStep(name, StepState.UNKNOWN, missing, _SUBMISSION)
            for name in EMBEDDING_STEPS
        ]
    else:
        rows = _rerun_of(path, outcome, steps)
        steps += _compared(rows, outcome, audited)
        if receipt is not None:
            steps.append(_from_receipt(rows, outcome, audited, inputs, receipt))
    return verification._replace(steps=(*verification.steps, *steps))


_SUBMISSION = "name the folder of submissions: --submissions DIR"


def _rerun_of(
    path: Path, outcome: EmbeddingOutcome, steps: list[VerificationStep]
) -> RerunEmbeddings | None:
    beside = path.with_name(f"{path.stem}{RERUN_SUFFIX}")
    try:
        rows = read_rerun(read_regular(beside, RERUN_BYTES_MAX), outcome)
    except NotReadable as error:
        fix = "fetch it from where the record is published, and put it beside the record"
        steps.append(
            VerificationStep(RERUN, StepState.UNKNOWN, f"{beside.name}: {error.reason}", fix)
        )
        return None
    except StepMismatch as error:
        steps.append(_failed(RERUN, error))
        return None
    steps.append(VerificationStep(RERUN, StepState.HOLDS))
    return rows


def _compared(
    rows: RerunEmbeddings | None, outcome: EmbeddingOutcome, receipt: EmbeddingReceipt
) -> Iterator[VerificationStep]:
    for name, check in ((PROOFS, check_proofs), (EMBEDDINGS, check_comparisons)):
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
    rows: RerunEmbeddings | None,
    outcome: EmbeddingOutcome,
    receipt: EmbeddingReceipt,
    inputs: TrustInputs,
    receipt_tools: ReceiptTools,
) -> VerificationStep:
    """Compute cells, drawn embeddings, direction and effect from the receipt, and compare them."""
    current = inputs.submission(outcome.plan.commitment.model_id)
    submission = current.submission if current is not None else None
    if current is None or not isinstance(submission, SubmissionV12):
        return VerificationStep(CELLS, StepState.UNKNOWN, "the submission is not here", _SUBMISSION)
    plan, benchmark = outcome.plan, inputs.benchmark
    shares = task_shares(plan.rows, receipt, benchmark)
    seeds = [plan.seed, *(draw.seed for draw in plan.earlier)]
    drawn: dict[str, DrawnTask] = {}
    variants, refits = SampleVariants({}, {}, {}), dict[str, Refit]()
    is_before = outcome.schema_version in WITHOUT_FEW_SHOT
    names = [audited.task for audited in outcome.tasks]
    parts = {audited.task: audited.rows for audited in outcome.tasks}
    with (
        tempfile.TemporaryDirectory(prefix="geneb-ci-rows-") as folder,
        HarnessProcess() as harness,
        receipt_tools.files(receipt) as files,
    ):

        def take(task: str, file: Path) -> None:
            task_files = read_task(
                Path(folder), task, benchmark, by_record=outcome.schema_version not in NOT_REFITTED
            )
            task_draw = drawn_embeddings(seeds, task_files.strata, shares[task])
            recorded = parts[task].get(STRONGEST_PART, [])
            before = outcome.schema_version in WITHOUT_BOUNDS
            drawn[task] = drawn_task(
                task, receipt, file, task_files, task_draw, recorded, as_before=before
            )
            varied = variants.training.get(task)
            support = variants.support.get(task, TaskVariants.none())
            values = None if rows is None else _refit_values(rows, names.index(task))
            if (
                varied is not None
                and values is not None
                and len(values) == len(varied.rows) + len(support.rows)
            ):
                refits[task] = refit(
                    task, varied, support, values, receipt.tasks[task].scale_log2,
                    current.path, file, receipt_tools.source, harness,
                    limits_of(receipt, task, benchmark, DERIVED), Path(folder),
                )  # fmt: skip

        if outcome.variants is not None:
            variants = sample_variants(
                plan,
                names,
                outcome.variants.nonce,
                receipt_tools.source,
                harness,
                Path(folder),
                outcome.schema_version,
            )
        cells = recompute(
            current.path, receipt, files, receipt_tools.source, harness, names, benchmark=benchmark,
            say=receipt_tools.say, strata=Path(folder),
            other_draws=None if is_before else plan.seed, on_file=take,
        )  # fmt: skip
    different_draws = [
        audited.task
        for audited in outcome.tasks
        if (audited.rows, audited.strata)
        != (drawn[audited.task].drawn.rows, drawn[audited.task].drawn.sizes)
    ]
    weaker_tasks = [
        task
        for task, sample in drawn.items()
        if outcome.schema_version not in NOT_REFITTED
        and not sample.strongest.allows(parts[task].get(STRONGEST_PART, []))
    ]
    wrong = {
        f"other embeddings of {', '.join(different_draws)} follow from the seed": bool(
            different_draws
        ),
        f"other training embeddings of {', '.join(weaker_tasks)} are the strongest": bool(
            weaker_tasks
        ),
        "its cells are not those of the receipt": (
            compared_cells(submission, cells) != outcome.cells
        ),
        "its test of direction is another": rows is not None
        and not different_draws
        and not _is_near(_direction(outcome, rows, drawn), outcome.direction),
        "its effect on the test embeddings is another": rows is not None
        and not different_draws
        and not _is_same_effect(_effect(outcome, rows, drawn), outcome.effect),
        "its bounds of what altered test embeddings can hide are others": rows is not None
        and not different_draws
        and bool(outcome.bounds)
        and not _are_same_bounds(outcome, rows, drawn, shares, benchmark),
        "the room that its tolerances leave is another": rows is not None
        and not different_draws
        and not _is_same_room(outcome, rows, drawn),
        "its variants are not those of the seed, or the probes decide otherwise on them": (
            rows is not None
            and outcome.variants is not None
            and _variants(outcome.variants, outcome, rows, drawn, variants, refits)
            != outcome.variants
        ),
        "few-shot probes score otherwise on other sequences or on variants": (
            rows is not None
            and not is_before
            and not _is_same_few_shot(outcome.few_shot, cells, refits)
        ),
    }
    reasons = [text for text, holds in wrong.items() if holds]
    if reasons:
        return VerificationStep(CELLS, StepState.DIFFERS, "; ".join(reasons), RESTORE)
    return VerificationStep(CELLS, StepState.HOLDS)


def _is_same_few_shot(
    recorded: FewShotResult | None, cells: ReceiptCells, refits: Mapping[str, Refit]
) -> bool:
    """Whether few-shot probes score as recorded; fits on test sequences if there are any."""
    varied = {task: task_refit.varied for task, task_refit in refits.items()}
    recomputed = receipt_few_shot(cells, varied)
    return recorded in (recomputed, without_tests(recomputed))


def _direction(
    outcome: EmbeddingOutcome, rows: RerunEmbeddings, drawn: dict[str, DrawnTask]
) -> Direction:
    strata = [
        stratum
        for number, task in enumerate(outcome.tasks)
        for stratum in directions(drawn[task.task], rows.rerun[rows.task == number])
    ]
    result = direction_test(strata, outcome.plan.seed)
    return Direction(rows=result.rows, statistic=result.statistic, p=result.p)


def _effect(
    outcome: EmbeddingOutcome, rows: RerunEmbeddings, drawn: dict[str, DrawnTask]
) -> Effect | None:
    if outcome.schema_version == BY_EMBEDDING:
        return None
    return effect_of(
        influences(drawn[task.task], rows.rerun[rows.task == number])
        for number, task in enumerate(outcome.tasks)
    )


def _variants(
    signed: VariantResult,
    outcome: EmbeddingOutcome,
    rows: RerunEmbeddings,
    drawn: dict[str, DrawnTask],
    variants: SampleVariants,
    refits: dict[str, Refit],
) -> VariantResult | None:
    """Return the result of the recorded variants; None if they are of other sequences."""
    names = [audited.task for audited in outcome.tasks]
    again = [refits[task].task for task in variants.training if task in refits]
    if (
        rows.variants is None
        or not _are_of(rows.variants, names, variants.test)
        or not _are_of(rows.refits, names, variants.training)
        or not _are_of(rows.support, names, variants.support)
        or again != outcome.refits
    ):
        return None
    by_record = signed.others.keys()
    changes = {}
    for number, name in enumerate(names):
        task = drawn[name]
        changed = decision_changes(
            task.strata.labels,
            task.deciders,
            task.entry.scale_log2,
            variants.test[name].rows,
            rows.variants.values[rows.variants.task == number],
        )
        changes[name] = {
            probe: fits for probe, fits in changed.items() if probe in {MAIN_PROBE, *by_record}
        }
    return receipt_variant_result(changes, again, signed.nonce, outcome.schema_version)


def _refit_values(rows: RerunEmbeddings, number: int) -> "npt.NDArray[np.float32] | None":
    """Return the recorded embeddings of variants that probes of one task are fitted on."""
    import numpy as np  # slow to import, and only needed here

    parts = [
        part.values[part.task == number] for part in (rows.refits, rows.support) if part is not None
    ]
    return np.concatenate(parts) if parts else None


def _are_of(
    embeddings: VariantEmbeddings | None, names: list[str], variants: Mapping[str, TaskVariants]
) -> bool:
    """Whether recorded embeddings are those of the variants, task by task."""
    expected = [
        (number, row)
        for number, name in enumerate(names)
        if name in variants
        for row in variants[name].rows
    ]
    if embeddings is None:
        return not expected
    return list(zip(embeddings.task.tolist(), embeddings.row.tolist(), strict=True)) == expected


def _is_near(first: Direction, second: Direction) -> bool:
    """Whether two results are equal up to differences between machines."""
    return (
        first.rows == second.rows
        and abs(first.statistic - second.statistic) <= STATISTIC_SLACK
        and (first.p < LEVEL) == (second.p < LEVEL)
    )


def _is_same_effect(first: Effect | None, second: Effect | None) -> bool:
    """Whether two effects are equal up to differences between machines, or both None."""
    if first is None or second is None:
        return first is second
    return all(
        first_part.rows == second_part.rows
        and abs(first_part.statistic - second_part.statistic) <= EFFECT_SLACK
        for first_part, second_part in (
            (first.training, second.training),
            (first.test, second.test),
        )
    )


def _is_same_room(
    outcome: EmbeddingOutcome, rows: RerunEmbeddings, drawn: dict[str, DrawnTask]
) -> bool:
    if outcome.schema_version == BY_EMBEDDING:
        return all(task.room is None for task in outcome.tasks)
    return all(
        math.isclose(
            room_of(drawn[task.task], rows.rerun[rows.task == number]),
            task.room or 0.0,
            rel_tol=ROOM_SLACK,
        )
        for number, task in enumerate(outcome.tasks)
    )


def _are_same_bounds(
    outcome: EmbeddingOutcome,
    rows: RerunEmbeddings,
    drawn: dict[str, DrawnTask],
    shares: Mapping[str, TaskShare],
    benchmark: Benchmark,
) -> bool:
    from geneb_ci.audit.compare.regime_bounds import bounds_of  # NumPy is slow to import

    tasks = [drawn[task.task] for task in outcome.tasks]
    reruns = [rows.rerun[rows.task == number] for number in range(len(tasks))]
    bounds = bounds_of(tasks, reruns, shares, benchmark)
    return len(bounds) == len(outcome.bounds) and all(
        (computed.regime, computed.draws, computed.flipped)
        == (recorded.regime, recorded.draws, recorded.flipped)
        and math.isclose(computed.raised, recorded.raised, abs_tol=BOUND_SLACK)
        for computed, recorded in zip(bounds, outcome.bounds, strict=True)
    )


def _failed(name: str, error: StepMismatch) -> VerificationStep:
    return VerificationStep(name, StepState.DIFFERS, message_of(error), error.fix)


def from_receipt(layout: Layout, folder: Path | None, data: Path | None, say: Say) -> ReceiptTools:
    """Return what computing an audit again needs; the receipt is in `folder` or downloaded.

    Raises UsageProblem when the benchmark needs a folder of task data.
    """
    return ReceiptTools(
        lambda receipt: receipt_files(receipt, folder, say=say),
        task_source(benchmark_of(layout), layout.benchmark, data),
        say,
    )


def with_embeddings(
    repository: AuditRepository,
    path: Path,
    name: str,
    again: ReceiptTools | None,
    *,
    is_named: bool,
) -> Verification:
    """Verify a record, and the embeddings of an audit by receipt if it is named or has them."""
    verification = repository.verification(path, name)
    if is_named or again is not None or path.with_name(f"{path.stem}{RERUN_SUFFIX}").exists():
        return with_files(verification, path, repository.inputs, again)
    return verification
