"""Outcome of an audit by receipt: the predicate of its signed record, and the verdict it gives."""

import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from geneb_ci.audit.compare.outcome import (
    AGREES,
    DIFFERS,
    AuditOutcome,
    Decoys,
    HarnessFacts,
    Heads,
    StatementSubject,
    Verdict,
    extractor_objections,
    is_absent,
)
from geneb_ci.audit.rerun.honesty import (
    FRESH_MARGIN,
    FreshResult,
    VariantResult,
    summed_decisions,
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
    allowed,
    allowed_flipped,
    allowed_pooled,
    allowed_rescued,
    is_within,
)
from geneb_ci.sandbox.launch import SandboxFacts
from reference_harness.formats.base import Count, Hex40, Hex64, Moment, Name, Positive, StrictModel
from reference_harness.formats.rescored import ChangedDecisions
from reference_harness.formats.text import plural

EMBEDDING_PREDICATE = "urn:geneb-ci:row-audit:1.0"
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
"""Claims that an audit by receipt does not prove; part of each record. The first is another where
there was a fresh set, the last is none where the scores of record were compared."""
EmbeddingVersion = Literal["1.0", "2.0", "2.1", "2.2"]
BY_EMBEDDING: Final = "1.0"
BY_COLUMN: Final = "2.0"
BOUNDED: Final = "2.2"
"""Versions of a record: a coordinate was compared by the size of its embedding, then by its column;
since 2.1 probes are fitted again on variants of training sequences, and those of record decide on
variants, too; since 2.2 a record says by how much altered test embeddings can raise a regime, and
calls an embedding by that name. The verdict follows from the numbers of a record by the rule of its
version."""
NOT_REFITTED = frozenset({BY_EMBEDDING, BY_COLUMN})
"""Versions before 2.1."""
SUPERSEDED = (
    "its embeddings were compared by their size, which one column of large values sets: altered "
    "ones could pass"
)
"""Why a record of version 1.0 shows nothing any more."""
Measure = Annotated[float, Field(ge=0)]
_NUMBER = r"[0-9]{1,15}(\.[0-9]{1,6})?(e[+-][0-9]{1,3})?"
_NUMBERS = rf"^({_NUMBER}( {_NUMBER})*)?$"


def _split(value: object) -> object:
    """Read numbers from a text; anything else is left to the type's own validation."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_NUMBERS, value):
        raise ValueError("expected numbers with a space between them")
    return [float(number) if set(number) & set(".e") else int(number) for number in value.split()]


def _measures(value: object) -> object:
    numbers = _split(value)
    return [float(number) for number in numbers] if isinstance(numbers, list) else numbers


def _joined(values: list[int] | list[float]) -> str:
    return " ".join(
        f"{number:g}" if isinstance(number, float) else str(number) for number in values
    )


_AS_TEXT = (
    PlainSerializer(_joined, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _NUMBERS}),
)
Counts = Annotated[list[Count], BeforeValidator(_split), *_AS_TEXT]
"""Whole numbers, in a record one text: a record of 10,000 embeddings would have too many values."""
Measures = Annotated[list[Measure], BeforeValidator(_measures), *_AS_TEXT]
"""Numbers of six significant digits, in the same form."""


class EmbeddingRepeat(StrictModel):
    """An embedding that failed and was computed again, alone."""

    dtype: Name
    """In which the model computed: float64 where the extractor has that option."""
    deviation: Measure
    mismatch: Count
    distance: Measure | None = Field(default=None, exclude_if=operator.not_)
    """Of the embedding from that of the first rerun, in tolerances; left out where they are the
    same embedding, and in records of version 1.0."""


class FailedEmbedding(StrictModel):
    """An embedding that is not the one of the rerun."""

    row: Count
    """Number of its row in the file, where training embeddings come first."""
    again: EmbeddingRepeat | None
    """None where another embedding of the audit was found altered before its turn."""


class ComparedTask(StrictModel):
    """The drawn embeddings of one task, and their comparison with the rerun."""

    task: Name
    train: Count
    test: Count
    strata: dict[str, Positive]
    """Stratum to its size, of each that was drawn from."""
    rows: dict[str, Counts]
    """Part to embeddings of the file, in the order of the draws: `test full`, `training`, ..."""
    deviation: Measures
    """Of each distinct embedding, ascending: largest distance of a coordinate beyond half a unit of
    float16, in its tolerance; in records of version 1.0 in root mean squares of the embedding."""
    mismatch: Counts
    """Coordinates that differ from the rounding of the rerun."""
    failed: list[FailedEmbedding]
    room: Measure | None = Field(default=None, exclude_if=operator.not_)
    """By how much the mean loss of the test embeddings can fall within the tolerances, in nats;
    left out where it cannot, and in records of version 1.0."""

    @property
    def distinct(self) -> list[int]:
        """The embeddings of all parts that were computed again, each once, ascending."""
        return sorted({row for rows in self.rows.values() for row in rows})


class ComparedCells(StrictModel):
    """Cells recomputed from the committed embeddings, against the claims."""

    equal: Count
    """Cells whose every claimed number is the recomputed one."""
    of: Positive
    """Cells of the receipt's tasks, claimed or not."""
    differing: list[str]
    """`task, regime: what differs` of each claim that is another."""
    unclaimed: list[str]
    """Cells that the receipt gives and the submission does not claim."""
    unequal: list[str]
    """Equal sequences with unequal embeddings: a sentence for each scale that has some."""
    of_record: Count | None = Field(default=None, exclude_if=operator.not_)
    """Cells whose scores of record, which the board shows, were compared as well, by the scorer
    that the run names; left out where none were, as in earlier records."""


class Direction(StrictModel):
    """Whether committed embeddings differ from the rerun in the direction of the labels."""

    rows: Count
    statistic: float
    """Van Elteren's, in standard deviations."""
    p: Annotated[float, Field(ge=0, le=1)]


class PartEffect(StrictModel):
    """Effect of deviating training, or test, embeddings on the loss of the test embeddings."""

    rows: Count
    """Embeddings that deviate at all."""
    statistic: float
    """Of signed ranks, in standard deviations; below 0 where the loss falls."""


class Effect(StrictModel):
    """Effect of all deviations on the test loss of the full regime, over all tasks."""

    training: PartEffect
    """Support embeddings among them."""
    test: PartEffect


class RefitTask(StrictModel):
    """Test decisions of one task by a probe fitted on variants of training sequences."""

    task: Name
    rows: Count
    """Training sequences that were varied."""
    training: ChangedDecisions | None
    """Beside those of a probe fitted on the receipt's embeddings of the same sequences; null where
    a class has no varied embedding."""


class RegimeBound(StrictModel):
    """By how much altered test embeddings raise one regime at most, from what was drawn."""

    regime: Name
    draws: Count
    """Number of drawn test embeddings; one that was drawn twice counts twice."""
    flipped: Count
    """Draws of embeddings that the probe of record gets right as committed, and wrong by the
    rerun."""
    raised: Measure
    """By how much altered test embeddings raise the mean MCC at most, with 95 %; rounded up."""


class ReceiptFacts(StrictModel):
    """The submission's statements about its receipt."""

    root: Hex64
    dim: Positive
    compute_dtype: Name
    tf32: bool
    tasks: Positive


class EmbeddingOutcome(StrictModel):
    """All of one audit by receipt: the predicate of the in-toto statement."""

    schema_version: EmbeddingVersion
    plan: EmbeddingPlan
    receipt: ReceiptFacts
    cells: ComparedCells
    tasks: Annotated[list[ComparedTask], Field(min_length=1)]
    """Every task of the receipt, in the order of the benchmark."""
    direction: Direction
    effect: Effect | None = Field(default=None, exclude_if=operator.not_)
    """Left out in records of version 1.0."""
    decoys: Decoys
    variants: VariantResult | None = Field(default=None, exclude_if=operator.not_)
    """Decisions on variants; left out in earlier records."""
    fresh: FreshResult | None = Field(default=None, exclude_if=operator.not_)
    """Decisions on a fresh set; left out where the audit had none."""
    refits: list[RefitTask] = Field(default=[], exclude_if=operator.not_)
    """Of the tasks that a draw of tasks by the seeds of the plan chooses, in its order; left out in
    records before version 2.1."""
    bounds: list[RegimeBound] = Field(default=[], exclude_if=operator.not_)
    """Of each regime whose scores of record were compared; left out in records before version
    2.2."""
    verdict: Verdict
    reasons: list[str]
    """Why it differs, in words; none where it agrees."""
    not_proved: list[str]
    rerun_sha256: Hex64
    """Digest of the file of rerun embeddings beside the record."""
    sandbox: SandboxFacts
    harness: HarnessFacts
    benchmark_sha256: Hex64
    dataset_revision: Hex40
    packages: dict[str, str]
    notes: list[str]
    started_at: Moment
    finished_at: Moment

    @property
    def embedded(self) -> int:
        """Embeddings that were computed again."""
        return sum(len(task.deviation) for task in self.tasks)

    @property
    def altered_training(self) -> float:
        """The smallest share of altered training embeddings that the draw finds with 95 %.

        The share is a mean over the tasks.
        """
        draws = sum(len(task.rows.get("training", ())) for task in self.tasks)
        return -math.expm1(math.log(MISSED) / draws) if draws else 1.0

    @property
    def room(self) -> float:
        """By how much the test loss can fall within the tolerances, in nats; mean over tasks."""
        return math.fsum(task.room or 0.0 for task in self.tasks) / len(self.tasks)

    @property
    def findings(self) -> "EmbeddingFindings":
        """The parts of an outcome that decide its verdict."""
        return EmbeddingFindings(
            self.schema_version,
            self.receipt.dim,
            self.cells,
            self.tasks,
            self.direction,
            self.effect,
            self.decoys,
            self.variants,
            self.fresh,
        )


def training_of(refits: Iterable[RefitTask]) -> ChangedDecisions | None:
    """Return the decisions of all refitted probes; None where none could be fitted."""
    parts = [refitted.training for refitted in refits if refitted.training is not None]
    return summed_decisions(parts) if parts else None


def not_proved(cells: ComparedCells, fresh: FreshResult | None, tasks: int) -> list[str]:
    """Return a sentence for each thing that an audit by receipt of so many tasks does not prove."""
    memory, *further_sentences, unnamed = NOT_PROVED
    if fresh is not None:
        memory = (
            f"that no label is known: the fresh set is of {len(fresh.tasks)} of {tasks} tasks, and "
            f"shows what is worth more than {FRESH_MARGIN:g} of their accuracy"
        )
    return [memory, *further_sentences, *([] if cells.of_record else [unnamed])]


AnyOutcome = AuditOutcome | EmbeddingOutcome


class RerunResult(NamedTuple):
    """A finished rerun: its outcome, and the file that a record of it needs beside it."""

    outcome: AnyOutcome
    embeddings: bytes | None = None
    """The file of rerun embeddings, whose digest the outcome has; None for an audit of tasks."""


class EmbeddingStatement(StrictModel):
    """An in-toto statement (v1) about one submission."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[StatementSubject], Field(min_length=1, max_length=1)]
    predicateType: Literal["urn:geneb-ci:row-audit:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: EmbeddingOutcome
    heads: Heads | None = Field(default=None, exclude_if=is_absent)


def deviation_limit(version: EmbeddingVersion) -> float:
    """Return the largest deviation at which an embedding still counts as the same."""
    return TAU if version == BY_EMBEDDING else 1.0


def is_rescued(again: EmbeddingRepeat, width: int, version: EmbeddingVersion = BY_COLUMN) -> bool:
    """Whether an embedding that failed is the same when it is computed again.

    An embedding that lies far from the one of the first rerun is not, whatever was committed to.
    """
    is_near = version == BY_EMBEDDING or (again.distance or 0.0) <= NEAR
    return is_near and is_within(again.deviation, again.mismatch, width, deviation_limit(version))


class EmbeddingFindings(NamedTuple):
    """The parts of an audit by receipt that decide its verdict."""

    version: EmbeddingVersion
    width: int
    """Columns of an embedding."""
    cells: ComparedCells
    tasks: Sequence[ComparedTask]
    direction: Direction
    effect: Effect | None
    decoys: Decoys
    variants: VariantResult | None
    fresh: FreshResult | None

    @property
    def noun(self) -> str:
        """The word for an embedding in the reasons: "row" in records before version 2.2."""
        return "embedding" if self.version == BOUNDED else "row"

    @property
    def rows(self) -> int:
        """Distinct embeddings that were drawn."""
        return sum(len(task.deviation) for task in self.tasks)

    def failing(self, task: ComparedTask) -> list[int]:
        """Return the embeddings of a task that fail by their own numbers, ascending."""
        judged = zip(task.distinct, task.deviation, task.mismatch, strict=True)
        limit = deviation_limit(self.version)
        return [
            row
            for row, deviation, mismatch in judged
            if not is_within(deviation, mismatch, self.width, limit)
        ]

    def is_altered(self, failed: FailedEmbedding) -> bool:
        """Whether an embedding that failed was embedded again, and failed then, too."""
        return failed.again is not None and not is_rescued(failed.again, self.width, self.version)

    @property
    def rescued(self) -> int:
        """Embeddings that failed, and passed when they were computed again."""
        return sum(
            failed.again is not None and not self.is_altered(failed)
            for task in self.tasks
            for failed in task.failed
        )

    @property
    def may_end(self) -> bool:
        """Whether the audit differs already, so that no more embeddings are computed again."""
        altered = any(self.is_altered(failed) for task in self.tasks for failed in task.failed)
        return altered or (
            self.version != BY_EMBEDDING and self.rescued > allowed_rescued(self.rows)
        )


def reasons_of(findings: EmbeddingFindings) -> list[str]:
    """Return why an audit differs, in words; none where it agrees."""
    noun = findings.noun
    objected = extractor_objections(findings.decoys, findings.variants, findings.fresh)
    return [
        *_cell_reasons(findings.cells, noun),
        *_embedding_reasons(findings),
        *(_pooled_reasons(findings) if findings.version != BY_EMBEDDING else ()),
        *_direction_reasons(findings.direction, noun),
        *(_effect_reasons(findings.effect, noun) if findings.effect is not None else ()),
        *(objection.text for objection in objected),
    ]


def room_reason(outcome: EmbeddingOutcome) -> str:
    """Return why an audit that agrees leaves room for altered embeddings, or ""."""
    if outcome.room > ROOM:
        return (
            "what its tolerances permit can lower the loss of the test embeddings by "
            f"{outcome.room:.2g} nats in the mean, {ROOM:g} may"
        )
    most_of_all = max(outcome.tasks, key=lambda task: task.room or 0.0)
    if (room := most_of_all.room or 0.0) > ROOM_OF_TASK:
        return (
            f"what the tolerances of {most_of_all.task} permit can lower the loss of its test "
            f"embeddings by {room:.2g} nats, {ROOM_OF_TASK:g} may"
        )
    for bound in outcome.bounds:
        if bound.flipped > (most := allowed_flipped(bound.draws)):
            return (
                f"{bound.flipped} of {bound.draws:,} drawn test embeddings of {bound.regime} are "
                f"decided right as committed and wrong by the rerun, {most} may"
            )
    return ""


def verdict_by(reasons: Sequence[str]) -> Verdict:
    """Return the verdict that reasons give."""
    return DIFFERS if reasons else AGREES


def _cell_reasons(cells: ComparedCells, noun: str) -> Iterator[str]:
    if cells.differing:
        yield (
            f"{len(cells.differing)} of {cells.of} cells are not those that the committed {noun}s "
            f"give: {first_and_more(cells.differing)}"
        )
    for message in cells.unequal:
        yield f"equal sequences have unequal {noun}s: {message}"


def _embedding_reasons(findings: EmbeddingFindings) -> Iterator[str]:
    altered = [
        (task, row_failed)
        for task in findings.tasks
        for row_failed in task.failed
        if findings.is_altered(row_failed)
    ]
    failed = sum(len(task.failed) for task in findings.tasks)
    if not altered:
        return
    task, row_failed = altered[0]
    index = task.distinct.index(row_failed.row)
    split, row = (
        ("training", row_failed.row)
        if row_failed.row < task.train
        else ("test", row_failed.row - task.train)
    )
    again, width, noun = row_failed.again, findings.width, findings.noun
    size = f"{task.deviation[index]:.1e}"
    deviates = (
        f"{size} of its root mean square, {TAU:.0e} is allowed"
        if findings.version == BY_EMBEDDING
        else f"{size} times what its column allows"
    )
    text = (
        f"{plural(failed, noun)} of {findings.rows:,} {'is' if failed == 1 else 'are'} not what "
        f"the extractor gives: {split} {noun} {row} of {task.task} deviates by {deviates}; "
        f"{task.mismatch[index]} of its {width} coordinates round otherwise, {allowed(width)} may"
    )
    if again is not None:
        text += f"; alone in {again.dtype}, {again.deviation:.1e} and {again.mismatch}"
        if again.distance is not None and again.distance > NEAR:
            text += f", {again.distance:.1e} tolerances from the first, {NEAR:g} are allowed"
    yield text


def _pooled_reasons(findings: EmbeddingFindings) -> Iterator[str]:
    rescued, rows, width, noun = (
        findings.rescued, findings.rows, findings.width, findings.noun,
    )  # fmt: skip
    if rescued > (most := allowed_rescued(rows)):
        again = "computed" if noun == "embedding" else "embedded"
        yield (
            f"{plural(rescued, noun)} of {rows:,} pass only when they are {again} again, alone; "
            f"{most} may"
        )
    failed = {task.task: {each.row for each in task.failed} for task in findings.tasks}
    otherwise = sum(
        mismatch
        for task in findings.tasks
        for row, mismatch in zip(task.distinct, task.mismatch, strict=True)
        if row not in failed[task.task]
    )
    if otherwise > (most := allowed_pooled(rows, width)):
        yield (
            f"{otherwise:,} of {rows * width:,} drawn coordinates round otherwise in {noun}s that "
            f"pass, {most:,} may: {POOLED:.1%}"
        )


def _direction_reasons(direction: Direction, noun: str) -> Iterator[str]:
    if direction.p < LEVEL:
        yield (
            f"what the {noun}s differ by points towards the labels: rank sum "
            f"{direction.statistic:.1f} standard deviations above its mean over "
            f"{direction.rows:,} {noun}s, p = {direction.p:.1e}, below {LEVEL:g}"
        )


def _effect_reasons(effect: Effect, noun: str) -> Iterator[str]:
    for name, part in (("training", effect.training), ("test", effect.test)):
        if abs(part.statistic) > EFFECT:
            yield (
                f"what the {name} {noun}s differ by "
                f"{'lowers' if part.statistic < 0 else 'raises'} "
                f"the loss of the test {noun}s: {abs(part.statistic):.1f} standard deviations over "
                f"{plural(part.rows, noun)} that differ, {EFFECT:g} are allowed"
            )
