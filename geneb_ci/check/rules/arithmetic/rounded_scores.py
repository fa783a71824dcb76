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
# Above this the exact number does not help a reader.
COUNT_MAX = 1000


def check(context: Context) -> Iterator[Fault]:
    """Report, once per single-fit regime, how many confusion matrices its rounded scores fit."""
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
    """Count the matrices that a rounded single-fit cell fits; 0 if it was not rounded."""
    if claim.classes is None or claim.fits > 1 or max(claim.reading.width) <= SINGLE:
        return 0
    return count(claim.classes, claim.reading, COUNT_MAX)


RULE = Rule(
    id=ID,
    severity=Severity.NOTE,
    what="Scores were rounded, so that several confusion matrices fit them.",
    why=(
        "Unrounded scores determine one confusion matrix, which confirms the cell and gives its "
        "confidence interval; with rounded scores small errors go unnoticed."
    ),
    fix="Report the scores as computed, with all digits.",
    check=check,
    needs=(Need.CLASS_SIZES,),
)
