"""The confusion matrices behind a submission's scores, as far as the scores tell."""

from collections.abc import Iterator
from typing import NamedTuple

from geneb_ci.check.claims import two_classes
from geneb_ci.check.context import Context
from geneb_ci.statistics.binary import BinaryTable, Classes, count, runs, scores_of, table
from geneb_ci.statistics.nearest import nearest
from geneb_ci.statistics.printed import Reading, Triple

# More are counted, but not listed: a reader can do nothing with them.
LISTED_MAX = 100
# A task of 70,000 sequences has no more tables than this.
COUNT_MAX = 70_000**2


class Recovered(NamedTuple):
    """What is known of one cell, or of one seed of it."""

    regime: str
    task: str
    seed: int | None
    """None for a regime of one fit."""
    classes: Classes
    printed: Triple
    matrices: int
    """How many tables give the scores as printed; none where they are impossible."""
    table: BinaryTable | None
    """The one that comes nearest to what was printed."""
    tables: tuple[BinaryTable, ...]
    """All of them, unless there are more than `LISTED_MAX`."""

    @property
    def scores(self) -> Triple | None:
        """The metrics of the nearest table."""
        return scores_of(self.table) if self.table else None


def recovered(context: Context, regime: str) -> Iterator[Recovered]:
    """Recover the tables of a regime's two-class cells; of a mean, those of its seeds if given."""
    for claim in context.claims:
        if claim.path[:2] == ("results", regime) and claim.classes and claim.fits == 1:
            yield recovered_cell(regime, claim.task.id, None, claim.classes, claim.reading)
    if regime in context.benchmark.protocol.few_shot_k:
        seeds = context.benchmark.protocol.seeds
        for claims in context.seed_claims:
            classes = two_classes(claims.task)
            if claims.regime == regime and classes:
                for seed, reading in zip(seeds, claims.readings, strict=True):
                    yield recovered_cell(regime, claims.task.id, seed, classes, reading)


def recovered_cell(
    regime: str, task: str, seed: int | None, classes: Classes, reading: Reading
) -> Recovered:
    """Recover the tables of one cell, or of one seed of it."""
    matrices = count(classes, reading, COUNT_MAX)
    listed = (
        table(classes, run.right, rho)
        for run in runs(classes, reading)
        for rho in range(run.first, run.last + 1, 2)
    )
    tables = tuple(listed) if matrices <= LISTED_MAX else ()
    best = tables[0] if matrices == 1 else None
    if matrices > 1:
        best = nearest(classes, reading.value).table
    return Recovered(regime, task, seed, classes, reading.value, matrices, best, tables)
