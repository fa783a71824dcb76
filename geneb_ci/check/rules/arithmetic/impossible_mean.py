"""impossible-mean: no set of runs has this mean MCC, accuracy and macro-F1 together."""

from collections.abc import Iterator

from geneb_ci.check.claims import Claim
from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.check.rules.arithmetic.accuracy_off_grid import is_off_grid
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.binary import Classes
from geneb_ci.statistics.mean_triples import Outside, hull_of, outside
from geneb_ci.submission.fault import Fault

ID = "impossible-mean"


def check(context: Context) -> Iterator[Fault]:
    """Report each mean over seeds, on a two-class task, outside the convex hull of all tables."""
    for claim in context.claims:
        classes = claim.classes
        if classes is None or claim.fits == 1 or is_off_grid(claim):
            continue
        verdict = outside(hull_of(classes), claim.reading)
        if verdict is not None:
            yield _fault(claim, classes, verdict)


def _fault(claim: Claim, classes: Classes, verdict: Outside) -> Fault:
    value = claim.reading.value
    if verdict.metric == "mcc":
        found, given, name = value.mcc, "this mean accuracy and F1", "MCC"
    else:
        found, given, name = value.f1, "this mean accuracy", "F1"
    expected = f"about {verdict.low:.3f} to {verdict.high:.3f}"
    return Fault(
        ID,
        (*claim.path, name),
        f'{quoted(claim.task.id)} in "{claim.regime}": no mean of {claim.fits} 2x2 '
        f"confusion matrices on {classes.total} sequences ({classes.small}/{classes.large}) is "
        f"{value}; with {given}, the mean {name} is {expected}",
        f"{found:.4f}",
        expected,
    )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="No set of runs has the mean MCC, accuracy and macro-F1 of a cell together.",
    why=(
        "A mean over seeds averages confusion matrices with known class sizes, so two of the "
        "three means leave the third only a narrow range."
    ),
    fix=(
        "Average each metric over the same runs, one per seed. Do not leave out seeds, and do not "
        "compute a metric from the means of others."
    ),
    check=check,
    needs=(Need.CLASS_SIZES,),
)
