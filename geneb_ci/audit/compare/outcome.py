"""Outcome of an audit: the predicate of the signed record, and the verdict its numbers give."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from geneb_ci.audit.compare.joint import Difference, MeanBias, earlier_deviation, joint_test
from geneb_ci.audit.rerun.honesty import (
    DROPPED,
    MEMORISED,
    FreshResult,
    Precision,
    VariantResult,
)
from geneb_ci.audit.sampling.plan import Reason, TaskPlan
from geneb_ci.sandbox.launch import SandboxFacts
from reference_harness.formats.base import Count, Hex40, Hex64, Moment, Name, Scores, StrictModel
from reference_harness.formats.text import plural

PREDICATE_TYPE = "urn:geneb-ci:audit:1.0"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"

TOLERANCE, JOINT = "comparison within tolerances", "joint test of a regime"
ORDER, DECOYS = "repeats in another order", "decoys"
VARIANTS, FRESH = "variants of test sequences", "fresh set"
"""Names of the defences that decide an audit of tasks."""

Verdict = Literal["agrees", "differs"]


class EachMetric(StrictModel):
    """A number of at least 0 for each metric."""

    MCC: Annotated[float, Field(ge=0)]
    Acc: Annotated[float, Field(ge=0)]
    F1: Annotated[float, Field(ge=0)]


class HonestCentre(StrictModel):
    """A difference of each metric."""

    MCC: Annotated[float, Field(ge=-2, le=2)]
    Acc: Annotated[float, Field(ge=-1, le=1)]
    F1: Annotated[float, Field(ge=-1, le=1)]


class HonestDifference(StrictModel):
    """Measured difference between an honest claim and the rescored value."""

    deviation: EachMetric
    """Standard deviation about the centre."""
    step: EachMetric
    """Largest effect of one changed prediction, or of another stop of one fit."""
    centre: HonestCentre | None = None
    """Mean of the copies less the rescored value; null in earlier records."""


class Tolerance(StrictModel):
    """How far an honest claim may differ from the rescored value, and how that was measured."""

    MCC: Annotated[float, Field(ge=0)]
    Acc: Annotated[float, Field(ge=0)]
    F1: Annotated[float, Field(ge=0)]
    copies: Count
    """Refits on jittered embeddings."""
    flips: Annotated[float, Field(ge=0)]
    """Mean number of predictions that a jittered copy flips, over all seeds."""
    spread: Annotated[float, Field(ge=0)]
    """Standard deviation of MCC over the copies."""
    honest: HonestDifference | None = None
    """For the joint tests of all cells; null in earlier records."""


class CellComparison(StrictModel):
    """One task in one regime: claim against rerun."""

    claimed: Scores
    rescored: Scores
    tolerance: Tolerance
    predictions_equal: bool | None
    """Whether the prediction digests agree; null where the claim has none."""
    canonical: "CanonicalComparison | None"
    """The comparison of canonical scores, in earlier records; null since these are not compared."""
    verdict: Verdict


class CanonicalComparison(StrictModel):
    """The probe solved to its optimum: far less noise, so a far smaller tolerance."""

    claimed: Scores
    rescored: Scores
    tolerance: Tolerance
    verdict: Verdict


class AuditedTask(StrictModel):
    """One rerun task."""

    task: Name
    reason: Reason
    verdict: Verdict
    """`differs` as soon as one regime does."""
    regimes: Annotated[dict[str, CellComparison], Field(min_length=1)]


class Decoys(StrictModel):
    """Whether embeddings depended on what they may not depend on."""

    order_dependent: bool
    """The same sequence in another place or batch got another embedding."""
    memorised: bool
    """Sequences of the benchmark get embeddings unlike those of fresh sequences like them."""
    detail: str


class HarnessFacts(StrictModel):
    """Which harness scored."""

    version: Name
    commit: Hex40 | None
    dirty: bool


class AuditOutcome(StrictModel):
    """All of one audit: the predicate of the in-toto statement."""

    schema_version: Literal["1.0"]
    plan: TaskPlan
    tasks: Annotated[list[AuditedTask], Field(min_length=1)]
    """In the order of the plan's chosen tasks, each of them."""
    decoys: Decoys
    variants: VariantResult | None = None
    """Decisions on variants of the sequences; null in earlier records."""
    fresh: FreshResult | None = None
    """Decisions on a fresh set; null where the audit had none."""
    verdict: Verdict
    """`differs` as soon as a task, a joint test of a regime, a decoy, the variants or the fresh set
    do."""
    sandbox: SandboxFacts
    noise: Name
    """The dtype whose numeric noise the tolerance was measured at."""
    precision: Precision | None = None
    """The measured precision beside the declared dtype; null in earlier records."""
    harness: HarnessFacts
    benchmark_sha256: Hex64
    dataset_revision: Hex40
    packages: dict[str, str]
    notes: list[str]
    """Remarks for readers of the record, such as the tolerances of the full regime."""
    started_at: Moment
    finished_at: Moment


class StatementSubject(StrictModel):
    """The subject of the statement: the submission's bytes."""

    name: Name
    digest: dict[Literal["sha256"], Hex64]


HEADS_MAX = 10_000
"""Statements that one names: those of a board that never linked any, at the first."""
NAME_MAX = 300
Heads = Annotated[
    dict[Annotated[str, Field(max_length=NAME_MAX)], Hex64], Field(max_length=HEADS_MAX)
]
"""The newest statements when one was signed: path below the folder of audits to SHA-256 of the
file. Where `keys.json/` begins the name, it is the revocation of the key whose id follows."""


def is_absent(value: object) -> bool:
    """Whether a member is None and so left out of the signed statement, as in earlier ones."""
    return value is None


class Statement(StrictModel):
    """An in-toto statement (v1) about one submission."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[StatementSubject], Field(min_length=1, max_length=1)]
    predicateType: Literal["urn:geneb-ci:audit:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: AuditOutcome
    heads: Heads | None = Field(default=None, exclude_if=is_absent)


AGREES: Verdict = "agrees"
DIFFERS: Verdict = "differs"
METRICS = ("MCC", "Acc", "F1")
INFORMATIVE_TOLERANCE = 0.1
"""Largest tolerance of MCC at which a cell is informative: the raise of a single task that the
power tables of docs/research/draw.md assume."""


def outside_tolerance(claimed: Scores, rescored: Scores, tolerance: Tolerance) -> list[str]:
    """Name the metrics with |claimed - rescored| > tolerance."""
    return [
        metric
        for metric in METRICS
        if abs(getattr(claimed, metric) - getattr(rescored, metric)) > getattr(tolerance, metric)
    ]


def differing_metrics(cell: CellComparison | CanonicalComparison) -> list[str]:
    """Name the metrics of a cell outside their tolerance; canonical scores have their own."""
    return outside_tolerance(cell.claimed, cell.rescored, cell.tolerance)


def cell_verdict(
    claimed: Scores,
    rescored: Scores,
    tolerance: Tolerance,
    canonical: CanonicalComparison | None = None,
) -> Verdict:
    """Return the verdict of a cell; canonical scores count as much as the others."""
    outside = outside_tolerance(claimed, rescored, tolerance)
    if canonical is not None:
        outside += differing_metrics(canonical)
    return DIFFERS if outside else AGREES


def verdict_of(cell: CellComparison | CanonicalComparison) -> Verdict:
    """Return the verdict that follows from the numbers of a cell."""
    canonical = cell.canonical if isinstance(cell, CellComparison) else None
    return cell_verdict(cell.claimed, cell.rescored, cell.tolerance, canonical)


def task_verdict(cells: Iterable[CellComparison]) -> Verdict:
    """Return the verdict of a task: it differs as soon as one regime does."""
    return DIFFERS if any(verdict_of(cell) == DIFFERS for cell in cells) else AGREES


def mean_biases(tasks: Sequence[AuditedTask]) -> dict[str, MeanBias]:
    """Return the joint test of each regime and metric, record and canonical, by name."""
    cells = compared_cells(tasks)
    tests = len(cells) * len(METRICS)
    return {
        f"{regime}, {kind}{metric}": joint_test(
            [difference(cell, metric, tests) for cell in of_regime], tests
        )
        for (regime, kind), of_regime in cells.items()
        for metric in METRICS
    }


def hidden_raises(tasks: Sequence[AuditedTask]) -> dict[str, float]:
    """Return for each regime the mean raise of MCC, as scored of record, that could be hidden."""
    cells = compared_cells(tasks)
    tests = len(cells) * len(METRICS)
    return {
        regime: joint_test(
            [difference(cell, "MCC", tests) for cell in of_regime], tests
        ).hidden_raise
        for (regime, kind), of_regime in cells.items()
        if not kind
    }


def compared_cells(
    tasks: Sequence[AuditedTask],
) -> dict[tuple[str, str], list[CellComparison | CanonicalComparison]]:
    """Return the cells of each joint test: by regime, and by scores of record or canonical ones."""
    cells: dict[tuple[str, str], list[CellComparison | CanonicalComparison]] = {}
    for task in tasks:
        for regime, cell in task.regimes.items():
            cells.setdefault((regime, ""), []).append(cell)
            if cell.canonical is not None:
                cells.setdefault((regime, "canonical "), []).append(cell.canonical)
    return cells


def difference(cell: CellComparison | CanonicalComparison, metric: str, tests: int) -> Difference:
    """Return one metric of a cell as a joint test takes it."""
    allowed = cell.tolerance
    value = getattr(cell.claimed, metric) - getattr(cell.rescored, metric)
    if allowed.honest is None:
        deviation = earlier_deviation(getattr(allowed, metric), tests)
        return Difference(value, deviation, 0.0, None)
    honest = allowed.honest
    return Difference(
        value,
        getattr(honest.deviation, metric),
        getattr(honest.step, metric),
        getattr(honest.centre, metric, None),
    )


class Objection(NamedTuple):
    """Why an audit does not confirm a submission."""

    defence: str
    """Name of the defence that found it, as in `geneb_ci.audit.defences`."""
    text: str


def objections(
    tasks: Sequence[AuditedTask],
    decoys: Decoys,
    variants: VariantResult | None = None,
    fresh: FreshResult | None = None,
) -> list[Objection]:
    """Return why an audit of tasks differs; none where it agrees."""
    differing = [task.task for task in tasks if task_verdict(task.regimes.values()) == DIFFERS]
    result = []
    if differing:
        of = plural(len(tasks), "rerun task")
        result.append(Objection(TOLERANCE, f"{', '.join(differing)} of {of}"))
    result += [
        Objection(JOINT, f"{name}: {bias.text}")
        for name, bias in mean_biases(tasks).items()
        if bias.is_significant
    ]
    return [*result, *extractor_objections(decoys, variants, fresh)]


def extractor_objections(
    decoys: Decoys, variants: VariantResult | None, fresh: FreshResult | None
) -> Iterator[Objection]:
    """Yield the objections of an audit of either sample to the extractor, whatever it claimed."""
    if decoys.order_dependent:
        text = "an embedding depends on the order or the batch of its sequence"
        yield Objection(ORDER, text)
    if decoys.memorised:
        text = "benchmark sequences are treated differently from similar new sequences"
        yield Objection(DECOYS, text)
    if variants is not None and variants.memorised:
        yield Objection(VARIANTS, MEMORISED)
    if fresh is not None and fresh.dropped:
        yield Objection(FRESH, DROPPED)


def overall_verdict(
    tasks: Sequence[AuditedTask],
    decoys: Decoys,
    variants: VariantResult | None = None,
    fresh: FreshResult | None = None,
) -> Verdict:
    """Return the verdict of an audit of tasks: whether no defence objects."""
    return DIFFERS if objections(tasks, decoys, variants, fresh) else AGREES


class InformativeCells(NamedTuple):
    """Number of the compared cells of a regime that are informative."""

    cells: int
    compared: int

    @property
    def suffices(self) -> bool:
        """Whether at least half of the compared cells are informative."""
        return 2 * self.cells >= self.compared


def informative_cells(tasks: Iterable[AuditedTask]) -> dict[str, InformativeCells]:
    """Count the informative cells of each regime: those with an MCC tolerance of at most 0.1."""
    counts: dict[str, InformativeCells] = {}
    for task in tasks:
        for regime, cell in task.regimes.items():
            cells, of = counts.get(regime, (0, 0))
            counts[regime] = InformativeCells(
                cells + (cell.tolerance.MCC <= INFORMATIVE_TOLERANCE), of + 1
            )
    return counts


def informative_text(counts: dict[str, InformativeCells]) -> str:
    """Return the counts as text: `full 4 of 5, 10shot 5 of 5`."""
    return ", ".join(
        f"{regime} {count.cells} of {count.compared}" for regime, count in counts.items()
    )
