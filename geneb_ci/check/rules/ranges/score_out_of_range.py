"""score-out-of-range: a score is outside the range of its metric."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.check.rules.ranges.percent_scores import in_percent
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "score-out-of-range"


def check(context: Context) -> Iterator[Fault]:
    """Report each score that the typed model rejected, unless all scores are in percent."""
    if not in_percent(context):
        yield from context.reported.get(ID, ())


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="A score is outside the range of its metric.",
    why="No predictions give such a value: it is a typing error, or in another unit.",
    fix=(
        "MCC ranges from -1 to 1, accuracy and macro-F1 from 0 to 1; compute the score again from "
        "the predictions."
    ),
    check=check,
)
