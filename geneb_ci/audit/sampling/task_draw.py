"""Draws tasks by a commitment and a beacon, and computes plans again from public data."""

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import NoReturn, TypeVar

from geneb_ci.audit.canonical import ROUND_STEP, SAMPLE_STEP, SEED_STEP, TICKETS_STEP, seconds_of
from geneb_ci.audit.commit import SubmissionFile, checked_submission
from geneb_ci.audit.commitment import (
    PROTOCOL,
    Commitment,
    check_commitment,
    method_identity,
    same_method_reason,
)
from geneb_ci.audit.errors import AuditRefused, StepMismatch
from geneb_ci.audit.sampling import beacon
from geneb_ci.audit.sampling.beacon import randomness_of
from geneb_ci.audit.sampling.design import sampled_tasks, seed_of, tickets_of
from geneb_ci.audit.sampling.plan import (
    AnyPlan,
    BasePlan,
    Beacon,
    ChosenTask,
    DrandBeacon,
    EarlierDraw,
    EmbeddingPlan,
    PracticeBeacon,
    Reason,
    TaskPlan,
)
from geneb_ci.check.registry import BY_ID
from geneb_ci.check.rule import Context
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding
from geneb_ci.statistics.view import RowView, led_categories

_P = TypeVar("_P", TaskPlan, EmbeddingPlan)


def require_one_draw(
    plan_class: type[AnyPlan],
    plans: Iterable[AnyPlan],
    commitment: Commitment,
    committed_at: str,
) -> None:
    """Raise AuditRefused if a plan of this class drew for the commitment at another time.

    Tasks may be drawn after embeddings, and embeddings after tasks: they confirm different facts.
    """
    digest = commitment.sha256
    for plan in sorted((plan for plan in plans if isinstance(plan, plan_class)), key=_time_order):
        if plan.commitment_sha256 == digest and plan.committed_at != committed_at:
            raise AuditRefused(
                f"this commitment already has a draw, as of {plan.committed_at}",
                f"pass --committed-at {plan.committed_at} to repeat it: a commitment has only one "
                "draw",
            )


def plans_of_method(
    plan_class: type[_P],
    plans: Iterable[AnyPlan],
    commitment: Commitment,
    near_roots: Collection[str] = (),
) -> list[_P]:
    """Return the plans of a class for the method of a commitment, in order of time.

    A plan is for this method if its commitment has the same model id, weights, code or claims
    (`same_method_reason`), or if it draws from a receipt whose root is among `near_roots`.
    """
    identity = method_identity(commitment)
    return sorted(
        (
            plan
            for plan in plans
            if isinstance(plan, plan_class)
            and (
                (isinstance(plan, EmbeddingPlan) and plan.root in near_roots)
                or same_method_reason(method_identity(plan.commitment), identity)
            )
        ),
        key=_time_order,
    )


def _time_order(plan: AnyPlan) -> tuple[str, str]:
    """Return the sort key that puts plans in order of time."""
    return plan.committed_at, plan.commitment_sha256


def earlier_draws(plans: Iterable[AnyPlan], commitment: Commitment) -> list[EarlierDraw]:
    """Return the earlier draws of tasks for the method of a commitment.

    Draws that earlier plans list are included. The result has one item per other commitment, with
    every task that was drawn for it, in order of time.
    """
    by_commitment: dict[str, dict[str, None]] = {}
    digest = commitment.sha256
    for plan in plans_of_method(TaskPlan, plans, commitment):
        draws = [(draw.commitment, draw.drawn) for draw in plan.earlier]
        for sha256, drawn in (*draws, (plan.commitment_sha256, plan.drawn)):
            if sha256 != digest:
                by_commitment.setdefault(sha256, {}).update(dict.fromkeys(drawn))
    return [
        EarlierDraw(commitment=name, drawn=list(drawn)) for name, drawn in by_commitment.items()
    ]


def earlier_sample_size(plans: Iterable[TaskPlan], commitment: Commitment) -> int:
    """Return the size of the largest sample that was drawn for this commitment; 0 without one."""
    digest = commitment.sha256
    return max((len(plan.drawn) for plan in plans if plan.commitment_sha256 == digest), default=0)


def draw_tasks(
    commitment: Commitment,
    committed_at: str,
    beacon: Beacon,
    *,
    drawn: int | None = None,
    earlier: Sequence[EarlierDraw] = (),
    targeted: Sequence[str] = (),
    targeted_max: int | None = None,
) -> TaskPlan:
    """Return the plan of an audit: drawn tasks, then those of earlier draws, then targeted ones.

    `drawn` is the number of tasks to draw; None: that of the commitment. `targeted` lists tasks in
    order of preference; the first `targeted_max` of them that are not drawn are added. The plan is
    valid by `check_task_plan` if commitment and beacon are genuine. Raises UsageProblem when
    `drawn` is below the committed number or above the number of tasks.
    """
    count = commitment.policy.drawn if drawn is None else drawn
    if not commitment.policy.drawn <= count <= len(commitment.tasks):
        raise UsageProblem(
            f"cannot draw {count} tasks: the commitment has {len(commitment.tasks)} "
            f"tasks, and requires at least {commitment.policy.drawn}",
            f"draw {commitment.policy.drawn} to {len(commitment.tasks)} tasks",
        )
    seed = seed_of(commitment.sha256, beacon_value(beacon))
    tickets = tickets_of(seed, commitment.tasks)
    ordered_tasks = [ticket.task for ticket in tickets]
    drawn_tasks = sampled_tasks(ordered_tasks, count, commitment.policy.strata)
    earlier_drawn_tasks = earlier_tasks(ordered_tasks, drawn_tasks, earlier)
    undrawn_tasks = set(commitment.tasks) - {*drawn_tasks, *earlier_drawn_tasks}
    targeted_tasks = [task for task in dict.fromkeys(targeted) if task in undrawn_tasks][
        :targeted_max
    ]
    return TaskPlan(
        schema_version="1.0",
        commitment=commitment,
        commitment_sha256=commitment.sha256,
        committed_at=committed_at,
        beacon=beacon,
        seed=seed,
        tickets=tickets,
        earlier=list(earlier),
        chosen=[
            *_chosen_tasks(drawn_tasks, "drawn"),
            *_chosen_tasks(earlier_drawn_tasks, "earlier"),
            *_chosen_tasks(targeted_tasks, "targeted"),
        ],
    )


def beacon_value(beacon: Beacon) -> bytes:
    """Return the 32 bytes of randomness of a beacon."""
    if isinstance(beacon, DrandBeacon):
        return randomness_of(beacon.signature)
    return bytes.fromhex(beacon.value)


def earlier_tasks(
    ordered_tasks: Sequence[str], drawn: Sequence[str], earlier: Sequence[EarlierDraw]
) -> list[str]:
    """Return the tasks of earlier draws that this draw lacks, in order of their tickets.

    A task that was removed from the benchmark cannot be rerun and is left out.
    """
    undrawn_earlier = {task for draw in earlier for task in draw.drawn} - set(drawn)
    return [task for task in ordered_tasks if task in undrawn_earlier]


def _chosen_tasks(tasks: Sequence[str], reason: Reason) -> list[ChosenTask]:
    """Return tasks to rerun for one reason, as a plan lists them."""
    return [ChosenTask(task=task, reason=reason) for task in tasks]


def check_task_plan(plan: TaskPlan) -> None:
    """Refuse a plan if a step of its draw differs when it is computed again.

    Not checked are the time of publication, `committed_at`, whether every earlier draw is listed,
    and a value of a fallback key that is still secret. Raises StepMismatch, whose `step`
    is one of `canonical.DRAW_STEPS`.
    """
    check_seed(plan)
    # 5. Tickets: one for each task, of the right value, smallest first.
    tickets = tickets_of(plan.seed, plan.commitment.tasks)
    for listed, expected in zip(plan.tickets, tickets, strict=False):
        if listed != expected:
            _refuse(
                TICKETS_STEP, f"the tickets do not follow from the seed, from {listed.task!r} on"
            )
    if len(plan.tickets) != len(tickets):
        _refuse(
            TICKETS_STEP,
            f"the plan has {len(plan.tickets)} tickets, expected {len(tickets)}: one for each task",
        )
    # 6. Sample.
    _check_sample(plan, [ticket.task for ticket in tickets])


def check_seed(plan: BasePlan, protocol: str = PROTOCOL) -> None:
    """Refuse a plan whose commitment, round, signature or seed differs when computed again."""
    # 1. Commitment: its digest, and that it can be drawn from.
    check_commitment(plan.commitment, plan.commitment_sha256)
    # 2. Round: the one of drand quicknet that follows from the time of the commitment.
    # 3. Signature: by the key of the beacon, or by the fallback key.
    if isinstance(plan.beacon, DrandBeacon):
        if plan.beacon.chain != beacon.QUICKNET.hash:
            _refuse(ROUND_STEP, f"the chain {plan.beacon.chain} is not that of drand quicknet")
        _check_round(plan.beacon.round, plan.committed_at)
        beacon.verify_round(plan.beacon.round, plan.beacon.signature)
    elif isinstance(plan.beacon, PracticeBeacon):
        _check_round(plan.beacon.round, plan.committed_at)
        beacon.verify_practice(plan.beacon, plan.commitment.benchmark.sha256)
    else:
        _due_round(plan.committed_at)
        beacon.verify_fallback(plan.beacon, plan.commitment_sha256)
    # 4. Seed.
    seed = seed_of(plan.commitment_sha256, beacon_value(plan.beacon), protocol)
    if plan.seed != seed:
        _refuse(
            SEED_STEP,
            f"the plan has the seed {plan.seed}, expected {seed} of commitment and beacon",
        )


def _check_round(round_number: int, committed_at: str) -> None:
    """Refuse another round than the one that follows from the time of the commitment."""
    expected = _due_round(committed_at)
    if round_number != expected:
        _refuse(
            ROUND_STEP,
            f"the plan has round {round_number}, expected {expected} for a commitment at "
            f"{committed_at}",
        )


def _due_round(committed_at: str) -> int:
    """Return the round that decides for a commitment at this time, or raise StepMismatch."""
    try:
        return beacon.round_at(seconds_of(committed_at))
    except UsageProblem as error:
        _refuse(ROUND_STEP, error.message)


def _check_sample(plan: TaskPlan, ordered_tasks: list[str]) -> None:
    """Refuse drawn, earlier or targeted tasks that do not follow from the order of the tickets."""
    committed_policy, drawn_tasks = plan.commitment.policy, plan.drawn
    if len(drawn_tasks) < committed_policy.drawn:
        _refuse(
            SAMPLE_STEP,
            f"{len(drawn_tasks)} tasks are drawn, expected the {committed_policy.drawn} "
            "committed or more",
        )
    try:
        expected = sampled_tasks(ordered_tasks, len(drawn_tasks), committed_policy.strata)
    except UsageProblem as error:
        _refuse(SAMPLE_STEP, error.message)
    if drawn_tasks != expected:
        wrong_tasks = [task for task in drawn_tasks if task not in expected]
        _refuse(
            SAMPLE_STEP,
            f"the drawn tasks are not those of the smallest tickets: {wrong_tasks[0]!r}"
            if wrong_tasks
            else "the drawn tasks are not in the order of their tickets",
        )
    expected_earlier = earlier_tasks(ordered_tasks, expected, plan.earlier)
    listed_earlier = [choice.task for choice in plan.chosen if choice.reason == "earlier"]
    if listed_earlier != expected_earlier:
        _refuse(SAMPLE_STEP, f"earlier draws add {expected_earlier}, the plan has {listed_earlier}")
    tasks = [choice.task for choice in plan.chosen]
    targeted = [choice.task for choice in plan.chosen if choice.reason == "targeted"]
    if tasks != [*expected, *expected_earlier, *targeted]:
        _refuse(
            SAMPLE_STEP, "wrong order: expected drawn tasks, then earlier ones, then targeted ones"
        )
    if len(set(tasks)) != len(tasks) or not set(tasks) <= set(ordered_tasks):
        _refuse(SAMPLE_STEP, "a task is listed twice, or is not in the commitment")
    if any(draw.commitment == plan.commitment_sha256 for draw in plan.earlier):
        _refuse(SAMPLE_STEP, "the plan's own draw is listed among the earlier ones")


def _refuse(step: str, message: str) -> NoReturn:
    """Raise StepMismatch, of the step `step`."""
    raise StepMismatch(step, message)


LED_TASKS_MAX = 3
"""Largest number of tasks that an audit adds by default, one of each category that the model
leads."""
SUSPICIOUS_FAMILY = "plausibility"
"""Family of the rules whose findings make a task suspicious."""
_TASK_POINTER_PARTS = 3  # of /results/<regime>/<task>, to which a metric may be added


def targeted_tasks_of(
    commitment: Commitment, count: int, submission: SubmissionFile | None
) -> list[str]:
    """Return the suspicious tasks of the committed submission, the most suspicious first.

    Returns [] if `count`, the number of targeted tasks, is 0. Raises UsageProblem if the submission
    is missing.
    """
    if count < 1:
        return []
    if submission is None:
        raise UsageProblem(
            "--targeted needs the committed submission, which is missing",
            "name the file of the submission: --submission FILE",
        )
    return suspicious_tasks(*checked_submission(submission), commitment.tasks)


def led_tasks_of(commitment: Commitment, submission: SubmissionFile | None) -> list[str]:
    """Return a task of each category that the committed submission leads, most surprising first.

    Returns [] if the submission is missing.
    """
    if submission is None:
        return []
    return led_tasks(checked_submission(submission)[0].view, commitment.tasks)


def suspicious_tasks(
    context: Context, findings: Iterable[Finding], candidates: Collection[str]
) -> list[str]:
    """Return those of the `candidates` that are suspicious, the most suspicious first.

    The first are tasks with findings, by the sum of the findings' scores; then a task of each
    category in which the row leads; then tasks with a higher score than other rows predict, by the
    difference. Equal tasks are in the order of the benchmark.
    """
    scores = suspicion_scores(findings)
    gain_by_task = largest_gains(context.view)
    position_by_task = {task: position for position, task in enumerate(context.benchmark.task_ids)}
    ordered_candidates = [task for task in position_by_task if task in candidates]
    ordered_suspects = [task for task in ordered_candidates if scores.get(task, 0.0) > 0]
    ordered_suspects.sort(key=lambda task: (-scores[task], position_by_task[task]))
    ordered_suspects += [
        task for task in led_tasks(context.view, ordered_candidates) if task not in ordered_suspects
    ]
    tasks_with_gain = [
        task
        for task in ordered_candidates
        if task not in ordered_suspects and gain_by_task.get(task, 0.0) > 0
    ]
    tasks_with_gain.sort(key=lambda task: (-gain_by_task[task], position_by_task[task]))
    return [*ordered_suspects, *tasks_with_gain]


def led_tasks(view: RowView, candidates: Collection[str]) -> list[str]:
    """Return, of each category that a row leads, the candidate with the most surprising score."""
    surprising_tasks = []
    for lead in led_categories(view):
        tasks = [view.cell(cell)[1] for cell in lead.cells]
        surprising_tasks += [task for task in tasks if task in candidates][:1]
    return surprising_tasks


def suspicion_scores(findings: Iterable[Finding]) -> dict[str, float]:
    """Return, by task, the sum of the scores of the plausibility findings about it."""
    scores_by_task: dict[str, list[float]] = {}
    for finding in findings:
        keys = finding.pointer.split("/")[1:]
        if BY_ID[finding.rule].family != SUSPICIOUS_FAMILY or finding.score <= 0:
            continue
        if len(keys) >= _TASK_POINTER_PARTS and keys[0] == "results":
            scores_by_task.setdefault(keys[2], []).append(finding.score)
    return {task: math.fsum(scores) for task, scores in scores_by_task.items()}


def largest_gains(view: RowView) -> dict[str, float]:
    """Return, by task, how far its score exceeds the predicted score: the largest of its regimes.

    Scores are predicted from the other rows or, if that is impossible, by the median of those.
    """
    prediction = view.prediction
    gains = prediction.distances if prediction is not None else _above_median(view)
    gain_by_task: dict[str, float] = {}
    for number, gain in enumerate(gains):
        _, task = view.cell(number)
        gain_by_task[task] = max(gain, gain_by_task.get(task, 0.0))
    return gain_by_task


def _above_median(view: RowView) -> list[float]:
    """Return by how much each cell's score exceeds the median of other rows; 0 if unknown."""
    rows = [row for _, row in view.other_rows]
    gains = []
    for number, score in enumerate(view.row):
        column = [row[number] for row in rows if not math.isnan(row[number])]
        is_known = bool(column) and not math.isnan(score)
        gains.append(score - median(column) if is_known else 0.0)
    return gains
