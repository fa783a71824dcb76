"""inconsistent-metrics: the three metrics contradict each other for any class sizes."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.check.rules.arithmetic.accuracy_off_grid import is_off_grid
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics import printed
from geneb_ci.statistics.binary import acc_limits
from geneb_ci.statistics.printed import Reading
from geneb_ci.submission.fault import Fault

ID = "inconsistent-metrics"


def check(context: Context) -> Iterator[Fault]:
    """Report each metric outside the bounds that hold for any class sizes (class sizes unknown)."""
    for claim in context.claims:
        n = claim.task.n_test
        if claim.classes is None and n is not None and not is_off_grid(claim):
            for metric, found, low, high in broken(n, claim.reading, claim.fits):
                yield Fault(
                    ID,
                    (*claim.path, metric),
                    f'{quoted(claim.task.id)} in "{claim.regime}": with accuracy '
                    f"{claim.reading.value.acc:.6g} on {n} sequences, {metric} must be between "
                    f"{low:.6g} and {high:.6g} for any class sizes; it is {found:.6g}",
                    f"{found:.6g}",
                    f"{low:.6g} to {high:.6g}",
                )


def broken(n: int, reading: Reading, fits: int) -> Iterator[tuple[str, float, float, float]]:
    """Yield each metric outside its bounds: name, value, lower bound, upper bound."""
    value, width = reading
    # The bounds are monotone in accuracy, so the two ends of its interval suffice.
    ends = [
        printed.single(n, right) if fits == 1 else printed.mean(n, right, fits)
        for right in acc_limits(n, reading, fits)
    ]
    for metric, found, slack, low, high in (
        ("MCC", value.mcc, width.mcc, min(b.mcc_low for b in ends), max(b.mcc_high for b in ends)),
        ("F1", value.f1, width.f1, min(b.f1_low for b in ends), max(b.f1_high for b in ends)),
    ):
        if not low - slack <= found <= high + slack:
            yield metric, found, low, high


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The three metrics contradict each other for any class sizes.",
    why=(
        "Even when the class sizes are unknown, accuracy bounds MCC and macro-F1, and only "
        "perfect predictions have a perfect score."
    ),
    fix=(
        "Compute the three metrics again from one set of predictions, as scikit-learn defines them."
    ),
    check=check,
    needs=(Need.TEST_SIZES,),
)
