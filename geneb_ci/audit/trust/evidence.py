"""Turns records into the facts that decide a trust level, and states the reasons as text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.commitment import MethodIdentity, method_identity, same_method_reason
from geneb_ci.audit.compare.embedding_outcome import (
    SUPERSEDED_REASON,
    WITH_ROW_TOLERANCES,
    WITHOUT_FEW_SHOT,
    AnyOutcome,
    EmbeddingOutcome,
    room_reason,
)
from geneb_ci.audit.compare.outcome import (
    AuditOutcome,
    differing_metrics,
    hidden_raises,
    informative_cells,
    informative_text,
    objections_to_outcome,
)
from geneb_ci.audit.record.events import AuditAbort, AuditEvent, StatementKind, WithdrawnAudit
from geneb_ci.audit.record.keys import RevokedKey, check_revoked
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import ID_DIGITS, Record
from geneb_ci.audit.record.verify import Verification
from geneb_ci.audit.sampling.design import requirements_of
from geneb_ci.audit.sampling.embedding_draw import weakness_of
from geneb_ci.audit.sampling.plan import EmbeddingPlan
from geneb_ci.audit.trust.applicability import (
    TrustInputs,
    left_out_regimes,
    missing_tasks_and_regimes,
    names_scorer,
    scorer_of,
)
from geneb_ci.audit.trust.level import (
    NO_SANDBOX_LEVEL,
    RECOMPUTED_TEXT,
    Audit,
    Decision,
    DifferingScore,
    EmbeddingAuditFacts,
    EvidenceRequirements,
    RatedSubmission,
    Versions,
    decide,
    shortcoming,
)
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.common.config import Layout, official_files
from geneb_ci.common.errors import Exit, GenebError
from geneb_ci.common.finding import Severity
from geneb_ci.common.types import Evidence
from geneb_ci.receipt.seen import missing_since_day
from geneb_ci.submission.document import Document
from reference_harness.formats.submission_terms import MODEL_ID_PATTERN
from reference_harness.formats.text import plural


class BrokenRecordError(GenebError):
    """Records of the repository are forged or damaged, so that a trust level could be wrong."""

    exit_code = Exit.ERRORS


@dataclass(frozen=True)
class RepositoryEvidence:
    """Everything that decides the evidence and the trust levels of the rows of a repository."""

    audits: tuple[Audit, ...]
    """The valid audits, of every version of each submission."""
    broken_records: tuple[Verification, ...]
    """Verifications of records that are forged or damaged, or that have such a withdrawal."""
    official: Mapping[str, str]
    """By model id, the digest of the file that the benchmark's authors wrote."""
    requirements: EvidenceRequirements
    aborted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By digest of a submission, the ids of the last runs of its method, if so many consecutive
    runs were aborted that they dispute the row."""

    def decide(self, sha256: str, origin: str = "", scorer: str = "") -> Decision:
        """Return the decision about a submission that passed every check; see `level.decide`."""
        aborted = self.aborted.get(sha256, ())
        return decide(
            sha256, self.audits, self.official, self.requirements, aborted, origin, scorer
        )

    def audits_of_model(self, model_id: str) -> list[Audit]:
        """Return the audits of every version of a model's submission, in order of date."""
        model_audits = (audit for audit in self.audits if audit.model_id == model_id)
        return sorted(model_audits, key=lambda audit: (audit.date, audit.audit_id))

    def require_sound(self) -> None:
        """Raise BrokenRecordError if a record is broken, which could hide a dispute.

        The error names each broken record and its first broken step.
        """
        if self.broken_records:
            raise BrokenRecordError(
                "; ".join(
                    f"audit record {record.name} is broken, step {step.name!r}: {step.message}"
                    for record in self.broken_records
                    for step in record.broken[:1]
                ),
                "restore the files from the main branch; `geneb-ci audit verify` shows every step",
            )


def gather_evidence(layout: Layout, model_id: str | None = None) -> RepositoryEvidence:
    """Verify every record of a repository, or those of one model, and return the evidence.

    Raises BadConfiguration when its policy cannot be used.
    """
    repository = AuditRepository(layout)
    return evidence_from(repository, list(repository.verifications(model_id)))


def evidence_from(
    repository: AuditRepository, verifications: Sequence[Verification]
) -> RepositoryEvidence:
    """Return the evidence that follows from the verified records of a repository.

    Raises BadConfiguration when its policy cannot be used.
    """
    inputs = repository.inputs
    return RepositoryEvidence(
        audits=tuple(
            audit
            for verification in verifications
            if (audit := audit_of(verification, inputs)) is not None
        ),
        broken_records=tuple(
            verification
            for verification in verifications
            if verification.broken and verification.withdrawn is None
        ),
        official=official_files(repository.layout),
        requirements=requirements_of(inputs.policy, inputs.benchmark),
        aborted=consecutive_aborts(repository),
    )


def rated_submissions(
    repository: AuditRepository, verifications: Sequence[Verification], minimum: str
) -> list[RatedSubmission]:
    """Return the evidence of each submission that verified records are about, in order of name.

    The evidence follows from all records of the repository; the checks of the submission are not
    run. `minimum` is the evidence that the caller requires. Raises BadConfiguration when the policy
    cannot be used.
    """
    evidence = evidence_from(repository, list(repository.verifications()))
    commitments = [
        verification.record.outcome.plan.commitment
        for verification in verifications
        if verification.record is not None
    ]
    rated_rows = []
    for model_id, sha256 in sorted(
        {(commitment.model_id, commitment.submission_sha256) for commitment in commitments}
    ):
        current = repository.inputs.submission(model_id)
        is_same = current is not None and current.sha256 == sha256
        scorer = scorer_of(current.submission) if current is not None and is_same else ""
        decision = evidence.decide(sha256, scorer=scorer)
        rated_rows.append(RatedSubmission(model_id, sha256, decision, Evidence(minimum)))
    return rated_rows


class _EndedRun(NamedTuple):
    """A run that ended with a record or an abort."""

    order: tuple[int, int, str]
    """Sort key: number of earlier statements, index of the entry in an old log or 0, and time of
    the end."""
    audit_id: str
    is_abort: bool
    is_by_receipt: bool
    identity: MethodIdentity
    """The facts by which the method of the run is compared."""
    submission: str
    """SHA-256 of the submission."""


def consecutive_aborts(repository: AuditRepository) -> dict[str, tuple[str, ...]]:
    """Return, by digest of a submission, the ids of the last runs of its method, all aborted.

    Only methods with at least as many consecutive aborted runs as the policy states are included. A
    record ends the sequence of aborted runs, but a record of an audit by receipt, which reruns no
    task, only that of other runs by receipt. Statements of revoked keys, and those that
    `History.is_counted` rejects, are ignored.
    """
    runs = sorted(_ended_runs(repository), key=lambda run: (run.order, run.audit_id))
    limit = repository.inputs.policy.aborts
    by_submission: dict[str, tuple[str, ...]] = {}
    for abort in {run.submission: run for run in runs if run.is_abort}.values():
        last_aborts: list[_EndedRun] = []
        for run in runs:
            if same_method_reason(run.identity, abort.identity):
                aborts_left = [
                    earlier
                    for earlier in last_aborts
                    if run.is_by_receipt and not earlier.is_by_receipt
                ]
                last_aborts = [*last_aborts, run] if run.is_abort else aborts_left
        if len(last_aborts) >= limit:
            by_submission[abort.submission] = tuple(run.audit_id for run in last_aborts[-limit:])
    return by_submission


def _ended_runs(repository: AuditRepository) -> Iterator[_EndedRun]:
    """Yield every run with a counted record or abort, except withdrawn records."""
    for path, event in repository.events.items():
        if isinstance(event, AuditEvent) and event.abort is not None:
            yield from _counted_run(repository, path, event, event.abort)
    for path in repository.files:
        record = repository.record_at(path)
        if isinstance(record, Record) and not isinstance(
            repository.withdrawals.get(path), WithdrawnAudit
        ):
            yield from _counted_run(repository, path, record, record.outcome)


def _counted_run(
    repository: AuditRepository,
    path: Path,
    statement: AuditEvent | Record,
    predicate: AuditAbort | AnyOutcome,
) -> Iterator[_EndedRun]:
    """Yield the run whose end a signed file states, or nothing if the file does not count."""
    is_abort = isinstance(predicate, AuditAbort)
    kind = StatementKind.ABORT if is_abort else StatementKind.RESULT
    statement_name, history = f"{path.parent.name}/{path.name}", repository.history
    if not history.is_counted(statement_name, kind):
        return
    log_index, precedes_compromise = history.revocation_arguments(statement_name, kind)
    try:
        check_revoked(statement.signer, log_index, precedes_compromise=precedes_compromise)
    except RevokedKey:
        return
    plan = predicate.plan
    yield _EndedRun(
        order=(history.predecessor_count(statement_name), log_index or 0, predicate.finished_at),
        audit_id=statement.sha256[:ID_DIGITS],
        is_abort=is_abort,
        is_by_receipt=isinstance(plan, EmbeddingPlan),
        identity=method_identity(plan.commitment),
        submission=plan.commitment.submission_sha256,
    )


def audit_of(verification: Verification, inputs: TrustInputs) -> Audit | None:
    """Return the audit that a verified record describes; None for an invalid record."""
    if verification.record is None or not verification.is_sound:
        return None
    outcome, audit = verification.record.outcome, _common_audit(verification, verification.record)
    if isinstance(outcome, EmbeddingOutcome):
        return _embedding_audit(audit, outcome, inputs)
    drawn = [task for task in outcome.tasks if task.reason == "drawn"]
    cells = informative_cells(drawn)
    tasks_with_scorer = _tasks_with_scorer(outcome, inputs)
    commitment = outcome.plan.commitment
    return replace(
        audit,
        drawn=len(outcome.plan.drawn),
        stratified=commitment.policy.stratified,
        uncompared_regimes=tuple(left_out_regimes(outcome, inputs)),
        rerun={
            regime: frozenset(task.task for task in outcome.tasks if regime in task.regimes)
            for regime in commitment.regimes
        },
        uninformative_regimes=tuple(
            regime for regime, count in cells.items() if not count.suffices
        ),
        hidden_raises=hidden_raises(outcome.tasks),
        informative_text=informative_text(cells),
        unclaimed_cells=tuple(
            f"{name} of {task.task}"
            for task in drawn
            for name in inputs.policy.regimes
            if name not in task.regimes
        ),
        cells_without_scorer=tuple(
            f"{name} of {task.task}"
            for task in drawn
            for name in task.regimes
            if task.task not in tasks_with_scorer.get(name, ())
        ),
        tasks_with_scorer=tasks_with_scorer,
        objections=tuple(reason.text for reason in objections_to_outcome(outcome)),
        differing_scores=tuple(_differing_scores(outcome)),
    )


def _common_audit(verification: Verification, record: Record) -> Audit:
    """Return an audit with the members that audits of tasks and by receipt have in common."""
    outcome, withdrawn = record.outcome, verification.withdrawn
    commitment, sandbox = outcome.plan.commitment, outcome.sandbox
    return Audit(
        audit_id=record.audit_id,
        model_id=commitment.model_id,
        submission_sha256=commitment.submission_sha256,
        agrees=outcome.verdict == "agrees",
        drawn=0,
        stratified=False,
        uncompared_regimes=(),
        rerun={},
        sandbox=sandbox.level,
        all_refused=bool(sandbox.escapes) and all(escape.refused for escape in sandbox.escapes),
        harness_unchanged=not outcome.harness.dirty,
        versions=Versions(
            outcome.harness.version, outcome.benchmark_sha256, outcome.dataset_revision
        ),
        date=outcome.finished_at[: len("2026-11-20")],
        withdrawn=withdrawn.reason if withdrawn is not None else "",
        has_variants=outcome.variants is not None,
        fresh_tasks=len(outcome.fresh.tasks) if outcome.fresh is not None else 0,
        signer=record.signer.owner,
        is_practice=outcome.plan.beacon.kind == "practice",
    )


def _differing_scores(outcome: AuditOutcome) -> Iterator[DifferingScore]:
    """Yield each claimed score outside its tolerance."""
    for task in outcome.tasks:
        for regime, cell in task.regimes.items():
            for prefix, comparison in (("", cell), ("canonical ", cell.canonical)):
                if comparison is None:
                    continue
                for metric in differing_metrics(comparison):
                    yield DifferingScore(
                        task.task,
                        regime,
                        f"{prefix}{metric}",
                        claimed=getattr(comparison.claimed, metric),
                        rerun=getattr(comparison.rescored, metric),
                        tolerance=getattr(comparison.tolerance, metric),
                    )


def _tasks_with_scorer(outcome: AuditOutcome, inputs: TrustInputs) -> dict[str, frozenset[str]]:
    """Return, by regime, the tasks with scores of the scorer of record or canonical scores."""
    has_scorer = names_scorer(outcome, inputs)
    return {
        name: frozenset(
            task.task
            for task in outcome.tasks
            if name in task.regimes and (has_scorer or task.regimes[name].canonical is not None)
        )
        for name in outcome.plan.commitment.regimes
    }


def _embedding_audit(audit: Audit, outcome: EmbeddingOutcome, inputs: TrustInputs) -> Audit:
    """Return `audit` with the members that only an audit by receipt has."""
    facts = outcome.receipt
    return replace(
        audit,
        objections=tuple(outcome.reasons),
        by_receipt=EmbeddingAuditFacts(
            test=outcome.plan.rows.test,
            embedded=outcome.embedded,
            equal=outcome.cells.equal,
            cells=outcome.cells.of,
            cells_of_record=outcome.cells.of_record or 0,
            varied=outcome.schema_version not in WITHOUT_FEW_SHOT,
            missing=tuple(missing_tasks_and_regimes(outcome, inputs)),
            rule_gap=SUPERSEDED_REASON if outcome.schema_version == WITH_ROW_TOLERANCES else "",
            weakness=weakness_of(facts.compute_dtype, tf32=facts.tf32) or room_reason(outcome),
            receipt_gone_since=missing_since_day(
                inputs.receipt_notes, audit.model_id, outcome.plan.root, inputs.policy.receipt_days
            ),
        ),
    )


def audit_status(audit: Audit, sha256: str, requirements: EvidenceRequirements) -> str:
    """Return as text whether an audit counts for the submission with this SHA-256, or why not."""
    other_versions = [
        name
        for name in ("harness", "benchmark", "dataset")
        if getattr(audit.versions, name) != getattr(requirements.versions, name)
    ]
    objections = {
        f"withdrawn: {audit.withdrawn}": bool(audit.withdrawn),
        "the file was changed after the audit": audit.submission_sha256 != sha256,
        "sandbox level 0 never counts": audit.sandbox == NO_SANDBOX_LEVEL,
        "the harness that scored had local changes": not audit.harness_unchanged,
    }
    unconfirmed_reason = audit.by_receipt.unconfirmed_reason if audit.by_receipt is not None else ""
    if audit.agrees:
        level = (
            f"the audit had sandbox level {audit.sandbox}, but the policy requires "
            f"{requirements.minimum_level}"
        )
        objections |= {
            level: audit.sandbox < requirements.minimum_level,
            "an escape from the sandbox succeeded, or none was attempted": not audit.all_refused,
            f"the audit was for another version of {', '.join(other_versions)}": bool(
                other_versions
            ),
            shortcoming(audit, requirements): bool(shortcoming(audit, requirements)),
            f"{RECOMPUTED_TEXT}; {unconfirmed_reason}": bool(unconfirmed_reason),
        }
    objection = next((reason for reason, is_true in objections.items() if is_true), "")
    return f"does not count: {objection}" if objection else "counts"


OFFICIAL_REASON = "the file is the authors' own, by its sha256 in official.json"
"""The reason why a row is official."""


def evidence_reasons(model_id: str, document: Document, evidence: RepositoryEvidence) -> list[str]:
    """Return the reasons for the evidence of a row: the decision, and a line for each audit."""
    sha256 = document.sha256
    decision = evidence.decide(sha256, document.origin, document.scorer)
    lines = [f"{decision.evidence}: {decision.reason}"]
    if decision.is_official:
        lines.append(OFFICIAL_REASON)
    for audit in evidence.audits_of_model(model_id):
        verdict = "agrees" if audit.agrees else "differs"
        extent = (
            audit.by_receipt.text
            if audit.by_receipt is not None
            else f"{plural(audit.drawn, 'task')} drawn, {len(audit.tasks)} rerun, informative "
            f"cells {audit.informative_text}"
        )
        if audit.is_practice:
            extent += ", by a practice draw, which anybody could foresee"
        lines.append(
            f"audit {audit.audit_id} of {audit.date}: {extent}, sandbox level "
            f"{audit.sandbox}, {verdict}; {audit_status(audit, sha256, evidence.requirements)}"
        )
        lines += [
            f"audit {audit.audit_id} does not reproduce {regime}: a raise of its mean MCC by "
            f"{raised:.4f} could be hidden in its noise, the limit is "
            f"{evidence.requirements.hidden_raise_max:.4f}"
            for regime, raised in audit.hidden_raises.items()
            if raised > evidence.requirements.hidden_raise_max
        ]
    return lines


def audits_text(decision: Decision) -> str:
    """Return a row's audits as the board shows them: "audited 13/100, sandbox level 2, ..."."""
    audit, recomputed = decision.audit, decision.recomputed
    tasks_text = f"{audit.text}, sandbox level {audit.sandbox}, {audit.date}" if audit else ""
    return "; ".join(filter(None, (tasks_text, recomputed.text if recomputed else "")))


def level_reasons(model_id: str, layout: Layout) -> list[str] | None:
    """Return the reasons for the evidence of a model's row; None if it has no submission here.

    Raises BrokenRecordError when a record of the model is broken.
    """
    if layout.submissions is None or not re.fullmatch(MODEL_ID_PATTERN, model_id):
        return None
    path = layout.submissions / f"{model_id}.json"
    if not path.is_file():
        return None
    checked_row = Checker(RULES).check(path)
    error_count = sum(finding.severity is Severity.ERROR for finding in checked_row.findings)
    if error_count:
        return [f"not on the board: {plural(error_count, 'error')}; `geneb-ci check` shows them"]
    evidence = gather_evidence(layout, model_id)
    evidence.require_sound()
    return evidence_reasons(model_id, checked_row.document, evidence)
