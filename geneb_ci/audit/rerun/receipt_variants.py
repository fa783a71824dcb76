"""Variants and fresh sequences in an audit by receipt, and the decisions of its probes on them.

A variant has the label of its sequence, but an extractor that looks up published sequences does not
know it.

- In every task, test sequences are varied, as many as in an audit of as many tasks. The canonical
  probes of the receipt decide on the variants, and so do the probes of record if the harness has
  their scorer.
- In some tasks, drawn by the same seed, training sequences are varied as well, as many as in an
  audit of tasks. One probe is fitted on the variants, another on the receipt's embeddings of the
  same sequences. The sequences of the few-shot probes are varied, too, and each of these probes is
  fitted on their variants.
- In every task that has fresh sequences, with labels of their own, all probes decide on these, too.

Embeddings of all these sequences are rounded like those of the receipt.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.audit.compare.embedding_outcome import (
    WITH_FEW_SHOT,
    WITHOUT_FEW_SHOT,
    WITHOUT_REFITS,
    EmbeddingVersion,
    RefitTask,
    varied_test_count,
)
from geneb_ci.audit.rerun.few_shot import FewShotResult, few_shot_result
from geneb_ci.audit.rerun.fresh import FreshSequence
from geneb_ci.audit.rerun.honesty import (
    VARIANT_KIND,
    TaskVariantDecisions,
    VariantDecisions,
    VariantResult,
    summed_decisions,
    variant_result,
    varied_sequence_count,
)
from geneb_ci.audit.rerun.scoring import write_variants
from geneb_ci.audit.rerun.task_embedding import read_further_sequences, variant_seed
from geneb_ci.audit.sampling.embedding_draw import refit_tasks
from geneb_ci.audit.sampling.plan import EmbeddingPlan
from geneb_ci.common.errors import NothingChecked
from geneb_ci.harness.process import HarnessProcess, ScoringLimits, TaskSource
from geneb_ci.receipt.cells import harness_answer
from geneb_ci.statistics.metrics import scores_of_matrix
from reference_harness.formats.further_sequences import FurtherSequence, FurtherSequences
from reference_harness.formats.receipt_cells import ReceiptCells, ReceiptRefit
from reference_harness.formats.rescored import (
    ChangedDecisions,
    Decisions,
    LabelledDecisions,
    ProbeDecisions,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from geneb_ci.receipt.direction import ProbeSet

TEST, TRAIN, SUPPORT = "test", "train", "support"
"""Splits of a task from which sequences are varied."""
UNDECIDED = -1
"""The decision on an embedding that overflows float16."""
MAIN_PROBE = "full, canonical"
"""Name of the canonical probe of the full regime: a result has its decisions in `kinds`, and those
of all other probes in `others`."""
REFIT_BYTES_MAX = 1 << 16
"""Largest size of the answer of the harness about fits on variants, in bytes."""


class TaskVariants(NamedTuple):
    """The variants of v sequences of one split of a task; by default there are none."""

    variants: tuple[FurtherSequence, ...] = ()

    @property
    def rows(self) -> list[int]:
        """Indices of the varied sequences in their split, ascending."""
        return [variant.row for variant in self.variants]

    @property
    def sequences(self) -> list[str]:
        """The sequences of the variants."""
        return [variant.sequence for variant in self.variants]


class SampleVariants(NamedTuple):
    """All variants of an audit by receipt."""

    test: dict[str, TaskVariants]
    """Variants of test sequences, by task of the receipt."""
    training: dict[str, TaskVariants]
    """Variants of training sequences, by task whose probe is fitted again."""
    support: dict[str, TaskVariants]
    """Variants of all sequences of the few-shot probes, of the same tasks."""

    @property
    def sequences(self) -> list[str]:
        """The sequences of all variants."""
        task_variants = (*self.test.values(), *self.training.values(), *self.support.values())
        return [sequence for variants in task_variants for sequence in variants.sequences]


def sample_variants(
    plan: EmbeddingPlan,
    tasks: Sequence[str],
    nonce: str,
    source: TaskSource,
    harness: HarnessProcess,
    folder: Path,
    version: EmbeddingVersion = WITH_FEW_SHOT,
) -> SampleVariants:
    """Return the variants of an audit by receipt, which the plan's seed and `nonce` decide.

    A file is written to `folder`. `version` is that of the record: before version 2.1, there are no
    variants of training sequences, before 2.3 none of the sequences of few-shot probes. Raises
    NothingChecked, with the message of the harness, when it fails.
    """
    seed, path = variant_seed(plan.seed, nonce), folder / "variants.json"

    refitted_tasks = refit_tasks(plan, tasks) if version not in WITHOUT_REFITS else []
    tasks_with_support = refitted_tasks if version not in WITHOUT_FEW_SHOT else []

    @functools.cache
    def all_variants(task: str, count: int) -> list[FurtherSequence]:
        write_variants(
            task, source, harness, seed, count, path,
            reverse=False, with_support=task in tasks_with_support,
        )  # fmt: skip
        return read_further_sequences(path).rows

    def variants_of_split(task: str, split: str, count: int) -> TaskVariants:
        return TaskVariants(
            tuple(
                variant
                for variant in all_variants(task, count)
                if variant.split == split and (split != TEST or variant.kind == VARIANT_KIND)
            )
        )

    test_count = varied_test_count(version, len(tasks))
    training_count = varied_sequence_count(len(refitted_tasks) or 1)
    return SampleVariants(
        {task: variants_of_split(task, TEST, test_count) for task in tasks},
        {task: variants_of_split(task, TRAIN, training_count) for task in refitted_tasks},
        {task: variants_of_split(task, SUPPORT, training_count) for task in tasks_with_support},
    )


ChangesByProbe = Mapping[str, Sequence[ChangedDecisions]]
"""Changed decisions of each fit of a probe, by the probe's name, such as `full, record`."""


class ProbeFeatures(NamedTuple):
    """The embeddings of v sequences as input of a probe."""

    values: "npt.NDArray[np.float64]"
    """(v, d) embeddings, rounded like those of a receipt; zeros if an embedding overflows
    float16."""
    is_representable: "npt.NDArray[np.bool_]"
    """(v,) whether float16 can represent all numbers of the embedding."""


def probe_features(embeddings: "npt.NDArray[np.float32]", scale_log2: int) -> ProbeFeatures:
    """Return (v, d) embeddings as input of a probe, with the rounding error of a receipt.

    They are divided by 2**scale_log2, rounded to float16, and multiplied by 2**scale_log2 again.
    """
    import numpy as np  # slow to import, and only needed here

    from geneb_ci.receipt.rounding import receipt_values

    rounded = receipt_values(embeddings, scale_log2).astype(np.float64)
    is_representable = np.asarray(np.isfinite(rounded).all(axis=1))
    return ProbeFeatures(
        np.ldexp(np.where(is_representable[:, None], rounded, 0.0), scale_log2), is_representable
    )


def decision_changes(
    labels: "npt.NDArray[np.int64]",
    probe_sets: "Mapping[str, ProbeSet]",
    scale_log2: int,
    rows: Sequence[int],
    embeddings: "npt.NDArray[np.float32]",
) -> ChangesByProbe:
    """Return the decisions that differ between v test sequences and their variants, by probe.

    `labels` are those of all test sequences, `rows` the positions of the v sequences among them,
    `embeddings` the (v, d) embeddings of the variants. A variant whose embedding overflows float16
    counts as decided wrong.
    """
    import numpy as np

    features, is_representable = probe_features(embeddings, scale_log2)
    indices = np.array(rows, dtype=np.int64)
    truth = labels[indices]
    changes = {}
    for probe_name, probe_set in probe_sets.items():
        pairs = [
            (predicted[indices] == truth, (probe.predict(features) == truth) & is_representable)
            for predicted, probe in zip(probe_set.predicted, probe_set.probes, strict=True)
        ]
        changes[probe_name] = [
            ChangedDecisions(
                rows=len(indices),
                worse=int((was_right & ~is_right).sum()),
                better=int((~was_right & is_right).sum()),
            )
            for was_right, is_right in pairs
        ]
    return changes


def fresh_sequences_of_task(
    fresh: Sequence[FreshSequence], task: str, probe_sets: "Mapping[str, ProbeSet]"
) -> list[FreshSequence]:
    """Return the fresh sequences of a task. Raises NothingChecked for an unknown label."""
    task_labels = set(probe_sets[MAIN_PROBE].probes[0].classes.tolist())
    task_sequences = [sequence for sequence in fresh if sequence.task == task]
    if unknown_labels := sorted({sequence.label for sequence in task_sequences} - task_labels):
        raise NothingChecked(
            f"the fresh set: label {unknown_labels[0]} is not one of task {task}, which has "
            f"{', '.join(map(str, sorted(task_labels)))}",
            "correct the set, and commit to it again",
        )
    return task_sequences


def fresh_decisions(
    truth: "npt.NDArray[np.int64]",
    probe_sets: "Mapping[str, ProbeSet]",
    scale_log2: int,
    fresh: Sequence[FreshSequence],
    embeddings: "npt.NDArray[np.float32]",
) -> Decisions:
    """Return the decisions of a task's probes on its test sequences and on n fresh sequences.

    `truth` has the labels of all test sequences, `embeddings` are the (n, d) ones of the fresh
    sequences. An embedding that overflows float16 counts as decided wrong.
    """
    import numpy as np

    features, is_representable = probe_features(embeddings, scale_log2)
    labels = np.array([sequence.label for sequence in fresh], dtype=np.int64)
    by_probe = {
        name: ProbeDecisions(
            fits=len(probe_set.probes),
            public=_labelled_decisions(truth, list(probe_set.predicted)),
            kinds={},
            fresh=_labelled_decisions(
                labels,
                [
                    np.where(is_representable, probe.predict(features), UNDECIDED)
                    for probe in probe_set.probes
                ],
            ),
        )
        for name, probe_set in probe_sets.items()
    }
    main_decisions = by_probe.pop(MAIN_PROBE)
    return Decisions(
        public=main_decisions.public,
        kinds={},
        training=None,
        fresh=main_decisions.fresh,
        few_shot={},
        varied={},
        others=by_probe,
    )


def _labelled_decisions(
    truth: "npt.NDArray[np.int64]", predictions_by_fit: "Sequence[npt.NDArray[np.int64]]"
) -> LabelledDecisions:
    """Return the summed decisions of one or more fits on the same sequences."""
    import numpy as np

    from geneb_ci.receipt.predicted import confusion_matrix

    classes = np.unique(np.concatenate([truth, *predictions_by_fit]))
    matrices = [
        confusion_matrix(
            np.searchsorted(classes, truth).astype(np.uint16),
            np.searchsorted(classes, predicted).astype(np.uint16),
            len(classes),
        )
        for predicted in predictions_by_fit
    ]
    return LabelledDecisions(
        rows=len(truth) * len(predictions_by_fit),
        right=sum(int((predicted == truth).sum()) for predicted in predictions_by_fit),
        MCC=math.fsum(scores_of_matrix(matrix).mcc for matrix in matrices)
        / len(predictions_by_fit),
    )


class Refit(NamedTuple):
    """The results of the probes of a task that were fitted on variants."""

    task: RefitTask
    """The results that a record contains."""
    varied: dict[str, list[float]]
    """MCC of the few-shot probes that were fitted on variants, by regime."""


def refit_on_variants(
    task: str,
    training: TaskVariants,
    support: TaskVariants,
    embeddings: "npt.NDArray[np.float32]",
    scale_log2: int,
    submission_file: Path,
    embeddings_file: Path,
    source: TaskSource,
    harness: HarnessProcess,
    limits: ScoringLimits,
    folder: Path,
) -> Refit:
    """Return the results of the probes that are fitted on variants of a task's sequences.

    `training` and `support` are the variants of training and of few-shot sequences, `embeddings`
    the (v, d) embeddings of both, in this order. `submission_file` names the receipt, and
    `embeddings_file` has its embeddings of the task; files are written to `folder`. An embedding
    that overflows float16 counts as zeros. Raises LimitExceeded or ResultRefused for embeddings
    that cannot be scored within the limits, and NothingChecked, with the message of the harness,
    for any other failure.
    """
    import numpy as np

    further_file, matrix_file, answer_file = (
        folder / f"refit.{end}" for end in ("json", "npy", "out")
    )
    variants = [*training.variants, *support.variants]
    sequences = FurtherSequences(schema_version="1.0", rows=variants)
    further_file.write_text(sequences.model_dump_json() + "\n", encoding="ascii")
    np.save(matrix_file, probe_features(embeddings, scale_log2).values.astype(np.float32))
    words = [
        "receipt-refit", "--submission", str(submission_file),
        "--receipt", str(embeddings_file.parent), "--task", task, *source.options,
        "--further", str(further_file),
        "--further-embeddings", str(matrix_file), "--output", str(answer_file), "--quiet",
    ]  # fmt: skip
    harness.call(words, task, limits)
    answer = harness_answer(answer_file, ReceiptRefit, REFIT_BYTES_MAX)
    count = len(support.rows)
    return Refit(
        RefitTask(task=task, rows=len(training.rows), training=answer.training, support=count),
        answer.varied,
    )


def receipt_few_shot_result(
    cells: ReceiptCells, varied: Mapping[str, Mapping[str, Sequence[float]]]
) -> FewShotResult | None:
    """Return the scores of few-shot probes that were fitted on other than the published sequences.

    The recomputed cells have those on other draws; `varied` maps task to regime to the MCC of the
    probes that were fitted on variants.
    """
    return few_shot_result(
        {name: task.few_shot or {} for name, task in cells.tasks.items()}, varied
    )


def receipt_variant_result(
    changes: Mapping[str, ChangesByProbe],
    refits: Iterable[RefitTask],
    nonce: str,
    version: EmbeddingVersion = WITH_FEW_SHOT,
) -> VariantResult:
    """Return the decisions on variants of an audit by receipt, for a record of a version."""
    training = {refit_task.task: refit_task.training for refit_task in refits}
    return variant_result(
        {
            task: _variant_decisions_of_task(by_probe, training.get(task))
            for task, by_probe in changes.items()
        },
        nonce,
        varied_test_count(version, len(changes)),
        reverse=False,
        by_task=version not in WITHOUT_FEW_SHOT,
    )


def _variant_decisions_of_task(
    by_probe: ChangesByProbe, training: ChangedDecisions | None
) -> TaskVariantDecisions:
    """Return the decisions of the probes of a task, each summed over its fits."""
    probes = {
        name: VariantDecisions(fits=len(changes), kinds={VARIANT_KIND: summed_decisions(changes)})
        for name, changes in by_probe.items()
    }
    main_decisions = probes.pop(MAIN_PROBE)
    return TaskVariantDecisions(kinds=main_decisions.kinds, training=training, others=probes)
