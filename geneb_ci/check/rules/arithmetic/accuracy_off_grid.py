"""accuracy-off-grid: an accuracy is no whole number of right predictions."""

from collections.abc import Iterator

from geneb_ci.check.claims import Claim
from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.binary import acc_limits
from geneb_ci.submission.fault import Fault

ID = "accuracy-off-grid"


def is_off_grid(claim: Claim) -> bool:
    """Whether no whole number of right predictions gives the accuracy of a claim."""
    if claim.task.n_test is None:
        return False
    low, high = acc_limits(claim.task.n_test, claim.reading, claim.fits)
    return low > high


def check(context: Context) -> Iterator[Fault]:
    """Report each accuracy that lies between two neighbours of its grid."""
    for claim in context.claims:
        if is_off_grid(claim):
            total = (claim.task.n_test or 0) * claim.fits
            acc = claim.reading.value.acc
            below = int(acc * total)
            of = f"{claim.task.n_test} sequences" + (
                f" times {claim.fits} seeds" if claim.fits > 1 else ""
            )
            yield Fault(
                ID,
                (*claim.path, "Acc"),
                f'the accuracy {acc!r} of {quoted(claim.task.id)} in "{claim.regime}" is no whole '
                f"number of {of}: {below} right predictions give {below / total:.6f}, "
                f"{below + 1} give {(below + 1) / total:.6f}",
                repr(acc),
                f"a multiple of 1/{total}",
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="An accuracy is no whole number of right predictions.",
    why=(
        "The size of the test split is known, so accuracy moves in steps of one sequence; a value "
        "between two steps comes from other data, another mean or another hand."
    ),
    fix=(
        "Score the whole test split of the pinned data, and give the accuracy as it was computed, "
        "with all its digits."
    ),
    check=check,
    needs=(Need.TEST_SIZES,),
)
