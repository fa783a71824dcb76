"""Tests whether a valid record still fits submission, benchmark, policy, harness and sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.commitment import claims_of
from geneb_ci.audit.compare.embedding_outcome import (
    SUPERSEDED_REASON,
    WITH_ROW_TOLERANCES,
    AnyOutcome,
    EmbeddingOutcome,
)
from geneb_ci.audit.compare.limits import are_current_limits
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.errors import AuditRefused, MissingInput, StepMismatch
from geneb_ci.audit.record.history import History
from geneb_ci.audit.sampling.design import (
    STRATUM_TASKS_MIN,
    AuditPolicy,
    drawable_regimes_and_tasks,
    strata_of,
)
from geneb_ci.audit.sampling.plan import AnyPlan
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import first_and_more
from geneb_ci.receipt.seen import ReceiptNotes
from geneb_ci.submission.document import read_document
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission, SubmissionByEntry, SubmissionV11
from reference_harness.formats.text import plural, quoted


class CurrentSubmission(NamedTuple):
    """The present submission of a model, which may differ from the audited one."""

    path: Path
    sha256: str
    submission: Submission | None
    """None if its structure has errors."""


@dataclass(frozen=True)
class TrustInputs:
    """The public data with which a record is compared when it is verified."""

    benchmark: Benchmark
    policy: AuditPolicy
    submissions: Path | None
    """Folder of the submissions, if there is one."""
    plans: tuple[AnyPlan, ...]
    """The plans of all records, starts and aborts of the repository, even withdrawn or revoked."""
    unreadable: Mapping[str, str]
    """By model id, the name of a record or event that cannot be read, so that its draw is
    unknown."""
    history: History = field(default_factory=History)
    """The signed statements of the repository, and the statements that each names."""
    receipt_notes: ReceiptNotes = field(default_factory=ReceiptNotes)
    """The days on which published receipts were last available."""
    submission_by_model: dict[str, CurrentSubmission | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Cache of the method `submission`: the submission of each model, or None."""

    def submission(self, model_id: str) -> CurrentSubmission | None:
        """Return the present submission of a model; None if it is missing or cannot be opened."""
        if self.submissions is None:
            return None
        if model_id not in self.submission_by_model:
            self.submission_by_model[model_id] = _read_submission(
                self.submissions / f"{model_id}.json"
            )
        return self.submission_by_model[model_id]

    def audited_submission(self, outcome: AnyOutcome) -> Submission | None:
        """Return the submission that was audited; None if it is missing, invalid or changed."""
        commitment = outcome.plan.commitment
        current = self.submission(commitment.model_id)
        is_same = current is not None and current.sha256 == commitment.submission_sha256
        return current.submission if current is not None and is_same else None


def _read_submission(path: Path) -> CurrentSubmission | None:
    """Return the submission in a file; None if the file is missing or cannot be opened."""
    if not path.is_file():
        return None
    try:
        document = read_document(path)
    except NothingChecked:
        return None
    submission = None if document.faults else check_structure(document.value)[0]
    return CurrentSubmission(path, document.sha256, submission)


SUBMISSION_STEP, BENCHMARK_STEP, POLICY_STEP = "submission", "benchmark", "policy"
HARNESS_STEP, SANDBOX_STEP = "harness", "sandbox"
"""Names of the steps that compare a record with what may change after it was signed."""


def check_submission(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Refuse a record whose commitment contradicts the submission: its bytes, run or claims.

    Raises StepMismatch where they differ, MissingInput when the submission is missing.
    """
    commitment = outcome.plan.commitment
    current = submission_of(outcome, inputs)
    if current.sha256 != commitment.submission_sha256:
        raise StepMismatch(
            SUBMISSION_STEP,
            f"{current.path.name} has sha256 {current.sha256}, the audited file had "
            f"{commitment.submission_sha256}",
            "the file was changed after the audit: audit the new file",
        )
    submission = current.submission
    if submission is None:
        raise StepMismatch(
            SUBMISSION_STEP,
            f"{current.path.name} has errors",
            f"run `geneb-ci check {current.path}`, which shows them",
        )
    try:
        regimes, tasks = drawable_regimes_and_tasks(
            submission, inputs.benchmark, commitment.regimes
        )
    except AuditRefused as error:
        raise StepMismatch(
            SUBMISSION_STEP,
            f"the submission has no score in {quoted(commitment.regimes)}",
            "make a new commitment, and audit again",
        ) from error
    for subject, claimed_names, committed_names in (
        ("regimes", regimes, commitment.regimes),
        ("tasks", tasks, commitment.tasks),
    ):
        if claimed_names != committed_names:
            differing_names = sorted(set(claimed_names) ^ set(committed_names)) or ["their order"]
            raise StepMismatch(
                SUBMISSION_STEP,
                f"the {subject} that may be drawn are not those that the submission claims: "
                f"{first_and_more([quoted(name) for name in differing_names])}",
                "make a new commitment, and audit again",
            )
    if commitment.claims not in ({}, claims_of(submission, regimes, tasks)):
        raise StepMismatch(
            SUBMISSION_STEP,
            "the commitment has other claims than the submission",
            "make a new commitment, and audit again",
        )
    if isinstance(submission, SubmissionV11):
        _check_run(outcome, submission)
    elif isinstance(submission, SubmissionByEntry):
        _check_same("registry entry", commitment.entry, submission.registry_entry.sha256)


def _check_run(outcome: AnyOutcome, submission: SubmissionV11) -> None:
    """Refuse a record of other code or weights than those of the submission's run."""
    code, weights = outcome.plan.commitment.extractor, outcome.plan.commitment.weights
    run = submission.run
    model = run.model
    pairs: list[tuple[str, object, object]] = [
        ("extractor", code.sha256, run.extractor.sha256),
        ("class of the extractor", code.class_name, run.extractor.class_name),
        ("dtype", declared_dtype(outcome), run.embedding.dtype),
    ]
    if model.kind == "local":
        # The model registry names a published copy: the same files, by their digests.
        registered_files = {name: weights.files.get(name) for name in model.weights}
        pairs.append(("weight files", registered_files, model.weights))
    else:
        pairs += [
            ("kind of weights", weights.kind, model.kind),
            ("location of the weights", weights.location, model.location),
            ("revision of the weights", weights.revision, model.revision),
            ("weight files", weights.files, model.weights),
        ]
    for subject, committed_value, claimed_value in pairs:
        _check_same(subject, committed_value, claimed_value)


def _check_same(subject: str, committed_value: object, claimed_value: object) -> None:
    """Raise StepMismatch if commitment and submission have different values of `subject`."""
    if committed_value != claimed_value:
        raise StepMismatch(
            SUBMISSION_STEP,
            f"{subject}: the commitment has {quoted(committed_value)}, the submission "
            f"{quoted(claimed_value)}",
            "make a new commitment, and audit again",
        )


def declared_dtype(outcome: AnyOutcome) -> str:
    """Return the dtype of embeddings that the audited run declared."""
    if isinstance(outcome, EmbeddingOutcome):
        return outcome.receipt.compute_dtype
    return outcome.noise if outcome.precision is None else outcome.precision.declared


def submission_of(outcome: AnyOutcome, inputs: TrustInputs) -> CurrentSubmission:
    """Return the present submission of the audited model. Raises MissingInput if it is missing."""
    model_id = outcome.plan.commitment.model_id
    current = inputs.submission(model_id)
    if current is None:
        raise MissingInput(
            SUBMISSION_STEP,
            f"{model_id}.json, with which the record is compared, is missing",
            "name the folder of submissions: --submissions DIR",
        )
    return current


def check_benchmark(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Raise StepMismatch if the benchmark of the commitment is not the current one."""
    benchmark, pin = inputs.benchmark, outcome.plan.commitment.benchmark
    pairs = (
        ("definition", benchmark.sha256, pin.sha256),
        ("name", benchmark.name, pin.name),
        ("dataset", benchmark.dataset.repo_id, pin.dataset),
        ("dataset revision", benchmark.dataset.revision, pin.revision),
    )
    for subject, current_value, recorded_value in pairs:
        if current_value != recorded_value:
            raise StepMismatch(
                BENCHMARK_STEP,
                f"the {subject} is now {quoted(current_value)}, and was "
                f"{quoted(recorded_value)} in the audit",
                "the evidence is stale: audit again",
            )
    commitment = outcome.plan.commitment
    unknown_names = [regime for regime in commitment.regimes if regime not in benchmark.regimes]
    unknown_names += [task for task in commitment.tasks if task not in benchmark.by_id]
    if unknown_names:
        raise StepMismatch(
            BENCHMARK_STEP,
            "the commitment names regimes or tasks that the benchmark does not have: "
            f"{first_and_more([quoted(name) for name in unknown_names])}",
            "make a new commitment, and audit again",
        )


def check_policy(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Raise StepMismatch if the sample or the limits of an audit are not those of the policy."""
    if isinstance(outcome, EmbeddingOutcome):
        _check_embedding_policy(outcome, inputs)
    else:
        _check_task_policy(outcome, inputs)


def _check_limits(outcome: AnyOutcome) -> None:
    """Refuse an audit whose verdict was computed with limits of an earlier version."""
    if not are_current_limits(outcome.plan.commitment.policy.tolerance):
        raise StepMismatch(
            POLICY_STEP,
            "the audit was judged by other limits than this version of geneb-ci has",
            "audit again",
        )


def _check_task_policy(outcome: AuditOutcome, inputs: TrustInputs) -> None:
    """Refuse an audit of tasks whose sample is too small, or not drawn as the policy requires."""
    plan, policy = outcome.plan, inputs.policy
    if len(plan.drawn) < policy.minimum_drawn:
        raise StepMismatch(
            POLICY_STEP,
            f"the audit drew {plural(len(plan.drawn), 'task')}, but the policy requires "
            f"{policy.minimum_drawn}",
            "audit again",
        )
    if policy.stratified and not plan.commitment.policy.stratified:
        raise StepMismatch(
            POLICY_STEP,
            "the sample is not stratified, but the policy requires strata",
            "audit again",
        )
    commitment = plan.commitment
    strata = strata_of(inputs.benchmark, commitment.tasks) if commitment.policy.stratified else []
    if commitment.policy.strata != strata:
        raise StepMismatch(
            POLICY_STEP,
            f"the sample has other strata than the {len(strata)} categories that have at least "
            f"{STRATUM_TASKS_MIN} of its tasks",
            "make a new commitment, and audit again",
        )
    if missing_regimes := left_out_regimes(outcome, inputs):
        raise StepMismatch(
            POLICY_STEP,
            f"the audit leaves out the regimes {', '.join(missing_regimes)}",
            "audit again",
        )
    _check_limits(outcome)


def _check_embedding_policy(outcome: EmbeddingOutcome, inputs: TrustInputs) -> None:
    """Refuse an audit by receipt with too few embeddings, or without cells that are required."""
    if outcome.schema_version == WITH_ROW_TOLERANCES:
        raise StepMismatch(POLICY_STEP, SUPERSEDED_REASON, "audit again")
    _check_limits(outcome)
    counts, minimum = outcome.plan.rows, inputs.policy.minimum_rows
    if counts.test < minimum:
        raise StepMismatch(
            POLICY_STEP,
            f"the audit drew {plural(counts.test, 'test embedding')} of each regime, but the "
            f"policy requires {minimum:,}",
            "audit again",
        )
    if missing := missing_tasks_and_regimes(outcome, inputs):
        raise StepMismatch(
            POLICY_STEP, f"cells were not recomputed: {first_and_more(missing)}", "audit again"
        )


def missing_tasks_and_regimes(outcome: EmbeddingOutcome, inputs: TrustInputs) -> list[str]:
    """Return the tasks of the benchmark that a receipt lacks, then the regimes that it lacks."""
    present_tasks = {audited.task for audited in outcome.tasks}
    tasks = [task for task in inputs.benchmark.task_ids if task not in present_tasks]
    drawn_parts = {part for audited in outcome.tasks for part in audited.rows}
    regimes = [name for name in inputs.policy.regimes if f"test {name}" not in drawn_parts]
    return [*tasks, *regimes]


def left_out_regimes(outcome: AnyOutcome, inputs: TrustInputs) -> list[str]:
    """Return the regimes that the policy requires, the submission claims and the audit lacks."""
    current = inputs.submission(outcome.plan.commitment.model_id)
    claimed_results = (
        current.submission.results if current is not None and current.submission else None
    )
    return [
        name
        for name in inputs.policy.regimes
        if name not in outcome.plan.commitment.regimes
        and (claimed_results is None or claimed_results.get(name))
    ]


def names_scorer(outcome: AnyOutcome, inputs: TrustInputs) -> bool:
    """Return whether the run of an audited submission names the scorer of record."""
    current = inputs.submission(outcome.plan.commitment.model_id)
    return current is not None and bool(scorer_of(current.submission))


def scorer_of(submission: Submission | None) -> str:
    """Return the digest of the scorer that the run of a submission names, or ""."""
    scorer = submission.run.scorer if isinstance(submission, SubmissionV11) else None
    return scorer.digest or "" if scorer is not None else ""


def check_harness(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Raise StepMismatch if the harness that scored has another version or local changes."""
    harness, current = outcome.harness, inputs.benchmark.harness_version
    if harness.version != current:
        raise StepMismatch(
            HARNESS_STEP,
            f"version {quoted(harness.version)} of the harness scored, but the current version is "
            f"{quoted(current)}",
            "the evidence is stale: audit again",
        )
    if harness.dirty:
        raise StepMismatch(
            HARNESS_STEP,
            "the harness that scored had local changes",
            "audit again from a clean checkout",
        )


def check_sandbox(outcome: AnyOutcome, inputs: TrustInputs) -> None:
    """Raise StepMismatch if the sandbox is below the required level, or may have been escaped.

    The latter is so if an escape succeeded, or if none was attempted.
    """
    sandbox, minimum_level = outcome.sandbox, inputs.policy.minimum_level
    if sandbox.level < minimum_level:
        raise StepMismatch(
            SANDBOX_STEP,
            f"the extractor ran at sandbox level {sandbox.level}, but the policy requires level "
            f"{minimum_level} or above",
            "audit again on a machine with bubblewrap",
        )
    successful_escapes = [quoted(escape.name) for escape in sandbox.escapes if not escape.refused]
    if successful_escapes or not sandbox.escapes:
        objection = (
            f"escapes that succeeded: {first_and_more(successful_escapes)}"
            if successful_escapes
            else "no escape was attempted"
        )
        raise StepMismatch(SANDBOX_STEP, objection, "fix the sandbox, then audit again")
