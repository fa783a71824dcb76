"""The outcome of an audit of tasks, which its record signs, and the verdict from its numbers."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from geneb_ci.audit.compare.joint import ClaimDifference, MeanBias, earlier_deviation, joint_test
from geneb_ci.audit.rerun.few_shot import OTHERS, TESTS, FewShotResult, flagged_gains
from geneb_ci.audit.rerun.few_shot import VARIANTS as VARIED
from geneb_ci.audit.rerun.honesty import (
    FRESH_OBJECTION,
    MEMORISED_OBJECTION,
    FreshResult,
    Precision,
    VariantResult,
)
from geneb_ci.audit.sampling.plan import Reason, TaskPlan
from geneb_ci.common.finding import first_and_more
from geneb_ci.sandbox.launch import SandboxFacts
from reference_harness.formats.base import Count, Hex40, Hex64, Moment, Name, Scores, StrictModel
from reference_harness.formats.text import plural

PREDICATE_TYPE = "urn:geneb-ci:audit:1.0"
"""Type of the in-toto statement about an audit of tasks."""
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
"""Type of every in-toto statement."""

TOLERANCE, JOINT = "comparison within tolerances", "joint test of a regime"
ORDER, DECOYS = "repeats in another order", "decoys"
VARIANTS, FRESH = "variants of test sequences", "fresh set"
OTHER_DRAWS, SUPPORT = "other draws of few-shot sequences", "variants of few-shot sequences"
TEST_DRAWS = "draws of test sequences"
"""Names of the defences that decide an audit of tasks."""

Verdict = Literal["agrees", "differs"]


class EachMetric(StrictModel):
    """A number of at least 0 for each metric."""

    MCC: Annotated[float, Field(ge=0)]
    Acc: Annotated[float, Field(ge=0)]
    F1: Annotated[float, Field(ge=0)]


class HonestCentre(StrictModel):
    """The mean of an honest claim minus the rescored value, in each metric."""

    MCC: Annotated[float, Field(ge=-2, le=2)]
    Acc: Annotated[float, Field(ge=-1, le=1)]
    F1: Annotated[float, Field(ge=-1, le=1)]


class HonestDifference(StrictModel):
    """Measured distribution of an honest claim minus the rescored value."""

    deviation: EachMetric
    """Standard deviation of the difference."""
    step: EachMetric
    """Largest effect of one changed prediction, or of one fit that stops elsewhere."""
    centre: HonestCentre | None = None
    """Mean of the difference over the jittered copies; null in earlier records."""


class Tolerance(StrictModel):
    """The largest difference of an honest claim from the rescored value, and its measurement."""

    MCC: Annotated[float, Field(ge=0)]
    Acc: Annotated[float, Field(ge=0)]
    F1: Annotated[float, Field(ge=0)]
    copies: Count
    """Number of refits on jittered embeddings."""
    flips: Annotated[float, Field(ge=0)]
    """Mean number of predictions that a plain copy changes, summed over all seeds."""
    spread: Annotated[float, Field(ge=0)]
    """Standard deviation of MCC over the plain copies."""
    honest: HonestDifference | None = None
    """How an honest claim may differ, for the joint tests; null in earlier records."""


class CellComparison(StrictModel):
    """The comparison of claim and rerun of one task in one regime."""

    claimed: Scores
    """Scores of record that the submission claims."""
    rescored: Scores
    """Scores of record of the rerun."""
    tolerance: Tolerance
    predictions_equal: bool | None
    """Whether the digests of the predictions agree; null if the claim has none."""
    canonical: "CanonicalComparison | None"
    """The comparison of canonical scores; null in newer records, which do not compare them."""
    verdict: Verdict


class CanonicalComparison(StrictModel):
    """The comparison of scores of the probe at its optimum: less noise, a smaller tolerance."""

    claimed: Scores
    rescored: Scores
    tolerance: Tolerance
    verdict: Verdict


class AuditedTask(StrictModel):
    """A task that was rerun, and the comparison of its cells."""

    task: Name
    reason: Reason
    """Why the task was rerun: `drawn`, `earlier` or `targeted`."""
    verdict: Verdict
    """`differs` if any regime differs."""
    regimes: Annotated[dict[str, CellComparison], Field(min_length=1)]
    """The comparison of the cell of each regime."""


class Decoys(StrictModel):
    """The result of the decoys, which show if embeddings depend on more than their sequence."""

    order_dependent: bool
    """Whether the same sequence had another embedding in another place or batch."""
    memorised: bool
    """Whether sequences of the benchmark are embedded unlike similar new sequences."""
    detail: str
    """The measured numbers, as text."""


class HarnessFacts(StrictModel):
    """The harness that computed the scores of the rerun."""

    version: Name
    """Version of the harness that the benchmark names; its release is among the packages."""
    commit: Hex40 | None
    """Git commit of the harness; null if it is not known."""
    dirty: bool
    """Whether the harness had local changes."""


class AuditOutcome(StrictModel):
    """The outcome of one audit of tasks: the predicate of the in-toto statement."""

    schema_version: Literal["1.0"]
    plan: TaskPlan
    tasks: Annotated[list[AuditedTask], Field(min_length=1)]
    """Each chosen task of the plan, in the order of the plan."""
    decoys: Decoys
    variants: VariantResult | None = None
    """Decisions on variants of the sequences; null in earlier records."""
    fresh: FreshResult | None = None
    """Decisions on a fresh set; null where the audit had none."""
    few_shot: FewShotResult | None = Field(default=None, exclude_if=operator.not_)
    """Scores of few-shot probes fitted on other sequences; left out in earlier records."""
    verdict: Verdict
    """`differs` if a task, a joint test, the decoys, the variants, the fresh set or the few-shot
    probes differ."""
    sandbox: SandboxFacts
    noise: Name
    """The dtype whose numeric noise the tolerance includes."""
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
    """The subject of the statement: the bytes of the submission."""

    name: Name
    digest: dict[Literal["sha256"], Hex64]


HEADS_MAX = 10_000
"""Largest number of statements that one statement names: on an old board, the first that names any
names all."""
HEAD_NAME_MAX = 300
"""Largest number of characters in the name of a statement."""
Heads = Annotated[
    dict[Annotated[str, Field(max_length=HEAD_NAME_MAX)], Hex64], Field(max_length=HEADS_MAX)
]
"""The newest statements when a statement was signed: path below the folder of audits to SHA-256 of
the file. A name that begins with `keys.json/` is the revocation of the key whose id follows."""


def is_absent(value: object) -> bool:
    """Whether a member is None: then the statement has no such member, as in earlier records."""
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
    """Return the metrics with |claimed - rescored| > tolerance."""
    return [
        metric
        for metric in METRICS
        if abs(getattr(claimed, metric) - getattr(rescored, metric)) > getattr(tolerance, metric)
    ]


def differing_metrics(cell: CellComparison | CanonicalComparison) -> list[str]:
    """Return the metrics of a cell outside their tolerance, without those of its canonical part."""
    return outside_tolerance(cell.claimed, cell.rescored, cell.tolerance)


def cell_verdict(
    claimed: Scores,
    rescored: Scores,
    tolerance: Tolerance,
    canonical: CanonicalComparison | None = None,
) -> Verdict:
    """Return the verdict of a cell, from scores of record and canonical scores alike."""
    outside = outside_tolerance(claimed, rescored, tolerance)
    if canonical is not None:
        outside += differing_metrics(canonical)
    return DIFFERS if outside else AGREES


def verdict_of(cell: CellComparison | CanonicalComparison) -> Verdict:
    """Return the verdict that follows from the numbers of a cell."""
    canonical = cell.canonical if isinstance(cell, CellComparison) else None
    return cell_verdict(cell.claimed, cell.rescored, cell.tolerance, canonical)


def task_verdict(cells: Iterable[CellComparison]) -> Verdict:
    """Return the verdict of a task: it differs if any regime differs."""
    return DIFFERS if any(verdict_of(cell) == DIFFERS for cell in cells) else AGREES


def mean_biases(tasks: Sequence[AuditedTask]) -> dict[str, MeanBias]:
    """Return the joint tests by regime and metric: `full, MCC` or `full, canonical MCC` -> test."""
    cells = cells_by_joint_test(tasks)
    tests = len(cells) * len(METRICS)
    return {
        f"{regime}, {kind}{metric}": joint_test(
            [claim_difference(cell, metric, tests) for cell in regime_cells], tests
        )
        for (regime, kind), regime_cells in cells.items()
        for metric in METRICS
    }


def hidden_raises(tasks: Sequence[AuditedTask]) -> dict[str, float]:
    """Return, by regime, the mean raise of the MCC of record that could be hidden."""
    cells = cells_by_joint_test(tasks)
    tests = len(cells) * len(METRICS)
    return {
        regime: joint_test(
            [claim_difference(cell, "MCC", tests) for cell in regime_cells], tests
        ).hidden_raise
        for (regime, kind), regime_cells in cells.items()
        if not kind
    }


def cells_by_joint_test(
    tasks: Sequence[AuditedTask],
) -> dict[tuple[str, str], list[CellComparison | CanonicalComparison]]:
    """Return the cells of each joint test, by regime and prefix of the score's name.

    The prefix is "" for scores of record, and "canonical " (with the space) for canonical scores.
    """
    cells: dict[tuple[str, str], list[CellComparison | CanonicalComparison]] = {}
    for task in tasks:
        for regime, cell in task.regimes.items():
            cells.setdefault((regime, ""), []).append(cell)
            if cell.canonical is not None:
                cells.setdefault((regime, "canonical "), []).append(cell.canonical)
    return cells


def claim_difference(
    cell: CellComparison | CanonicalComparison, metric: str, tests: int
) -> ClaimDifference:
    """Return the difference between claim and rerun in one metric, as input of a joint test."""
    tolerance = cell.tolerance
    claimed_less_rescored = getattr(cell.claimed, metric) - getattr(cell.rescored, metric)
    if tolerance.honest is None:
        deviation = earlier_deviation(getattr(tolerance, metric), tests)
        return ClaimDifference(claimed_less_rescored, deviation, 0.0, None)
    honest = tolerance.honest
    return ClaimDifference(
        claimed_less_rescored,
        getattr(honest.deviation, metric),
        getattr(honest.step, metric),
        getattr(honest.centre, metric, None),
    )


class Objection(NamedTuple):
    """A reason why an audit does not confirm a submission."""

    defence: str
    """Name of the defence that found the reason, as in `geneb_ci.audit.defences`."""
    text: str
    """The reason as a sentence."""


def objections_to_tasks(
    tasks: Sequence[AuditedTask],
    decoys: Decoys,
    variants: VariantResult | None = None,
    fresh: FreshResult | None = None,
    few_shot: FewShotResult | None = None,
) -> list[Objection]:
    """Return the reasons why an audit of tasks differs; [] if it agrees."""
    differing_tasks = [
        task.task for task in tasks if task_verdict(task.regimes.values()) == DIFFERS
    ]
    claim_objections = []
    if differing_tasks:
        extent = f"{len(differing_tasks)} of {plural(len(tasks), 'rerun task')}"
        claim_objections.append(
            Objection(TOLERANCE, f"claims differ in {extent}: {', '.join(differing_tasks)}")
        )
    claim_objections += [
        Objection(JOINT, f"{test_name}: {bias.text}")
        for test_name, bias in mean_biases(tasks).items()
        if bias.is_significant
    ]
    return [*claim_objections, *objections_to_extractor(decoys, variants, fresh, few_shot)]


def objections_to_outcome(outcome: AuditOutcome) -> list[Objection]:
    """Return the reasons why the audit of tasks with this outcome differs; [] if it agrees."""
    return objections_to_tasks(
        outcome.tasks, outcome.decoys, outcome.variants, outcome.fresh, outcome.few_shot
    )


def objections_to_extractor(
    decoys: Decoys,
    variants: VariantResult | None,
    fresh: FreshResult | None,
    few_shot: FewShotResult | None,
) -> Iterator[Objection]:
    """Yield the objections to the extractor, which do not depend on the claims."""
    if decoys.order_dependent:
        objection = "an embedding depends on the order or the batch of its sequence"
        yield Objection(ORDER, objection)
    if decoys.memorised:
        objection = "benchmark sequences are treated differently from similar new sequences"
        yield Objection(DECOYS, objection)
    if variants is not None and variants.memorised:
        yield Objection(VARIANTS, MEMORISED_OBJECTION)
    if fresh is not None and fresh.dropped:
        yield Objection(FRESH, FRESH_OBJECTION)
    if few_shot is not None:
        for defence, other_fits, sequences_text in (
            (OTHER_DRAWS, OTHERS, "the published sequences than on others of the same tasks"),
            (SUPPORT, VARIED, "the published sequences than on variants of them"),
            (TEST_DRAWS, TESTS, "training sequences than on test sequences"),
        ):
            if flagged := flagged_gains(few_shot, other_fits):
                yield Objection(
                    defence,
                    f"few-shot probes score more on {sequences_text}: "
                    f"{first_and_more([gain.text for gain in flagged])}",
                )


def verdict_from_reasons(reasons: Sequence[object]) -> Verdict:
    """Return the verdict of an audit: `differs` if there is any reason, else `agrees`."""
    return DIFFERS if reasons else AGREES


class InformativeCells(NamedTuple):
    """Numbers of cells of a regime that were compared, and with a tolerance of at most 0.1."""

    informative: int
    """Number of cells with a tolerance of MCC of at most 0.1."""
    compared: int
    """Number of compared cells."""

    @property
    def suffices(self) -> bool:
        """Whether at least half of the compared cells are informative."""
        return 2 * self.informative >= self.compared


def informative_cells(tasks: Iterable[AuditedTask]) -> dict[str, InformativeCells]:
    """Return, by regime, how many compared cells have a tolerance of MCC of at most 0.1."""
    counts: dict[str, InformativeCells] = {}
    for task in tasks:
        for regime, cell in task.regimes.items():
            informative, compared = counts.get(regime, (0, 0))
            counts[regime] = InformativeCells(
                informative + (cell.tolerance.MCC <= INFORMATIVE_TOLERANCE), compared + 1
            )
    return counts


def informative_text(counts: dict[str, InformativeCells]) -> str:
    """Return the counts as text: `full 4 of 5, 10shot 5 of 5`."""
    return ", ".join(
        f"{regime} {count.informative} of {count.compared}" for regime, count in counts.items()
    )
