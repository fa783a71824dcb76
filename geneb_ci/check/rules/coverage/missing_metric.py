"""missing-metric: a cell lacks one of the metrics."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="missing-metric",
    severity=Severity.ERROR,
    what="A cell lacks one of the metrics.",
    why=(
        "A mean over fewer tasks is not comparable with the others, and the three metrics prove "
        "one another."
    ),
    fix="Add the metric: MCC, Acc and F1 come from the same predictions.",
    check=reported("missing-metric", __name__),
)
