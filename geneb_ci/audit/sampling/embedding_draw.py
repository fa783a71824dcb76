"""Draws embeddings of a receipt by a commitment and a beacon."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, NoReturn

from geneb_ci.audit.canonical import SAMPLE_STEP
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.errors import AuditRefused, StepMismatch
from geneb_ci.audit.sampling.design import sampled_tasks, seed_of, tickets_of
from geneb_ci.audit.sampling.plan import (
    AnyPlan,
    Beacon,
    EarlierEmbeddings,
    EmbeddingPlan,
)
from geneb_ci.audit.sampling.task_draw import (
    beacon_value,
    check_seed,
    check_task_plan,
    plans_of_method,
)
from geneb_ci.common.errors import UsageProblem
from geneb_ci.receipt.draw import (
    STANDARD_COUNTS,
    STANDARD_TEST_DRAWS,
    STANDARD_TRAINING_DRAWS,
    TEST_EMBEDDINGS_MAX,
    EmbeddingCounts,
    TaskShare,
    draw_shares,
)
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import (
    EmbeddingReceipt,
    Submission,
    SubmissionV12,
    receipt_root,
)

EMBEDDING_PROTOCOL = "geneb-receipt-v1"
"""Prefix of the hashed bytes of a seed, by which it differs from that of a draw of tasks."""
STANDARD_SIZE, FULL_SIZE = "standard", "full"
"""Values of the option --size; any other value is a number of test embeddings."""
COMPARABLE_DTYPES = ("float32", "float64")
"""Dtypes in which a rerun reproduces embeddings within their tolerance."""


def embedding_counts(size: str) -> EmbeddingCounts:
    """Return the numbers of embeddings to draw for `--size`: standard, full, or a number N.

    N is the number of test embeddings of each regime, to which the other numbers are proportional.
    Raises UsageProblem for any other text.
    """
    if size in {STANDARD_SIZE, FULL_SIZE}:
        return STANDARD_COUNTS.model_copy(update={"whole": size == FULL_SIZE})
    number = int(size) if size.isascii() and size.isdigit() and len(size) < len("10000000") else 0
    if not 1 <= number <= TEST_EMBEDDINGS_MAX:
        raise UsageProblem(
            f"--size {size!r} is not the size of a sample",
            f"pass --size {STANDARD_SIZE}, --size {FULL_SIZE}, or a number of test embeddings of "
            "each regime",
        )
    training = -(-STANDARD_TRAINING_DRAWS * number // STANDARD_TEST_DRAWS)
    return EmbeddingCounts(test=number, training=training, support=number, whole=False)


class SubmissionWithReceipt(NamedTuple):
    """A submission with a receipt from whose embeddings a sample can be drawn."""

    submission: SubmissionV12
    receipt: EmbeddingReceipt


def submission_with_receipt(
    submission: Submission | None, benchmark: Benchmark
) -> SubmissionWithReceipt:
    """Return a submission with its receipt, after checking that embeddings can be drawn from it.

    Raises AuditRefused if there is no receipt, if its embeddings cannot be compared since they were
    computed in bfloat16, float16 or TF32, or if its root does not follow from its tasks.
    """
    receipt = submission.receipt if isinstance(submission, SubmissionV12) else None
    if receipt is None or not isinstance(submission, SubmissionV12):
        raise AuditRefused(
            "the submission has no receipt: no embedding can be drawn",
            "draw tasks: --sample tasks; or ask for a run with `geneb-harness run --receipt DIR`",
        )
    if weakness := weakness_of(receipt.compute_dtype, tf32=receipt.tf32):
        raise AuditRefused(
            f"the receipt is weak: {weakness}",
            "draw tasks instead: --sample tasks; `geneb-ci receipt verify` recomputes the cells, "
            "which adds no trust level",
        )
    if receipt_root(receipt, benchmark.task_ids) != receipt.root:
        raise AuditRefused(
            "the Merkle root of the receipt does not follow from its tasks",
            "ask for the submission as the harness wrote it: see rule wrong-receipt",
        )
    return SubmissionWithReceipt(submission, receipt)


def weakness_of(compute_dtype: str, *, tf32: bool) -> str:
    """Return why embeddings of a receipt cannot be compared with a rerun, or ""."""
    if compute_dtype not in COMPARABLE_DTYPES:
        return (
            f"its embeddings were computed in {compute_dtype}, where embeddings depend on the "
            "batch: alterations worth up to 0.02 of MCC would pass a comparison"
        )
    if tf32:
        return (
            "its embeddings may have been computed with TF32, whose rounding is 100 times the "
            "tolerance"
        )
    return ""


def task_shares(
    counts: EmbeddingCounts, receipt: EmbeddingReceipt, benchmark: Benchmark
) -> dict[str, TaskShare]:
    """Return, by task of a receipt, how many embeddings to draw, in the order of the board."""
    classes = {
        task.id: len(task.test_class_counts or (1, 1))
        for task in benchmark.tasks
        if task.id in receipt.tasks
    }
    return draw_shares(counts, classes, list(benchmark.categories.values()))


def earlier_embedding_draws(
    plans: Iterable[AnyPlan],
    commitment: Commitment,
    near_roots: Collection[str] = (),
) -> list[EarlierEmbeddings]:
    """Return the earlier draws of embeddings for the method of a commitment, in order of time.

    Draws that their plans list are included. `near_roots` has the Merkle roots of receipts that
    nearly equal the one of the commitment.
    """
    seeds: dict[str, str] = {}
    digest = commitment.sha256
    for plan in plans_of_method(EmbeddingPlan, plans, commitment, near_roots):
        draws = [(draw.commitment, draw.seed) for draw in plan.earlier]
        for sha256, seed in (*draws, (plan.commitment_sha256, plan.seed)):
            if sha256 != digest:
                seeds.setdefault(sha256, seed)
    return [EarlierEmbeddings(commitment=name, seed=seed) for name, seed in seeds.items()]


def refuse_smaller_sample(
    counts: EmbeddingCounts, plans: Iterable[EmbeddingPlan], commitment: Commitment
) -> None:
    """Raise UsageProblem if a plan for this commitment drew a larger sample before.

    A larger sample only adds embeddings, so a smaller one would leave out drawn ones.
    """
    digest, new_counts = commitment.sha256, counts.model_dump()
    for plan in plans:
        earlier_counts = plan.rows.model_dump()
        is_lower = any(new_counts[name] < earlier_counts[name] for name in earlier_counts)
        if plan.commitment_sha256 == digest and is_lower:
            drawn_size = FULL_SIZE if plan.rows.whole else str(plan.rows.test)
            raise UsageProblem(
                f"--size would make the sample smaller: --size {drawn_size} was drawn before for "
                "this commitment",
                f"pass --size {drawn_size}{'' if plan.rows.whole else ' or more'}: a sample can "
                "only grow",
            )


def draw_embeddings(
    commitment: Commitment,
    committed_at: str,
    beacon: Beacon,
    root: str,
    counts: EmbeddingCounts,
    earlier: Sequence[EarlierEmbeddings] = (),
) -> EmbeddingPlan:
    """Return the plan of an audit by receipt; its seed and the receipt decide what is drawn."""
    return EmbeddingPlan(
        schema_version="1.0",
        commitment=commitment,
        commitment_sha256=commitment.sha256,
        committed_at=committed_at,
        beacon=beacon,
        seed=seed_of(commitment.sha256, beacon_value(beacon), EMBEDDING_PROTOCOL),
        root=root,
        rows=counts,
        earlier=list(earlier),
    )


def refit_tasks(plan: EmbeddingPlan, tasks: Sequence[str]) -> list[str]:
    """Return the tasks of a receipt whose probes are fitted again, on variants of the sequences.

    They are drawn by the seed of the plan, with the number and the strata of the commitment, and
    again by the seed of each earlier draw.
    """
    policy, candidates = plan.commitment.policy, set(tasks)
    strata = [
        part
        for stratum in policy.strata
        if (part := [task for task in stratum if task in candidates])
    ]
    count = min(max(policy.drawn, len(strata)), len(tasks))
    chosen_tasks: dict[str, None] = {}
    for seed in (plan.seed, *(draw.seed for draw in plan.earlier)):
        ordered_tasks = [ticket.task for ticket in tickets_of(seed, tasks)]
        chosen_tasks.update(dict.fromkeys(sampled_tasks(ordered_tasks, count, strata)))
    return list(chosen_tasks)


def check_embedding_plan(plan: EmbeddingPlan) -> None:
    """Refuse a plan of embeddings if a step of its draw differs when it is computed again.

    No receipt is needed.

    Raises StepMismatch, whose `step` is one of `canonical.DRAW_STEPS`.
    """
    check_seed(plan, EMBEDDING_PROTOCOL)
    commitments = [draw.commitment for draw in plan.earlier]
    if plan.commitment_sha256 in commitments:
        _refuse("the plan's own draw is listed among the earlier ones")
    if len(set(commitments)) != len(commitments):
        _refuse("an earlier draw is listed twice")


def check_any_plan(plan: AnyPlan) -> None:
    """Raise StepMismatch if a step of the draw in a plan differs when it is computed again."""
    if isinstance(plan, EmbeddingPlan):
        check_embedding_plan(plan)
    else:
        check_task_plan(plan)


def _refuse(message: str) -> NoReturn:
    """Raise StepMismatch, of the step "sample"."""
    raise StepMismatch(SAMPLE_STEP, message)
