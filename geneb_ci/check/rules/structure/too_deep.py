"""too-deep: values are nested deeper than the format ever goes."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="too-deep",
    severity=Severity.ERROR,
    what="Values are nested deeper than the format ever goes.",
    why="Deep nesting exhausts the stack of many readers; a submission has six levels.",
    fix="Remove the nesting at the place that is named.",
    check=reported("too-deep", __name__),
)
