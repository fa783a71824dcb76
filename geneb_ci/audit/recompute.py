"""Whether a plan follows from public data, step by step; the first step that does not is named."""

from typing import NoReturn

from geneb_ci.audit import beacon, fallback
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.draw import beacon_value, earlier_tasks
from geneb_ci.audit.moments import seconds_of
from geneb_ci.audit.plan import DrandBeacon, Plan
from geneb_ci.audit.sampling import sample, seed_of, tickets_of
from geneb_ci.audit.steps import COMMITMENT, ROUND, SAMPLE, SEED, TICKETS, StepMismatch
from geneb_ci.errors import UsageProblem


def recompute(plan: Plan) -> None:
    """Compute every step of a draw again, without network.

    What it cannot know: whether `committed_at` is when the commitment became public, whether all
    earlier draws are listed, and a fallback key that is not revealed yet (`fallback.is_open`).
    Raises StepMismatch, whose `step` is one of `steps.STEPS`.
    """
    # 1. Commitment: its digest, and that it can be drawn from.
    _commitment(plan.commitment, plan.commitment_sha256)
    # 2. Round: the one that the time of the commitment fixes, of the chain we know.
    # 3. Signature: the beacon's own, or the committed key's.
    if isinstance(plan.beacon, DrandBeacon):
        _round(plan.beacon, plan.committed_at)
        beacon.verify(plan.beacon.round, plan.beacon.signature)
    else:
        _due(plan.committed_at)
        fallback.verify(plan.beacon, plan.commitment_sha256)
    # 4. Seed.
    seed = seed_of(plan.commitment_sha256, beacon_value(plan.beacon))
    if plan.seed != seed:
        _refuse(SEED, f"it is {plan.seed}, and commitment and beacon give {seed}")
    # 5. Tickets: one for each task, of the right value, smallest first.
    tickets = tickets_of(seed, plan.commitment.tasks)
    if plan.tickets != tickets:
        pairs = zip(plan.tickets, tickets, strict=False)
        wrong = next((given.task for given, due in pairs if given != due), "the number of them")
        _refuse(TICKETS, f"they are not what the seed gives, from {wrong!r} on")
    # 6. Sample.
    _sample(plan, [one.task for one in tickets])


def _commitment(commitment: Commitment, published: str) -> None:
    if commitment.sha256 != published:
        _refuse(COMMITMENT, f"its digest is {commitment.sha256}, and {published} was published")
    tasks, policy = commitment.tasks, commitment.policy
    stratified = [task for stratum in policy.strata for task in stratum]
    if len(set(tasks)) != len(tasks):
        _refuse(COMMITMENT, "a task stands twice")
    if policy.drawn > len(tasks):
        _refuse(COMMITMENT, f"{policy.drawn} tasks are to be drawn from {len(tasks)}")
    if len(set(stratified)) != len(stratified) or not set(stratified) <= set(tasks):
        _refuse(COMMITMENT, "a stratum has a task that is not there, or that is in another as well")
    if policy.strata and not (policy.stratified and all(policy.strata)):
        _refuse(COMMITMENT, "it has strata without being stratified, or an empty one")


def _round(given: DrandBeacon, committed_at: str) -> None:
    if given.chain != beacon.QUICKNET.hash:
        _refuse(ROUND, f"the chain {given.chain} is not that of drand quicknet")
    due = _due(committed_at)
    if given.round != due:
        _refuse(ROUND, f"it is {given.round}, and a commitment at {committed_at} fixes {due}")


def _due(committed_at: str) -> int:
    try:
        return beacon.round_at(seconds_of(committed_at))
    except UsageProblem as error:
        _refuse(ROUND, error.message)


def _sample(plan: Plan, ranked: list[str]) -> None:
    committed, given = plan.commitment.policy, plan.drawn
    if len(given) < committed.drawn:
        _refuse(SAMPLE, f"{len(given)} tasks are drawn, and {committed.drawn} are committed")
    try:
        due = sample(ranked, len(given), committed.strata)
    except UsageProblem as error:
        _refuse(SAMPLE, error.message)
    if given != due:
        wrong = next((task for task in given if task not in due), "their order")
        _refuse(SAMPLE, f"the drawn tasks are not those of the smallest tickets: {wrong!r}")
    again = earlier_tasks(ranked, due, plan.earlier)
    given_again = [one.task for one in plan.chosen if one.reason == "earlier"]
    if given_again != again:
        _refuse(SAMPLE, f"earlier draws add {again}, and the plan has {given_again}")
    tasks = [one.task for one in plan.chosen]
    targeted = [one.task for one in plan.chosen if one.reason == "targeted"]
    if tasks != [*due, *again, *targeted]:
        _refuse(SAMPLE, "drawn tasks come first, then earlier ones, then targeted ones")
    if len(set(tasks)) != len(tasks) or not set(targeted) <= set(ranked):
        _refuse(SAMPLE, "a task stands twice, or is none of the commitment's")
    if any(one.commitment == plan.commitment_sha256 for one in plan.earlier):
        _refuse(SAMPLE, "the plan's own draw stands among the earlier ones")


def _refuse(step: str, message: str) -> NoReturn:
    raise StepMismatch(step, message)
