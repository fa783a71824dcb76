"""The drawn embeddings of a receipt, compared with their rerun.

Two receipts are near if their embeddings are nearly the same. A receipt inherits the draws from
every near receipt, so that a new name or a changed weight gives no new draw. The embeddings of an
earlier receipt are read from the file beside its audit record, or else from the receipt's files.
"""

import hashlib
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from geneb_ci.audit.commitment import Commitment, method_identity, same_method_reason
from geneb_ci.audit.compare.embedding_outcome import (
    ComparedCells,
    ComparedTask,
    Direction,
    Effect,
    EmbeddingOutcome,
    EmbeddingRepeat,
    FailedEmbedding,
    PartEffect,
    passes_when_repeated,
)
from geneb_ci.audit.errors import AuditRefused, StepMismatch
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import RERUN_SUFFIX, Record
from geneb_ci.audit.record.verify_embeddings import RERUN_BYTES_MAX, STRONGEST_PART, read_rerun
from geneb_ci.audit.sampling.plan import EmbeddingPlan
from geneb_ci.common.errors import GenebError, NothingChecked
from geneb_ci.receipt.cells import (
    claim_of_record,
    computed_cells,
    differences_from_claims,
    is_record_comparable,
)
from geneb_ci.receipt.column_rule import (
    EmbeddingComparison,
    coordinate_tolerances,
    distance_in_tolerances,
    is_own_noise,
    unfit_reason,
)
from geneb_ci.receipt.direction import Probe, ProbeSet, Stratum, direction_test, label_strata
from geneb_ci.receipt.draw import DrawnEmbeddings, TaskStrata, unforeseen_rows
from geneb_ci.receipt.embeddings import pooled_mismatch_limit, rescued_limit
from geneb_ci.receipt.influence import (
    TEST,
    TRAINING,
    DrawnPart,
    EmbeddingInfluence,
    StrongestEmbeddings,
    TaskInfluence,
    influence_gradients,
    influence_of,
    influence_on_loss,
    largest_loss_reduction,
    part_statistic,
    strongest_embeddings,
    too_large_reason,
)
from geneb_ci.receipt.predictions import Predictions, read_predictions
from geneb_ci.receipt.rounding import divided_by_scale, receipt_values, rounded_for_record
from geneb_ci.receipt.source import ReceiptFiles, receipt_files, size_text
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.merkle import EmbeddingTree, embedding_leaf
from reference_harness.formats.receipt_cells import ReceiptCells
from reference_harness.formats.submission import EmbeddingReceipt, ReceiptTask, SubmissionV12
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from geneb_ci.receipt.near import ReceiptSample


ARRAYS_SUFFIX, SEQUENCES_SUFFIX = ".npz", ".txt"
"""Suffixes of the two files of a task that `geneb-harness receipt-cells --strata` writes."""
FULL_REGIME = "full"
"""The regime whose single probe is fitted on all training embeddings."""
_UNFIT_FIX = (
    "let the extractor subtract a constant from each column, such as the column's mean over a "
    "fixed set of sequences, or divide columns of large values by a constant; then repeat "
    "`geneb-harness run --receipt DIR`"
)
"""The fix for embeddings that float16 represents badly."""
_RETRY_FIX = "install the same version of geneb-harness and geneb-ci, and run the command again"


class TaskFiles(NamedTuple):
    """The contents of the files that the harness writes for a task."""

    strata: TaskStrata
    """The sets of embeddings that are drawn from."""
    sequences: list[str]
    """Training sequences, then test sequences."""
    train_labels: "npt.NDArray[np.int64]"
    full_probe: Probe
    """The canonical probe of the regime `FULL_REGIME`."""
    probe_sets: dict[str, ProbeSet]
    """All probes, by regime and kind of score: `full, canonical`, `10shot, record`."""


def read_task_files(
    folder: Path, task: str, benchmark: Benchmark, *, by_record: bool = True
) -> TaskFiles:
    """Read the files of a task that `geneb-harness receipt-cells --strata` wrote.

    Without `by_record`, strata follow from canonical predictions alone, as in records before
    version 2.1. Raises NothingChecked when this version cannot read the files.
    """
    import numpy as np  # slow to import, and only needed here

    shots_by_regime = benchmark.protocol.few_shot_k
    path = folder / f"{task}{ARRAYS_SUFFIX}"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            regimes = [name for name in benchmark.regimes if f"predicted_{name}" in arrays]
            few_shot_regimes = sorted(
                (name for name in regimes if name in shots_by_regime),
                key=lambda name: shots_by_regime[name],
            )
            strata = TaskStrata(
                task,
                len(arrays["train_labels"]),
                arrays["test_labels"],
                {name: arrays[f"predicted_{name}"] for name in regimes},
                {name: arrays[f"support_{name}"] for name in few_shot_regimes},
                {
                    name: arrays[f"record_predicted_{name}"]
                    for name in regimes
                    if by_record and f"record_predicted_{name}" in arrays
                },
            )
            classes = arrays["classes"]

            def probes_of(regime: str, prefix: str = "") -> list[Probe]:
                weights = arrays[f"{prefix}weights_{regime}"]
                intercepts = arrays[f"{prefix}intercepts_{regime}"]
                return [Probe(*pair, classes) for pair in zip(weights, intercepts, strict=True)]

            probes = {name: probes_of(name) for name in few_shot_regimes}
            full_probe = Probe(arrays["weights"], arrays["intercepts"], classes)
            probes = {FULL_REGIME: [full_probe], **probes}
            train_labels = arrays["train_labels"]
            probe_sets = {
                f"{name}, canonical": ProbeSet(strata.predicted[name], probes[name])
                for name in regimes
            }
            probe_sets |= {
                f"{name}, record": ProbeSet(
                    arrays[f"record_predicted_{name}"],
                    probes_of(name, "record_"),
                )
                for name in regimes
                if f"record_predicted_{name}" in arrays
            }
        sequences = (
            (folder / f"{task}{SEQUENCES_SUFFIX}").read_text(encoding="ascii").split("\n")[:-1]
        )
    except (OSError, ValueError, KeyError) as error:
        raise NothingChecked(f"{path}: cannot be read: {error}", _RETRY_FIX) from error
    return TaskFiles(strata, sequences, train_labels, full_probe, probe_sets)


class DrawnTask(NamedTuple):
    """The n distinct drawn embeddings of a task, ascending, and all that their verdict needs."""

    task: str
    receipt_task: ReceiptTask
    """Facts about the task's embeddings, as the submission states them."""
    drawn: DrawnEmbeddings
    """The drawn rows by part, and the sizes of the strata. One part has the training embeddings
    that could affect scores most."""
    strongest: StrongestEmbeddings
    """The training embeddings that could affect the scores of the task most."""
    rows: list[int]
    """Indices of the n embeddings in the file."""
    is_drawn: "npt.NDArray[np.bool_]"
    """(n,) whether an embedding was drawn, not only added since it could affect scores most."""
    unforeseen: "npt.NDArray[np.bool_] | None"
    """(n,) whether nobody could foresee its draw, so that it counts for the tolerances; None in
    records before version 2.2, where all count."""
    sequences: list[str]
    """The sequence of each embedding."""
    committed: "npt.NDArray[np.float16]"
    """(n, d) embeddings of the receipt."""
    proofs: list[list[bytes]]
    """Merkle proof of each embedding, as hashes."""
    labels: "npt.NDArray[np.int64]"
    """(n,) class of each sequence."""
    is_outside_supports: "npt.NDArray[np.bool_]"
    """(n,) whether an embedding is outside of all support sets."""
    strata: TaskStrata
    """The sets of embeddings that were drawn from."""
    full_probe: Probe
    """The canonical probe of the regime `FULL_REGIME`."""
    probe_sets: dict[str, ProbeSet]
    """All probes, as in `TaskFiles.probe_sets`."""
    influence: TaskInfluence
    """Influence of each embedding on the loss of the full regime's test embeddings."""

    def tolerances(self, rerun: "npt.NDArray[np.float32]") -> "npt.NDArray[np.float64]":
        """Return the (n, d) tolerances that follow from the (n, d) rerun embeddings."""
        return coordinate_tolerances(rerun, self.receipt_task.scale_log2, self.unforeseen)


def drawn_task(
    task: str,
    receipt: EmbeddingReceipt,
    file: Path,
    files: TaskFiles,
    drawn: DrawnEmbeddings,
    recorded_strongest: Sequence[int] | None = None,
    *,
    by_old_rules: bool = False,
) -> DrawnTask:
    """Return the drawn embeddings of the verified file of a task, with their proofs.

    The strongest training embeddings are added: those that this function computes, or
    `recorded_strongest`. `by_old_rules` uses the rules of records before version 2.2. Raises
    AuditRefused when the file was changed, or when float16 represents its embeddings badly.
    """
    import numpy as np

    receipt_task = receipt.tasks[task]
    embeddings = np.fromfile(file, dtype="<f2").reshape(-1, receipt.dim)
    tree = EmbeddingTree(
        [embedding_leaf(vector.tobytes(), row) for row, vector in enumerate(embeddings)]
    )
    if tree.root.hex() != receipt_task.root:
        raise AuditRefused(
            f"{file}: its embeddings have the Merkle root {tree.root.hex()[:16]}..., the "
            f"submission says {receipt_task.root[:16]}...",
            "ask for the receipt as the harness wrote it",
        )
    labels = np.concatenate([files.train_labels, files.strata.labels])
    scale, probe = receipt_task.scale_log2, files.full_probe
    if fault := too_large_reason(embeddings, scale):
        raise AuditRefused(
            f"{task}: {fault}",
            "let the extractor divide its embeddings by a constant, and repeat `geneb-harness run "
            "--receipt DIR`",
        )
    influence = influence_of(
        embeddings, scale, receipt_task.train, labels, probe, by_steps=by_old_rules
    )
    strongest = strongest_embeddings(
        embeddings[: receipt_task.train], scale, files.train_labels, influence, probe
    )
    strongest_rows = strongest.rows if recorded_strongest is None else list(recorded_strongest)
    drawn_with_strongest = drawn
    if strongest_rows:
        drawn_with_strongest = drawn._replace(rows={**drawn.rows, STRONGEST_PART: strongest_rows})
    rows = drawn_with_strongest.distinct_rows
    if fault := unfit_reason(embeddings[rows]):
        raise AuditRefused(f"{task}: {fault}", _UNFIT_FIX)
    support_rows = np.concatenate([*files.strata.support.values(), np.empty(0, dtype=np.int64)])
    return DrawnTask(
        task,
        receipt_task,
        drawn_with_strongest,
        strongest,
        rows,
        np.isin(rows, drawn.distinct_rows),
        None if by_old_rules else np.isin(rows, sorted(unforeseen_rows(drawn.rows))),
        [files.sequences[row] for row in rows],
        embeddings[rows],
        [tree.proof(row) for row in rows],
        labels[rows],
        ~np.isin(rows, support_rows),
        files.strata,
        files.full_probe,
        files.probe_sets,
        influence,
    )


class AuditedReceipt(NamedTuple):
    """The receipt under audit, and a function that opens its files."""

    commitment: Commitment
    receipt: EmbeddingReceipt
    open_files: Callable[[], AbstractContextManager[ReceiptFiles]]
    """Opens the files of the receipt, which are downloaded if necessary."""
    benchmark: Benchmark

    def is_compared_with(self, plan: EmbeddingPlan) -> bool:
        """Whether this receipt is compared with a plan's: same benchmark, but another method."""
        commitment, planned_commitment = self.commitment, plan.commitment
        return (
            commitment.sha256 != plan.commitment_sha256
            and commitment.benchmark.sha256 == planned_commitment.benchmark.sha256
            and not same_method_reason(
                method_identity(planned_commitment), method_identity(commitment)
            )
        )

    def sample(self, positions: set[tuple[str, int]], say: Say) -> "ReceiptSample":
        """Return the receipt's embeddings at these positions, and its predictions.

        A position is a task and a row of its file; those that the receipt lacks are left out.
        """
        from geneb_ci.receipt.near import sample_at

        receipt_tasks = self.receipt.tasks
        present_positions = sorted(
            (task, row)
            for task, row in positions
            if task in receipt_tasks and row < receipt_tasks[task].train + receipt_tasks[task].test
        )
        with self.open_files() as files:
            say(
                f"comparing {len(present_positions):,} embeddings with earlier receipts; "
                f"{size_text(files.bytes_to_fetch([task for task, _ in present_positions]))} to "
                "fetch"
            )
            sample = sample_at(files, self.receipt, tuple(present_positions))
            return sample._replace(predictions=_predictions(files, self.receipt, self.benchmark))


def near_receipt_roots(
    audited_receipt: AuditedReceipt,
    repository: AuditRepository,
    other_receipts: Path | None,
    say: Say,
) -> dict[str, str]:
    """Return the Merkle roots of audited receipts that are probably of this model, with a reason.

    Only receipts of other methods are compared, since draws for the same method are inherited in
    any case. `other_receipts` contains a folder with the files of the receipt of each model. A
    receipt that cannot be compared is reported by `say` and left out. Raises what opening the files
    of `audited_receipt` raises.
    """
    reason_by_root: dict[str, str] = {}
    samples: dict[str, tuple[str, ReceiptSample]] = {}
    for plan in repository.inputs.plans:
        if not isinstance(plan, EmbeddingPlan):
            continue
        model = plan.commitment.model_id
        if (
            not audited_receipt.is_compared_with(plan)
            or plan.root in samples
            or plan.root in reason_by_root
        ):
            continue
        if plan.root == audited_receipt.receipt.root:
            reason_by_root[plan.root] = f"{model}: the same embeddings"
        elif (sample := _earlier_sample(plan, repository, other_receipts, say)) is not None:
            samples[plan.root] = model, sample
    if samples:
        from geneb_ci.receipt.near import nearness_of  # NumPy is slow to import

        own_sample = audited_receipt.sample(
            {
                position
                for _, other_sample in samples.values()
                for position in other_sample.positions
            },
            say,
        )
        for root, (model, sample) in samples.items():
            try:
                nearness = nearness_of(own_sample, sample)
            except NothingChecked as error:
                say(f"{model}: not compared: {error.message}")
                continue
            if nearness.is_near:
                reason_by_root[root] = f"{model}: {nearness.reason}"
    return reason_by_root


def _earlier_sample(
    plan: EmbeddingPlan, repository: AuditRepository, other_receipts: Path | None, say: Say
) -> "ReceiptSample | None":
    """Return embeddings of an earlier receipt, from its record's file or else its own files."""
    from geneb_ci.receipt.near import sample_of

    model, benchmark = plan.commitment.model_id, repository.inputs.benchmark
    recorded_sample = next(_recorded_samples(plan.root, repository), None)
    receipt = _receipt_of_plan(plan, repository)
    if receipt is None:
        if recorded_sample is None:
            say(f"{model}: not compared: no embeddings of its record or receipt were found")
        return recorded_sample
    folder = (
        other_receipts / model
        if other_receipts is not None and (other_receipts / model).is_dir()
        else None
    )
    try:
        with receipt_files(receipt, folder, say=say) as files:
            predictions = _predictions(files, receipt, benchmark)
            if recorded_sample is not None:
                return recorded_sample._replace(predictions=predictions)
            say(
                f"{model}: {size_text(files.bytes_to_fetch(list(receipt.tasks)))} to fetch and "
                "compare"
            )
            return sample_of(files, receipt, benchmark, predictions)
    except GenebError as error:
        if recorded_sample is None:
            say(f"{model}: not compared: {error.message}")
    return recorded_sample


def _recorded_samples(root: str, repository: AuditRepository) -> "Iterator[ReceiptSample]":
    """Yield up to `COMPARED_COUNT` embeddings of a receipt from the file beside each record."""
    from geneb_ci.receipt.near import COMPARED_COUNT, EMBEDDINGS_MIN, ReceiptSample

    for path in repository.files:
        record = repository.record_at(path)
        outcome = record.outcome if isinstance(record, Record) else None
        if not isinstance(outcome, EmbeddingOutcome) or outcome.plan.root != root:
            continue
        try:
            raw = read_regular(path.with_name(f"{path.stem}{RERUN_SUFFIX}"), RERUN_BYTES_MAX)
            embeddings = read_rerun(raw, outcome)
        except (NotReadable, StepMismatch):
            continue
        task_ids = [audited.task for audited in outcome.tasks]
        positions = [
            (task_ids[task], row)
            for task, row in zip(embeddings.task.tolist(), embeddings.row.tolist(), strict=True)
        ]
        order = sorted(range(len(positions)), key=lambda index: _shuffle_key(*positions[index]))
        order = order[:COMPARED_COUNT]
        if len(order) >= EMBEDDINGS_MIN:
            yield ReceiptSample(
                tuple(positions[index] for index in order), embeddings.rerun[order].astype("f8")
            )


def _shuffle_key(task: str, row: int) -> bytes:
    """Return a key that sorts the embeddings of all tasks in a random, but fixed order."""
    return hashlib.sha256(f"{task} {row}".encode()).digest()


def _receipt_of_plan(plan: EmbeddingPlan, repository: AuditRepository) -> EmbeddingReceipt | None:
    """Return the receipt that a plan drew from; None if the submission no longer has this one."""
    current = repository.inputs.submission(plan.commitment.model_id)
    submission = current.submission if current is not None else None
    receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
    return receipt if receipt is not None and receipt.root == plan.root else None


def _predictions(
    files: ReceiptFiles, receipt: EmbeddingReceipt, benchmark: Benchmark
) -> Predictions | None:
    """Return the predictions beside a receipt; None if they are missing or unreadable."""
    try:
        path = files.predictions()
        return read_predictions(path, benchmark, receipt.predictions) if path is not None else None
    except GenebError:
        return None


def direction_of(
    drawn_tasks: Iterable[DrawnTask], reruns: "Iterable[npt.NDArray[np.float32]]", seed: str
) -> Direction:
    """Return the result of the test whether drawn embeddings deviate towards their labels."""
    strata = [
        stratum
        for task, rerun in zip(drawn_tasks, reruns, strict=True)
        for stratum in _direction_strata(task, rerun)
    ]
    test = direction_test(strata, seed)
    return Direction(rows=test.rows, statistic=test.statistic, p=test.p)


def _direction_strata(task: DrawnTask, rerun: "npt.NDArray[np.float32]") -> list[Stratum]:
    """Return the strata of a task for the directional test, without support embeddings."""
    import numpy as np  # slow to import, and only needed here

    is_compared = task.is_outside_supports
    committed = task.committed[is_compared].astype(np.float64)
    rounded = receipt_values(rerun[is_compared], task.receipt_task.scale_log2).astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.nan_to_num(committed - rounded, posinf=0.0, neginf=0.0)
    features = np.ldexp(committed, task.receipt_task.scale_log2)
    return label_strata(task.task, difference, features, task.labels[is_compared], task.full_probe)


def influence_by_part(
    task: DrawnTask, rerun: "npt.NDArray[np.float32]"
) -> dict[str, EmbeddingInfluence]:
    """Return, for "training" and "test", how much deviations of embeddings move the test loss."""
    import numpy as np  # slow to import, and only needed here

    scale = task.receipt_task.scale_log2
    rounded = receipt_values(rerun, scale)
    is_training = np.array(task.rows) < task.receipt_task.train
    return {
        part: influence_on_loss(
            DrawnPart(
                part, task.committed[is_in_part], rounded[is_in_part], task.labels[is_in_part]
            ),
            scale,
            task.influence,
            task.full_probe,
        )
        for part, is_in_part in ((TRAINING, is_training), (TEST, ~is_training))
    }


def room_of(task: DrawnTask, rerun: "npt.NDArray[np.float32]") -> float:
    """Return how far alterations within the tolerances can lower a task's test loss, in nats."""
    import numpy as np  # slow to import, and only needed here

    scale, probe = task.receipt_task.scale_log2, task.full_probe
    rounded, tolerances = receipt_values(rerun, scale), task.tolerances(rerun)
    is_training = np.array(task.rows) < task.receipt_task.train
    # Each drawn embedding represents many others; an embedding added for its strength does not.
    is_drawn = task.is_drawn
    loss_reduction = 0.0
    for split, is_in_part, row_count in (
        (TRAINING, is_training & is_drawn, task.receipt_task.train),
        (TEST, ~is_training & is_drawn, task.receipt_task.test),
    ):
        part = DrawnPart(
            split, task.committed[is_in_part], rounded[is_in_part], task.labels[is_in_part]
        )
        slopes = influence_gradients(part, scale, task.influence, probe)
        loss_reduction += largest_loss_reduction(
            part,
            divided_by_scale(rerun[is_in_part], scale),
            tolerances[is_in_part],
            slopes,
            scale,
            row_count,
        )
    return float(rounded_for_record(np.array([loss_reduction]))[0])


def effect_of(tasks: Iterable[Mapping[str, EmbeddingInfluence]]) -> Effect:
    """Return the effect of deviating training and test embeddings, over all tasks.

    `tasks` has, for each task, its influence by part (`TRAINING`, `TEST`).
    """
    influences = list(tasks)

    def part_effect(part: str) -> PartEffect:
        statistic = part_statistic(influence[part] for influence in influences)
        return PartEffect(rows=statistic.rows, statistic=statistic.statistic)

    return Effect(training=part_effect(TRAINING), test=part_effect(TEST))


class RepeatedEmbedding(NamedTuple):
    """A second rerun of an embedding that differed from the first rerun."""

    result: EmbeddingRepeat
    """The comparison that a record contains."""
    values: "npt.NDArray[np.float32]"
    """(d,) embedding of the second rerun."""


def own_noise_clause(
    drawn_tasks: Sequence[DrawnTask],
    reruns: "Sequence[npt.NDArray[np.float32]]",
    comparisons: Sequence[EmbeddingComparison],
    again: Mapping[str, Mapping[int, RepeatedEmbedding]],
    repeats: "Iterable[tuple[str, npt.NDArray[np.float32]]]",
) -> str:
    """Return a clause of a sentence if the extractor's own noise explains a receipt's deviations.

    The clause says how far repeated embeddings of one sequence differ. Returns "" if that does not
    explain the deviations, or if they are small enough to pass. `again` maps task and row of the
    file to failed embeddings that were computed again; `repeats` has sequences with the embeddings
    that they got in another position or batch.
    """
    width = drawn_tasks[0].committed.shape[1]
    failures = [comparison.failed(width) for comparison in comparisons]
    comparisons_and_failures = list(zip(comparisons, failures, strict=True))
    mismatches = sum(
        int(comparison.mismatch[~has_failed].sum())
        for comparison, has_failed in comparisons_and_failures
    )
    row_count = sum(len(task.rows) for task in drawn_tasks)
    repeat_facts = [repeat.result for by_row in again.values() for repeat in by_row.values()]
    if (
        mismatches <= pooled_mismatch_limit(row_count, width)
        and len(repeat_facts) <= rescued_limit(row_count)
        and all(passes_when_repeated(facts, width) for facts in repeat_facts)
    ):
        return ""
    repeats_by_sequence: defaultdict[str, list[npt.NDArray[np.float32]]] = defaultdict(list)
    for sequence, repeat in repeats:
        repeats_by_sequence[sequence].append(repeat)
    largest_distance = 0.0
    for task, rerun in zip(drawn_tasks, reruns, strict=True):
        allowed, scale = task.tolerances(rerun), task.receipt_task.scale_log2
        for index, sequence in enumerate(task.sequences):
            for repeat in repeats_by_sequence.get(sequence, ()):
                largest_distance = max(
                    largest_distance,
                    distance_in_tolerances(rerun[index], repeat, allowed[index], scale),
                )
    deviation = max(
        float(comparison.deviation[has_failed].max(initial=0.0))
        for comparison, has_failed in comparisons_and_failures
    )
    if not is_own_noise(deviation, largest_distance):
        return ""
    return (
        "in another batch the extractor gives the same sequence embeddings that lie up to "
        f"{largest_distance:.2g} tolerances apart, and the receipt deviates by up to "
        f"{deviation:.2g}"
    )


def compared_task(
    task: DrawnTask,
    comparison: EmbeddingComparison,
    again: Mapping[int, "RepeatedEmbedding"],
    width: int,
    room: float,
) -> ComparedTask:
    """Return the drawn embeddings of a task and their comparison, for a record.

    `again` maps rows of the file to repeated embeddings; `room` is the result of `room_of`.
    """
    failed_rows = [task.rows[index] for index in comparison.failed(width).nonzero()[0].tolist()]
    return ComparedTask(
        task=task.task,
        train=task.receipt_task.train,
        test=task.receipt_task.test,
        strata=task.drawn.sizes,
        rows=task.drawn.rows,
        deviation=comparison.deviation.tolist(),
        mismatch=comparison.mismatch.tolist(),
        failed=[
            FailedEmbedding(row=row, again=again[row].result if row in again else None)
            for row in failed_rows
        ],
        room=room or None,
    )


class EmbeddedVariants(NamedTuple):
    """The embedded variants of one split, in the order of the receipt's tasks."""

    rows: Sequence[Sequence[int]]
    """For each task, the positions in its split of the sequences that were varied; empty for a task
    without variants."""
    values: Sequence["np.ndarray"]
    """For each task, the (v, d) embeddings of its variants."""

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Return the arrays of these variants in a file of rerun embeddings, by name.

        Each name begins with `prefix`.
        """
        import numpy as np

        return {
            f"{prefix}_task": np.repeat(np.arange(len(self.rows)), list(map(len, self.rows))),
            f"{prefix}_row": np.array([row for rows in self.rows for row in rows], dtype="<i8"),
            prefix: np.concatenate(list(self.values)),
        }


def rerun_file(
    drawn_tasks: Sequence[DrawnTask],
    reruns: Sequence["np.ndarray"],
    test: EmbeddedVariants,
    training: EmbeddedVariants,
    support: EmbeddedVariants,
    again: Sequence[Mapping[int, RepeatedEmbedding]],
) -> bytes:
    """Return the file of rerun embeddings: each as committed, as rerun, and its Merkle proof.

    `test`, `training` and `support` are the variants; `again` has for each task the embeddings that
    failed and were embedded again, by row of the file.

    It is an `.npz` with the arrays `task` (n,), the index in the receipt, `row` (n,) of the file,
    `committed` (n, d) float16, `rerun` (n, d) float32, `length` (n,) of each proof, and `proof`
    (sum of lengths, 32) bytes; `again` (k, d) float32, ascending by task and row; for variants of
    test sequences `varied_task` (v,), `varied_row` (v,) of the test split and `varied` (v, d)
    float32; for variants of training sequences `refit_task`, `refit_row` and `refit`; for those of
    the sequences of few-shot probes `support_task`, `support_row` of the training split and
    `support`. The bytes depend on the embeddings alone.
    """
    import numpy as np

    proofs = [proof for task in drawn_tasks for proof in task.proofs]
    counts = [len(task.rows) for task in drawn_tasks]
    hashes = b"".join(digest for proof in proofs for digest in proof)
    width = drawn_tasks[0].committed.shape[1]
    repeats = [repeated[row].values for repeated in again for row in sorted(repeated)]
    stream = io.BytesIO()
    np.savez(
        stream,
        task=np.repeat(np.arange(len(drawn_tasks)), counts),
        row=np.array([row for task in drawn_tasks for row in task.rows], dtype="<i8"),
        committed=np.concatenate([task.committed for task in drawn_tasks]),
        rerun=np.concatenate(list(reruns)),
        length=np.array([len(proof) for proof in proofs], dtype="<i8"),
        proof=np.frombuffer(hashes, dtype="u1").reshape(-1, 32),
        again=np.array(repeats, dtype="<f4").reshape(-1, width),
        **test.arrays("varied"),
        **training.arrays("refit"),
        **support.arrays("support"),
    )
    return stream.getvalue()


def compared_cells(submission: SubmissionV12, cells: ReceiptCells) -> ComparedCells:
    """Return the exact comparison of every recomputed cell with its claim."""
    differing_parts: dict[str, list[str]] = {}
    unclaimed = []
    for difference in differences_from_claims(submission, cells):
        cell = f"{difference.task}, {difference.regime}"
        if difference.is_unclaimed:
            unclaimed.append(cell)
        else:
            differing_parts.setdefault(cell, []).append(difference.part_name)
    cell_count = sum(1 for _ in computed_cells(cells))
    claim_of_record_count = None
    if is_record_comparable(submission, cells):
        claim_of_record_count = sum(
            claim_of_record(submission, regime, task) is not None
            for task, result in cells.tasks.items()
            for regime in result.record or ()
        )
    return ComparedCells(
        of_record=claim_of_record_count,
        equal=cell_count - len(differing_parts) - len(unclaimed),
        of=cell_count,
        differing=[f"{cell}: {', '.join(parts)}" for cell, parts in differing_parts.items()],
        unclaimed=unclaimed,
        unequal=list(cells.unequal),
    )
