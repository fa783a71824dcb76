"""From a seed to the sample: every task gets a ticket, and the smallest ones are drawn.

Rivest's consistent sampler, as election audits use it: a larger sample only adds tasks, and no
library's random generator has a part in it.
"""

import hashlib
from collections.abc import Sequence

from geneb_ci.audit.commitment import PROTOCOL
from geneb_ci.audit.plan import Ticket
from geneb_ci.audit.strata import allocation

SEPARATOR = b"\x00"  # ends the seed; no id begins inside it


def seed_of(commitment: str, value: bytes) -> str:
    """Give SHA-256(protocol || c || rho) as hex digits, of the raw 32 bytes of both."""
    return hashlib.sha256(PROTOCOL.encode() + bytes.fromhex(commitment) + value).hexdigest()


def ticket_of(seed: str, task: str) -> str:
    """Give SHA-256(seed || 0x00 || id) as hex digits, of the seed's raw bytes."""
    return hashlib.sha256(bytes.fromhex(seed) + SEPARATOR + task.encode()).hexdigest()


def tickets_of(seed: str, tasks: Sequence[str]) -> list[Ticket]:
    """Give every task its ticket, smallest first; the order of the tasks plays no part."""
    found = [Ticket(task=task, ticket=ticket_of(seed, task)) for task in tasks]
    return sorted(found, key=lambda one: (one.ticket, one.task))


def sample(ranked: Sequence[str], drawn: int, strata: Sequence[Sequence[str]] = ()) -> list[str]:
    """Draw from tasks in order of their tickets; gives them in that order.

    Without strata, the first `drawn` ones; with strata, the first of each as `allocation` says.
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
