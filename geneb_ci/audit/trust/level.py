"""The evidence and the trust level of a row, as a function of its audits.

The first of these that fits is the evidence of a row; `_LEVELS` has the trust level of each:

    disputed    an audit differs, or the last runs of its method (code, weights) were aborted
    stale       the scores are those of an earlier scorer
    reproduced  audits of two signers cover every task
    audited     one audit confirms a large enough random sample, or every cell of the receipt
    stale       an audit confirms another version of the row, not this one
    checked     nothing but the checks of the submission
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from geneb_ci.audit.compare.joint import largest_hidden_raise
from geneb_ci.common.finding import first_and_more
from geneb_ci.common.types import Authorship, Evidence, TrustLevel, has_evidence
from geneb_ci.submission.names import skeleton
from reference_harness.formats.text import plural

SIGNERS_MIN = 2
"""Smallest number of people whose audits a reproduced row needs, so that nobody can invent it
alone."""
NO_SANDBOX_LEVEL = 0
"""Sandbox level without confinement: such an audit never counts, for or against a row."""
DIGEST_DIGITS = 16
"""Number of hex digits of a digest that a reason states."""
RECOMPUTED_TEXT = "cells recomputed from published embeddings"
"""Beginning of the sentence on the board about an audit by receipt."""
COMPARED_TEXT = "the scores shown are among them"
"""Part of that sentence if the recomputed cells include the scores on the board."""
UNCOMPARED_TEXT = "the scores shown were not compared"
"""Part of that sentence otherwise: the audit then does not raise the trust level."""
UNVARIED_TEXT = "training sequences, or those of few-shot probes, were not varied"
"""Why an audit by receipt that compared the scores on the board does not raise the trust level."""
MEMORY_NOT_EXCLUDED = "memory is not excluded, since no audit had a fresh set"
"""Part of the reason for the evidence of a row that no audit tested with a fresh set."""


@dataclass(frozen=True)
class Versions:
    """The versions of harness, benchmark and data that an audit is for."""

    harness: str
    benchmark: str
    """Digest of the benchmark definition."""
    dataset: str
    """Revision of the task data."""


@dataclass(frozen=True)
class EmbeddingAuditFacts:
    """Numbers and weaknesses of an audit by receipt, which an audit of tasks does not have."""

    test: int
    """Number of test embeddings drawn in each regime."""
    embedded: int
    """Number of distinct embeddings that were computed again."""
    equal: int
    """Number of cells whose claimed scores equal the recomputed ones."""
    cells: int
    """Number of cells that were recomputed."""
    cells_of_record: int = 0
    """Number of cells whose scores on the board were compared as well; 0 if none were."""
    varied: bool = False
    """Whether training sequences and those of few-shot probes were varied."""
    missing: tuple[str, ...] = ()
    """Tasks and regimes that the policy requires and for which the receipt has no cells."""
    rule_gap: str = ""
    """Alterations that the comparison of an earlier version misses; "" for a later version."""
    weakness: str = ""
    """The reason why embeddings of the receipt cannot be compared within useful tolerances, or
    ""."""
    receipt_gone_since: str = ""
    """The day on which the receipt was last available; "" if it is available or was recently."""

    @property
    def compares_board_scores(self) -> bool:
        """Whether all scores that the board shows were recomputed."""
        return self.cells_of_record == self.cells

    @property
    def unconfirmed_reason(self) -> str:
        """The reason why the audit confirms no score that the board shows, or ""."""
        if not self.compares_board_scores:
            return UNCOMPARED_TEXT
        return "" if self.varied else UNVARIED_TEXT

    @property
    def text(self) -> str:
        """The size of the audit as text: `300/300 cells, 10,300 embeddings`."""
        return f"{self.equal}/{self.cells} cells, {self.embedded:,} embeddings"


class DifferingScore(NamedTuple):
    """A claimed score that lies outside the tolerance of its rerun."""

    task: str
    regime: str
    metric: str
    claimed: float
    """The score in the submission."""
    rerun: float
    """The score of the rerun."""
    tolerance: float
    """Largest difference of claimed and rerun score that agrees."""


@dataclass(frozen=True)
class Audit:
    """One audit, as its verified record describes it."""

    audit_id: str
    model_id: str
    submission_sha256: str
    agrees: bool
    """Whether the verdict is "agrees"."""
    drawn: int
    """Number of tasks of the guaranteed sample."""
    stratified: bool
    """Whether the sample has at least one task of each of the larger categories."""
    uncompared_regimes: tuple[str, ...]
    """Regimes that the policy requires, the file claims, and the audit did not compare."""
    rerun: Mapping[str, frozenset[str]]
    """By regime, the tasks that were rerun in it: drawn, earlier and targeted ones."""
    sandbox: int
    """Level of the sandbox that the extractor ran in."""
    all_refused: bool
    """Whether escapes from the sandbox were attempted and all refused."""
    harness_unchanged: bool
    """Whether the harness that scored had no local changes."""
    versions: Versions
    date: str
    """Day on which the audit ended, such as 2026-11-20."""
    withdrawn: str = ""
    """The reason why the audit was withdrawn; "" if it was not."""
    uninformative_regimes: tuple[str, ...] = ()
    """Regimes in which fewer than half of the cells of drawn tasks are informative."""
    hidden_raises: Mapping[str, float] = field(default_factory=dict)
    """By regime, the mean raise of MCC that could be hidden in the noise of its cells."""
    informative_text: str = ""
    """Number of informative cells of drawn tasks, by regime, as text: `full 4 of 5`."""
    unclaimed_cells: tuple[str, ...] = ()
    """Cells of drawn tasks that the policy requires and the submission does not claim."""
    cells_without_scorer: tuple[str, ...] = ()
    """Cells of drawn tasks that have neither scores of the scorer of record nor canonical
    scores."""
    tasks_with_scorer: Mapping[str, frozenset[str]] | None = None
    """By regime, the tasks with scores of the scorer of record, or in earlier records with
    canonical scores; None if unknown."""
    has_variants: bool = True
    """Whether variants of the sequences were embedded."""
    signer: str = ""
    """Owner of the key that signed the record."""
    by_receipt: EmbeddingAuditFacts | None = None
    """Facts that only an audit by receipt has; None for an audit of tasks."""
    fresh_tasks: int = 0
    """Number of tasks with fresh sequences."""
    is_practice: bool = False
    """Whether anybody could foresee the draw, so that it says nothing about other tasks."""
    objections: tuple[str, ...] = ()
    """The reasons in the record why the audit differs; empty if it agrees."""
    differing_scores: tuple[DifferingScore, ...] = ()
    """The claimed scores outside their tolerance."""

    @property
    def tasks(self) -> frozenset[str]:
        """Every task that was rerun in some regime."""
        return frozenset().union(*self.rerun.values())


@dataclass(frozen=True)
class EvidenceRequirements:
    """Requirements of the policy, and the tasks of the present benchmark."""

    minimum_drawn: int
    """Number of drawn tasks that a row needs to be `audited`."""
    minimum_level: int
    """Lowest sandbox level at which an agreeing audit counts."""
    stratified: bool
    """Whether the sample has to have a task of each of the larger categories."""
    tasks: frozenset[str]
    """Every task of the benchmark."""
    versions: Versions
    requires_scorer: bool = False
    """Whether a cell counts only with scores of the scorer of record or canonical scores."""
    minimum_rows: int = 1
    """Smallest number of test embeddings that an audit by receipt draws in each regime."""
    regimes: frozenset[str] = frozenset()
    """Regimes in which every task has to be covered for `reproduced`; empty: any one regime."""
    every_regime: tuple[str, ...] = ()
    """Regimes of the benchmark, in its order."""
    scorer: str = ""
    """Digest of the scorer of record; "" if scorers are not compared."""

    @property
    def hidden_raise_max(self) -> float:
        """The largest mean raise of MCC in a regime that may be hidden from a reproducing audit."""
        return largest_hidden_raise(len(self.tasks))


@dataclass(frozen=True)
class AuditSummary:
    """A row's audits, summarised for the board and `trust --format json`."""

    tasks: int
    """Number of distinct tasks that were rerun."""
    of: int
    """Number of tasks of the benchmark."""
    date: str
    """Day on which the latest audit ended."""
    sandbox: int
    """Lowest sandbox level of the audits."""
    agrees: bool
    """Whether no audit differs."""
    cells: str = ""
    """Number of cells of the receipt whose scores are as claimed, of all its cells, as `299/300`;
    "" without an audit by receipt."""
    rows: int = 0
    """Largest number of embeddings that one audit by receipt computed again."""

    @property
    def text(self) -> str:
        """The size of the audits as text: `audited 13/100`, `300/300 cells, 10,300 embeddings`."""
        tasks = f"audited {self.tasks}/{self.of}" if self.tasks else ""
        rows = f"{self.cells} cells, {self.rows:,} embeddings" if self.rows else ""
        return ", ".join(part for part in (tasks, rows) if part)


@dataclass(frozen=True)
class Recomputation:
    """An audit by receipt whose verdict is `agrees`, and what it confirmed, for the board."""

    audit_id: str
    facts: EmbeddingAuditFacts
    date: str
    """Day on which the audit ended, such as 2026-11-20."""

    @property
    def text(self) -> str:
        """The sentence on the board: `cells recomputed from published embeddings: 300/300, ...`."""
        facts = self.facts
        counts = f"{facts.equal}/{facts.cells}, {facts.embedded:,} embeddings computed again"
        comparison = COMPARED_TEXT if self.facts.compares_board_scores else UNCOMPARED_TEXT
        return f"{RECOMPUTED_TEXT}: {counts}, {self.date}; {comparison}"


@dataclass(frozen=True)
class Decision:
    """The evidence and the trust level of a row, with the reason and the deciding audits."""

    level: TrustLevel
    reason: str
    """Why the row has this evidence, as a sentence."""
    evidence: Evidence = Evidence.CHECKED
    """The evidence of the row: how others confirmed the scores."""
    is_official: bool = False
    """Whether the benchmark's authors wrote the file."""
    audit: AuditSummary | None = None
    """Summary of the audits of `basis`; None if there are none."""
    basis: tuple[Audit, ...] = ()
    """The audits that decide the evidence."""
    recomputed: Recomputation | None = None
    """The audit by receipt that confirms most scores; None if no such audit counts."""
    sampled: tuple[str, ...] = ()
    """Regimes in which a single audit of `basis` confirms the row."""
    unaudited: tuple[str, ...] = ()
    """Regimes of the benchmark that are not in `sampled`."""

    @property
    def signers(self) -> tuple[str, ...]:
        """The people who signed the audits of `basis`, each once."""
        people = {
            comparable_owner(audit.signer): audit.signer for audit in self.basis if audit.signer
        }
        return tuple(people[name] for name in sorted(people))

    @property
    def authorship(self) -> Authorship:
        """Who wrote the file: `official` for the benchmark's authors, else `contributed`."""
        return Authorship.OFFICIAL if self.is_official else Authorship.CONTRIBUTED


class RatedSubmission(NamedTuple):
    """A submission with its evidence, and the weakest evidence that the caller accepts."""

    model_id: str
    sha256: str
    decision: Decision
    required_evidence: Evidence

    @property
    def suffices(self) -> bool:
        """Whether the evidence is as strong as required, or stronger."""
        return has_evidence(self.decision.evidence, self.required_evidence)


def decide(
    sha256: str,
    audits: Iterable[Audit],
    official: Mapping[str, str],
    requirements: EvidenceRequirements,
    aborted: Sequence[str] = (),
    origin: str = "",
    scorer: str = "",
) -> Decision:
    """Return the evidence and level of a submission that passed every check.

    `sha256` is the digest of its bytes, `origin` the digest of the file that it was upgraded from,
    if any. `official` maps model ids to digests of the authors' files, whose level is `official`
    unless they are disputed. `aborted` are the ids of the last runs of its method, if so many
    consecutive runs were aborted that they dispute the row. `scorer` is the digest of the scorer
    that its run names, or "": a row that was not rescored by the current scorer is stale, whether
    audited or not. Other statements of the submission are ignored. The first evidence that fits
    decides: disputed, stale, reproduced, audited, checked; so a dispute outranks any other
    evidence.

    An audit by receipt that differs disputes the row. One that agrees is returned as `recomputed`;
    it verifies the row if the scores on the board are among its cells and training sequences were
    varied.
    """
    # A rerun by a changed harness or without a sandbox is not evidence.
    row_audits = [
        audit
        for audit in audits
        if audit.submission_sha256 == sha256
        and not audit.withdrawn
        and audit.sandbox > NO_SANDBOX_LEVEL
        and audit.harness_unchanged
    ]
    is_official = (origin or sha256) in official.values()
    differing_audits = [audit for audit in row_audits if not audit.agrees]
    # The sandbox prevents an extractor from faking agreement. A differing audit needs no such
    # protection: it counts at any level but 0, and for any version, since a dispute stays open.
    agreeing_audits = [
        audit
        for audit in row_audits
        if audit.agrees and audit.all_refused and audit.sandbox >= requirements.minimum_level
    ]
    agreeing_by_receipt = [audit for audit in agreeing_audits if audit.by_receipt is not None]
    current_by_receipt = [
        audit for audit in agreeing_by_receipt if audit.versions == requirements.versions
    ]
    agreeing_audits = [audit for audit in agreeing_audits if audit.by_receipt is None]
    current_audits = [audit for audit in agreeing_audits if audit.versions == requirements.versions]
    is_rescored = not scorer or scorer == (requirements.scorer or scorer)
    recomputed = None
    if is_rescored and not differing_audits and not aborted:
        recomputed = _largest_recomputation(current_by_receipt, requirements)
    evidence: Evidence
    verb = "differs" if len(differing_audits) == 1 else "differ"
    if differing_audits:
        evidence, basis, reason = (
            Evidence.DISPUTED,
            differing_audits,
            f"{_audits_text(differing_audits)} {verb}",
        )
    elif aborted:
        evidence, basis = Evidence.DISPUTED, []
        reason = f"the last {len(aborted)} runs were aborted: {', '.join(aborted)}"
    elif not is_rescored:
        evidence, basis = Evidence.STALE, agreeing_audits
        row_scorer, board_scorer = scorer[:DIGEST_DIGITS], requirements.scorer[:DIGEST_DIGITS]
        reason = (
            f"its scores come from the scorer {row_scorer}..., but the board has the scorer "
            f"{board_scorer}...: `geneb-harness receipt-rescore` scores the receipt again"
        )
    elif regimes := _reproduced_text(current_audits, requirements):
        evidence, basis = Evidence.REPRODUCED, current_audits
        reason = (
            f"audits by {SIGNERS_MIN} signers or more cover each of the "
            f"{len(requirements.tasks)} tasks of the {regimes}; {_fresh_set_text(current_audits)}"
        )
    elif verifying_audits := _verifying_audits(current_audits, requirements):
        evidence, basis = Evidence.AUDITED, current_audits
        reason = (
            f"{_audits_text(verifying_audits)} agrees on at least {requirements.minimum_drawn} "
            f"drawn tasks; {_fresh_set_text(verifying_audits)}"
        )
    elif confirming_audits := _confirming_receipt_audits(current_by_receipt, requirements):
        evidence, basis = Evidence.AUDITED, confirming_audits
        reason = (
            f"{_audits_text(confirming_audits)} agrees on every cell of its receipt; "
            f"{_fresh_set_text(confirming_audits)}"
        )
    elif outdated_audits := _outdated_audits(agreeing_audits, agreeing_by_receipt, requirements):
        evidence, basis = Evidence.STALE, outdated_audits
        reason = (
            f"{_audits_text(outdated_audits)} agrees, but for another version of harness, "
            "benchmark or dataset"
        )
    else:
        evidence, basis = Evidence.CHECKED, current_audits
        reason = _unconfirmed_reason(current_audits or current_by_receipt, recomputed, requirements)
    level = _LEVEL_BY_EVIDENCE[evidence]
    if is_official and evidence is not Evidence.DISPUTED:
        level = TrustLevel.OFFICIAL
    sampled = () if differing_audits or aborted else _sampled_regimes(basis, requirements)
    return Decision(
        level,
        reason,
        evidence,
        is_official,
        _audit_summary(basis, requirements, agrees=not differing_audits),
        tuple(basis),
        recomputed,
        sampled,
        tuple(regime for regime in requirements.every_regime if regime not in sampled),
    )


_LEVEL_BY_EVIDENCE = {
    Evidence.DISPUTED: TrustLevel.DISPUTED,
    Evidence.REPRODUCED: TrustLevel.REPRODUCED,
    Evidence.AUDITED: TrustLevel.VERIFIED,
    Evidence.STALE: TrustLevel.STALE,
    Evidence.CHECKED: TrustLevel.SELF_REPORTED,
}


def _verifying_audits(audits: Iterable[Audit], requirements: EvidenceRequirements) -> list[Audit]:
    """Return the audits each of which verifies a row alone: their samples are not added up."""
    return [audit for audit in audits if not shortcoming(audit, requirements)]


def _confirming_receipt_audits(
    receipt_audits: Iterable[Audit], requirements: EvidenceRequirements
) -> list[Audit]:
    """Return the audits by receipt each of which verifies a row alone."""
    return [
        audit
        for audit in receipt_audits
        if audit.by_receipt is not None
        and not shortcoming(audit, requirements)
        and not audit.by_receipt.unconfirmed_reason
    ]


def _outdated_audits(
    task_audits: list[Audit], receipt_audits: list[Audit], requirements: EvidenceRequirements
) -> list[Audit]:
    """Return the audits that would confirm the row if their versions were still current."""
    if _reproduced_text(task_audits, requirements) or _verifying_audits(task_audits, requirements):
        return task_audits
    return _confirming_receipt_audits(receipt_audits, requirements)


def _sampled_regimes(basis: Iterable[Audit], requirements: EvidenceRequirements) -> tuple[str, ...]:
    """Return the regimes in which one audit alone verifies a row, in the benchmark's order.

    An audit by receipt verifies all regimes that the policy requires: without them it has a
    shortcoming.
    """
    audits = [audit for audit in _verifying_audits(basis, requirements) if not audit.is_practice]
    regimes = {
        regime
        for audit in audits
        for regime, tasks in audit.rerun.items()
        if len(tasks) >= requirements.minimum_drawn
    }
    if any(audit.by_receipt is not None for audit in audits):
        regimes.update(requirements.regimes)
    sampled = [regime for regime in requirements.every_regime if regime in regimes]
    return (*sampled, *sorted(regimes.difference(sampled)))


def _largest_recomputation(
    receipt_audits: Iterable[Audit], requirements: EvidenceRequirements
) -> Recomputation | None:
    """Return the largest audit by receipt that meets the policy's requirements, or None.

    An audit that confirms the scores on the board is preferred to all others.
    """
    recomputations = [
        Recomputation(audit.audit_id, audit.by_receipt, audit.date)
        for audit in receipt_audits
        if audit.by_receipt is not None and not shortcoming(audit, requirements)
    ]
    return max(
        recomputations,
        key=lambda recomputation: (
            not recomputation.facts.unconfirmed_reason,
            recomputation.facts.embedded,
            recomputation.date,
            recomputation.audit_id,
        ),
        default=None,
    )


_NO_VARIANTS_TEXT = "no variants of the sequences were embedded"


def _embedding_shortcoming(facts: EmbeddingAuditFacts, requirements: EvidenceRequirements) -> str:
    """Return why an agreeing audit by receipt does not suffice, or ""."""
    shortcomings = {
        facts.rule_gap: bool(facts.rule_gap),
        f"the receipt is weak: {facts.weakness}": bool(facts.weakness),
        (
            "nobody can repeat the audit: the receipt was last available on "
            f"{facts.receipt_gone_since}"
        ): bool(facts.receipt_gone_since),
        f"the audit drew {plural(facts.test, 'test embedding')} of each regime, but the policy "
        f"requires {requirements.minimum_rows}": facts.test < requirements.minimum_rows,
        f"the receipt has no cells of {first_and_more(list(facts.missing))}": bool(facts.missing),
        f"{plural(facts.cells - facts.equal, 'cell')} not claimed": facts.equal < facts.cells,
    }
    return next((reason for reason, is_true in shortcomings.items() if is_true), "")


def shortcoming(audit: Audit, requirements: EvidenceRequirements) -> str:
    """Return why an agreeing audit of the current submission does not suffice, or ""."""
    if audit.by_receipt is not None:
        return _embedding_shortcoming(audit.by_receipt, requirements) or (
            _NO_VARIANTS_TEXT if not audit.has_variants else ""
        )
    drawn_text = (
        f"the audit drew {plural(audit.drawn, 'task')}, but the policy requires "
        f"{requirements.minimum_drawn}"
    )
    shortcomings = {
        drawn_text: audit.drawn < requirements.minimum_drawn,
        "its sample is not stratified, but the policy requires strata": (
            requirements.stratified and not audit.stratified
        ),
        f"it leaves out the regimes {', '.join(audit.uncompared_regimes)}": bool(
            audit.uncompared_regimes
        ),
        "fewer than half of the cells are informative in "
        f"{', '.join(audit.uninformative_regimes)}": (bool(audit.uninformative_regimes)),
        f"drawn tasks have no claim in {first_and_more(list(audit.unclaimed_cells))}": bool(
            audit.unclaimed_cells
        ),
        "the run names no scorer of record, so that no definition determines the drawn cells: "
        f"{first_and_more(list(audit.cells_without_scorer))}": requirements.requires_scorer
        and bool(audit.cells_without_scorer),
        _NO_VARIANTS_TEXT: not audit.has_variants,
    }
    return next((reason for reason, is_true in shortcomings.items() if is_true), "")


def _reproduced_text(audits: Sequence[Audit], requirements: EvidenceRequirements) -> str:
    """Return as text the regimes in which audits of one version reproduce every task, or "".

    All regimes that the policy requires have to be covered. A cell without a claim is not covered,
    nor is a cell of an audit that could miss too large a raise. In each regime, two signers or more
    have an audit that verifies the row by itself, so that invented numbers of one signer have to
    pass the draw of another.
    """
    covered_tasks: dict[tuple[Versions, str], set[str]] = {}
    signers: dict[tuple[Versions, str], set[str]] = {}
    for audit in audits:
        regimes_with_large_hidden_raise = {
            regime
            for regime, raised in audit.hidden_raises.items()
            if raised > requirements.hidden_raise_max
        }
        for regime in sorted(
            set(audit.rerun) - set(audit.uninformative_regimes) - regimes_with_large_hidden_raise
        ):
            version_and_regime = (audit.versions, regime)
            tasks: AbstractSet[str] = audit.rerun[regime]
            if requirements.requires_scorer and audit.tasks_with_scorer is not None:
                tasks = audit.tasks_with_scorer.get(regime, frozenset())
            covered_tasks.setdefault(version_and_regime, set()).update(tasks)
            if not shortcoming(audit, requirements):
                signers.setdefault(version_and_regime, set()).add(comparable_owner(audit.signer))
    covered_regimes: dict[Versions, set[str]] = {}
    for (versions, regime), tasks in covered_tasks.items():
        if tasks >= requirements.tasks and len(signers.get((versions, regime), ())) >= SIGNERS_MIN:
            covered_regimes.setdefault(versions, set()).add(regime)
    sufficient_regimes = [
        regimes for regimes in covered_regimes.values() if regimes >= requirements.regimes
    ]
    if not sufficient_regimes:
        return ""
    if not requirements.regimes:
        return f"regime {min(map(min, sufficient_regimes))}"
    return (
        f"{plural(len(requirements.regimes), 'regime')} {', '.join(sorted(requirements.regimes))}"
    )


def comparable_owner(owner: str) -> str:
    """Return an owner's name in a form that ignores case, spaces and look-alike characters."""
    return skeleton(skeleton(owner).casefold())


def _unconfirmed_reason(
    audits: list[Audit], recomputation: Recomputation | None, requirements: EvidenceRequirements
) -> str:
    """Return the reason why these audits confirm no score that the board shows."""
    if not audits:
        return "no audit counts"
    largest_audit = max(audits, key=lambda audit: (audit.drawn, audit.audit_id))
    if shortfall := shortcoming(largest_audit, requirements):
        return f"audit {largest_audit.audit_id} is not enough: {shortfall}"
    if recomputation is None:
        return "no audit counts"
    varied_text = "" if recomputation.facts.varied else f"; {UNVARIED_TEXT}"
    return f"no audit of tasks counts; {recomputation.text}{varied_text}"


def _fresh_set_text(audits: Iterable[Audit]) -> str:
    """Return what the fresh sets of the audits show about memorisation."""
    tasks = max((audit.fresh_tasks for audit in audits), default=0)
    return (
        f"a fresh set of {plural(tasks, 'task')} shows no memory" if tasks else MEMORY_NOT_EXCLUDED
    )


def _audits_text(audits: list[Audit]) -> str:
    """Return audits as the subject of a sentence: `audit ID` or `3 audits`."""
    audit_ids = sorted(audit.audit_id for audit in audits)
    return f"audit {audit_ids[0]}" if len(audit_ids) == 1 else f"{len(audit_ids)} audits"


def _audit_summary(
    basis: list[Audit], requirements: EvidenceRequirements, *, agrees: bool
) -> AuditSummary | None:
    """Return the summary of the audits that decide a row's evidence; None if there are none."""
    if not basis:
        return None
    largest_facts = max(
        (audit.by_receipt for audit in basis if audit.by_receipt),
        key=lambda facts: facts.embedded,
        default=None,
    )
    return AuditSummary(
        tasks=len(frozenset().union(*(audit.tasks for audit in basis))),
        of=len(requirements.tasks),
        date=max(audit.date for audit in basis),
        sandbox=min(audit.sandbox for audit in basis),
        agrees=agrees,
        cells=f"{largest_facts.equal}/{largest_facts.cells}" if largest_facts else "",
        rows=largest_facts.embedded if largest_facts else 0,
    )
