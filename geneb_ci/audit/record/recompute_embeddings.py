"""Computes an audit by receipt again, from the file beside its record and from the receipt."""

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.audit.compare.embedding_outcome import (
    WITH_ROW_TOLERANCES,
    WITHOUT_BOUNDS,
    WITHOUT_FEW_SHOT,
    WITHOUT_REFITS,
    Direction,
    EmbeddingOutcome,
)
from geneb_ci.audit.compare.embeddings import (
    DrawnTask,
    compared_cells,
    direction_of,
    drawn_task,
    effect_of,
    influence_by_part,
    read_task_files,
    room_of,
)
from geneb_ci.audit.compare.limits import uses_every_defence
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import RESTORE_FIX
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import RERUN_SUFFIX
from geneb_ci.audit.record.verify import (
    StepState,
    Verification,
    VerificationStep,
    failed_step,
    step_of,
)
from geneb_ci.audit.record.verify_embeddings import (
    CELLS_STEP,
    EMBEDDINGS_STEP,
    PROOFS_STEP,
    RERUN_BYTES_MAX,
    RERUN_STEP,
    STRONGEST_PART,
    RerunEmbeddings,
    VariantEmbeddings,
    audited_receipt,
    check_comparisons,
    check_proofs,
    read_rerun,
)
from geneb_ci.audit.rerun.few_shot import without_test_fits
from geneb_ci.audit.rerun.honesty import VariantResult
from geneb_ci.audit.rerun.receipt_variants import (
    MAIN_PROBE,
    Refit,
    SampleVariants,
    TaskVariants,
    decision_changes,
    receipt_few_shot_result,
    receipt_variant_result,
    refit_on_variants,
    sample_variants,
)
from geneb_ci.audit.sampling.embedding_draw import task_shares
from geneb_ci.audit.trust.applicability import TrustInputs
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.harness.process import NO_LIMIT_OVERRIDES, HarnessProcess, TaskSource, task_source
from geneb_ci.receipt.cells import recomputed_cells, task_scoring_limits
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

EMBEDDING_STEPS = (RERUN_STEP, PROOFS_STEP, EMBEDDINGS_STEP)
"""Steps of a verification that need the file of rerun embeddings beside the record."""
DIRECTION_SLACK = 0.01
"""Allowed difference between the recorded and the recomputed statistic of the test of direction, in
standard deviations: weights
differ by 1e-10 between machines, which sometimes swaps the ranks of nearly equal embeddings."""
EFFECT_SLACK = 0.05
"""Allowed difference of the effect on the test loss, in standard deviations: the influences of
embeddings differ by 1e-4 between machines."""
BOUND_SLACK = 1.5e-4
"""Allowed difference of a bound of the raise of a regime's MCC, which a record rounds up to four
digits."""
LOSS_FALL_SLACK = 0.02
"""Allowed relative difference of `ComparedTask.room`, the fall of the test loss that the tolerances
allow, of which a record has three digits."""


class ReceiptTools(NamedTuple):
    """The inputs of the option `--cells`, which computes every cell of a receipt again."""

    files: Callable[[EmbeddingReceipt], ReceiptFiles]
    """Opens the files of a receipt."""
    source: TaskSource
    """Where the task data are read."""
    say: Say


def _with_embedding_steps(
    verification: Verification, path: Path, inputs: TrustInputs, tools: ReceiptTools | None
) -> Verification:
    """Return a verification with further steps, which need more than the record.

    The digest of the file of rerun embeddings, which is beside the record at `path`, the proofs and
    every comparison are computed again; with `tools` also the draw, cells, direction and effect.
    """
    outcome = verification.record.outcome if verification.record is not None else None
    if not isinstance(outcome, EmbeddingOutcome):
        return verification
    receipt = audited_receipt(outcome, inputs)
    if receipt is None:
        message = "the audited submission was not found"
        steps = [
            VerificationStep(name, StepState.UNKNOWN, message, _SUBMISSION_FIX)
            for name in EMBEDDING_STEPS
        ]
    else:
        embeddings, rerun_step = _rerun_embeddings_of(path, outcome)
        steps = [
            rerun_step,
            *(
                step_of(name, check, embeddings, outcome, receipt)
                if embeddings is not None
                else VerificationStep(name, StepState.UNKNOWN)
                for name, check in (
                    (PROOFS_STEP, check_proofs),
                    (EMBEDDINGS_STEP, check_comparisons),
                )
            ),
        ]
        if tools is not None:
            steps.append(_receipt_step(embeddings, outcome, receipt, inputs, tools))
    return verification._replace(steps=(*verification.steps, *steps))


_SUBMISSION_FIX = "name the folder of submissions: --submissions DIR"


def _rerun_embeddings_of(
    path: Path, outcome: EmbeddingOutcome
) -> tuple[RerunEmbeddings | None, VerificationStep]:
    """Return the rerun embeddings beside a record, and the step that reads them.

    The embeddings are None if the file is missing or wrong.
    """
    rerun_path = path.with_name(f"{path.stem}{RERUN_SUFFIX}")
    try:
        embeddings = read_rerun(read_regular(rerun_path, RERUN_BYTES_MAX), outcome)
    except NotReadable as error:
        fix = "download this file from where the record is published, and put it beside the record"
        message = f"{rerun_path.name}: {error.reason}"
        return None, VerificationStep(RERUN_STEP, StepState.UNKNOWN, message, fix)
    except StepMismatch as error:
        return None, failed_step(RERUN_STEP, error)
    return embeddings, VerificationStep(RERUN_STEP, StepState.HOLDS)


def _receipt_step(
    embeddings: RerunEmbeddings | None,
    outcome: EmbeddingOutcome,
    receipt: EmbeddingReceipt,
    inputs: TrustInputs,
    receipt_tools: ReceiptTools,
) -> VerificationStep:
    """Return the step "cells", which computes all numbers of a record again from the receipt."""
    current = inputs.submission(outcome.plan.commitment.model_id)
    submission = current.submission if current is not None else None
    if current is None or not isinstance(submission, SubmissionV12):
        return VerificationStep(
            CELLS_STEP, StepState.UNKNOWN, "the submission was not found", _SUBMISSION_FIX
        )
    plan, benchmark = outcome.plan, inputs.benchmark
    shares = task_shares(plan.rows, receipt, benchmark)
    seeds = [plan.seed, *(draw.seed for draw in plan.earlier)]
    drawn_tasks: dict[str, DrawnTask] = {}
    variants, refits = SampleVariants({}, {}, {}), dict[str, Refit]()
    is_without_few_shot = outcome.schema_version in WITHOUT_FEW_SHOT
    task_ids = [audited.task for audited in outcome.tasks]
    rows_by_part = {audited.task: audited.rows for audited in outcome.tasks}
    with (
        tempfile.TemporaryDirectory(prefix="geneb-ci-rows-") as folder,
        HarnessProcess() as harness,
        receipt_tools.files(receipt) as files,
    ):

        def compare_task(task: str, file: Path) -> None:
            task_files = read_task_files(
                Path(folder),
                task,
                benchmark,
                by_record=outcome.schema_version not in WITHOUT_REFITS,
            )
            task_draw = drawn_embeddings(seeds, task_files.strata, shares[task])
            recorded_rows = rows_by_part[task].get(STRONGEST_PART, [])
            is_before_bounds = outcome.schema_version in WITHOUT_BOUNDS
            drawn_tasks[task] = drawn_task(
                task,
                receipt,
                file,
                task_files,
                task_draw,
                recorded_rows,
                by_old_rules=is_before_bounds,
            )
            training_variants = variants.training.get(task)
            support_variants = variants.support.get(task, TaskVariants())
            embedded = (
                None if embeddings is None else _embedded_variants(embeddings, task_ids.index(task))
            )
            if (
                training_variants is not None
                and embedded is not None
                and len(embedded) == len(training_variants.rows) + len(support_variants.rows)
            ):
                refits[task] = refit_on_variants(
                    task, training_variants, support_variants, embedded,
                    receipt.tasks[task].scale_log2, current.path, file, receipt_tools.source,
                    harness, task_scoring_limits(receipt, task, benchmark, NO_LIMIT_OVERRIDES),
                    Path(folder),
                )  # fmt: skip

        if outcome.variants is not None:
            variants = sample_variants(
                plan,
                task_ids,
                outcome.variants.nonce,
                receipt_tools.source,
                harness,
                Path(folder),
                outcome.schema_version,
            )
        cells = recomputed_cells(
            current.path, receipt, files, receipt_tools.source, harness, task_ids,
            benchmark=benchmark, say=receipt_tools.say, strata_folder=Path(folder),
            other_draws=None if is_without_few_shot else plan.seed, on_file=compare_task,
        )  # fmt: skip
    tasks = [drawn_tasks[task] for task in task_ids]
    different_draws = [
        audited.task
        for audited, task in zip(outcome.tasks, tasks, strict=True)
        if (audited.rows, audited.strata) != (task.drawn.rows, task.drawn.sizes)
    ]
    reruns = [] if embeddings is None else embeddings.by_task(len(tasks))
    is_comparable = embeddings is not None and not different_draws
    weaker_tasks = [
        task
        for task, drawn in drawn_tasks.items()
        if outcome.schema_version not in WITHOUT_REFITS
        and not drawn.strongest.allows(rows_by_part[task].get(STRONGEST_PART, []))
    ]
    contradictions = {
        f"the drawn embeddings of {', '.join(different_draws)} do not follow from the seed": bool(
            different_draws
        ),
        f"the record lacks the strongest training embeddings of {', '.join(weaker_tasks)}": bool(
            weaker_tasks
        ),
        "the cells of the record are not those that the receipt gives": (
            compared_cells(submission, cells) != outcome.cells
        ),
        "the test of direction does not have the result of the record": is_comparable
        and not _is_same_direction(direction_of(tasks, reruns, plan.seed), outcome.direction),
        "the effect on the test embeddings is not that of the record": is_comparable
        and not _is_same_effect(outcome, tasks, reruns),
        "the bounds of raises by altered test embeddings are not those of the record": (
            is_comparable
            and bool(outcome.bounds)
            and not _are_same_bounds(outcome, tasks, reruns, shares, benchmark)
        ),
        "the fall of the test loss within the tolerances is not that of the record": (
            is_comparable and not _is_same_loss_fall(outcome, tasks, reruns)
        ),
        "the variants do not follow from the seed, or the probes classify them differently": (
            embeddings is not None
            and outcome.variants is not None
            and _recomputed_variants(
                outcome.variants, outcome, embeddings, drawn_tasks, variants, refits
            )
            != outcome.variants
        ),
        "the scores of few-shot probes on other sequences are not those of the record": (
            embeddings is not None
            and not is_without_few_shot
            and not _is_same_few_shot(outcome, cells, refits, benchmark)
        ),
    }
    reasons = [text for text, is_found in contradictions.items() if is_found]
    if reasons:
        return VerificationStep(CELLS_STEP, StepState.DIFFERS, "; ".join(reasons), RESTORE_FIX)
    return VerificationStep(CELLS_STEP, StepState.HOLDS)


def _is_same_few_shot(
    outcome: EmbeddingOutcome,
    cells: ReceiptCells,
    refits: Mapping[str, Refit],
    benchmark: Benchmark,
) -> bool:
    """Whether few-shot probes on other sequences score as recorded.

    Earlier records lack the fits on test sequences.
    """
    varied = {task: task_refit.varied for task, task_refit in refits.items()}
    recomputed = receipt_few_shot_result(cells, varied)
    if uses_every_defence(outcome.plan.commitment, benchmark):
        return outcome.few_shot == recomputed
    return outcome.few_shot in (recomputed, without_test_fits(recomputed))


def _recomputed_variants(
    signed_result: VariantResult,
    outcome: EmbeddingOutcome,
    embeddings: RerunEmbeddings,
    drawn_tasks: dict[str, DrawnTask],
    variants: SampleVariants,
    refits: dict[str, Refit],
) -> VariantResult | None:
    """Return the recomputed result of the variants; None if the record has other sequences."""
    task_ids = [audited.task for audited in outcome.tasks]
    refitted_tasks = [refits[task].task for task in variants.training if task in refits]
    if (
        embeddings.variants is None
        or not _belong_to_variants(embeddings.variants, task_ids, variants.test)
        or not _belong_to_variants(embeddings.refits, task_ids, variants.training)
        or not _belong_to_variants(embeddings.support, task_ids, variants.support)
        or refitted_tasks != outcome.refits
    ):
        return None
    other_probes = signed_result.others.keys()
    changes = {}
    for number, task_id in enumerate(task_ids):
        task = drawn_tasks[task_id]
        changes_by_probe = decision_changes(
            task.strata.labels,
            task.probe_sets,
            task.receipt_task.scale_log2,
            variants.test[task_id].rows,
            embeddings.variants.values[embeddings.variants.task == number],
        )
        changes[task_id] = {
            probe: fits
            for probe, fits in changes_by_probe.items()
            if probe in {MAIN_PROBE, *other_probes}
        }
    return receipt_variant_result(
        changes, refitted_tasks, signed_result.nonce, outcome.schema_version
    )


def _embedded_variants(
    embeddings: RerunEmbeddings, number: int
) -> "npt.NDArray[np.float32] | None":
    """Return the recorded embeddings of the variants on which probes of task `number` are fitted.

    Variants of training sequences come first, then those of sequences of few-shot probes. Returns
    None if there are neither.
    """
    import numpy as np  # slow to import, and only needed here

    embeddings_by_part = [
        part.values[part.task == number]
        for part in (embeddings.refits, embeddings.support)
        if part is not None
    ]
    return np.concatenate(embeddings_by_part) if embeddings_by_part else None


def _belong_to_variants(
    embeddings: VariantEmbeddings | None, task_ids: list[str], variants: Mapping[str, TaskVariants]
) -> bool:
    """Whether recorded embeddings are of the same tasks and sequences as the given variants."""
    expected_rows = [
        (number, row)
        for number, name in enumerate(task_ids)
        if name in variants
        for row in variants[name].rows
    ]
    if embeddings is None:
        return not expected_rows
    return (
        list(zip(embeddings.task.tolist(), embeddings.row.tolist(), strict=True)) == expected_rows
    )


def _is_same_direction(first: Direction, second: Direction) -> bool:
    """Whether two tests of direction are equal, up to differences between machines."""
    return (
        first.rows == second.rows
        and abs(first.statistic - second.statistic) <= DIRECTION_SLACK
        and (first.p < LEVEL) == (second.p < LEVEL)
    )


def _is_same_effect(
    outcome: EmbeddingOutcome,
    tasks: Sequence[DrawnTask],
    reruns: "Sequence[npt.NDArray[np.float32]]",
) -> bool:
    """Whether the effect on the test loss is as recorded, up to differences between machines."""
    recorded_effect = outcome.effect
    if outcome.schema_version == WITH_ROW_TOLERANCES or recorded_effect is None:
        return outcome.schema_version == WITH_ROW_TOLERANCES and recorded_effect is None
    effect = effect_of(map(influence_by_part, tasks, reruns))
    return all(
        part.rows == recorded_part.rows
        and abs(part.statistic - recorded_part.statistic) <= EFFECT_SLACK
        for part, recorded_part in (
            (effect.training, recorded_effect.training),
            (effect.test, recorded_effect.test),
        )
    )


def _is_same_loss_fall(
    outcome: EmbeddingOutcome,
    tasks: Sequence[DrawnTask],
    reruns: "Sequence[npt.NDArray[np.float32]]",
) -> bool:
    """Whether the fall of the test loss within the tolerances is as recorded, in every task."""
    if outcome.schema_version == WITH_ROW_TOLERANCES:
        return all(task.room is None for task in outcome.tasks)
    return all(
        math.isclose(room_of(task, rerun), recorded.room or 0.0, rel_tol=LOSS_FALL_SLACK)
        for task, rerun, recorded in zip(tasks, reruns, outcome.tasks, strict=True)
    )


def _are_same_bounds(
    outcome: EmbeddingOutcome,
    tasks: Sequence[DrawnTask],
    reruns: "Sequence[npt.NDArray[np.float32]]",
    shares: Mapping[str, TaskShare],
    benchmark: Benchmark,
) -> bool:
    """Whether the upper bounds of a hidden raise of each regime's MCC are as recorded."""
    from geneb_ci.audit.compare.regime_bounds import bounds_of  # NumPy is slow to import

    bounds = bounds_of(tasks, reruns, shares, benchmark)
    return len(bounds) == len(outcome.bounds) and all(
        (computed.regime, computed.draws, computed.flipped)
        == (recorded.regime, recorded.draws, recorded.flipped)
        and math.isclose(computed.raised, recorded.raised, abs_tol=BOUND_SLACK)
        for computed, recorded in zip(bounds, outcome.bounds, strict=True)
    )


def receipt_tools_of(
    layout: Layout, folder: Path | None, data: Path | None, say: Say
) -> ReceiptTools:
    """Return what is needed to compute an audit by receipt again.

    The files of the receipt are read from `folder`, or downloaded if it is None; `data` is the
    folder of task data, or None for the usual one. Raises UsageProblem if `data` is
    None and the benchmark has no usual folder.
    """
    return ReceiptTools(
        lambda receipt: receipt_files(receipt, folder, say=say),
        task_source(benchmark_of(layout), layout.benchmark, data),
        say,
    )


def verification_with_embeddings(
    repository: AuditRepository,
    path: Path,
    shown_name: str,
    tools: ReceiptTools | None,
    *,
    is_named: bool,
) -> Verification:
    """Verify a record, and its rerun embeddings if the user named the record or if they exist."""
    verification = repository.verification(path, shown_name)
    if is_named or tools is not None or path.with_name(f"{path.stem}{RERUN_SUFFIX}").exists():
        return _with_embedding_steps(verification, path, repository.inputs, tools)
    return verification
