"""The two kinds of sample of an audit: whole tasks, or embeddings of a receipt.

Both have the same methods, so that `geneb_ci.audit.workflow` treats them alike. What needs NumPy is
imported where it is used: 0.2 s that no other command of audits waits for.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, Self, TypeVar

from geneb_ci.audit import cost
from geneb_ci.audit.commit import AuditSubject, SubmissionFile
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import EmbeddingOutcome, RerunResult
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.cost import NO_COST, CostText
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.verify_embeddings import RERUN_BYTES_MAX
from geneb_ci.audit.rerun.embedder import embedding_speed, rerun_cost, rerun_cost_lines
from geneb_ci.audit.rerun.prepare import CPU, PreparedRerun
from geneb_ci.audit.rerun.tasks import check_outcome, rerun_tasks
from geneb_ci.audit.rerun.workspace import WorkFolder
from geneb_ci.audit.sampling.design import sample_size_of
from geneb_ci.audit.sampling.embedding_draw import (
    STANDARD_SIZE,
    SubmissionWithReceipt,
    draw_embeddings,
    earlier_embedding_draws,
    embedding_counts,
    refuse_smaller_sample,
    submission_with_receipt,
)
from geneb_ci.audit.sampling.plan import AnyPlan, Beacon, EmbeddingPlan, TaskPlan
from geneb_ci.audit.sampling.task_draw import (
    LED_TASKS_MAX,
    draw_tasks,
    earlier_draws,
    earlier_sample_size,
    led_tasks_of,
    targeted_tasks_of,
)
from geneb_ci.common.errors import UsageProblem
from geneb_ci.receipt.cells import cost_of
from geneb_ci.receipt.source import receipt_files
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.text import Say

OUTCOME_FILE = "outcome.json"
"""File of the work folder: the outcome of a finished rerun."""

_P = TypeVar("_P", TaskPlan, EmbeddingPlan)


class CommittedSubmission(NamedTuple):
    """A commitment, the submission that it names, and the repository with earlier audits."""

    commitment: Commitment
    submission: SubmissionFile | None
    """None if the checkout does not contain it."""
    repository: AuditRepository

    @property
    def with_receipt(self) -> SubmissionWithReceipt:
        """The submission with its receipt. Raises what `file_with_receipt` raises."""
        return file_with_receipt(self.submission, self.repository.inputs.benchmark)


class Sample(Protocol[_P]):
    """A way to draw a part of a submission, to rerun it, and to compare it with the claims.

    Each step raises a GenebError if the audit must not continue.
    """

    name: ClassVar[str]
    """Value of the option `--sample` that selects this sample."""
    cache_name: ClassVar[str]
    """Folder of the user's cache that contains the work folders of audits of this sample."""

    @property
    def plan_class(self) -> type[_P]:
        """Class of the plans that this sample draws."""

    @property
    def earlier_plans(self) -> Sequence[Path]:
        """Files of plans that were drawn earlier and have no record in the repository."""

    def with_earlier_plans(self, plans: Iterable[Path]) -> Self:
        """Return a copy of this sample with the files of further plans of earlier draws."""

    def check(self, submission: SubmissionFile, benchmark: Benchmark, say: Say) -> None:
        """Refuse a submission that has nothing to draw from, before anything is published."""

    def future_draw_text(self, commitment: Commitment) -> str:
        """Return what will be drawn, such as `13 of 100 tasks`."""

    def reasons_by_near_root(
        self, committed_submission: CommittedSubmission, say: Say
    ) -> Mapping[str, str]:
        """Return, by Merkle root, why another receipt counts as nearly equal to the audited one.

        Draws from those receipts count as draws for this submission.
        """

    def prepared_draw(
        self,
        committed_submission: CommittedSubmission,
        plans: Sequence[_P],
        near_roots: Collection[str],
    ) -> Callable[[str, Beacon], _P]:
        """Return a function that draws a plan, given the time of the commitment and the beacon.

        `plans` are the plans of earlier draws for this method, `near_roots` the Merkle roots of
        receipts that nearly equal the audited one. Raises UsageProblem for a smaller sample than in
        an earlier draw.
        """

    def drawn_sample_text(self, plan: _P) -> str:
        """Return the drawn tasks, or the number of drawn embeddings, in one line."""

    def cost(
        self, prepared: PreparedRerun, plan: _P | None, setup_seconds: float, say: Say
    ) -> CostText:
        """Return the expected cost of the rerun; `NO_COST` if nothing is left to rerun.

        `plan` is None before the draw. `setup_seconds` is the time that the checks before the first
        task took. Raises LimitExceeded or AuditRefused for a machine that is too small.
        """

    def rerun(self, plan: _P, prepared: PreparedRerun, say: Say) -> RerunResult:
        """Embed and score the drawn sample again, and return its comparison with the claims."""

    def saved_result(self, plan: _P, subject: AuditSubject, work: WorkFolder) -> RerunResult | None:
        """Return the result of a finished rerun from its work folder; None if files are missing.

        Raises AuditRefused when the outcome does not follow from the plan and the folder.
        """


@dataclass(frozen=True, kw_only=True)
class TaskSample:
    """A sample of whole tasks: all their sequences are embedded again, all their cells scored."""

    name: ClassVar[str] = "tasks"
    plan_class: ClassVar[type[TaskPlan]] = TaskPlan
    cache_name: ClassVar[str] = "audits"

    drawn_count: int | None = None
    """Number of tasks to draw; None: the number in the commitment."""
    drawn_min: int = 0
    """Smallest number of tasks with the probability of detection that `--detect` requests; or 0."""
    targeted_count: int | None = None
    """Number of suspicious tasks to add to the drawn ones; None: up to `LED_TASKS_MAX`, one of each
    category that the model leads."""
    earlier_plans: Sequence[Path] = ()
    """Files of plans that were drawn earlier and have no record in the repository."""

    def with_earlier_plans(self, plans: Iterable[Path]) -> Self:
        """Return a copy of this sample with the files of further plans of earlier draws."""
        return dataclasses.replace(self, earlier_plans=(*self.earlier_plans, *plans))

    def check(self, submission: SubmissionFile, benchmark: Benchmark, say: Say) -> None:
        """Do nothing: every committed submission has tasks."""

    def future_draw_text(self, commitment: Commitment) -> str:
        """Return how many tasks will be drawn."""
        return f"{commitment.policy.drawn} of {len(commitment.tasks)} tasks"

    def reasons_by_near_root(
        self, committed_submission: CommittedSubmission, say: Say
    ) -> Mapping[str, str]:
        """Return {}: for a draw of tasks, no receipts are compared."""
        return {}

    def prepared_draw(
        self,
        committed_submission: CommittedSubmission,
        plans: Sequence[TaskPlan],
        near_roots: Collection[str],
    ) -> Callable[[str, Beacon], TaskPlan]:
        """Return the function that draws tasks and adds targeted ones and those drawn earlier."""
        commitment, submission, _ = committed_submission
        if self.targeted_count is None:
            targeted_max, targets = LED_TASKS_MAX, led_tasks_of(commitment, submission)
        else:
            targeted_max = self.targeted_count
            targets = targeted_tasks_of(commitment, targeted_max, submission)
        return functools.partial(
            draw_tasks,
            commitment,
            drawn=sample_size_of(
                commitment, self.drawn_count, self.drawn_min, earlier_sample_size(plans, commitment)
            ),
            earlier=earlier_draws(plans, commitment),
            targeted=targets,
            targeted_max=targeted_max,
        )

    def drawn_sample_text(self, plan: TaskPlan) -> str:
        """Return the names of the tasks to rerun, in one line."""
        return ", ".join(choice.task for choice in plan.chosen)

    def cost(
        self, prepared: PreparedRerun, plan: TaskPlan | None, setup_seconds: float, say: Say
    ) -> CostText:
        """Time the extractor on this machine, and return the cost of the unfinished tasks."""
        commitment = prepared.commitment
        if plan is None:
            tasks, task_weights = commitment.tasks, cost.draw_probabilities(commitment)
            drawn_count = commitment.policy.drawn
        else:
            embedded = prepared.work.embedded_task
            task_weights = {each.task: 1.0 for each in plan.chosen if embedded(each.task) is None}
            tasks, drawn_count = list(task_weights), len(task_weights)
        if not task_weights:
            return NO_COST  # every task is embedded
        measurements = cost.measurements_of(prepared, task_weights, say)
        expected = cost.cost_of(prepared, measurements, task_weights, setup_seconds)
        cost.refuse_too_large(prepared, measurements, tasks, drawn_count)
        return cost.cost_text(expected, prepared, is_drawn=plan is not None)

    def rerun(self, plan: TaskPlan, prepared: PreparedRerun, say: Say) -> RerunResult:
        """Embed and score the drawn tasks again, and compare every cell of them."""
        return RerunResult(rerun_tasks(plan, prepared, say))

    def saved_result(
        self, plan: TaskPlan, subject: AuditSubject, work: WorkFolder
    ) -> RerunResult | None:
        """Return the outcome in the work folder, after comparing it with the scores there."""
        outcome = work.read_as(OUTCOME_FILE, AuditOutcome)
        if outcome is None:
            return None
        check_outcome(outcome, work.folder / OUTCOME_FILE, plan, subject, work)
        return RerunResult(outcome)


@dataclass(frozen=True, kw_only=True)
class EmbeddingSample:
    """A sample of embeddings of a receipt, which are computed again, as are all of its cells."""

    name: ClassVar[str] = "embeddings"
    plan_class: ClassVar[type[EmbeddingPlan]] = EmbeddingPlan
    cache_name: ClassVar[str] = "row-audits"

    size: str = STANDARD_SIZE
    """`standard`, `full`, or a number of test embeddings of each regime."""
    receipt_folder: Path | None = None
    """Folder with the files of the receipt; None: they are downloaded."""
    other_receipts: Path | None = None
    """Folder that contains, for each other model, a subfolder with the files of its receipt; None:
    they are downloaded."""
    earlier_plans: Sequence[Path] = ()
    """Files of plans that were drawn earlier and have no record in the repository."""

    def with_earlier_plans(self, plans: Iterable[Path]) -> Self:
        """Return a copy of this sample with the files of further plans of earlier draws."""
        return dataclasses.replace(self, earlier_plans=(*self.earlier_plans, *plans))

    def check(self, submission: SubmissionFile, benchmark: Benchmark, say: Say) -> None:
        """Refuse a submission whose receipt is missing, unreadable or cannot be drawn from."""
        embedding_counts(self.size)
        receipt = file_with_receipt(submission, benchmark).receipt
        with receipt_files(receipt, self.receipt_folder, say=say):
            pass

    def future_draw_text(self, commitment: Commitment) -> str:
        """Return what will be drawn."""
        return "embeddings of its receipt"

    def reasons_by_near_root(
        self, committed_submission: CommittedSubmission, say: Say
    ) -> Mapping[str, str]:
        """Return, by Merkle root, why another drawn receipt counts as nearly equal to this one."""
        from geneb_ci.audit.compare.embeddings import AuditedReceipt, near_receipt_roots  # NumPy

        repository, receipt = (
            committed_submission.repository,
            committed_submission.with_receipt.receipt,
        )
        audited_receipt = AuditedReceipt(
            committed_submission.commitment,
            receipt,
            lambda: receipt_files(receipt, self.receipt_folder, say=say),
            repository.inputs.benchmark,
        )
        reason_by_root = near_receipt_roots(audited_receipt, repository, self.other_receipts, say)
        for reason in reason_by_root.values():
            say(f"this receipt nearly equals another, whose draws are repeated here: {reason}")
        return reason_by_root

    def prepared_draw(
        self,
        committed_submission: CommittedSubmission,
        plans: Sequence[EmbeddingPlan],
        near_roots: Collection[str],
    ) -> Callable[[str, Beacon], EmbeddingPlan]:
        """Return the function that draws embeddings and adds the earlier draws of this method."""
        commitment, counts = committed_submission.commitment, embedding_counts(self.size)
        refuse_smaller_sample(counts, plans, commitment)
        return functools.partial(
            draw_embeddings,
            commitment,
            root=committed_submission.with_receipt.receipt.root,
            counts=counts,
            earlier=earlier_embedding_draws(plans, commitment, near_roots),
        )

    def drawn_sample_text(self, plan: EmbeddingPlan) -> str:
        """Return how many embeddings were drawn."""
        return (
            f"{plan.rows.test:,} test embeddings of each regime and {plan.rows.training:,} "
            "training embeddings of each task"
        )

    def cost(
        self, prepared: PreparedRerun, plan: EmbeddingPlan | None, setup_seconds: float, say: Say
    ) -> CostText:
        """Return the statistical power and the cost of a draw; `NO_COST` after the draw."""
        if plan is not None:
            return NO_COST
        benchmark = prepared.subject.benchmark
        submission = submission_with_receipt(
            check_structure(prepared.subject.document)[0], benchmark
        )
        receipt = submission.receipt
        with receipt_files(receipt, self.receipt_folder, say=say) as files:
            bytes_to_fetch = files.bytes_to_fetch(list(receipt.tasks))
        fresh = prepared.fresh.sequences if prepared.fresh is not None else ()
        fresh_count = sum(sequence.task in receipt.tasks for sequence in fresh)
        return CostText(
            "",
            self.power_and_cost(
                submission,
                prepared.commitment,
                benchmark,
                bytes_to_fetch,
                fresh_count,
                prepared.machine.device,
            ),
        )

    def power_and_cost(
        self,
        submission: SubmissionWithReceipt,
        commitment: Commitment,
        benchmark: Benchmark,
        bytes_to_fetch: int = 0,
        fresh_count: int = 0,
        device: str = CPU,
    ) -> str:
        """Return the statistical power and the cost of a draw as lines of text.

        `bytes_to_fetch` is the size of the receipt's files that have to be downloaded,
        `fresh_count` the number of fresh sequences that are embedded too, `device` the device of
        the rerun.
        """
        from geneb_ci.audit.sampling.embedding_power import power_lines  # NumPy

        counts, receipt = embedding_counts(self.size), submission.receipt
        costs = rerun_cost(
            counts,
            receipt,
            benchmark,
            embedding_speed(submission.submission, device),
            commitment.policy.drawn,
            fresh_count,
        )
        lines = [
            *power_lines(submission.submission, counts, benchmark, commitment.tasks),
            *rerun_cost_lines(costs, cost_of(receipt, receipt.tasks, bytes_to_fetch)),
        ]
        return "".join(f"{line}\n" for line in lines)

    def rerun(self, plan: EmbeddingPlan, prepared: PreparedRerun, say: Say) -> RerunResult:
        """Recompute every cell from the receipt, embed the drawn sequences again, and compare."""
        from geneb_ci.audit.rerun.embeddings import rerun_embeddings  # NumPy

        files = functools.partial(receipt_files, folder=self.receipt_folder, say=say)
        return rerun_embeddings(plan, prepared, files, say)

    def saved_result(
        self, plan: EmbeddingPlan, subject: AuditSubject, work: WorkFolder
    ) -> RerunResult | None:
        """Return the outcome with its embeddings; None if these are missing or changed."""
        outcome = work.read_as(OUTCOME_FILE, EmbeddingOutcome)
        if outcome is None:
            return None
        if outcome.plan != plan:
            raise AuditRefused(
                f"{work.folder / OUTCOME_FILE}: this outcome belongs to another plan than the one "
                "in the same folder",
                f"remove {work.folder / OUTCOME_FILE} and run the command again",
            )
        from geneb_ci.audit.rerun.embeddings import RERUN_EMBEDDINGS_FILE  # NumPy

        try:
            embeddings = read_regular(work.folder / RERUN_EMBEDDINGS_FILE, RERUN_BYTES_MAX)
        except NotReadable:
            return None
        if hashlib.sha256(embeddings).hexdigest() != outcome.rerun_sha256:
            return None
        return RerunResult(outcome, embeddings)


def file_with_receipt(
    submission_file: SubmissionFile | None, benchmark: Benchmark
) -> SubmissionWithReceipt:
    """Return the submission in a file, with its receipt.

    Raises UsageProblem if the submission is missing, AuditRefused if it has no embeddings that can
    be drawn.
    """
    if submission_file is None:
        raise UsageProblem(
            "a sample of embeddings needs the committed submission, which is missing",
            "name the file of the submission: --submission FILE",
        )
    return submission_with_receipt(check_structure(submission_file.document.value)[0], benchmark)


AnySample = TaskSample | EmbeddingSample
"""A sample of either kind."""
SAMPLE_NAMES = (TaskSample.name, EmbeddingSample.name)
"""The values of the option `--sample`."""


def sample_by_name(
    name: str,
    *,
    size: str | None = None,
    receipt: Path | None = None,
    near: Path | None = None,
    earlier: Sequence[Path] = (),
    drawn: int | None = None,
    targeted: int | None = None,
    drawn_min: int = 0,
) -> AnySample:
    """Return the sample that is called `tasks` or `embeddings`, with the options of a draw.

    The parameters have the names of the options; `drawn_min` is the number of tasks that --detect
    needs. Raises UsageProblem for another name, or for an option of the other sample.
    """
    other_options: dict[str, object]
    if name == TaskSample.name:
        other_options = {"--size": size, "--receipt": receipt, "--near": near}
        sample: AnySample = TaskSample(
            drawn_count=drawn,
            targeted_count=targeted,
            drawn_min=drawn_min,
            earlier_plans=earlier,
        )
    elif name == EmbeddingSample.name:
        other_options = {"--drawn": drawn, "--targeted": targeted, "--detect": drawn_min or None}
        sample = EmbeddingSample(
            size=size or STANDARD_SIZE,
            receipt_folder=receipt,
            other_receipts=near,
            earlier_plans=earlier,
        )
        embedding_counts(sample.size)
    else:
        raise UsageProblem(
            f"--sample {name!r} is not a sample", f"pass one of {', '.join(SAMPLE_NAMES)}"
        )
    wrong_options = [option for option, value in other_options.items() if value is not None]
    if wrong_options:
        needed = next(sample_name for sample_name in SAMPLE_NAMES if sample_name != name)
        raise UsageProblem(
            f"{' and '.join(wrong_options)} can only be passed with --sample {needed}, but the "
            f"sample is --sample {name}",
            f"pass --sample {needed}, or leave out {' and '.join(wrong_options)}",
        )
    return sample


def sample_of(plan: AnyPlan, receipt_folder: Path | None = None) -> AnySample:
    """Return the sample of the kind that a plan drew, without the options of the draw.

    `receipt_folder` has the files of the receipt. Raises UsageProblem if it is passed with a plan
    of tasks.
    """
    if isinstance(plan, EmbeddingPlan):
        return EmbeddingSample(receipt_folder=receipt_folder)
    if receipt_folder is not None:
        raise UsageProblem(
            "--receipt is only for a plan of embeddings, and this plan is of tasks",
            "leave out --receipt, or draw embeddings: geneb-ci audit plan C.json "
            "--sample embeddings",
        )
    return TaskSample()
