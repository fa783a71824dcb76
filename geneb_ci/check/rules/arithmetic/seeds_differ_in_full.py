"""seeds-differ-in-full: seeds differ in a regime without random sampling."""

from collections.abc import Iterator

from geneb_ci.check.claims import fits_of
from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.printed import EXACT
from geneb_ci.submission.fault import Fault

ID = "seeds-differ-in-full"


def check(context: Context) -> Iterator[Fault]:
    """Report each cell whose seeds differ although all of them train on the same rows."""
    for claim in context.seed_claims:
        if fits_of(context.benchmark, claim.regime) > 1:
            continue
        columns = zip(*(reading.value for reading in claim.readings), strict=True)
        names = ("MCC", "accuracy", "F1")
        for name, column in zip(names, columns, strict=True):
            if max(column) - min(column) <= EXACT:
                continue
            yield Fault(
                ID,
                claim.path,
                f'the seeds of {quoted(claim.task.id)} in "{claim.regime}" differ: {name} ranges '
                f"from {min(column)!r} to {max(column)!r}",
                "values that differ",
                f"{len(column)} equal values",
                on_key=True,
            )
            break


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Seeds differ in a regime without random sampling.",
    why=(
        "With all training data every seed trains on the same rows, and the fit is deterministic: "
        "different values come from another protocol, or from noise that was added."
    ),
    fix="Fit once on all training rows, in their order, and report its scores for each seed.",
    check=check,
)
