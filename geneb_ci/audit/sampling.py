"""From a seed to the sample: tasks that can be drawn, their strata and their tickets."""

import hashlib
import heapq
from collections.abc import Sequence
from fractions import Fraction

from geneb_ci.audit.commitment import PROTOCOL
from geneb_ci.audit.plan import Ticket
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.errors import BadConfiguration, UsageProblem
from geneb_ci.common.finding import first_and_more
from geneb_ci.submission.models import Submission

# Categories of fewer tasks share what is left. Of GENEB's 13 categories 8 have 5 tasks or more, 91
# of the 100 tasks.
LARGER = 5


def strata_of(benchmark: Benchmark, tasks: Sequence[str]) -> list[list[str]]:
    """Return the tasks of each of the larger categories, both in board order."""
    wanted = set(tasks)
    parts = ([task for task in ids if task in wanted] for ids in benchmark.categories.values())
    return [part for part in parts if len(part) >= LARGER]


def allocation(sizes: Sequence[int], guaranteed: int, drawn: int) -> list[int]:
    """Divide `drawn` places among the parts: one to each of the first `guaranteed`, then by size.

    `sizes` counts the tasks of each part. The rest goes by highest averages (Webster, 1832):
    each place to the part with the largest size / (2 places + 1), the first of equals. No part
    loses a place when `drawn` grows, so a larger sample only adds tasks.
    Raises UsageProblem when there are fewer places than guarantees, or more than tasks.
    """
    if not guaranteed <= drawn <= sum(sizes):
        raise UsageProblem(
            f"{drawn} tasks cannot be drawn from {sum(sizes)} with one of each of {guaranteed} "
            "larger categories",
            f"draw at least {guaranteed} and at most {sum(sizes)}",
        )
    places = [int(number < guaranteed) for number in range(len(sizes))]
    queue = [
        (-Fraction(n, 2 * a + 1), i) for i, (n, a) in enumerate(zip(sizes, places, strict=True))
    ]
    heapq.heapify(queue)
    for _ in range(drawn - guaranteed):
        _, part = heapq.heappop(queue)
        while places[part] == sizes[part]:
            _, part = heapq.heappop(queue)
        places[part] += 1
        heapq.heappush(queue, (-Fraction(sizes[part], 2 * places[part] + 1), part))
    return places


def drawable(
    submission: Submission, benchmark: Benchmark, audited: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the audited regimes that have scores, and the tasks with a score in any of them.

    Both are in the order of the benchmark. A score in one regime is enough: otherwise a missing
    cell, declared in one regime, would keep a task's other scores from every audit.
    Raises BadConfiguration for an audited regime that the benchmark does not have, and AuditRefused
    when nothing is claimed.
    """
    if unknown := [name for name in audited if name not in benchmark.regimes]:
        raise BadConfiguration(
            f"policy.toml: [audit] regimes names {first_and_more(unknown)}, and {benchmark.name} "
            f"has {', '.join(benchmark.regimes)}",
            "name regimes of the benchmark",
        )
    regimes = [
        name for name in benchmark.regimes if name in audited and submission.results.get(name)
    ]
    claimed = {task for regime in regimes for task in submission.results[regime]}
    tasks = [task for task in benchmark.task_ids if task in claimed]
    if not tasks:
        raise AuditRefused(
            "the submission has no score in a regime that is audited",
            f"the policy audits {', '.join(audited)}; without a score there, no audit is possible",
        )
    return regimes, tasks


SEPARATOR = b"\x00"  # ends the seed; no id begins inside it


def seed_of(commitment: str, value: bytes) -> str:
    """Return SHA-256(protocol || c || rho) as hex digits, of the raw 32 bytes of both."""
    return hashlib.sha256(PROTOCOL.encode() + bytes.fromhex(commitment) + value).hexdigest()


def ticket_of(seed: str, task: str) -> str:
    """Return SHA-256(seed || 0x00 || id) as hex digits, of the seed's raw bytes."""
    return hashlib.sha256(bytes.fromhex(seed) + SEPARATOR + task.encode()).hexdigest()


def tickets_of(seed: str, tasks: Sequence[str]) -> list[Ticket]:
    """Return the ticket of every task, smallest first, whatever the order of `tasks`."""
    found = [Ticket(task=task, ticket=ticket_of(seed, task)) for task in tasks]
    return sorted(found, key=lambda one: (one.ticket, one.task))


def sample(ranked: Sequence[str], drawn: int, strata: Sequence[Sequence[str]] = ()) -> list[str]:
    """Return the drawn tasks, given all tasks in order of their tickets; in that order too.

    Without strata, the first `drawn`; with strata, the first of each, as many as `allocation` says.
    Raises UsageProblem, as `allocation` does.
    """
    if not strata:
        return list(ranked[:drawn])
    parts = parts_of(ranked, strata)
    seats = allocation([len(part) for part in parts], len(strata), drawn)
    chosen = {task for part, places in zip(parts, seats, strict=True) for task in part[:places]}
    return [task for task in ranked if task in chosen]


def parts_of(ranked: Sequence[str], strata: Sequence[Sequence[str]]) -> list[list[str]]:
    """Split tasks into the strata and, last, all others; each part keeps their order."""
    number = {task: index for index, stratum in enumerate(strata) for task in stratum}
    parts: list[list[str]] = [[] for _ in range(len(strata) + 1)]
    for task in ranked:
        parts[number.get(task, len(strata))].append(task)
    return parts
