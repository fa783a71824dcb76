"""From the records of a repository to plain facts: what does not hold in itself is none."""

from collections.abc import Mapping
from dataclasses import dataclass

from geneb_ci.audit.bearing import left_out
from geneb_ci.audit.ground import Ground
from geneb_ci.audit.policy import AuditPolicy, audit_policy
from geneb_ci.audit.repository import Repository
from geneb_ci.audit.verdict import force_of, force_text
from geneb_ci.audit.verify import Verification
from geneb_ci.benchmark import Benchmark
from geneb_ci.config import Layout, benchmark_of, policy_file
from geneb_ci.errors import Exit, GenebError
from geneb_ci.label.policy import Audit, Decision, Demands, Versions, decide


class BrokenRecordError(GenebError):
    """Records of the repository do not verify: nothing may be computed from what is left."""

    exit_code = Exit.ERRORS


@dataclass(frozen=True)
class Evidence:
    """All that decides the levels of a repository's rows."""

    audits: tuple[Audit, ...]
    broken: tuple[Verification, ...]
    """Records that were forged or damaged, or whose withdrawal was."""
    official: Mapping[str, str]
    demands: Demands

    def decide(self, sha256: str) -> Decision:
        """Give the level of a submission that passed every check."""
        return decide(sha256, self.audits, self.official, self.demands)

    def of_model(self, model_id: str) -> list[Audit]:
        """Give the audits of every version of a model's submission, by date."""
        own = (one for one in self.audits if one.model_id == model_id)
        return sorted(own, key=lambda one: (one.date, one.audit_id))

    def require_sound(self) -> None:
        """Refuse a repository in which a record is broken: leaving it out could hide a dispute.

        Raises BrokenRecordError, which names each record and the step.
        """
        if self.broken:
            raise BrokenRecordError(
                "; ".join(
                    f"audit record {one.name} is broken at {step.name}: {step.message}"
                    for one in self.broken
                    for step in one.broken[:1]
                ),
                "restore them from the main branch; `geneb-ci audit verify` shows every step",
            )


def gather(layout: Layout, model_id: str | None = None) -> Evidence:
    """Verify every record of a place, or those of one model.

    Raises BadConfiguration when its policy cannot be used.
    """
    repository = Repository(layout)
    found = list(repository.verifications(model_id))
    return Evidence(
        audits=tuple(
            fact for one in found if (fact := audit_of(one, repository.ground)) is not None
        ),
        broken=tuple(one for one in found if one.broken and one.withdrawn is None),
        official=policy_file(layout, "official.json", "files"),
        demands=demands_of(audit_policy(layout), benchmark_of(layout)),
    )


def demands_of(policy: AuditPolicy, benchmark: Benchmark) -> Demands:
    """Give what a policy asks of audits of a benchmark."""
    return Demands(
        minimum_drawn=policy.minimum_drawn,
        minimum_level=policy.minimum_level,
        stratified=policy.stratified,
        tasks=frozenset(benchmark.task_ids),
        versions=Versions(benchmark.harness_version, benchmark.sha256, benchmark.dataset.revision),
    )


def audit_of(found: Verification, ground: Ground) -> Audit | None:
    """Give the facts of a record that holds in itself; None for any other."""
    if found.record is None or not found.is_sound:
        return None
    outcome = found.record.outcome
    commitment, sandbox = outcome.plan.commitment, outcome.sandbox
    force = force_of(one for one in outcome.tasks if one.reason == "drawn")
    return Audit(
        audit_id=found.record.audit_id,
        model_id=commitment.model_id,
        submission_sha256=commitment.submission_sha256,
        agrees=outcome.verdict == "agrees",
        drawn=len(outcome.plan.drawn),
        stratified=commitment.policy.stratified,
        left_out=tuple(left_out(outcome, ground)),
        rerun={
            regime: frozenset(one.task for one in outcome.tasks if regime in one.regimes)
            for regime in commitment.regimes
        },
        sandbox=sandbox.level,
        is_tight=bool(sandbox.escapes) and all(escape.refused for escape in sandbox.escapes),
        is_clean=not outcome.harness.dirty,
        versions=Versions(
            outcome.harness.version, outcome.benchmark_sha256, outcome.dataset_revision
        ),
        date=outcome.finished_at[: len("2026-11-20")],
        withdrawn=found.withdrawn.reason if found.withdrawn is not None else "",
        weak=tuple(regime for regime, one in force.items() if not one.suffices),
        force=force_text(force),
    )
