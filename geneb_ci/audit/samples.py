"""The two samples of an audit: whole tasks, or embeddings of a receipt.

Both kinds of sample offer the same few steps, so that `geneb_ci.audit.workflow` carries out an
audit of either without asking which it is.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, Self, TypeVar

from geneb_ci.audit import cost
from geneb_ci.audit.commit import AuditSubject, SubmissionFile
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import EmbeddingOutcome, RerunResult
from geneb_ci.audit.compare.embeddings import OwnReceipt, near_roots
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.verify_embeddings import RERUN_BYTES_MAX
from geneb_ci.audit.rerun.embedder import rerun_cost, rerun_cost_lines
from geneb_ci.audit.rerun.embeddings import RERUN_EMBEDDINGS, rerun_embeddings
from geneb_ci.audit.rerun.prepare import PreparedRerun
from geneb_ci.audit.rerun.tasks import check_outcome, outcome_of
from geneb_ci.audit.rerun.workspace import Work
from geneb_ci.audit.sampling.design import sample_size_of
from geneb_ci.audit.sampling.embedding_draw import (
    STANDARD,
    SubmissionWithReceipt,
    draw_embeddings,
    earlier_embedding_draws,
    embedding_counts,
    receipt_of,
    require_not_lowered,
)
from geneb_ci.audit.sampling.embedding_power import power_lines
from geneb_ci.audit.sampling.plan import Beacon, EmbeddingPlan, TaskPlan
from geneb_ci.audit.sampling.task_draw import (
    CROWNS_MAX,
    crowns_of,
    draw,
    drawn_before,
    earlier_draws,
    targets_of,
)
from geneb_ci.common.errors import UsageProblem
from geneb_ci.receipt.cells import cost_of
from geneb_ci.receipt.source import ReceiptFiles, receipt_files
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.submission import EmbeddingReceipt
from reference_harness.formats.text import Say

OUTCOME = "outcome.json"
"""File of the work folder: the outcome of a finished rerun."""

_P = TypeVar("_P", TaskPlan, EmbeddingPlan)


class CommittedSubmission(NamedTuple):
    """A commitment, the submission that it names, and the repository with earlier audits."""

    commitment: Commitment
    submission: SubmissionFile | None
    """None where the checkout does not have it."""
    repository: AuditRepository

    @property
    def with_receipt(self) -> SubmissionWithReceipt:
        """The submission with its receipt. Raises what the function `with_receipt` does."""
        return with_receipt(self.submission, self.repository.inputs.benchmark)


class Sample(Protocol[_P]):
    """A way to draw a part of a submission, to rerun it, and to compare it with what was claimed.

    Each step raises what refuses the audit there.
    """

    name: ClassVar[str]
    """Value of the option `--sample`."""
    cache: ClassVar[str]
    """Folder of the user's cache that keeps the work folders of such audits."""

    @property
    def kind(self) -> type[_P]:
        """Class of the plans that it draws."""

    @property
    def earlier(self) -> Sequence[Path]:
        """Files of plans that were drawn earlier and have no record."""

    def with_earlier(self, plans: Iterable[Path]) -> Self:
        """Return this sample with further plans of earlier draws."""

    def check(self, submission: SubmissionFile, benchmark: Benchmark, say: Say) -> None:
        """Refuse a submission that has nothing to draw from, before anything is published."""

    def drawn_text(self, commitment: Commitment) -> str:
        """Return the sample to be drawn, as part of a sentence."""

    def near(self, committed: CommittedSubmission, say: Say) -> Mapping[str, str]:
        """Return the roots of other receipts that are nearly this one: root to the reason.

        Draws from them count as draws for this submission.
        """

    def drawing(
        self, committed: CommittedSubmission, plans: Sequence[_P], near_roots: Collection[str]
    ) -> Callable[[str, Beacon], _P]:
        """Return a function from the time of the commitment and the beacon to the plan.

        `plans` are those of earlier draws for this method. Raises UsageProblem for a smaller
        sample than was drawn before.
        """

    def drawn_names(self, plan: _P) -> str:
        """Return the drawn tasks, or the number of drawn embeddings, in one line."""

    def cost(self, prepared: PreparedRerun, plan: _P | None, setup: float, say: Say) -> str:
        """Return the cost of the rerun as lines of text; "" where nothing is left to pay.

        `plan` is None before the draw; `setup` is in seconds. Raises what refuses a machine that
        cannot carry it.
        """

    def rerun(
        self, plan: _P, prepared: PreparedRerun, clock: Callable[[], float], say: Say
    ) -> RerunResult:
        """Embed and score the sample again, compare it, and return the outcome."""

    def finished_outcome(self, plan: _P, subject: AuditSubject, work: Work) -> RerunResult | None:
        """Return the outcome that an earlier call left in the work folder; None if not complete.

        Raises AuditRefused when the outcome does not follow from the plan and the folder.
        """


@dataclass(frozen=True, kw_only=True)
class TaskSample:
    """Whole tasks: every sequence is embedded again, and every cell scored."""

    name: ClassVar[str] = "tasks"
    kind: ClassVar[type[TaskPlan]] = TaskPlan
    cache: ClassVar[str] = "audits"

    drawn: int | None = None
    """Number of tasks; None: as committed."""
    at_least: int = 0
    """Fewest tasks that reach the probability of detection that was requested."""
    targeted: int | None = None
    """Suspicious tasks to add; None: one of each category that the model leads."""
    earlier: Sequence[Path] = ()

    def with_earlier(self, plans: Iterable[Path]) -> Self:
        """Return this sample with further plans of earlier draws."""
        return dataclasses.replace(self, earlier=(*self.earlier, *plans))

    def check(self, submission: SubmissionFile, benchmark: Benchmark, say: Say) -> None:
        """Do nothing: a submission that was committed to has tasks."""

    def drawn_text(self, commitment: Commitment) -> str:
        """Return how many tasks will be drawn."""
        return f"{commitment.policy.drawn} of {len(commitment.tasks)} tasks"

    def near(self, committed: CommittedSubmission, say: Say) -> Mapping[str, str]:
        """Return nothing: which earlier draws of tasks count follows from the commitments."""
        return {}

    def drawing(
        self, committed: CommittedSubmission, plans: Sequence[TaskPlan], near_roots: Collection[str]
    ) -> Callable[[str, Beacon], TaskPlan]:
        """Return the draw of tasks, with targeted ones and those of earlier draws."""
        commitment, submission, _ = committed
        if self.targeted is None:
            count, targets = CROWNS_MAX, crowns_of(commitment, submission)
        else:
            count, targets = self.targeted, targets_of(commitment, self.targeted, submission)
        return functools.partial(
            draw,
            commitment,
            drawn=sample_size_of(
                commitment, self.drawn, self.at_least, drawn_before(plans, commitment)
            ),
            earlier=earlier_draws(plans, commitment),
            targeted=targets,
            targeted_max=count,
        )

    def drawn_names(self, plan: TaskPlan) -> str:
        """Return the names of the tasks to rerun."""
        return ", ".join(choice.task for choice in plan.chosen)

    def cost(self, prepared: PreparedRerun, plan: TaskPlan | None, setup: float, say: Say) -> str:
        """Measure, and return as text, what is left to pay on this machine."""
        commitment = prepared.commitment
        if plan is None:
            tasks, weights = commitment.tasks, cost.draw_probabilities(commitment)
            drawn = commitment.policy.drawn
        else:
            weights = cost.remaining_tasks(plan, prepared)
            tasks, drawn = list(weights), len(weights)
        if not weights:
            return ""  # all is embedded
        sampled = cost.measurements_of(prepared, weights, say)
        expected = cost.cost_of(prepared, sampled, weights, setup)
        cost.refuse_too_large(prepared, sampled, tasks, drawn)
        return cost.cost_text(expected, prepared, drawn=plan is not None)

    def rerun(
        self, plan: TaskPlan, prepared: PreparedRerun, clock: Callable[[], float], say: Say
    ) -> RerunResult:
        """Embed and score the drawn tasks again, and compare every cell of them."""
        return RerunResult(outcome_of(plan, prepared, clock, say))

    def finished_outcome(
        self, plan: TaskPlan, subject: AuditSubject, work: Work
    ) -> RerunResult | None:
        """Return the outcome of the folder, computed again from the scores beside it."""
        outcome = work.read_as(OUTCOME, AuditOutcome) if work.has_result(OUTCOME) else None
        if outcome is None:
            return None
        check_outcome(outcome, work.folder / OUTCOME, plan, subject, work)
        return RerunResult(outcome)


@dataclass(frozen=True, kw_only=True)
class EmbeddingSample:
    """Embeddings of a receipt: drawn ones are computed again, and every cell from all of them."""

    name: ClassVar[str] = "embeddings"
    kind: ClassVar[type[EmbeddingPlan]] = EmbeddingPlan
    cache: ClassVar[str] = "row-audits"

    size: str = STANDARD
    """`standard`, `full`, or a number of test embeddings of each regime."""
    receipt: Path | None = None
    """Folder of the receipt; None: it is fetched."""
    others: Path | None = None
    """Folder of other receipts, a folder for each model; None: they are fetched."""
    earlier: Sequence[Path] = ()

    def with_earlier(self, plans: Iterable[Path]) -> Self:
        """Return this sample with further plans of earlier draws."""
        return dataclasses.replace(self, earlier=(*self.earlier, *plans))

    def check(self, submission: SubmissionFile, benchmark: Benchmark, say: Say) -> None:
        """Refuse a submission without a receipt that can be drawn from, or one that is not here."""
        embedding_counts(self.size)
        receipt = with_receipt(submission, benchmark).receipt
        with self._files(receipt, say):
            pass

    def drawn_text(self, commitment: Commitment) -> str:
        """Return the sample to be drawn, in words."""
        return "embeddings of its receipt"

    def near(self, committed: CommittedSubmission, say: Say) -> Mapping[str, str]:
        """Return the roots of receipts that were drawn from and are nearly the same as this one."""
        repository, receipt = committed.repository, committed.with_receipt.receipt
        own_receipt = OwnReceipt(
            committed.commitment,
            receipt,
            lambda: self._files(receipt, say),
            repository.inputs.benchmark,
        )
        near = near_roots(own_receipt, repository, self.others, say)
        for model_text in near.values():
            say(f"near {model_text}: its draws are made again here")
        return near

    def drawing(
        self,
        committed: CommittedSubmission,
        plans: Sequence[EmbeddingPlan],
        near_roots: Collection[str],
    ) -> Callable[[str, Beacon], EmbeddingPlan]:
        """Return the draw of embeddings, with those of earlier draws."""
        commitment, rows = committed.commitment, embedding_counts(self.size)
        require_not_lowered(rows, plans, commitment)
        return functools.partial(
            draw_embeddings,
            commitment,
            root=committed.with_receipt.receipt.root,
            rows=rows,
            earlier=earlier_embedding_draws(plans, commitment, near_roots),
        )

    def drawn_names(self, plan: EmbeddingPlan) -> str:
        """Return how many embeddings were drawn."""
        return (
            f"{plan.rows.test:,} test embeddings of each regime and {plan.rows.training:,} "
            "training embeddings of each task"
        )

    def cost(
        self, prepared: PreparedRerun, plan: EmbeddingPlan | None, setup: float, say: Say
    ) -> str:
        """Return the power and the cost of a draw; "" after the draw."""
        if plan is not None:
            return ""
        benchmark = prepared.subject.benchmark
        drawn_from = receipt_of(check_structure(prepared.subject.document)[0], benchmark)
        with self._files(drawn_from.receipt, say) as files:
            lacking = files.lacking(list(drawn_from.receipt.tasks))
        fresh = prepared.fresh.rows if prepared.fresh is not None else ()
        fresh_count = sum(sequence.task in drawn_from.receipt.tasks for sequence in fresh)
        return self.power_and_cost(drawn_from, prepared.commitment, benchmark, lacking, fresh_count)

    def power_and_cost(
        self,
        drawn_from: SubmissionWithReceipt,
        commitment: Commitment,
        benchmark: Benchmark,
        bytes_to_fetch: int = 0,
        fresh: int = 0,
    ) -> str:
        """Return the power and the cost of a draw as lines; `bytes_to_fetch` are not here.

        `fresh` sequences are embedded with it.
        """
        rows, receipt = embedding_counts(self.size), drawn_from.receipt
        costs = rerun_cost(
            rows,
            receipt,
            benchmark,
            drawn_from.submission.meta.params,
            commitment.policy.drawn,
            fresh,
        )
        lines = [
            *power_lines(drawn_from.submission, rows, benchmark, commitment.tasks),
            *rerun_cost_lines(costs, cost_of(receipt, receipt.tasks, bytes_to_fetch)),
        ]
        return "".join(f"{line}\n" for line in lines)

    def rerun(
        self, plan: EmbeddingPlan, prepared: PreparedRerun, clock: Callable[[], float], say: Say
    ) -> RerunResult:
        """Recompute every cell from the receipt, embed the drawn sequences again, and compare."""
        files = functools.partial(receipt_files, folder=self.receipt, say=say)
        return rerun_embeddings(plan, prepared, files, clock, say)

    def finished_outcome(
        self, plan: EmbeddingPlan, subject: AuditSubject, work: Work
    ) -> RerunResult | None:
        """Return the outcome of the folder, where the embeddings that it names are beside it."""
        outcome = work.read_as(OUTCOME, EmbeddingOutcome) if work.has_result(OUTCOME) else None
        if outcome is None:
            return None
        if outcome.plan != plan:
            raise AuditRefused(
                f"{work.folder / OUTCOME}: its plan does not follow from the plan of its folder",
                f"remove {work.folder / OUTCOME} and run the command again",
            )
        try:
            embeddings = read_regular(work.folder / RERUN_EMBEDDINGS, RERUN_BYTES_MAX)
        except NotReadable:
            return None
        if hashlib.sha256(embeddings).hexdigest() != outcome.rerun_sha256:
            return None
        return RerunResult(outcome, embeddings)

    def _files(self, receipt: EmbeddingReceipt, say: Say) -> AbstractContextManager[ReceiptFiles]:
        return receipt_files(receipt, self.receipt, say=say)


def with_receipt(submission: SubmissionFile | None, benchmark: Benchmark) -> SubmissionWithReceipt:
    """Return a submission with its receipt.

    Raises UsageProblem where it is not here, AuditRefused for one without embeddings that can be
    drawn.
    """
    if submission is None:
        raise UsageProblem(
            "a sample of embeddings needs the submission that was committed to, and it is not here",
            "name it: --submission FILE",
        )
    return receipt_of(check_structure(submission.document.value)[0], benchmark)


AnySample = TaskSample | EmbeddingSample
SAMPLES = (TaskSample.name, EmbeddingSample.name)


def sample_by_name(
    name: str,
    *,
    size: str | None = None,
    receipt: Path | None = None,
    near: Path | None = None,
    earlier: Sequence[Path] = (),
    drawn: int | None = None,
    targeted: int | None = None,
    at_least: int = 0,
) -> AnySample:
    """Return the sample that a caller names, `tasks` or `embeddings`, with its options.

    Raises UsageProblem for another name, or for an option of the other kind of sample.
    """
    other_options: dict[str, object]
    if name == TaskSample.name:
        other_options = {"--size": size, "--receipt": receipt, "--near": near}
        sample: AnySample = TaskSample(
            drawn=drawn, targeted=targeted, at_least=at_least, earlier=earlier
        )
    elif name == EmbeddingSample.name:
        other_options = {"--drawn": drawn, "--targeted": targeted, "--detect": at_least or None}
        sample = EmbeddingSample(
            size=size or STANDARD, receipt=receipt, others=near, earlier=earlier
        )
        embedding_counts(sample.size)
    else:
        raise UsageProblem(
            f"--sample {name!r} is not a kind of sample", f"pass one of {', '.join(SAMPLES)}"
        )
    wrong_options = [option for option, value in other_options.items() if value is not None]
    if wrong_options:
        needed = next(kind for kind in SAMPLES if kind != name)
        raise UsageProblem(
            f"{' and '.join(wrong_options)}: expected a sample of {needed}, and this one is of "
            f"{name}",
            f"pass --sample {needed}, or leave {wrong_options[0]} out",
        )
    return sample


def sample_of(plan: TaskPlan | EmbeddingPlan, receipt: Path | None = None) -> AnySample:
    """Return the kind of sample that a plan draws; `receipt` is the folder of its receipt.

    Raises UsageProblem for a receipt where tasks are drawn.
    """
    if isinstance(plan, EmbeddingPlan):
        return EmbeddingSample(receipt=receipt)
    if receipt is not None:
        raise UsageProblem(
            "--receipt is an option of plans of embeddings; this plan is of tasks",
            "leave out --receipt, or draw embeddings: geneb-ci audit plan C.json "
            "--sample embeddings",
        )
    return TaskSample()
