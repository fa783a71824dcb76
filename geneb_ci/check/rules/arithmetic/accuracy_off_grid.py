"""accuracy-off-grid: an accuracy is not a whole number of correct predictions over n_test."""

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
    """Whether no whole number of correct predictions gives the accuracy of a claim."""
    if claim.task.n_test is None:
        return False
    low, high = acc_limits(claim.task.n_test, claim.reading, claim.fits)
    return low > high


def check(context: Context) -> Iterator[Fault]:
    """Report each accuracy that is not a multiple of 1 / (n_test * fits) within its precision."""
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
                f'the accuracy {acc!r} of {quoted(claim.task.id)} in "{claim.regime}" is '
                f"impossible for {of}: {below} correct predictions give {below / total:.6f}, "
                f"{below + 1} give {(below + 1) / total:.6f}",
                repr(acc),
                f"a multiple of 1/{total}",
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="An accuracy does not correspond to a whole number of correct predictions.",
    why=(
        "The test split has n_test sequences, so accuracy is a multiple of 1 / n_test; any other "
        "value comes from other data, from averaging, or from editing."
    ),
    fix=(
        "Score the whole test split of the pinned data, and report the accuracy as computed, with "
        "all its digits."
    ),
    check=check,
    needs=(Need.TEST_SIZES,),
)
