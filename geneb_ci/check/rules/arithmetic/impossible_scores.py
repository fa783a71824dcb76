"""impossible-scores: no confusion matrix gives the three metrics of a cell together."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.check.rules.arithmetic.accuracy_off_grid import is_off_grid
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.binary import Classes, runs, scores
from geneb_ci.statistics.nearest import nearest
from geneb_ci.statistics.printed import Reading, Triple, distinct_text
from geneb_ci.submission.fault import Fault

ID = "impossible-scores"
# Wider than the range of any metric: the metric is then unconstrained.
ANY = 3.0
NAMES = {"mcc": "MCC", "f1": "F1"}


def check(context: Context) -> Iterator[Fault]:
    """Report each single-fit cell of a two-class task that no confusion matrix gives."""
    for claim in context.claims:
        classes = claim.classes
        if classes is None or claim.fits > 1 or is_off_grid(claim):
            continue
        if next(runs(classes, claim.reading), None) is None:
            where = f'{quoted(claim.task.id)} in "{claim.regime}": '
            message, found, expected = nearest_text(classes, claim.reading)
            fix = wrong_metric_fix(classes, claim.reading)
            yield Fault(ID, claim.path, where + message, found, expected, on_key=True, fix=fix)


def nearest_text(classes: Classes, reading: Reading) -> tuple[str, str, str]:
    """Return the message, `found` and `expected` for a triple that no confusion matrix gives."""
    found, expected = distinct_text(reading.value, nearest(classes, reading.value).scores)
    sizes = f"{classes.total} sequences ({classes.small}/{classes.large})"
    message = f"no confusion matrix on {sizes} gives {found}; the nearest one gives {expected}"
    return message, found, expected


def wrong_metric_fix(classes: Classes, reading: Reading) -> str:
    """Return which single metric to recompute, if the other two fit exactly one matrix; or ""."""
    for name, label in NAMES.items():
        loose = Reading(reading.value, reading.width._replace(**{name: ANY}))
        first = next(runs(classes, loose), None)
        if first is not None and len(first) == 1:
            value: Triple = scores(classes, first.right, first.first)
            others = " and ".join(
                ["accuracy", *(other for other in NAMES.values() if other != label)]
            )
            return (
                f"{others} fit a confusion matrix whose {label} is {getattr(value, name)!r}: "
                f"compute {label} again from the same predictions."
            )
    return ""


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="No confusion matrix gives the three metrics of a cell together.",
    why=(
        "With known class sizes a confusion matrix has two degrees of freedom but gives three "
        "metrics: an edited, mistyped or swapped value contradicts the other two."
    ),
    fix=(
        "Compute MCC, accuracy and macro-F1 again from one set of predictions on the pinned test "
        "split, as scikit-learn defines them, and report all digits."
    ),
    check=check,
    needs=(Need.CLASS_SIZES,),
)
