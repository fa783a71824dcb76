"""From a commitment and a beacon to the plan of an audit."""

from collections.abc import Sequence

from geneb_ci.audit.beacon import value_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.plan import Beacon, Chosen, DrandBeacon, EarlierDraw, Plan, Reason
from geneb_ci.audit.sampling import sample, seed_of, tickets_of
from geneb_ci.errors import UsageProblem


def draw(
    commitment: Commitment,
    committed_at: str,
    beacon: Beacon,
    *,
    drawn: int | None = None,
    earlier: Sequence[EarlierDraw] = (),
    targeted: Sequence[str] = (),
) -> Plan:
    """Give the plan: the drawn tasks, those of earlier draws, then the targeted ones.

    `drawn` is k where it is raised above the committed one. Whether the beacon is genuine is for
    `recompute`. Raises UsageProblem when k is lowered, or larger than the number of tasks.
    """
    wanted = commitment.policy.drawn if drawn is None else drawn
    if not commitment.policy.drawn <= wanted <= len(commitment.tasks):
        raise UsageProblem(
            f"{wanted} tasks cannot be drawn: {commitment.policy.drawn} are committed, of "
            f"{len(commitment.tasks)}",
            "a sample may be raised above what is committed, and never lowered",
        )
    seed = seed_of(commitment.sha256, beacon_value(beacon))
    tickets = tickets_of(seed, commitment.tasks)
    ranked = [one.task for one in tickets]
    chosen = sample(ranked, wanted, commitment.policy.strata)
    again = earlier_tasks(ranked, chosen, earlier)
    left = set(commitment.tasks) - {*chosen, *again}
    aimed = [task for task in dict.fromkeys(targeted) if task in left]
    return Plan(
        schema_version="1.0",
        commitment=commitment,
        commitment_sha256=commitment.sha256,
        committed_at=committed_at,
        beacon=beacon,
        seed=seed,
        tickets=tickets,
        earlier=list(earlier),
        chosen=[*_marked(chosen, "drawn"), *_marked(again, "earlier"), *_marked(aimed, "targeted")],
    )


def beacon_value(beacon: Beacon) -> bytes:
    """Give the 32 bytes of randomness of a beacon."""
    if isinstance(beacon, DrandBeacon):
        return value_of(beacon.signature)
    return bytes.fromhex(beacon.value)


def earlier_tasks(
    ranked: Sequence[str], drawn: Sequence[str], earlier: Sequence[EarlierDraw]
) -> list[str]:
    """Give the tasks of earlier draws that this one did not draw, in order of their tickets.

    A task that the benchmark no longer has cannot be rerun, and is left out.
    """
    again = {task for one in earlier for task in one.drawn} - set(drawn)
    return [task for task in ranked if task in again]


def _marked(tasks: Sequence[str], reason: Reason) -> list[Chosen]:
    return [Chosen(task=task, reason=reason) for task in tasks]
