"""constant-predictions: the probe predicted a single class, unlike in any other row."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.reference import ROWS_MIN
from geneb_ci.submission.fault import Fault

ID = "constant-predictions"
# MCC is 0 by definition when one class is predicted; a computed 0 may have a rounding error.
ZERO = 1e-12
# Accuracy then equals the share of that class, perhaps rounded to 3 decimals.
ROUNDING = 5e-4
# Rows with so large a share of constant predictions excuse no other: a row of zeros ends no
# finding. The largest of the 41 public rows is 0.01.
SHARE = 0.05
# With fewer cells that share is one or two of them.
CELLS_MIN = 5


def check(context: Context) -> Iterator[Fault]:
    """Report each cell with constant predictions where no other row has constant predictions."""
    view, size = context.view, len(context.benchmark.tasks)
    if view.others_count < ROWS_MIN:
        return
    most = max(CELLS_MIN, SHARE * len(view.row))
    sound = [row for _, row in view.others if sum(abs(x) <= ZERO for x in row) < most]
    for number, value in enumerate(view.row):
        if abs(value) > ZERO or value != value:  # noqa: PLR0124 (NaN)
            continue
        regime, name = view.cell(number)
        counts = context.benchmark.tasks[number % size].test_class_counts
        accuracy = context.member("results", regime, name, "Acc")
        if counts and type(accuracy) in {int, float}:
            shares = [count / sum(counts) for count in counts]
            if all(abs(accuracy - share) > ROUNDING for share in shares):
                continue
        if any(abs(row[number]) <= ZERO for row in sound):
            continue
        yield Fault(
            ID,
            ("results", regime, name),
            "MCC is 0 and accuracy is the share of one class: the probe predicted a single class, "
            f"unlike in any of {view.others_count} other rows",
            "a single predicted class",
            "more than one predicted class",
            on_key=True,
            score=1.0,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The probe predicted one class for every sequence, unlike for any other model.",
    why="Constant or badly scaled embeddings cause this: the score says nothing about the model.",
    fix="Inspect the embeddings of this task: they must be finite, distinct and of similar scale.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.MANY_ROWS),
)
