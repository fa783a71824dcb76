"""implausible-cell: a score is far from what the model's other scores predict."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.finding import Severity
from geneb_ci.plausibility.view import score_of
from geneb_ci.read.fault import Fault

ID = "implausible-cell"
# Standard deviations above the prediction, where all training sequences are used. Of 39 public rows
# without a known defect, each against the others, the highest of 3,900 cells lies at 4.1, and row
# maxima thin out by a factor e every 0.3: a sound new row crosses 5 about once in a thousand.
ABOVE = 5.0
# The same for few-shot regimes, where the highest of 7,800 cells lies at 5.5.
ABOVE_FEW_SHOT = 6.5
# Below the prediction the tails are heavier, since a model can fail where others do well: the
# lowest of those 11,700 cells lies at 6.7. Nobody forges downwards: this finds broken extractors.
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
)
