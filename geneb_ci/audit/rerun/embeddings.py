"""The rerun of a plan of embeddings: computes cells and drawn embeddings again and compares them.

The extractor in the sandbox sees only sequences. Labels and predictions, which the harness writes
for the draw, are in the folder of the audit, which the sandbox does not contain.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from geneb_ci.audit.canonical import SAMPLE_STEP, current_moment
from geneb_ci.audit.commit import AuditSubject
from geneb_ci.audit.compare.embedding_outcome import (
    WITH_FEW_SHOT,
    ComparedTask,
    Direction,
    Effect,
    EmbeddingOutcome,
    EmbeddingRepeat,
    ReceiptFacts,
    RefitTask,
    RegimeBound,
    RerunResult,
    not_proved_sentences,
    passes_when_repeated,
    reasons_of,
)
from geneb_ci.audit.compare.embeddings import (
    ARRAYS_SUFFIX,
    SEQUENCES_SUFFIX,
    DrawnTask,
    EmbeddedVariants,
    RepeatedEmbedding,
    compared_cells,
    compared_task,
    direction_of,
    drawn_task,
    effect_of,
    influence_by_part,
    own_noise_clause,
    read_task_files,
    rerun_file,
    room_of,
)
from geneb_ci.audit.compare.outcome import AGREES, HarnessFacts, verdict_from_reasons
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.events import AbortedRun
from geneb_ci.audit.rerun.embedder import SampleEmbedder
from geneb_ci.audit.rerun.few_shot import FewShotResult, few_shot_text
from geneb_ci.audit.rerun.fresh import FreshSequence
from geneb_ci.audit.rerun.honesty import (
    FreshResult,
    VariantResult,
    fresh_result,
    fresh_text,
    variant_text,
)
from geneb_ci.audit.rerun.prepare import (
    PreparedRerun,
    attempt_notes,
    usage_note,
    weight_notes,
)
from geneb_ci.audit.rerun.receipt_variants import (
    Refit,
    SampleVariants,
    TaskVariants,
    decision_changes,
    fresh_decisions,
    fresh_sequences_of_task,
    receipt_few_shot_result,
    receipt_variant_result,
    refit_on_variants,
    sample_variants,
)
from geneb_ci.audit.sampling.embedding_draw import refit_tasks, submission_with_receipt, task_shares
from geneb_ci.audit.sampling.plan import EmbeddingPlan
from geneb_ci.common.errors import ExtractorRefused, ResultRefused
from geneb_ci.receipt.cells import recomputed_cells, task_scoring_limits
from geneb_ci.receipt.column_rule import (
    EmbeddingComparison,
    compare_with_repeat,
    compare_with_rerun,
)
from geneb_ci.receipt.draw import drawn_embeddings
from geneb_ci.receipt.embeddings import rescued_limit
from geneb_ci.receipt.source import ReceiptFiles
from geneb_ci.submission.structure import format_key_of
from reference_harness.formats.receipt_cells import ReceiptCells
from reference_harness.formats.submission import MODELS, EmbeddingReceipt, SubmissionV12
from reference_harness.formats.text import Say, plural

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STRATA_FOLDER, CELLS_FILE, SUBMISSION_FILE = "strata", "cells.json", "submission.json"
"""Folder of the work folder for files of the harness, and two files in it."""
RERUN_EMBEDDINGS_FILE = "rerun.npz"
"""File of the work folder with the rerun embeddings, which is published beside the record."""
REPEATS_AT_ONCE = 16
"""Number of failed embeddings that are computed again at a time, the worst first, until one fails
again."""


def rerun_embeddings(
    plan: EmbeddingPlan,
    prepared: PreparedRerun,
    open_files: Callable[[EmbeddingReceipt], ReceiptFiles],
    say: Say,
) -> RerunResult:
    """Rerun a valid plan of embeddings, save the rerun embeddings, and return the outcome.

    `open_files` opens the files of the receipt. Raises what `workflow.rerun_plan` and
    `committed_receipt` raise.
    """
    submission, receipt = committed_receipt(plan, prepared.subject)
    prepared = dataclasses.replace(prepared, spec=dataclasses.replace(prepared.spec, tf32=False))
    with open_files(receipt) as receipt_files:
        rerun_result = _EmbeddingRun(
            plan, prepared, submission, receipt, receipt_files, say
        ).result()
    embeddings = rerun_result.embeddings or b""
    prepared.work.write_binary(RERUN_EMBEDDINGS_FILE, lambda stream: stream.write(embeddings))
    return rerun_result


def committed_receipt(
    plan: EmbeddingPlan, subject: AuditSubject
) -> tuple[SubmissionV12, EmbeddingReceipt]:
    """Return the submission and the receipt that a plan draws from.

    Raises AuditRefused if the submission has no receipt, StepMismatch if it has another one.
    """
    parsed = MODELS[format_key_of(subject.document) or ""].model_validate(subject.document)
    submission, receipt = submission_with_receipt(parsed, subject.benchmark)
    if receipt.root != plan.root:
        raise StepMismatch(
            SAMPLE_STEP,
            f"the plan draws from the receipt {plan.root[:16]}..., the submission has the receipt "
            f"{receipt.root[:16]}...",
        )
    return submission, receipt


class _EmbeddingRun:
    """The rerun of one plan of embeddings in an open sandbox."""

    cells: ReceiptCells
    """The cells recomputed from the receipt, once `_drawn_tasks` has returned."""

    def __init__(
        self,
        plan: EmbeddingPlan,
        prepared: PreparedRerun,
        submission: SubmissionV12,
        receipt: EmbeddingReceipt,
        files: ReceiptFiles,
        say: Say,
    ) -> None:
        self.plan = plan
        self.prepared = prepared
        self.submission = submission
        self.receipt = receipt
        self.files = files
        self.say = say
        self.task_ids = [
            name for name in prepared.subject.benchmark.task_ids if name in receipt.tasks
        ]
        self.shares = task_shares(plan.rows, receipt, prepared.subject.benchmark)
        self.refitted_tasks = refit_tasks(plan, self.task_ids)
        self.embedder = SampleEmbedder(prepared, receipt.dim, say)

    def result(self) -> RerunResult:
        """Return the outcome, and the content of the file with the rerun embeddings."""
        from geneb_ci.audit.compare.regime_bounds import bounds_of  # NumPy is slow to import

        stage: Literal["embedding", "scoring"] = "scoring"
        started_at = self.prepared.work.start_time(current_moment())
        try:
            drawn_tasks = self._drawn_tasks()
            all_variants = sample_variants(
                self.plan,
                self.task_ids,
                self.prepared.settings.nonce,
                self.prepared.source,
                self.prepared.runner.harness,
                self.prepared.work.folder / STRATA_FOLDER,
            )
            fresh = self._fresh_by_task(drawn_tasks)
            stage = "embedding"
            embedding_by_sequence = self.embedder.embed(
                [sequence for task in drawn_tasks for sequence in task.sequences],
                [
                    *all_variants.sequences,
                    *(fresh_row.sequence for rows in fresh.values() for fresh_row in rows),
                ],
            )
            reruns = [
                self._embeddings_of(embedding_by_sequence, task.sequences) for task in drawn_tasks
            ]
            comparisons = [
                compare_with_rerun(
                    task.committed, rerun, task.tolerances(rerun), task.receipt_task.scale_log2
                )
                for task, rerun in zip(drawn_tasks, reruns, strict=True)
            ]
            repeats_by_task = self._repeat_failed(drawn_tasks, reruns, comparisons)
            if noise := own_noise_clause(
                drawn_tasks, reruns, comparisons, repeats_by_task, self.embedder.repeats
            ):
                raise ResultRefused(
                    f"the receipt is weak: {noise}",
                    "draw whole tasks: `geneb-ci audit plan COMMITMENT --sample tasks`",
                )
            stage = "scoring"
            test = self._embedded_variants(all_variants.test, embedding_by_sequence)
            training = self._embedded_variants(all_variants.training, embedding_by_sequence)
            support = self._embedded_variants(all_variants.support, embedding_by_sequence)
            refits = self._refits(all_variants, training, support)
        except ExtractorRefused as error:
            facts = self.prepared.facts_of_sandbox(self.embedder.part_facts)
            error.aborted_run = AbortedRun(stage, error.task, facts, started_at, current_moment())
            raise
        self.prepared.check_weights()
        rerun_content = rerun_file(
            drawn_tasks,
            reruns,
            test,
            training,
            support,
            [repeats_by_task.get(task.task, {}) for task in drawn_tasks],
        )
        changes = {
            task.task: decision_changes(
                task.strata.labels,
                task.probe_sets,
                task.receipt_task.scale_log2,
                varied_indices,
                variant_embeddings,
            )
            for task, varied_indices, variant_embeddings in zip(
                drawn_tasks, test.rows, test.values, strict=True
            )
        }
        variants = receipt_variant_result(
            changes,
            [refit.task for refit in refits],
            self.prepared.settings.nonce,
        )
        few_shot = receipt_few_shot_result(
            self.cells, {refit.task.task: refit.varied for refit in refits}
        )
        tasks = [
            compared_task(
                task,
                comparison,
                repeats_by_task.get(task.task, {}),
                self.receipt.dim,
                room_of(task, rerun),
            )
            for task, comparison, rerun in zip(drawn_tasks, comparisons, reruns, strict=True)
        ]
        direction = direction_of(drawn_tasks, reruns, self.plan.seed)
        effect = effect_of(map(influence_by_part, drawn_tasks, reruns))
        benchmark = self.prepared.subject.benchmark
        bounds = bounds_of(drawn_tasks, reruns, self.shares, benchmark)
        fresh_result = self._fresh_result(drawn_tasks, fresh, embedding_by_sequence)
        outcome = self._outcome(
            tasks,
            direction,
            effect,
            [refit.task for refit in refits],
            variants,
            fresh_result,
            few_shot,
            bounds,
            rerun_content,
            started_at,
        )
        return RerunResult(outcome, rerun_content)

    def _drawn_tasks(self) -> list[DrawnTask]:
        """Return the drawn embeddings of each task, with one file of the receipt open at a time."""
        work, benchmark = self.prepared.work, self.prepared.subject.benchmark
        seeds = [self.plan.seed, *(draw.seed for draw in self.plan.earlier)]
        folder = work.folder / STRATA_FOLDER
        drawn_tasks: list[DrawnTask] = []

        def add_task(task: str, file: Path) -> None:
            task_files = read_task_files(folder, task, benchmark)
            drawn = drawn_embeddings(seeds, task_files.strata, self.shares[task])
            drawn_tasks.append(drawn_task(task, self.receipt, file, task_files, drawn))

        paths = [
            folder / f"{name}{end}"
            for name in self.task_ids
            for end in (ARRAYS_SUFFIX, SEQUENCES_SUFFIX)
        ]
        if all(work.has_result(path) for path in (*paths, folder / CELLS_FILE)):
            cells = work.read_as(folder / CELLS_FILE, ReceiptCells)
            if cells is not None and all(
                task.few_shot is not None for task in cells.tasks.values()
            ):
                self.cells = cells
                for task in self.task_ids:
                    add_task(task, self.files.file(task))
                    if task not in self.refitted_tasks:
                        self.files.release(task)
                return drawn_tasks
        folder.mkdir(parents=True, exist_ok=True)
        submission = folder / SUBMISSION_FILE
        work.write_text(submission, json.dumps(self.prepared.subject.document))
        self.say("computing every cell from the committed embeddings")
        self.cells = recomputed_cells(
            submission, self.receipt, self.files, self.prepared.source,
            self.prepared.runner.harness, self.task_ids,
            benchmark=benchmark, options=self.prepared.machine.scoring, say=self.say,
            strata_folder=folder, other_draws=self.plan.seed, on_file=add_task,
            kept_files=self.refitted_tasks,
        )  # fmt: skip
        for path in paths:
            work.record_digest(path)
        work.write_result(folder / CELLS_FILE, self.cells.model_dump_json() + "\n")
        return drawn_tasks

    def _fresh_by_task(self, drawn_tasks: Sequence[DrawnTask]) -> dict[str, list[FreshSequence]]:
        """Return the fresh sequences by task, without tasks that have none."""
        fresh = self.prepared.fresh.sequences if self.prepared.fresh is not None else ()
        by_task = {
            task.task: fresh_sequences_of_task(fresh, task.task, task.probe_sets)
            for task in drawn_tasks
        }
        return {task: sequences for task, sequences in by_task.items() if sequences}

    def _fresh_result(
        self,
        drawn_tasks: Sequence[DrawnTask],
        fresh: Mapping[str, Sequence[FreshSequence]],
        embedding_by_sequence: "dict[str, npt.NDArray[np.float32]]",
    ) -> FreshResult | None:
        """Return the decisions of the probes on the fresh set; None without a fresh set."""
        if self.prepared.fresh is None:
            return None
        decisions = {
            task.task: fresh_decisions(
                task.strata.labels,
                task.probe_sets,
                task.receipt_task.scale_log2,
                fresh[task.task],
                self._embeddings_of(
                    embedding_by_sequence, [row.sequence for row in fresh[task.task]]
                ),
            )
            for task in drawn_tasks
            if task.task in fresh
        }
        return fresh_result(decisions, self.prepared.fresh.sha256)

    def _embedded_variants(
        self,
        variants: Mapping[str, TaskVariants],
        embedding_by_sequence: "dict[str, npt.NDArray[np.float32]]",
    ) -> EmbeddedVariants:
        """Return the embeddings of variants, task by task."""
        by_task = [variants.get(task, TaskVariants()) for task in self.task_ids]
        return EmbeddedVariants(
            [task_variants.rows for task_variants in by_task],
            [
                self._embeddings_of(embedding_by_sequence, task_variants.sequences)
                for task_variants in by_task
            ],
        )

    def _refits(
        self, varied: SampleVariants, training: EmbeddedVariants, support: EmbeddedVariants
    ) -> list[Refit]:
        """Return the results of the probes that are fitted on variants of training sequences."""
        import numpy as np

        prepared, folder = self.prepared, self.prepared.work.folder / STRATA_FOLDER
        refits = []
        for task, variants in varied.training.items():
            task_index, support_variants = self.task_ids.index(task), varied.support[task]
            count = len(variants.rows) + len(support_variants.rows)
            self.say(f"{task}: fitting probes on {plural(count, 'variant')}")
            limits = task_scoring_limits(
                self.receipt, task, prepared.subject.benchmark, prepared.machine.scoring
            )
            refits.append(
                refit_on_variants(
                    task, variants, support_variants,
                    np.concatenate([training.values[task_index], support.values[task_index]]),
                    self.receipt.tasks[task].scale_log2, folder / SUBMISSION_FILE,
                    self.files.file(task), prepared.source, prepared.runner.harness, limits, folder,
                )
            )  # fmt: skip
            self.files.release(task)
        return refits

    def _embeddings_of(
        self, embedding_by_sequence: "dict[str, npt.NDArray[np.float32]]", sequences: Sequence[str]
    ) -> "npt.NDArray[np.float32]":
        """Return the (n, d) embeddings of n sequences, in their order."""
        import numpy as np

        matrix = np.empty((len(sequences), self.receipt.dim), dtype=np.float32)
        for index, sequence in enumerate(sequences):
            matrix[index] = embedding_by_sequence[sequence]
        return matrix

    def _repeat_failed(
        self,
        drawn_tasks: Sequence[DrawnTask],
        reruns: "Sequence[npt.NDArray[np.float32]]",
        comparisons: Sequence[EmbeddingComparison],
    ) -> dict[str, dict[int, RepeatedEmbedding]]:
        """Compute failed embeddings again, the worst first, until the verdict is certain.

        Returns the embeddings that were computed again, by task and by row of the task's file.
        """
        width = self.receipt.dim
        failures = [
            (
                -float(comparison.deviation[embedding_index]),
                -int(comparison.mismatch[embedding_index]),
                task_index,
                embedding_index,
            )
            for task_index, comparison in enumerate(comparisons)
            for embedding_index in comparison.failed(width).nonzero()[0].tolist()
        ]
        failures.sort()
        repeats: dict[str, dict[int, RepeatedEmbedding]] = {}
        rescued_count, rescued_max = 0, rescued_limit(sum(len(task.rows) for task in drawn_tasks))
        for start in range(0, len(failures), REPEATS_AT_ONCE):
            batch = failures[start : start + REPEATS_AT_ONCE]
            self.say(f"{len(failures)} embeddings fail: embedding {len(batch)} again, each alone")
            dtype, embeddings = self.embedder.embed_again(
                [
                    drawn_tasks[task_index].sequences[embedding_index]
                    for *_, task_index, embedding_index in batch
                ]
            )
            rescued_before = rescued_count
            for (*_, task_index, embedding_index), repeat in zip(batch, embeddings, strict=True):
                task, rerun = drawn_tasks[task_index], reruns[task_index]
                scale = task.receipt_task.scale_log2
                tolerance = task.tolerances(rerun)[embedding_index]
                comparison = compare_with_repeat(
                    task.committed[embedding_index],
                    rerun[embedding_index],
                    repeat,
                    tolerance,
                    scale,
                )
                facts = EmbeddingRepeat(
                    dtype=dtype,
                    deviation=comparison.deviation,
                    mismatch=comparison.mismatch,
                    distance=comparison.distance or None,
                )
                repeats.setdefault(task.task, {})[task.rows[embedding_index]] = RepeatedEmbedding(
                    facts, repeat
                )
                rescued_count += passes_when_repeated(facts, width)
            if rescued_count < rescued_before + len(batch) or rescued_count > rescued_max:
                break
        return repeats

    def _outcome(
        self,
        tasks: list[ComparedTask],
        direction: Direction,
        effect: Effect,
        refits: list[RefitTask],
        variants: VariantResult,
        fresh: FreshResult | None,
        few_shot: FewShotResult | None,
        bounds: list[RegimeBound],
        rerun_content: bytes,
        started_at: str,
    ) -> EmbeddingOutcome:
        """Return the outcome with the verdict that follows from all results."""
        prepared, receipt = self.prepared, self.receipt
        cell_comparison = compared_cells(self.submission, self.cells)
        receipt_cells, part_facts = self.cells, self.embedder.part_facts
        outcome = EmbeddingOutcome(
            schema_version=WITH_FEW_SHOT,
            plan=self.plan,
            receipt=receipt_facts(receipt),
            cells=cell_comparison,
            tasks=tasks,
            direction=direction,
            effect=effect,
            decoys=self.embedder.decoys,
            variants=variants,
            fresh=fresh,
            refits=refits,
            few_shot=few_shot,
            bounds=bounds if cell_comparison.of_record else [],
            verdict=AGREES,
            reasons=[],
            not_proved=not_proved_sentences(cell_comparison, fresh, len(tasks)),
            rerun_sha256=hashlib.sha256(rerun_content).hexdigest(),
            sandbox=prepared.facts_of_sandbox(part_facts),
            harness=HarnessFacts(
                version=prepared.subject.benchmark.harness_version,
                commit=receipt_cells.harness.commit,
                dirty=receipt_cells.harness.dirty,
            ),
            benchmark_sha256=receipt_cells.benchmark.sha256,
            dataset_revision=receipt_cells.dataset.revision,
            packages={"geneb-ci": receipt_cells.harness.version, **receipt_cells.packages},
            notes=[
                variant_text(variants),
                *([fresh_text(fresh)] if fresh is not None else []),
                *([few_shot_text(few_shot)] if few_shot is not None else []),
                *weight_notes(prepared.weight_digests),
                *attempt_notes(part_facts),
                usage_note(part_facts, sum(part.computed + part.further for part in part_facts)),
            ],
            started_at=started_at,
            finished_at=current_moment(),
        )
        reasons = reasons_of(outcome)
        return outcome.model_copy(
            update={"reasons": reasons, "verdict": verdict_from_reasons(reasons)}
        )


def receipt_facts(receipt: EmbeddingReceipt) -> ReceiptFacts:
    """Return root, width, dtype and number of tasks of a receipt, for an audit record."""
    return ReceiptFacts(
        root=receipt.root,
        dim=receipt.dim,
        compute_dtype=receipt.compute_dtype,
        tf32=receipt.tf32,
        tasks=len(receipt.tasks),
    )
