"""From evidence to a trust level: a pure function."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from geneb_ci.audit.compare.joint import largest_room
from geneb_ci.common.finding import first_and_more
from geneb_ci.common.types import Authorship, Evidence, TrustLevel, has_evidence
from geneb_ci.submission.names import skeleton
from reference_harness.formats.text import plural

SIGNERS = 2
"""Different people whose audits a reproduced row needs: with one, a single key that invents numbers
would make it."""
NO_SANDBOX = 0
"""Sandbox level without any confinement: such an audit never counts, for or against a row."""
DIGEST_DIGITS = 16
"""Hex digits of a digest in a sentence."""
RECOMPUTED = "cells recomputed from published embeddings"
COMPARED = "the scores shown are among them"
UNCOMPARED = "the scores shown were not compared"
"""Shown beside a row whose audit by receipt agrees. It adds a level where the scores shown are
among the cells, and training sequences were varied."""
UNVARIED = "training sequences were not varied"
MEMORY = "memory is not excluded, since it had no fresh set"
"""The limit of every audit without one."""


@dataclass(frozen=True)
class Versions:
    """Versions of harness, benchmark and data."""

    harness: str
    benchmark: str
    """Digest of the benchmark definition."""
    dataset: str
    """Revision of the task data."""


@dataclass(frozen=True)
class EmbeddingAuditFacts:
    """The facts of an audit by receipt, beside those of every audit."""

    test: int
    """Test embeddings drawn of each regime."""
    embedded: int
    """Distinct embeddings that were computed again."""
    equal: int
    """Cells whose claims are those that the receipt gives."""
    cells: int
    """Cells that were recomputed."""
    cells_of_record: int = 0
    """Cells whose shown scores were recomputed and are as claimed; 0 where none were compared."""
    refitted: bool = False
    """Whether training sequences were varied, and the strongest ones embedded again."""
    missing: tuple[str, ...] = ()
    """Tasks and regimes that the policy requires and the receipt has no cells of."""
    rule_gap: str = ""
    """The gap in its rule, where the record has an earlier one, or ""."""
    weakness: str = ""
    """Why its embeddings cannot be compared within a tolerance, or ""."""
    receipt_gone_since: str = ""
    """The day on which the receipt was last there, where that is too long ago, or ""."""

    @property
    def compares_shown(self) -> bool:
        """Whether the scores that the board shows were recomputed, all of them."""
        return self.cells_of_record == self.cells

    @property
    def lacking(self) -> str:
        """Why the audit confirms no score that the board shows, or ""."""
        if not self.compares_shown:
            return UNCOMPARED
        return "" if self.refitted else UNVARIED

    @property
    def text(self) -> str:
        """The size of an audit: `300/300 cells, 10,300 embeddings`."""
        return f"{self.equal}/{self.cells} cells, {self.embedded:,} embeddings"


class DifferingScore(NamedTuple):
    """A claimed score that lies outside the tolerance of its rerun."""

    task: str
    regime: str
    metric: str
    claimed: float
    rerun: float
    tolerance: float
    """Largest difference at which they agree."""


@dataclass(frozen=True)
class Audit:
    """The facts of one audit, from a record that is valid in itself."""

    audit_id: str
    model_id: str
    submission_sha256: str
    agrees: bool
    drawn: int
    """Tasks of the guaranteed sample."""
    stratified: bool
    uncompared_regimes: tuple[str, ...]
    """Regimes that the policy requires, the file claims, and the audit did not compare."""
    rerun: Mapping[str, frozenset[str]]
    """Regime to the tasks that were rerun in it: drawn, earlier and targeted ones."""
    sandbox: int
    all_refused: bool
    """Whether escapes were attempted, and every one refused."""
    harness_unchanged: bool
    """Whether the harness that scored was unchanged."""
    versions: Versions
    date: str
    """Day on which it ended, as 2026-11-20."""
    withdrawn: str = ""
    """Why it was withdrawn; "" when it was not."""
    uninformative: tuple[str, ...] = ()
    """Regimes with fewer than half of the drawn tasks' cells informative."""
    hidden_raises: Mapping[str, float] = field(default_factory=dict)
    """Regime to the mean raise of MCC that could be hidden in the noise of its cells."""
    informative: str = ""
    """Informative cells of the drawn tasks, by regime: `full 4 of 5`."""
    unclaimed_cells: tuple[str, ...] = ()
    """Cells of the drawn tasks that the policy audits and the submission does not claim."""
    undefined: tuple[str, ...] = ()
    """Cells of the drawn tasks whose score follows from no definition."""
    defined: Mapping[str, frozenset[str]] | None = None
    """Regime to the tasks whose compared scores follow from a definition: those of record of a run
    that names their scorer, and canonical ones in earlier records; None where nobody counted."""
    has_variants: bool = True
    """Whether variants of the sequences were embedded."""
    signer: str = ""
    """Who holds the key that signed it."""
    rows: EmbeddingAuditFacts | None = None
    """Numbers of an audit by receipt, which reruns no task."""
    fresh_tasks: int = 0
    """Tasks of which fresh sequences were decided on as well as published ones."""
    is_practice: bool = False
    """Whether anybody could foresee what was drawn: nothing follows for what was not rerun."""
    objections: tuple[str, ...] = ()
    """Why it does not confirm the row, as its record says; none where it agrees."""
    differing: tuple[DifferingScore, ...] = ()
    """The scores outside their tolerance."""

    @property
    def tasks(self) -> frozenset[str]:
        """Every task that was rerun in some regime."""
        return frozenset().union(*self.rerun.values())


@dataclass(frozen=True)
class EvidenceRequirements:
    """The policy's requirements of evidence, for the current benchmark."""

    minimum_drawn: int
    minimum_level: int
    stratified: bool
    tasks: frozenset[str]
    """Every task of the benchmark."""
    versions: Versions
    defined: bool = False
    """Whether only cells count whose score follows from a definition."""
    minimum_rows: int = 1
    """Test embeddings of each regime that an audit by receipt has to draw."""
    regimes: frozenset[str] = frozenset()
    """Regimes of which `reproduced` needs every task; any one of them where there are none."""
    every_regime: tuple[str, ...] = ()
    """Regimes of the benchmark, in its order."""
    scorer: str = ""
    """Digest of the scorer of record; "" where none is compared."""

    @property
    def room(self) -> float:
        """The largest mean raise that an audit may miss in a regime that it helps to reproduce."""
        return largest_room(len(self.tasks))


@dataclass(frozen=True)
class Summary:
    """The summary of a row's audits that the board shows, and `trust --format json` writes."""

    tasks: int
    """Distinct tasks that were rerun."""
    of: int
    """Tasks of the benchmark."""
    date: str
    """Day of the latest audit."""
    sandbox: int
    """Lowest sandbox level among them."""
    agrees: bool
    cells: str = ""
    """Cells of a receipt that are as claimed, `299/300`; "" unless an audit by receipt failed."""
    rows: int = 0
    """Most embeddings that one such audit computed again."""

    @property
    def text(self) -> str:
        """The size of the audits: `audited 13/100`, `300/300 cells, 10,300 embeddings`, or both."""
        tasks = f"audited {self.tasks}/{self.of}" if self.tasks else ""
        rows = f"{self.cells} cells, {self.rows:,} embeddings" if self.rows else ""
        return ", ".join(part for part in (tasks, rows) if part)


@dataclass(frozen=True)
class Recomputation:
    """The cells that an agreeing audit by receipt recomputed."""

    audit_id: str
    rows: EmbeddingAuditFacts
    date: str
    """Day on which it ended, as 2026-11-20."""

    @property
    def text(self) -> str:
        """The sentence on the board: `cells recomputed from published embeddings: 300/300, ...`."""
        counts = (
            f"{self.rows.equal}/{self.rows.cells}, {self.rows.embedded:,} embeddings computed again"
        )
        comparison = COMPARED if self.rows.compares_shown else UNCOMPARED
        return f"{RECOMPUTED}: {counts}, {self.date}; {comparison}"


@dataclass(frozen=True)
class Decision:
    """The level of a row, and what it rests on."""

    level: TrustLevel
    reason: str
    evidence: Evidence = Evidence.CHECKED
    """The evidence by others for the scores, whoever the author is."""
    is_official: bool = False
    """Whether the file is the authors' own, whatever its level."""
    audit: Summary | None = None
    basis: tuple[Audit, ...] = ()
    """The audits that the evidence rests on."""
    recomputed: Recomputation | None = None
    """The audit by receipt that confirms most, or else the largest; None where none counts or the
    row is disputed."""
    sampled: tuple[str, ...] = ()
    """Regimes in which an audit that the evidence rests on verifies the row by itself."""
    unaudited: tuple[str, ...] = ()
    """Regimes of the benchmark that are not among these."""

    @property
    def signers(self) -> tuple[str, ...]:
        """Who signed the audits that the evidence rests on, each person once."""
        people = {
            comparable_owner(audit.signer): audit.signer for audit in self.basis if audit.signer
        }
        return tuple(people[name] for name in sorted(people))

    @property
    def authorship(self) -> Authorship:
        """Whose file the row is."""
        return Authorship.OFFICIAL if self.is_official else Authorship.CONTRIBUTED


class RatedSubmission(NamedTuple):
    """The evidence of a submission, beside the least that is asked for."""

    model_id: str
    sha256: str
    decision: Decision
    least: Evidence

    @property
    def suffices(self) -> bool:
        """Whether the evidence is at least the one that is asked for."""
        return has_evidence(self.decision.evidence, self.least)


def decide(
    sha256: str,
    audits: Iterable[Audit],
    official: Mapping[str, str],
    requirements: EvidenceRequirements,
    aborted: Sequence[str] = (),
    origin: str = "",
    scorer: str = "",
) -> Decision:
    """Return evidence and level of a submission that passed every check.

    The evidence says what was done, the level what upstream shows: `_LEVELS` has the one of each.

    `sha256` is that of its bytes, `origin` of those that it was upgraded from, if it was;
    `official` maps model ids to digests of the authors' own files;
    `aborted` are the ids of the last runs of its method, where too many in a row were aborted;
    `scorer` is the digest of the scorer that its run names, if it names one: a row that was not
    rescored for the one of today is stale, audited or not. What else the submission says of itself
    is ignored. The first evidence that fits decides: disputed, stale, reproduced, audited, checked;
    so a dispute outranks any other evidence. Audits of another version alone make a row stale, too,
    after these. The level says the same of a contributed file, and `official` of one of the authors
    unless it is disputed.

    An audit by receipt that differs disputes the row as any other does. One that agrees gives
    `recomputed`, and verifies the row where the scores that the board shows are among the cells and
    training sequences were varied, as in an audit of tasks.
    """
    row_audits = [
        audit for audit in audits if audit.submission_sha256 == sha256 and not audit.withdrawn
    ]
    # A rerun by a changed harness, or of an unconfined extractor, is not evidence.
    row_audits = [
        audit for audit in row_audits if audit.sandbox > NO_SANDBOX and audit.harness_unchanged
    ]
    is_official = (origin or sha256) in official.values()
    failed = [audit for audit in row_audits if not audit.agrees]
    # The sandbox keeps an extractor from faking agreement. Disagreement needs no such protection: a
    # failed audit counts at any level but 0, and for any version, since a dispute stays open.
    agreeing = [
        audit
        for audit in row_audits
        if audit.agrees and audit.all_refused and audit.sandbox >= requirements.minimum_level
    ]
    receipts = [audit for audit in agreeing if audit.rows is not None]
    by_receipt = [audit for audit in receipts if audit.versions == requirements.versions]
    agreeing = [audit for audit in agreeing if audit.rows is None]
    current = [audit for audit in agreeing if audit.versions == requirements.versions]
    is_rescored = not scorer or scorer == (requirements.scorer or scorer)
    recomputed = None
    if is_rescored and not failed and not aborted:
        recomputed = _recomputed(by_receipt, requirements)
    evidence: Evidence
    differ = "differs" if len(failed) == 1 else "differ"
    if failed:
        evidence, basis, reason = Evidence.DISPUTED, failed, f"{_audits(failed)} {differ}"
    elif aborted:
        evidence, basis = Evidence.DISPUTED, []
        reason = f"the last {len(aborted)} runs were aborted: {', '.join(aborted)}"
    elif not is_rescored:
        evidence, basis = Evidence.STALE, agreeing
        row_digest, board_digest = scorer[:DIGEST_DIGITS], requirements.scorer[:DIGEST_DIGITS]
        reason = (
            f"its scores are those of the scorer {row_digest}..., that of the board is "
            f"{board_digest}...: `geneb-harness receipt-rescore` makes them again"
        )
    elif regimes := _reproduced(current, requirements):
        evidence, basis = Evidence.REPRODUCED, current
        reason = (
            f"audits by {SIGNERS} signers or more cover each of the "
            f"{len(requirements.tasks)} tasks of the {regimes}; {_memory(current)}"
        )
    elif enough := _verifying(current, requirements):
        evidence, basis = Evidence.AUDITED, current
        reason = (
            f"{_audits(enough)} agrees on at least {requirements.minimum_drawn} drawn tasks; "
            f"{_memory(enough)}"
        )
    elif confirming := _confirming(by_receipt, requirements):
        evidence, basis = Evidence.AUDITED, confirming
        reason = f"{_audits(confirming)} agrees on every cell of its receipt; {_memory(confirming)}"
    elif earlier := _once_verified(agreeing, receipts, requirements):
        evidence, basis = Evidence.STALE, earlier
        reason = (
            f"{_audits(earlier)} agrees, but for another version of harness, benchmark or dataset"
        )
    else:
        evidence, basis = Evidence.CHECKED, current
        reason = _unconfirmed(current or by_receipt, recomputed, requirements)
    level = _LEVELS[evidence]
    if is_official and evidence is not Evidence.DISPUTED:
        level = TrustLevel.OFFICIAL
    sampled = () if failed or aborted else _sampled(basis, requirements)
    return Decision(
        level,
        reason,
        evidence,
        is_official,
        _summary(basis, requirements, agrees=not failed),
        tuple(basis),
        recomputed,
        sampled,
        tuple(regime for regime in requirements.every_regime if regime not in sampled),
    )


_LEVELS = {
    Evidence.DISPUTED: TrustLevel.DISPUTED,
    Evidence.REPRODUCED: TrustLevel.REPRODUCED,
    Evidence.AUDITED: TrustLevel.VERIFIED,
    Evidence.STALE: TrustLevel.STALE,
    Evidence.CHECKED: TrustLevel.SELF_REPORTED,
}


def _verifying(audits: Iterable[Audit], requirements: EvidenceRequirements) -> list[Audit]:
    """Return the audits that verify a row, each by itself: their samples do not add up."""
    return [audit for audit in audits if not shortcoming(audit, requirements)]


def _confirming(receipts: Iterable[Audit], requirements: EvidenceRequirements) -> list[Audit]:
    """Return the audits by receipt that verify a row, each by itself."""
    return [
        audit
        for audit in receipts
        if audit.rows is not None
        and not shortcoming(audit, requirements)
        and not audit.rows.lacking
    ]


def _once_verified(
    agreeing: list[Audit], receipts: list[Audit], requirements: EvidenceRequirements
) -> list[Audit]:
    """Return the audits, of tasks or by receipt, that would confirm a row of their version."""
    if _reproduced(agreeing, requirements) or _verifying(agreeing, requirements):
        return agreeing
    return _confirming(receipts, requirements)


def _sampled(basis: Iterable[Audit], requirements: EvidenceRequirements) -> tuple[str, ...]:
    """Return the regimes in which an audit verifies a row by itself, in the benchmark's order.

    One by receipt does so in all that the policy requires: it has no shortcoming without them.
    """
    audits = [audit for audit in _verifying(basis, requirements) if not audit.is_practice]
    regimes = {
        regime
        for audit in audits
        for regime, tasks in audit.rerun.items()
        if len(tasks) >= requirements.minimum_drawn
    }
    if any(audit.rows is not None for audit in audits):
        regimes.update(requirements.regimes)
    sampled = [regime for regime in requirements.every_regime if regime in regimes]
    return (*sampled, *sorted(regimes.difference(sampled)))


def _recomputed(
    by_receipt: Iterable[Audit], requirements: EvidenceRequirements
) -> Recomputation | None:
    """Return the largest audit by receipt that meets the policy's demands; None without one.

    An audit that confirms the scores on the board goes before one that does not.
    """
    results = [
        Recomputation(audit.audit_id, audit.rows, audit.date)
        for audit in by_receipt
        if audit.rows is not None and not shortcoming(audit, requirements)
    ]
    return max(
        results,
        key=lambda result: (
            not result.rows.lacking,
            result.rows.embedded,
            result.date,
            result.audit_id,
        ),
        default=None,
    )


_PLAIN = "no variants of the sequences were embedded"


def _embedding_shortcoming(rows: EmbeddingAuditFacts, requirements: EvidenceRequirements) -> str:
    lacking = {
        rows.rule_gap: bool(rows.rule_gap),
        f"the receipt is weak: {rows.weakness}": bool(rows.weakness),
        f"nobody can repeat it: the receipt was last there on {rows.receipt_gone_since}": bool(
            rows.receipt_gone_since
        ),
        f"{plural(rows.test, 'test embedding')} of each regime drawn, the policy requires "
        f"{requirements.minimum_rows}": rows.test < requirements.minimum_rows,
        f"the receipt has no cells of {first_and_more(list(rows.missing))}": bool(rows.missing),
        f"{plural(rows.cells - rows.equal, 'cell')} not claimed": rows.equal < rows.cells,
    }
    return next((reason for reason, holds in lacking.items() if holds), "")


def shortcoming(audit: Audit, requirements: EvidenceRequirements) -> str:
    """Return why an agreeing audit of the right bytes and versions is too small, or ""."""
    if audit.rows is not None:
        return _embedding_shortcoming(audit.rows, requirements) or (
            _PLAIN if not audit.has_variants else ""
        )
    drawn = f"{plural(audit.drawn, 'task')} drawn, the policy requires {requirements.minimum_drawn}"
    lacking = {
        drawn: audit.drawn < requirements.minimum_drawn,
        "its sample is not stratified, the policy requires strata": (
            requirements.stratified and not audit.stratified
        ),
        f"it leaves out the regimes {', '.join(audit.uncompared_regimes)}": bool(
            audit.uncompared_regimes
        ),
        f"fewer than half of the cells are informative in {', '.join(audit.uninformative)}": (
            bool(audit.uninformative)
        ),
        f"drawn tasks have no claim in {first_and_more(list(audit.unclaimed_cells))}": bool(
            audit.unclaimed_cells
        ),
        "the run names no scorer of record, so that nothing defines the drawn cells: "
        f"{first_and_more(list(audit.undefined))}": requirements.defined and bool(audit.undefined),
        _PLAIN: not audit.has_variants,
    }
    return next((reason for reason, holds in lacking.items() if holds), "")


def _reproduced(audits: Sequence[Audit], requirements: EvidenceRequirements) -> str:
    """Return the regimes of which audits of one version cover every task, or "".

    These are all that the policy audits; a cell that is not claimed is not covered, nor is one of
    an audit that could miss too large a raise. In each, two signers or more have an audit that
    verifies the row by itself: numbers that one invents then have to pass the other's draw.
    """
    covered: dict[tuple[Versions, str], set[str]] = {}
    signers: dict[tuple[Versions, str], set[str]] = {}
    for audit in audits:
        loose = {
            regime for regime, raised in audit.hidden_raises.items() if raised > requirements.room
        }
        for regime in sorted(set(audit.rerun) - set(audit.uninformative) - loose):
            key = (audit.versions, regime)
            tasks: AbstractSet[str] = audit.rerun[regime]
            if requirements.defined and audit.defined is not None:
                tasks = audit.defined.get(regime, frozenset())
            covered.setdefault(key, set()).update(tasks)
            if not shortcoming(audit, requirements):
                signers.setdefault(key, set()).add(comparable_owner(audit.signer))
    whole: dict[Versions, set[str]] = {}
    for key, tasks in covered.items():
        if tasks >= requirements.tasks and len(signers.get(key, ())) >= SIGNERS:
            whole.setdefault(key[0], set()).add(key[1])
    enough = [regimes for regimes in whole.values() if regimes >= requirements.regimes]
    if not enough:
        return ""
    if not requirements.regimes:
        return f"regime {min(map(min, enough))}"
    return (
        f"{plural(len(requirements.regimes), 'regime')} {', '.join(sorted(requirements.regimes))}"
    )


def comparable_owner(owner: str) -> str:
    """Return an owner's name as it is compared: letter case, spaces and look-alikes are equal."""
    return skeleton(skeleton(owner).casefold())


def _unconfirmed(
    audits: list[Audit], recomputation: Recomputation | None, requirements: EvidenceRequirements
) -> str:
    """Return why audits of tasks, or else by receipt, confirm nothing that the board shows."""
    if not audits:
        return "no audit counts"
    largest = max(audits, key=lambda audit: (audit.drawn, audit.audit_id))
    if reason := shortcoming(largest, requirements):
        return f"audit {largest.audit_id} is not enough: {reason}"
    if recomputation is None:
        return "no audit counts"
    varied = "" if recomputation.rows.refitted else f"; {UNVARIED}"
    return f"no audit of tasks counts; {recomputation.text}{varied}"


def _memory(audits: Iterable[Audit]) -> str:
    """Return the result of the fresh set of the audits on memorisation."""
    most = max((audit.fresh_tasks for audit in audits), default=0)
    return f"a fresh set of {plural(most, 'task')} shows no memory" if most else MEMORY


def _audits(audits: list[Audit]) -> str:
    names = sorted(audit.audit_id for audit in audits)
    return f"audit {names[0]}" if len(names) == 1 else f"{len(names)} audits"


def _summary(
    basis: list[Audit], requirements: EvidenceRequirements, *, agrees: bool
) -> Summary | None:
    if not basis:
        return None
    rows = max((audit.rows for audit in basis if audit.rows), key=_by_embeddings, default=None)
    return Summary(
        tasks=len(frozenset().union(*(counted.tasks for counted in basis))),
        of=len(requirements.tasks),
        date=max(counted.date for counted in basis),
        sandbox=min(counted.sandbox for counted in basis),
        agrees=agrees,
        cells=f"{rows.equal}/{rows.cells}" if rows else "",
        rows=rows.embedded if rows else 0,
    )


def _by_embeddings(facts: EmbeddingAuditFacts) -> int:
    return facts.embedded
