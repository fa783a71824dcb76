"""Verifies records: computes every step again from public data, without network access."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from geneb_ci.audit.canonical import DRAW_STEPS, SIGNATURE_STEP, TICKETS_STEP
from geneb_ci.audit.compare.embedding_outcome import AnyOutcome, EmbeddingOutcome
from geneb_ci.audit.compare.limits import uses_every_defence
from geneb_ci.audit.compare.outcome import (
    DIFFERS,
    AuditOutcome,
    CellComparison,
    Verdict,
    objections_to_outcome,
    task_verdict,
    verdict_from_reasons,
    verdict_of,
)
from geneb_ci.audit.errors import AuditRefused, MissingInput, StepMismatch
from geneb_ci.audit.record.envelope import ENVELOPE_STEP, RESTORE_FIX, SIGNER_STEP, STATEMENT_STEP
from geneb_ci.audit.record.events import StatementKind, WithdrawnAudit
from geneb_ci.audit.record.history import check_history
from geneb_ci.audit.record.keys import RevokedKey, check_revoked
from geneb_ci.audit.record.old_log import LINKS_STEP, LogBroken
from geneb_ci.audit.record.statement import Record
from geneb_ci.audit.record.verify_embeddings import COMPARISON_STEP, check_embeddings
from geneb_ci.audit.rerun.few_shot import few_shot_contradiction
from geneb_ci.audit.rerun.honesty import (
    fresh_contradiction,
    variant_contradiction,
    varied_sequence_count,
)
from geneb_ci.audit.sampling.embedding_draw import check_any_plan, earlier_embedding_draws
from geneb_ci.audit.sampling.plan import AnyPlan, EmbeddingPlan, FallbackBeacon
from geneb_ci.audit.sampling.task_draw import earlier_draws, require_one_draw
from geneb_ci.audit.trust import applicability
from geneb_ci.audit.trust.applicability import TrustInputs
from reference_harness.formats.base import Scores
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import CellEvidence, Submission, SubmissionV11


def check_comparison(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Refuse verdicts that do not follow from their numbers, and claims of another submission.

    The claims are not compared if the audited submission is missing. Raises StepMismatch, of the
    step "comparison".
    """
    if isinstance(outcome, EmbeddingOutcome):
        check_embeddings(outcome, inputs)
        return
    plan = outcome.plan
    planned_tasks = [(choice.task, choice.reason) for choice in plan.chosen]
    if [(audited.task, audited.reason) for audited in outcome.tasks] != planned_tasks:
        _refuse("the tasks compared are not those of the plan, in its order")
    submission = inputs.audited_submission(outcome)
    for audited in outcome.tasks:
        expected_regimes = [
            regime
            for regime in plan.commitment.regimes
            if submission is None or audited.task in submission.results.get(regime, {})
        ]
        if not set(audited.regimes) <= set(expected_regimes) or (
            submission is not None and len(audited.regimes) < len(expected_regimes)
        ):
            _refuse(
                f"{audited.task} is compared in {sorted(audited.regimes)}, expected "
                f"{sorted(expected_regimes)}"
            )
        for regime, comparison in audited.regimes.items():
            cell_name = f"{audited.task}, {regime}"
            if submission is not None:
                _check_claim(
                    cell_name, comparison, *_claimed_cell(submission, regime, audited.task)
                )
            _check_verdicts(cell_name, comparison)
        _check_verdict(audited.task, audited.verdict, task_verdict(audited.regimes.values()))
    _check_other_results(outcome, inputs.benchmark)
    _check_verdict(
        "the whole audit", outcome.verdict, verdict_from_reasons(objections_to_outcome(outcome))
    )


def _check_other_results(outcome: AuditOutcome, benchmark: Benchmark) -> None:
    """Refuse few-shot probes, variants, a fresh set or noise that contradict their own numbers.

    Variants and few-shot probes may be missing only in records by the limits of earlier versions.
    """
    variants, fresh, precision = outcome.variants, outcome.fresh, outcome.precision
    tasks = [task.task for task in outcome.tasks]
    uses_all = uses_every_defence(outcome.plan.commitment, benchmark)
    if outcome.few_shot is not None:
        fault = few_shot_contradiction(
            outcome.few_shot, benchmark, tasks, tasks, requires_tests=uses_all
        )
        if fault:
            _refuse(f"few-shot probes: {fault}")
    elif uses_all and benchmark.protocol.few_shot_k:
        _refuse(
            "few-shot probes: no probe was fitted on other sequences, but the limits of the audit "
            "require such probes"
        )
    if variants is None and uses_all:
        _refuse("variants: no variant was embedded, but the limits of the audit require variants")
    if variants is not None:
        fault = variant_contradiction(variants, varied_sequence_count(len(outcome.plan.chosen)))
        if fault:
            _refuse(f"variants: {fault}")
        if variants.tasks and variants.tasks.keys() != set(tasks):
            _refuse("variants: their tasks are not those of the audit")
    if fresh is not None and (fault := fresh_contradiction(fresh)):
        _refuse(f"fresh set: {fault}")
    if precision is not None and outcome.noise != precision.noise:
        _refuse(
            f"noise: {outcome.noise} was used, expected {precision.noise} by the measured precision"
        )


def _claimed_cell(
    submission: Submission, regime: str, task: str
) -> tuple[Scores | None, CellEvidence | None]:
    """Return the claimed scores of a cell, and its evidence in the submission."""
    scores = submission.results.get(regime, {}).get(task)
    evidence = submission.evidence if isinstance(submission, SubmissionV11) else {}
    return scores, evidence.get(regime, {}).get(task)


def _check_claim(
    cell_name: str, comparison: CellComparison, scores: Scores | None, evidence: CellEvidence | None
) -> None:
    """Refuse a comparison with other claims than `scores` and `evidence` of the submission."""
    if not _are_equal(comparison.claimed, scores):
        _refuse(f"{cell_name}: the submission does not claim {_scores_text(comparison.claimed)}")
    if (comparison.predictions_equal is None) != (evidence is None):
        contradiction = (
            "predictions were compared, but the submission has no digest of them"
            if evidence is None
            else "predictions were not compared with their digest in the submission"
        )
        _refuse(f"{cell_name}: {contradiction}")
    canonical = evidence.canonical if evidence is not None else None
    # Only earlier records compare canonical scores.
    if comparison.canonical is not None and not _are_equal(comparison.canonical.claimed, canonical):
        _refuse(f"{cell_name}: the canonical scores are not those that the submission claims")


def _are_equal(claimed: Scores, scores: Scores | None) -> bool:
    """Whether the claimed scores in a record are those of the submission."""
    return scores is not None and claimed.model_dump() == scores.model_dump()


def _check_verdicts(cell_name: str, comparison: CellComparison) -> None:
    """Refuse verdicts on a cell that do not follow from its scores and tolerances."""
    if comparison.canonical is not None:
        _check_verdict(
            f"{cell_name}, canonical",
            comparison.canonical.verdict,
            verdict_of(comparison.canonical),
        )
    _check_verdict(cell_name, comparison.verdict, verdict_of(comparison))


def _check_verdict(name: str, verdict: Verdict, expected: Verdict) -> None:
    """Refuse a verdict on the cell, task or audit `name` other than the expected one."""
    if verdict != expected:
        _refuse(f"{name}: the verdict is {verdict!r}, the numbers give {expected!r}")


def _scores_text(scores: Scores) -> str:
    """Return the scores of a cell as text."""
    return f"MCC {scores.MCC}, Acc {scores.Acc}, F1 {scores.F1}"


def _refuse(message: str) -> None:
    """Raise StepMismatch, of the step "comparison"."""
    raise StepMismatch(COMPARISON_STEP, message, RESTORE_FIX)


EARLIER_STEP = "earlier"
"""Name of the step that compares a draw with earlier ones."""
PARSING_STEPS = (ENVELOPE_STEP, SIGNER_STEP, STATEMENT_STEP)
"""The first steps of a verification, by which a file is read as a record."""
_CheckFunction = Callable[[AnyOutcome, TrustInputs], None]
"""A function that raises StepMismatch if an outcome contradicts the public inputs."""


class StepState(StrEnum):
    """Whether a step of a verification has the same result as the record."""

    HOLDS = "holds"
    """The result is the same."""
    DIFFERS = "differs"
    """The result is another one."""
    UNKNOWN = "unknown"
    """Not computed: an earlier step differs, or an input is missing."""


class VerificationStep(NamedTuple):
    """The result of one step of a verification."""

    name: str
    state: StepState
    message: str = ""
    """Description of what differs or is missing; of a step that holds, a remark or ""."""
    fix: str = ""


class Verification(NamedTuple):
    """The result of verifying one record."""

    name: str
    """The name of the record in messages."""
    record: Record | None
    """None if the file could not be parsed."""
    steps: tuple[VerificationStep, ...]
    withdrawn: WithdrawnAudit | None = None
    """The withdrawal of the record; None if it was not withdrawn."""
    is_revoked: bool = False
    """Whether the key of the record was revoked: then the record does not count, but its draw
    does."""

    @property
    def holds(self) -> bool:
        """Whether every step holds, so that the record is evidence."""
        return all(step.state is StepState.HOLDS for step in self.steps)

    @property
    def differs(self) -> tuple[VerificationStep, ...]:
        """The steps whose result differs from that in the record."""
        return tuple(step for step in self.steps if step.state is StepState.DIFFERS)

    @property
    def broken(self) -> tuple[VerificationStep, ...]:
        """The differing steps that show a forged or damaged record.

        Steps that depend on later changes, such as a new policy, do not count. There are none if
        the key was revoked, so that a thief of the key cannot stop the board.
        """
        broken = (step for step in self.differs if step.name not in _APPLICABILITY_CHECKS)
        return () if self.is_revoked else tuple(broken)

    @property
    def is_sound(self) -> bool:
        """Whether the record is valid, even if the submission or the policy changed since then.

        A record whose verdict is "differs" is valid even if its links are unknown. Otherwise an
        added statement, such as a commitment that was never drawn, could hide a dispute.
        """
        differs = self.record is not None and self.record.outcome.verdict == DIFFERS
        return all(
            step.state is StepState.HOLDS
            or (differs and step.name == LINKS_STEP and step.state is StepState.UNKNOWN)
            for step in self.steps
            if step.name not in _APPLICABILITY_CHECKS
        )


def _check_earlier(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Refuse a second draw of one commitment, and a plan that leaves out an earlier draw."""
    plan = outcome.plan
    model_id = plan.commitment.model_id
    earlier_plans = [other_plan for other_plan in inputs.plans if _is_before(other_plan, plan)]
    try:
        require_one_draw(type(plan), earlier_plans, plan.commitment, plan.committed_at)
    except AuditRefused as error:
        raise StepMismatch(EARLIER_STEP, error.message, error.fix) from error
    if isinstance(plan, EmbeddingPlan):
        draws = earlier_embedding_draws(earlier_plans, plan.commitment)
        omitted = [draw.commitment for draw in draws if draw not in plan.earlier]
    else:
        drawn_by_commitment = {draw.commitment: set(draw.drawn) for draw in plan.earlier}
        omitted = [
            draw.commitment
            for draw in earlier_draws(earlier_plans, plan.commitment)
            if not set(draw.drawn) <= drawn_by_commitment.get(draw.commitment, set())
        ]
    if omitted:
        raise StepMismatch(
            EARLIER_STEP,
            f"the plan leaves out the earlier draw for commitment {omitted[0][:16]}...",
            "plan the audit again with the records of the repository",
        )
    if model_id in inputs.unreadable:
        raise MissingInput(
            EARLIER_STEP,
            f"{inputs.unreadable[model_id]} cannot be read, so its draw is not known",
            "fix that record first; `geneb-ci audit verify` shows what is wrong with it",
        )


def _is_before(other_plan: AnyPlan, plan: AnyPlan) -> bool:
    """Whether `other_plan` is earlier than `plan`.

    Of two plans of the same time, the one that the other lists as earlier is the earlier one; if
    neither lists the other, the order of the digests of their commitments decides.
    """
    if other_plan.committed_at == plan.committed_at:
        if any(draw.commitment == plan.commitment_sha256 for draw in other_plan.earlier):
            return False
        return other_plan.commitment_sha256 < plan.commitment_sha256
    return other_plan.committed_at < plan.committed_at


def _check_beacon(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Refuse a fallback beacon whose key is not listed in the policy, or is not revealed yet."""
    beacon = outcome.plan.beacon
    if not isinstance(beacon, FallbackBeacon):
        return
    policy = inputs.policy
    if beacon.key_sha256 not in (*policy.fallback_keys, *policy.spent_keys):
        raise StepMismatch(
            SIGNATURE_STEP,
            f"the fallback key with sha256 {beacon.key_sha256[:16]}... is none of the policy",
            "do not trust this draw: fallback_keys and spent_keys of the policy list the digest of "
            "every valid key",
        )
    if beacon.key is None:
        raise MissingInput(
            SIGNATURE_STEP,
            "the draw used a fallback key of the maintainers instead of the beacon, and cannot be "
            "verified before that key is revealed",
            "verify again after a later plan has revealed the key (--reveal)",
        )


_APPLICABILITY_CHECKS: dict[str, _CheckFunction] = {
    applicability.SUBMISSION_STEP: applicability.check_submission,
    applicability.BENCHMARK_STEP: applicability.check_benchmark,
    applicability.POLICY_STEP: applicability.check_policy,
    applicability.HARNESS_STEP: applicability.check_harness,
    applicability.SANDBOX_STEP: applicability.check_sandbox,
}
"""By step, the function that compares a record with data that may change after it was signed."""
_CONSISTENCY_CHECKS: dict[str, _CheckFunction] = {
    EARLIER_STEP: _check_earlier,
    COMPARISON_STEP: check_comparison,
}
"""By step, the function that looks for contradictions in a record and with earlier plans."""
VERIFICATION_STEPS = (
    *PARSING_STEPS,
    *DRAW_STEPS,
    LINKS_STEP,
    *_CONSISTENCY_CHECKS,
    *_APPLICABILITY_CHECKS,
)
"""All steps of a verification, in the order in which they are shown."""


def unreadable_record(
    shown_name: str, error: StepMismatch, withdrawn: WithdrawnAudit | None = None
) -> Verification:
    """Return the verification of a record that could not be parsed."""
    steps = [*_step_results(PARSING_STEPS, error)]
    unknown_steps = [
        VerificationStep(step, StepState.UNKNOWN)
        for step in VERIFICATION_STEPS[len(PARSING_STEPS) :]
    ]
    return Verification(shown_name, None, (*steps, *unknown_steps), withdrawn)


def verify_record(
    shown_name: str, record: Record, inputs: TrustInputs, withdrawn: WithdrawnAudit | None = None
) -> Verification:
    """Return the verification of a parsed record; every step is computed, even if others differ."""
    steps = [VerificationStep(step, StepState.HOLDS) for step in PARSING_STEPS]
    revocation_error = _revocation_of(record, inputs)
    if revocation_error is not None:
        steps[PARSING_STEPS.index(SIGNER_STEP)] = failed_step(SIGNER_STEP, revocation_error)
    steps += _draw_steps(record.outcome, inputs)
    steps.append(step_of(LINKS_STEP, check_history, record, inputs.history))
    steps += [
        step_of(step, check, record.outcome, inputs)
        for step, check in (_CONSISTENCY_CHECKS | _APPLICABILITY_CHECKS).items()
    ]
    return Verification(shown_name, record, tuple(steps), withdrawn, revocation_error is not None)


def _revocation_of(record: Record, inputs: TrustInputs) -> RevokedKey | None:
    """Return the error about a record whose key was revoked before it was made, or None."""
    log, signer = inputs.history.log, record.signer
    index = log.index_of(StatementKind.RESULT, record.sha256) if log is not None else None
    statement = f"{record.outcome.plan.commitment.model_id}/{record.audit_id}.json"
    try:
        check_revoked(
            signer, index, precedes_compromise=inputs.history.precedes_compromise(signer, statement)
        )
    except RevokedKey as error:
        return error
    return None


def lost_statement(statement_name: str, loss_reason: str) -> Verification:
    """Return the verification of a statement that was deleted or changed."""
    steps = [
        failed_step(step, LogBroken(loss_reason))
        if step == LINKS_STEP
        else VerificationStep(step, StepState.UNKNOWN)
        for step in VERIFICATION_STEPS
    ]
    return Verification(statement_name, None, tuple(steps))


def _draw_steps(outcome: AnyOutcome, inputs: TrustInputs) -> Iterator[VerificationStep]:
    """Yield the results of the steps of the draw, each of which needs the one before."""
    try:
        check_any_plan(outcome.plan)
        _check_beacon(outcome, inputs)
    except StepMismatch as error:
        steps = list(_step_results(DRAW_STEPS, error))
    else:
        steps = [VerificationStep(step, StepState.HOLDS) for step in DRAW_STEPS]
    if isinstance(outcome, EmbeddingOutcome):
        # A draw of embeddings has no tickets, and its sample follows from the receipt.
        steps = [draw_step for draw_step in steps if draw_step.name != TICKETS_STEP]
        steps[-1] = steps[-1]._replace(message=steps[-1].message or _EMBEDDING_SAMPLE_REMARK)
    yield from steps


_EMBEDDING_SAMPLE_REMARK = (
    "only the size of the sample: which embeddings it contains follows from seed and receipt"
)


def _step_results(steps: tuple[str, ...], error: StepMismatch) -> Iterator[VerificationStep]:
    """Yield the results of `steps`: those before the failed step hold, those after are unknown."""
    index = steps.index(error.step)
    yield from (VerificationStep(name, StepState.HOLDS) for name in steps[:index])
    yield failed_step(error.step, error)
    yield from (VerificationStep(name, StepState.UNKNOWN) for name in steps[index + 1 :])


def step_of(step: str, check: Callable[..., str | None], *arguments: object) -> VerificationStep:
    """Return the result of the step `step`: it holds unless `check` raises StepMismatch.

    `check` may return a remark, which becomes the message of the step.
    """
    try:
        remark = check(*arguments)
    except StepMismatch as error:
        # The name of this step, since the error may have that of an input it shares.
        return failed_step(step, error)
    return VerificationStep(step, StepState.HOLDS, remark or "")


def failed_step(step: str, error: StepMismatch) -> VerificationStep:
    """Return the result of a step that raised `error`: it differs, or an input is missing."""
    step_state = StepState.UNKNOWN if isinstance(error, MissingInput) else StepState.DIFFERS
    return VerificationStep(step, step_state, message_without_step(error), error.fix)


def message_without_step(error: StepMismatch) -> str:
    """Return the message of an error without the name of the step, with which it begins."""
    return error.message.removeprefix(f"{error.step}: ")
