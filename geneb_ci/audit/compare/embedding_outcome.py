"""The outcome of an audit by receipt, which its record signs, and the verdict from its numbers.

`room` is by how much altered embeddings within the tolerances can lower the test loss, in nats.
A failed embedding is rescued if it passes when its sequence is embedded again, alone.
"""

import math
import operator
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from geneb_ci.audit.compare.outcome import (
    AuditOutcome,
    Decoys,
    HarnessFacts,
    Heads,
    StatementSubject,
    Verdict,
    is_absent,
    objections_to_extractor,
)
from geneb_ci.audit.rerun.few_shot import FewShotResult
from geneb_ci.audit.rerun.honesty import (
    FRESH_MARGIN,
    VARIED_PER_TASK_MIN,
    FreshResult,
    VariantResult,
    summed_decisions,
    varied_sequence_count,
)
from geneb_ci.audit.sampling.plan import EmbeddingPlan
from geneb_ci.common.finding import first_and_more
from geneb_ci.receipt.embeddings import (
    EFFECT,
    LEVEL,
    MISSED,
    NEAR,
    POOLED,
    ROOM,
    ROOM_OF_TASK,
    TAU,
    flipped_limit,
    is_within,
    mismatch_limit,
    pooled_mismatch_limit,
    rescued_limit,
)
from geneb_ci.sandbox.launch import SandboxFacts
from reference_harness.formats.base import Count, Hex40, Hex64, Moment, Name, Positive, StrictModel
from reference_harness.formats.rescored import ChangedDecisions
from reference_harness.formats.text import plural

EMBEDDING_PREDICATE_TYPE = "urn:geneb-ci:row-audit:1.0"
"""Type of the in-toto statement about an audit by receipt."""
NOT_PROVED = (
    "that memory is excluded: a fresh set alone shows look-ups that tolerate three changed letters",
    (
        "that no training embedding is altered: few of a small task raise a score and are seldom "
        "drawn; of what they raise it by, support embeddings among them, no bound is known"
    ),
    "that the score of one task is right: its own draws are few; rerun the task where it matters",
    "that the auditor reported what the extractor gave: anybody can compute an embedding again",
    "that the scores on the board are right: the run names no scorer of record; no level follows",
)
"""Sentences of each record on what an audit by receipt does not prove. A fresh set replaces the
first; the last is left out if the scores of record were compared."""
EmbeddingVersion = Literal["1.0", "2.0", "2.1", "2.2", "2.3"]
WITH_ROW_TOLERANCES: Final = "1.0"
WITH_COLUMN_TOLERANCES: Final = "2.0"
WITH_REFITS: Final = "2.1"
WITH_BOUNDS: Final = "2.2"
WITH_FEW_SHOT: Final = "2.3"
"""Versions of a record. 1.0: the tolerance of a coordinate follows from the size of its embedding;
2.0: from its column; 2.1: probes are fitted again on variants of training sequences, and the probes
of record also decide on variants; 2.2: upper bounds of the raise of each regime, and the word
"embedding" instead of "row"; 2.3: few-shot probes are fitted on other sequences and on variants,
and of few tasks more test sequences are varied. The verdict follows from the numbers by the rule of
the version."""
WITHOUT_REFITS = frozenset({WITH_ROW_TOLERANCES, WITH_COLUMN_TOLERANCES})
"""Versions before 2.1, without probes fitted on variants of training sequences."""
WITHOUT_BOUNDS = WITHOUT_REFITS | {WITH_REFITS}
"""Versions before 2.2, without bounds of the raise of each regime."""
WITHOUT_FEW_SHOT = WITHOUT_BOUNDS | {WITH_BOUNDS}
"""Versions before 2.3, without few-shot probes fitted on other sequences."""
SUPERSEDED_REASON = (
    "its embeddings were compared by their size, which one column of large values sets: altered "
    "ones could pass"
)
"""Reason why a record of version 1.0 no longer counts."""
NonNegativeFloat = Annotated[float, Field(ge=0)]
_NUMBER_PATTERN = r"[0-9]{1,15}(\.[0-9]{1,6})?(e[+-][0-9]{1,3})?"
_NUMBERS_PATTERN = rf"^({_NUMBER_PATTERN}( {_NUMBER_PATTERN})*)?$"
"""Numbers with a space between them, or none."""


def _parsed_counts(value: object) -> object:
    """Return the numbers in a text, or any other value unchanged, for pydantic to validate."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_NUMBERS_PATTERN, value):
        raise ValueError("expected numbers with a space between them")
    return [float(number) if set(number) & set(".e") else int(number) for number in value.split()]


def _parsed_floats(value: object) -> object:
    """Return the numbers in a text as floats, or any other value unchanged."""
    numbers = _parsed_counts(value)
    return [float(number) for number in numbers] if isinstance(numbers, list) else numbers


def _numbers_text(numbers: list[int] | list[float]) -> str:
    """Return numbers as text with a space between them."""
    return " ".join(
        f"{number:g}" if isinstance(number, float) else str(number) for number in numbers
    )


_WRITTEN_AS_TEXT = (
    PlainSerializer(_numbers_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _NUMBERS_PATTERN}),
)
Counts = Annotated[list[Count], BeforeValidator(_parsed_counts), *_WRITTEN_AS_TEXT]
"""A list of whole numbers, written as one text, since a record of 10,000 embeddings would have too
many values."""
Measures = Annotated[list[NonNegativeFloat], BeforeValidator(_parsed_floats), *_WRITTEN_AS_TEXT]
"""A list of numbers with six significant digits, written as one text."""


class EmbeddingRepeat(StrictModel):
    """A second rerun of one embedding that differed from the first rerun, alone in its batch."""

    dtype: Name
    """`float64` if the extractor can compute in that dtype, else `a batch of its own`."""
    deviation: NonNegativeFloat
    """Deviation from the committed embedding, in the unit of `ComparedTask.deviation`."""
    mismatch: Count
    """Number of coordinates that differ from the committed embedding once rounded."""
    distance: NonNegativeFloat | None = Field(default=None, exclude_if=operator.not_)
    """Distance from the first rerun, in tolerances; left out if it is 0, and in records of version
    1.0."""


class FailedEmbedding(StrictModel):
    """A committed embedding that differs from its rerun."""

    row: Count
    """Index of the embedding in the file of the task, where training embeddings come first."""
    again: EmbeddingRepeat | None
    """The second rerun; None if there was none, since another embedding was proved altered."""


class ComparedTask(StrictModel):
    """The drawn embeddings of one task, and their comparison with the rerun."""

    task: Name
    train: Count
    """Number of training embeddings."""
    test: Count
    """Number of test embeddings."""
    strata: dict[str, Positive]
    """Number of embeddings in each stratum that was drawn from, by name of the stratum."""
    rows: dict[str, Counts]
    """The drawn rows of the file by part, such as `test full` or `training`, in the order of the
    draws."""
    deviation: Measures
    """For each distinct row, ascending: largest distance of a coordinate beyond half a unit of
    float16, divided by the tolerance of the coordinate, or in version 1.0 by the root mean square
    of the embedding."""
    mismatch: Counts
    """For each distinct row: number of coordinates that differ from the rounded rerun."""
    failed: list[FailedEmbedding]
    """The embeddings whose deviation or mismatch is too large."""
    room: NonNegativeFloat | None = Field(default=None, exclude_if=operator.not_)
    """By how much embeddings altered within the tolerances can lower the mean test loss, in nats;
    left out if it is 0, and in records of version 1.0."""

    @property
    def distinct_rows(self) -> list[int]:
        """The drawn rows of all parts, each once, ascending."""
        return sorted({row for rows in self.rows.values() for row in rows})


class ComparedCells(StrictModel):
    """The comparison of the claims with the cells recomputed from the committed embeddings."""

    equal: Count
    """Number of cells whose claimed numbers all equal the recomputed ones."""
    of: Positive
    """Number of cells of the receipt's tasks, whether claimed or not."""
    differing: list[str]
    """`task, regime: what differs` for each cell that differs."""
    unclaimed: list[str]
    """Cells that were recomputed and that the submission does not claim."""
    unequal: list[str]
    """Sentences about equal sequences with unequal embeddings."""
    of_record: Count | None = Field(default=None, exclude_if=operator.not_)
    """Number of cells whose scores of record, which the board shows, were compared too; left out if
    none were, as in earlier records."""


class Direction(StrictModel):
    """Result of the test whether committed embeddings deviate from reruns towards their labels."""

    rows: Count
    """Number of embeddings that deviate."""
    statistic: float
    """Van Elteren's statistic, in standard deviations."""
    p: Annotated[float, Field(ge=0, le=1)]
    """One-sided p-value of the deviations towards the labels."""


class PartEffect(StrictModel):
    """Effect of deviating training, or test, embeddings on the loss of the test embeddings."""

    rows: Count
    """Number of embeddings that deviate."""
    statistic: float
    """Signed-rank statistic, in standard deviations; below 0 if the loss falls."""


class Effect(StrictModel):
    """Effect of all deviations on the test loss in the full regime, over all tasks."""

    training: PartEffect
    """Effect of deviating training embeddings, of support too, on the test loss."""
    test: PartEffect
    """Effect of deviating test embeddings on the test loss."""


class RefitTask(StrictModel):
    """Decisions on test sequences by a probe fitted on variants of training sequences."""

    task: Name
    rows: Count
    """Number of training sequences that were varied."""
    training: ChangedDecisions | None
    """Compared with a probe fitted on the receipt's embeddings of the same sequences; null if a
    class has no varied sequence."""
    support: Count = Field(default=0, exclude_if=operator.not_)
    """Number of sequences of few-shot probes that were varied; left out before version 2.3."""


class RegimeBound(StrictModel):
    """Upper bound of how far altered test embeddings can have raised the mean MCC of a regime."""

    regime: Name
    draws: Count
    """Number of draws of test embeddings; an embedding that was drawn twice counts twice."""
    flipped: Count
    """Number of draws that the probe of record classifies rightly as committed, but wrongly as
    rerun."""
    raised: NonNegativeFloat
    """Largest raise of the mean MCC by altered test embeddings, with 95 % confidence, rounded
    up."""


class ReceiptFacts(StrictModel):
    """Facts about the receipt, as the submission states them."""

    root: Hex64
    """Merkle root of the embeddings of the receipt."""
    dim: Positive
    """Number of columns of an embedding."""
    compute_dtype: Name
    """Dtype in which the model computed the embeddings."""
    tf32: bool
    """Whether the embeddings may have been computed with TF32."""
    tasks: Positive
    """Number of tasks with embeddings."""


class EmbeddingOutcome(StrictModel):
    """The outcome of one audit by receipt: the predicate of the in-toto statement."""

    schema_version: EmbeddingVersion
    plan: EmbeddingPlan
    receipt: ReceiptFacts
    """Facts about the receipt, as the submission states them."""
    cells: ComparedCells
    """The comparison of the claims with the cells recomputed from the receipt."""
    tasks: Annotated[list[ComparedTask], Field(min_length=1)]
    """Every task of the receipt, in the order of the benchmark."""
    direction: Direction
    """Whether committed embeddings deviate from their reruns towards their labels."""
    effect: Effect | None = Field(default=None, exclude_if=operator.not_)
    """Effect of the deviations on the test loss; left out in records of version 1.0."""
    decoys: Decoys
    """The result of the decoys."""
    variants: VariantResult | None = Field(default=None, exclude_if=operator.not_)
    """Decisions on variants; left out in earlier records."""
    fresh: FreshResult | None = Field(default=None, exclude_if=operator.not_)
    """Decisions on a fresh set; left out if the audit had none."""
    refits: list[RefitTask] = Field(default=[], exclude_if=operator.not_)
    """One for each task that a draw of tasks by the seeds of the plan chooses, in the order of that
    draw; left out before version 2.1."""
    few_shot: FewShotResult | None = Field(default=None, exclude_if=operator.not_)
    """Scores of few-shot probes that were fitted on other sequences, in the tasks of `refits` also
    on variants; left out before version 2.3, and without few-shot regimes."""
    bounds: list[RegimeBound] = Field(default=[], exclude_if=operator.not_)
    """One for each regime whose scores of record were compared; left out before version 2.2."""
    verdict: Verdict
    reasons: list[str]
    """The reasons why the audit differs, one sentence each; empty if it agrees."""
    not_proved: list[str]
    """A sentence on each claim that the audit does not prove."""
    rerun_sha256: Hex64
    """Digest of the file of rerun embeddings beside the record."""
    sandbox: SandboxFacts
    harness: HarnessFacts
    benchmark_sha256: Hex64
    dataset_revision: Hex40
    packages: dict[str, str]
    notes: list[str]
    """Remarks for readers of the record, such as the results of the variants."""
    started_at: Moment
    finished_at: Moment

    @property
    def embedded(self) -> int:
        """Number of embeddings that were computed again."""
        return sum(len(task.deviation) for task in self.tasks)

    @property
    def detected_training_share(self) -> float:
        """The smallest share of altered training embeddings, mean over tasks, that is detected.

        From this share on, at least one altered embedding is drawn with a probability of 95 %.
        """
        draws = sum(len(task.rows.get("training", ())) for task in self.tasks)
        return -math.expm1(math.log(MISSED) / draws) if draws else 1.0

    @property
    def room(self) -> float:
        """By how much alterations within the tolerances can lower the mean test loss, in nats."""
        return math.fsum(task.room or 0.0 for task in self.tasks) / len(self.tasks)

    @property
    def noun(self) -> str:
        """The word for an embedding in the reasons: "row" in records before version 2.2."""
        return "row" if self.schema_version in WITHOUT_BOUNDS else "embedding"

    def failing_rows(self, task: ComparedTask) -> list[int]:
        """Return the rows of a task whose deviation or mismatch is too large, ascending."""
        compared_rows = zip(task.distinct_rows, task.deviation, task.mismatch, strict=True)
        limit = deviation_limit(self.schema_version)
        return [
            row
            for row, deviation, mismatch in compared_rows
            if not is_within(deviation, mismatch, self.receipt.dim, limit)
        ]

    def is_altered(self, failed: FailedEmbedding) -> bool:
        """Whether a failed embedding failed again in the second rerun, so that it was altered."""
        return failed.again is not None and not passes_when_repeated(
            failed.again, self.receipt.dim, self.schema_version
        )

    @property
    def rescued_count(self) -> int:
        """Number of failed embeddings that passed when they were computed again."""
        return sum(
            failed.again is not None and not self.is_altered(failed)
            for task in self.tasks
            for failed in task.failed
        )

    @property
    def is_decided(self) -> bool:
        """Whether the audit is certain to differ, so that no more embeddings are computed again."""
        has_altered = any(self.is_altered(failed) for task in self.tasks for failed in task.failed)
        return has_altered or (
            self.schema_version != WITH_ROW_TOLERANCES
            and self.rescued_count > rescued_limit(self.embedded)
        )


def varied_test_count(version: EmbeddingVersion, tasks: int) -> int:
    """Return how many test sequences of each task an audit by receipt of `tasks` tasks varies."""
    return VARIED_PER_TASK_MIN if version in WITHOUT_FEW_SHOT else varied_sequence_count(tasks)


def summed_training_decisions(refits: Iterable[RefitTask]) -> ChangedDecisions | None:
    """Return the summed decisions of all refitted probes; None if no probe could be fitted."""
    decisions = [refitted.training for refitted in refits if refitted.training is not None]
    return summed_decisions(decisions) if decisions else None


def not_proved_sentences(cells: ComparedCells, fresh: FreshResult | None, tasks: int) -> list[str]:
    """Return a sentence for each claim that an audit by receipt of `tasks` tasks does not prove."""
    memory_sentence, *further_sentences, scorer_sentence = NOT_PROVED
    if fresh is not None:
        memory_sentence = (
            f"that no label is known: the fresh set is of {len(fresh.tasks)} of {tasks} tasks, and "
            f"shows what is worth more than {FRESH_MARGIN:g} of their accuracy"
        )
    return [memory_sentence, *further_sentences, *([] if cells.of_record else [scorer_sentence])]


AnyOutcome = AuditOutcome | EmbeddingOutcome


class RerunResult(NamedTuple):
    """The outcome of a finished rerun, and the content of the file of rerun embeddings."""

    outcome: AnyOutcome
    embeddings: bytes | None = None
    """The file of rerun embeddings, whose digest is in the outcome; None for an audit of tasks."""


class EmbeddingStatement(StrictModel):
    """An in-toto statement (v1) about one submission."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[StatementSubject], Field(min_length=1, max_length=1)]
    predicateType: Literal["urn:geneb-ci:row-audit:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: EmbeddingOutcome
    heads: Heads | None = Field(default=None, exclude_if=is_absent)


def deviation_limit(version: EmbeddingVersion) -> float:
    """Return the largest deviation at which an embedding still counts as the committed one.

    Its unit is that of `ComparedTask.deviation`: the tolerance of the embedding, or in version 1.0
    the root mean square of its numbers.
    """
    return TAU if version == WITH_ROW_TOLERANCES else 1.0


def passes_when_repeated(
    repeat: EmbeddingRepeat, width: int, version: EmbeddingVersion = WITH_COLUMN_TOLERANCES
) -> bool:
    """Whether a failed embedding agrees with its second rerun.

    It does not if the second rerun lies far from the first, whatever the committed embedding is.
    """
    is_near = version == WITH_ROW_TOLERANCES or (repeat.distance or 0.0) <= NEAR
    return is_near and is_within(repeat.deviation, repeat.mismatch, width, deviation_limit(version))


def reasons_of(outcome: EmbeddingOutcome) -> list[str]:
    """Return the reasons why an audit by receipt differs, one sentence each; [] if it agrees."""
    noun = outcome.noun
    objections = objections_to_extractor(
        outcome.decoys, outcome.variants, outcome.fresh, outcome.few_shot
    )
    return [
        *_cell_reasons(outcome.cells, noun),
        *_embedding_reasons(outcome),
        *(_pooled_reasons(outcome) if outcome.schema_version != WITH_ROW_TOLERANCES else ()),
        *_direction_reasons(outcome.direction, noun),
        *(_effect_reasons(outcome.effect, noun) if outcome.effect is not None else ()),
        *(objection.text for objection in objections),
    ]


def room_reason(outcome: EmbeddingOutcome) -> str:
    """Return why embeddings altered within the tolerances could raise a score too far, or ""."""
    if outcome.room > ROOM:
        return (
            "deviations within the tolerances can lower the loss of the test embeddings by "
            f"{outcome.room:.2g} nats in the mean over tasks, the limit is {ROOM:g}"
        )
    loosest = max(outcome.tasks, key=lambda task: task.room or 0.0)
    if (room := loosest.room or 0.0) > ROOM_OF_TASK:
        return (
            f"deviations within the tolerances of {loosest.task} can lower the loss of its test "
            f"embeddings by {room:.2g} nats, the limit is {ROOM_OF_TASK:g}"
        )
    for bound in outcome.bounds:
        if bound.flipped > (limit := flipped_limit(bound.draws)):
            return (
                f"{bound.flipped} of {bound.draws:,} drawn test embeddings of {bound.regime} are "
                f"classified rightly as committed and wrongly as rerun, the limit is {limit}"
            )
    return ""


def _cell_reasons(cells: ComparedCells, noun: str) -> Iterator[str]:
    """Yield a reason for wrong cells, and for unequal embeddings of equal sequences."""
    if cells.differing:
        yield (
            f"{len(cells.differing)} of {cells.of} cells are not those that the committed {noun}s "
            f"give: {first_and_more(cells.differing)}"
        )
    for message in cells.unequal:
        yield f"equal sequences have unequal {noun}s: {message}"


def _embedding_reasons(outcome: EmbeddingOutcome) -> Iterator[str]:
    """Yield a reason if an embedding is altered."""
    altered_embeddings = [
        (task, failure)
        for task in outcome.tasks
        for failure in task.failed
        if outcome.is_altered(failure)
    ]
    failed_count = sum(len(task.failed) for task in outcome.tasks)
    if not altered_embeddings:
        return
    task, failure = altered_embeddings[0]
    index = task.distinct_rows.index(failure.row)
    split, row = (
        ("training", failure.row)
        if failure.row < task.train
        else ("test", failure.row - task.train)
    )
    repeat, width, noun = failure.again, outcome.receipt.dim, outcome.noun
    size = f"{task.deviation[index]:.1e}"
    deviates = (
        f"{size} of its root mean square, {TAU:.0e} is allowed"
        if outcome.schema_version == WITH_ROW_TOLERANCES
        else f"{size} times what its column allows"
    )
    reason = (
        f"{plural(failed_count, noun)} of {outcome.embedded:,} "
        f"{'is' if failed_count == 1 else 'are'} not what the extractor gives: {split} {noun} "
        f"{row} of {task.task} deviates by {deviates}; {task.mismatch[index]} of its {width} "
        f"coordinates round otherwise, {mismatch_limit(width)} may"
    )
    if repeat is not None:
        reason += f"; alone in {repeat.dtype}, {repeat.deviation:.1e} and {repeat.mismatch}"
        if repeat.distance is not None and repeat.distance > NEAR:
            reason += f", {repeat.distance:.1e} tolerances from the first, {NEAR:g} are allowed"
    yield reason


def _pooled_reasons(outcome: EmbeddingOutcome) -> Iterator[str]:
    """Yield the reasons that follow from all drawn embeddings together."""
    rescued_count, row_count, width, noun = (
        outcome.rescued_count, outcome.embedded, outcome.receipt.dim, outcome.noun,
    )  # fmt: skip
    if rescued_count > (limit := rescued_limit(row_count)):
        verb = "computed" if noun == "embedding" else "embedded"
        yield (
            f"{plural(rescued_count, noun)} of {row_count:,} pass only when they are {verb} "
            f"again, alone; {limit} may"
        )
    failed_rows = {task.task: {each.row for each in task.failed} for task in outcome.tasks}
    mismatches = sum(
        mismatch
        for task in outcome.tasks
        for row, mismatch in zip(task.distinct_rows, task.mismatch, strict=True)
        if row not in failed_rows[task.task]
    )
    if mismatches > (limit := pooled_mismatch_limit(row_count, width)):
        yield (
            f"{mismatches:,} of {row_count * width:,} drawn coordinates round otherwise in "
            f"{noun}s that pass, {limit:,} may: {POOLED:.1%}"
        )


def _direction_reasons(direction: Direction, noun: str) -> Iterator[str]:
    """Yield a reason if deviations point towards the labels."""
    if direction.p < LEVEL:
        yield (
            f"what the {noun}s differ by points towards the labels: rank sum "
            f"{direction.statistic:.1f} standard deviations above its mean over "
            f"{direction.rows:,} {noun}s, p = {direction.p:.1e}, below {LEVEL:g}"
        )


def _effect_reasons(effect: Effect, noun: str) -> Iterator[str]:
    """Yield a reason for each split whose deviations change the test loss systematically."""
    for split, part in (("training", effect.training), ("test", effect.test)):
        if abs(part.statistic) > EFFECT:
            yield (
                f"what the {split} {noun}s differ by "
                f"{'lowers' if part.statistic < 0 else 'raises'} "
                f"the loss of the test {noun}s: {abs(part.statistic):.1f} standard deviations over "
                f"{plural(part.rows, noun)} that differ, {EFFECT:g} are allowed"
            )
