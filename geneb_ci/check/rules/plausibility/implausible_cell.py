"""implausible-cell: a score is far from what the model's other scores predict."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "implausible-cell"
# Standard deviations above the prediction, where all training sequences are used. Of the 39 public
# rows without these warnings, each against the others, the highest of 3,900 cells lies at 4.2. Row
# maxima have median 2.5 and a mean excess of 0.7 over it: one sound row in eighty crosses 5.
ABOVE = 5.0
# The same for few-shot regimes: the highest of 7,800 cells lies at 5.3, the median of row maxima at
# 3.1 with a mean excess of 0.8, so that one sound row in 150 crosses 6.5.
ABOVE_FEW_SHOT = 6.5
# Below the prediction the tails are heavier, since a model can fail where others do well: the
# lowest of those 11,700 cells lies at 6.7, row minima have median 2.3 and a mean excess of 1.3.
# Nobody forges downwards: this limit finds broken extractors, and wrongs one sound row in 150.
BELOW = 8.0


def check(context: Context) -> Iterator[Fault]:
    """Report each cell beyond the limits."""
    view, standing = context.view, context.view.standing
    if standing is None:
        return
    for number, distance in enumerate(standing.distance):
        regime, task = view.cell(number)
        few_shot = regime in context.benchmark.protocol.few_shot_k
        limit = BELOW if distance < 0 else ABOVE_FEW_SHOT if few_shot else ABOVE
        if abs(distance) <= limit:
            continue
        metric = context.benchmark.primary_metric
        score = score_of(abs(distance), limit)
        side = "above" if distance > 0 else "below"
        guess = standing.predicted[number]
        yield Fault(
            ID,
            ("results", regime, task, metric),
            f"{metric} {view.row[number]:.3f} lies {abs(distance):.1f} standard deviations {side} "
            f"what the row's other cells and {view.others_count} other rows predict",
            f"{view.row[number]:.4f}; score {score}",
            f"about {guess:.3f}",
            score=score,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="A score is far from what the model's other scores and the other rows predict.",
    why="Models agree on which tasks are hard: a cell that stands out alone was often mistyped.",
    fix="Run this task again; if the number stands, keep it and say why in the model card.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)
