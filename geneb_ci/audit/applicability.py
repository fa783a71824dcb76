"""Whether a valid record still applies: same file, benchmark, policy, harness and sandbox level."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.outcome import AuditOutcome
from geneb_ci.audit.plan import Plan
from geneb_ci.audit.policy import AuditPolicy
from geneb_ci.audit.sampling import drawable, strata_of
from geneb_ci.audit.steps import AuditRefused, StepMismatch
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.finding import first_and_more, quoted
from geneb_ci.submission.document import read_document
from geneb_ci.submission.models import Submission, SubmissionV11
from geneb_ci.submission.structure import check_structure


class NotHere(StepMismatch):
    """A step that cannot be computed, because something it needs is not here."""


class SubmissionNow(NamedTuple):
    """A submission as it lies in the repository now."""

    path: Path
    sha256: str
    submission: Submission | None
    """None when its structure is at fault."""


@dataclass(frozen=True)
class TrustInputs:
    """The public data."""

    benchmark: Benchmark
    policy: AuditPolicy
    submissions: Path | None
    drawn: Mapping[str, tuple[Plan, ...]]
    """The plan of each record of the repository, by model id."""
    unreadable: Mapping[str, str]
    """Model ids of which a record cannot be read, and its name: what it drew is not known."""
    read: dict[str, SubmissionNow | None] = field(default_factory=dict, compare=False, repr=False)
    """Submissions that were read, by model id: each is read once for all records of its model."""

    def submission(self, model_id: str) -> SubmissionNow | None:
        """Return the submission of a model, or None where there is none."""
        if self.submissions is None:
            return None
        if model_id not in self.read:
            self.read[model_id] = _submission(self.submissions / f"{model_id}.json")
        return self.read[model_id]


def _submission(path: Path) -> SubmissionNow | None:
    if not path.is_file():
        return None
    try:
        document = read_document(path)
    except NothingChecked:
        return None
    submission = None if document.faults else check_structure(document.value)[0]
    return SubmissionNow(path, document.sha256, submission)


SUBMISSION, BENCHMARK, POLICY = "submission", "benchmark", "policy"
HARNESS, SANDBOX = "harness", "sandbox"


def check_submission(outcome: AuditOutcome, inputs: TrustInputs) -> None:
    """Hold the commitment against the file: its bytes, its run, the tasks it claims."""
    commitment = outcome.plan.commitment
    claim = submission_of(outcome, inputs)
    if claim.sha256 != commitment.submission_sha256:
        raise StepMismatch(
            SUBMISSION,
            f"{claim.path.name} has sha256 {claim.sha256}, and {commitment.submission_sha256} was "
            "audited",
            "the file was changed after the audit: it needs an audit of its own",
        )
    submission = claim.submission
    if submission is None:
        raise StepMismatch(SUBMISSION, f"{claim.path.name} cannot be read", "geneb-ci check it")
    try:
        regimes, tasks = drawable(submission, inputs.benchmark, commitment.regimes)
    except (AuditRefused, BadConfiguration) as error:
        raise StepMismatch(
            SUBMISSION, f"it claims nothing in {quoted(commitment.regimes)}", "commit again"
        ) from error
    for what, claimed, committed in (
        ("regimes", regimes, commitment.regimes),
        ("tasks", tasks, commitment.tasks),
    ):
        if claimed != committed:
            odd = sorted(set(claimed) ^ set(committed)) or ["their order"]
            raise StepMismatch(
                SUBMISSION,
                f"the {what} that may be drawn are not those it claims: "
                f"{first_and_more([quoted(name) for name in odd])}",
                "commit again",
            )
    if isinstance(submission, SubmissionV11):
        _check_run(outcome, submission)


def _check_run(outcome: AuditOutcome, submission: SubmissionV11) -> None:
    code, weights = outcome.plan.commitment.extractor, outcome.plan.commitment.weights
    run = submission.run
    model = run.model
    for what, committed, claimed in (
        ("extractor", code.sha256, run.extractor.sha256),
        ("class of the extractor", code.class_name, run.extractor.class_name),
        ("kind of weights", weights.kind, model.kind),
        ("dtype of the tolerance", outcome.noise, run.embedding.dtype),
        ("place of the weights", weights.location, model.location),
        ("revision of the weights", weights.revision, model.revision),
        ("weight files", weights.files, model.weights),
    ):
        if committed != claimed:
            raise StepMismatch(
                SUBMISSION,
                f"the {what} committed is {quoted(committed)}, and its run has {quoted(claimed)}",
                "commit again",
            )


def submission_of(outcome: AuditOutcome, inputs: TrustInputs) -> SubmissionNow:
    """Return the submission that a record is about. Raises NotHere where there is none."""
    model_id = outcome.plan.commitment.model_id
    claim = inputs.submission(model_id)
    if claim is None:
        raise NotHere(
            SUBMISSION,
            f"there is no {model_id}.json here to hold the record against",
            "name the folder of submissions: --submissions DIR",
        )
    return claim


def check_benchmark(outcome: AuditOutcome, inputs: TrustInputs) -> None:
    """Hold the pin of the commitment against the benchmark in force."""
    benchmark, pin = inputs.benchmark, outcome.plan.commitment.benchmark
    due = (
        ("definition", benchmark.sha256, pin.sha256),
        ("name", benchmark.name, pin.name),
        ("dataset", benchmark.dataset.repo_id, pin.dataset),
        ("dataset revision", benchmark.dataset.revision, pin.revision),
    )
    for what, here, there in due:
        if here != there:
            raise StepMismatch(
                BENCHMARK,
                f"the {what} in force is {quoted(here)}, and the audit was of {quoted(there)}",
                "the evidence is stale: audit again",
            )
    commitment = outcome.plan.commitment
    foreign = [regime for regime in commitment.regimes if regime not in benchmark.regimes]
    foreign += [task for task in commitment.tasks if task not in benchmark.by_id]
    if foreign:
        raise StepMismatch(
            BENCHMARK, f"the benchmark has no {first_and_more([quoted(name) for name in foreign])}"
        )


def check_policy(outcome: AuditOutcome, inputs: TrustInputs) -> None:
    """Hold size and kind of the sample against what the policy asks of evidence."""
    plan, policy = outcome.plan, inputs.policy
    needed = needed_tasks(inputs)
    if len(plan.drawn) < needed:
        raise StepMismatch(
            POLICY, f"{len(plan.drawn)} tasks are drawn, and it asks for {needed}", "audit again"
        )
    if policy.stratified and not plan.commitment.policy.stratified:
        raise StepMismatch(POLICY, "the sample is not stratified, and it asks for that")
    committed = plan.commitment
    strata = strata_of(inputs.benchmark, committed.tasks) if committed.policy.stratified else []
    if committed.policy.strata != strata:
        raise StepMismatch(
            POLICY, "its strata are not the larger categories of the benchmark", "commit again"
        )
    if lacking := left_out(outcome, inputs):
        raise StepMismatch(POLICY, f"the audit leaves out {', '.join(lacking)}", "audit again")
    if plan.commitment.policy.tolerance != tolerance_digest():
        raise StepMismatch(
            POLICY, "its tolerance was made by other rules than those in force", "audit again"
        )


def left_out(outcome: AuditOutcome, inputs: TrustInputs) -> list[str]:
    """Name the regimes that the policy asks for and the audit did not compare.

    A regime of which the submission claims nothing cannot be compared.
    """
    claim = inputs.submission(outcome.plan.commitment.model_id)
    claimed = claim.submission.results if claim is not None and claim.submission else None
    return [
        name
        for name in inputs.policy.regimes
        if name in inputs.benchmark.regimes
        and name not in outcome.plan.commitment.regimes
        and (claimed is None or claimed.get(name))
    ]


def needed_tasks(inputs: TrustInputs) -> int:
    """Return the number of drawn tasks that the policy asks for: all, where there are fewer."""
    return min(inputs.policy.minimum_drawn, len(inputs.benchmark.tasks))


def check_harness(outcome: AuditOutcome, inputs: TrustInputs) -> None:
    """Hold the harness that scored against the version in force."""
    harness, due = outcome.harness, inputs.benchmark.harness_version
    if harness.version != due:
        raise StepMismatch(
            HARNESS,
            f"{quoted(harness.version)} scored, and {quoted(due)} is in force",
            "the evidence is stale: audit again",
        )
    if harness.dirty:
        raise StepMismatch(
            HARNESS, "the harness that scored had changes of its own", "audit from a clean checkout"
        )


def check_sandbox(outcome: AuditOutcome, inputs: TrustInputs) -> None:
    """Hold the sandbox against the level asked for; every escape has to have been refused."""
    sandbox, least = outcome.sandbox, inputs.policy.minimum_level
    if sandbox.level < least:
        raise StepMismatch(
            SANDBOX,
            f"the extractor ran at level {sandbox.level}, and evidence begins at level {least}",
            "audit again on a machine with bubblewrap",
        )
    open_ones = [quoted(escape.name) for escape in sandbox.escapes if not escape.refused]
    if open_ones or not sandbox.escapes:
        what = f"{first_and_more(open_ones)} got out" if open_ones else "no escape was tried"
        raise StepMismatch(SANDBOX, what, "mend the sandbox, then audit again")
