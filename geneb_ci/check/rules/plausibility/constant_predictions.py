"""constant-predictions: a probe answered with one class, where no other model's does."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.reference import ROWS_MIN
from geneb_ci.submission.fault import Fault

ID = "constant-predictions"
# MCC is 0 by definition when one class is predicted; a computed 0 may carry last bits of a float.
ZERO = 1e-12
# Accuracy is then the share of a class, which may be rounded to 3 decimals.
ROUNDING = 5e-4


def check(context: Context) -> Iterator[Fault]:
    """Report each cell of constant predictions in a task and regime that no other row has so."""
    view, size = context.view, len(context.benchmark.tasks)
    if view.others_count < ROWS_MIN:
        return
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
        if any(abs(row[number]) <= ZERO for _, row in view.others):
            continue
        yield Fault(
            ID,
            ("results", regime, name),
            "MCC is 0 and the accuracy is the share of one class: "
            f"the probe answered with one class, as in none of {view.others_count} other rows",
            "one class; score 1.0",
            "predictions of every class",
            on_key=True,
            score=1.0,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The probe predicted one class for every sequence, where no other model's does.",
    why="Unscaled or constant embeddings do this: the score says nothing of the model.",
    fix="Look at the embeddings of this task: they must be finite, different, of a common scale.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.MANY_ROWS),
)
