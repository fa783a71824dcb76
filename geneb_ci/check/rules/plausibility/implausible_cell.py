"""implausible-cell: a score is far from what the model's other scores predict."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "implausible-cell"
# In standard deviations above the prediction, for the full regime, with or without the nearest
# other row. Leave-one-out on the 39 public rows without this warning: the maximum of 3,900 cells is
# 4.3; row maxima have median 2.8 and mean excess 0.7, so about one honest row in 80 exceeds 5.
ABOVE = 5.0
# The same for few-shot regimes: the maximum of 7,800 cells is 5.3; row maxima have median 3.1 and
# mean excess 0.8, so that about one honest row in 150 exceeds 6.5.
ABOVE_FEW_SHOT = 6.5
# Below the prediction the tails are heavier, because a model can fail where others do well: the
# largest deviation of the 11,700 cells is 6.7; row minima have median 2.3 and mean excess 1.3. This
# limit is meant for broken extractors, not forgery; about one honest row in 150 exceeds it.
BELOW = 8.0


def check(context: Context) -> Iterator[Fault]:
    """Report each cell beyond the limits."""
    view, standing = context.view, context.view.standing
    if standing is None:
        return
    for number, distance in enumerate(view.distances):
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
            f"{metric} {view.row[number]:.4f} is {abs(distance):.1f} standard deviations {side} "
            f"the value predicted from the row's other cells and {view.others_count} other rows",
            f"{view.row[number]:.4f}",
            f"about {guess:.3f}",
            score=score,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="A score is far from what the model's other scores and the other rows predict.",
    why="Models agree on which tasks are hard: a single outlier is often a typing error.",
    fix="Run this task again; if the score is confirmed, keep it and explain it in the model card.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)
