"""What the numbers of an audit say: computed here when it runs, and again when it is verified.

Three rules, each over what a record holds.

1. A cell differs where a metric of the claim lies beyond its tolerance, above or below. A claim
   that is too low is no honest number either: it names other embeddings than the rerun's.
2. A regime slants where its claims lie beside the rerun on one side. Within its tolerance an honest
   claim lies above or below by chance, so shares of the tolerance, |share| <= 1, cancel: their mean
   over n cells has to lie within SLANT / sqrt(n). Else every cell could be raised by nearly its
   tolerance, and no sample however large would show it.
3. A cell has force where its tolerance is at most FORCE. One that has none can catch nothing that
   matters: it is compared, and counted as no evidence.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from geneb_ci.audit.outcome import (
    AuditedTask,
    CanonicalCompared,
    Compared,
    Decoys,
    Verdict,
)

AGREES: Verdict = "agrees"
DIFFERS: Verdict = "differs"
METRICS = ("MCC", "Acc", "F1")
SLANT = 2.0
"""Largest mean share of the tolerance, times the root of the number of cells. Of 20,000 audits of
k-mers with jittered claims, none had more than 0.6 at the noise of its dtype, and 1.2 at eight
times that. It binds from five cells on: fewer cannot have more."""
FORCE = 0.1
"""Tolerance of MCC: by so much the power tables of docs/audits.md let a single task be raised."""


def beyond(cell: Compared | CanonicalCompared) -> list[str]:
    """Name the metrics of a claim that lie outside their tolerance of the rescored value."""
    return [
        metric
        for metric in METRICS
        if abs(getattr(cell.claimed, metric) - getattr(cell.rescored, metric))
        > getattr(cell.tolerance, metric)
    ]


def verdict_of(cell: Compared | CanonicalCompared) -> Verdict:
    """Give the verdict of a cell; canonical scores count as much as the others."""
    canonical = cell.canonical if isinstance(cell, Compared) else None
    told = beyond(cell) or (canonical is not None and beyond(canonical))
    return DIFFERS if told else AGREES


def task_verdict(cells: Iterable[Compared]) -> Verdict:
    """Give the verdict of a task: it differs as soon as one regime does."""
    return DIFFERS if any(verdict_of(one) == DIFFERS for one in cells) else AGREES


class Slant(NamedTuple):
    """How the claims of one regime lie beside the rerun."""

    share: float
    """Mean of (claimed - rescored) / tolerance of MCC."""
    most: float
    """Largest share that chance allows."""
    raised: float
    """Mean of claimed - rescored."""

    @property
    def tells(self) -> bool:
        """Whether chance does not explain it."""
        return abs(self.share) > self.most


def slants(tasks: Sequence[AuditedTask]) -> dict[str, Slant]:
    """Give the slant of each regime."""
    found: dict[str, Slant] = {}
    for regime in dict.fromkeys(name for one in tasks for name in one.regimes):
        cells = [one.regimes[regime] for one in tasks if regime in one.regimes]
        raised = [cell.claimed.MCC - cell.rescored.MCC for cell in cells]
        shares = [
            _share(gain, cell.tolerance.MCC) for gain, cell in zip(raised, cells, strict=True)
        ]
        count = len(cells)
        found[regime] = Slant(
            math.fsum(shares) / count, SLANT / math.sqrt(count), math.fsum(raised) / count
        )
    return found


def _share(gain: float, tolerance: float) -> float:
    """Give a gain as a share of its tolerance; what lies beyond it is for rule 1, and counts 1."""
    if abs(gain) >= tolerance:
        return math.copysign(1.0, gain) if gain else 0.0
    return gain / tolerance


def overall_verdict(tasks: Sequence[AuditedTask], decoys: Decoys) -> Verdict:
    """Give the verdict of an audit: a task differs, a regime slants, or a decoy tells."""
    told = decoys.order_dependent or decoys.memorised
    told = told or any(task_verdict(one.regimes.values()) == DIFFERS for one in tasks)
    return DIFFERS if told or any(one.tells for one in slants(tasks).values()) else AGREES


class Force(NamedTuple):
    """How many cells of a regime were worth comparing."""

    cells: int
    of: int

    @property
    def suffices(self) -> bool:
        """Whether at least half of them were."""
        return 2 * self.cells >= self.of


def force_of(tasks: Iterable[AuditedTask]) -> dict[str, Force]:
    """Count the cells of each regime that have force."""
    found: dict[str, Force] = {}
    for one in tasks:
        for regime, cell in one.regimes.items():
            cells, of = found.get(regime, (0, 0))
            found[regime] = Force(cells + (cell.tolerance.MCC <= FORCE), of + 1)
    return found


def force_text(found: dict[str, Force]) -> str:
    """Say it: `full 4 of 5, 10shot 5 of 5`."""
    return ", ".join(f"{regime} {one.cells} of {one.of}" for regime, one in found.items())
