"""rounded-scores: scores were rounded, so that several confusion matrices fit them."""

from collections.abc import Iterator

from geneb_ci.check.claims import Claim
from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.binary import count
from geneb_ci.statistics.printed import SINGLE
from geneb_ci.submission.fault import Fault

ID = "rounded-scores"
# Beyond this many the exact number tells a reader nothing.
COUNT_MAX = 1000


def check(context: Context) -> Iterator[Fault]:
    """Report, once a regime of one fit, how many matrices its rounded scores leave."""
    for regime in context.benchmark.regimes:
        claims = [claim for claim in context.claims if claim.path[:2] == ("results", regime)]
        counts = {claim.task.id: _tables(claim) for claim in claims}
        several = {task: tables for task, tables in counts.items() if tables > 1}
        if several:
            worst = max(several, key=lambda task: several[task])
            most = f"more than {COUNT_MAX}" if several[worst] > COUNT_MAX else str(several[worst])
            yield Fault(
                ID,
                ("results", regime),
                f'the scores of "{regime}" were rounded: {len(several)} of its {len(claims)} cells '
                f"fit more than one confusion matrix, {quoted(worst)} {most}",
                f"{most} matrices",
                "one matrix",
                on_key=True,
            )


def _tables(claim: Claim) -> int:
    """Count the matrices of a rounded cell of one fit; 0 where there is nothing to count."""
    if claim.classes is None or claim.fits > 1 or max(claim.reading.width) <= SINGLE:
        return 0
    return count(claim.classes, claim.reading, COUNT_MAX)


RULE = Rule(
    id=ID,
    severity=Severity.NOTE,
    what="Scores were rounded, so that several confusion matrices fit them.",
    why=(
        "With all digits one matrix remains, which proves the cell and gives its uncertainty; each "
        "digit less leaves room for an error that nobody sees."
    ),
    fix="Give the scores as they were computed, with all digits.",
    check=check,
    needs=(Need.CLASS_SIZES,),
)
