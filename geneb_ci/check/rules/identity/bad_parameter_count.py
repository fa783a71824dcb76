"""bad-parameter-count: the parameter count is negative or absurdly large."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="bad-parameter-count",
    severity=Severity.ERROR,
    what="The parameter count is negative or absurdly large.",
    why="The count places the model in the plot of score against size.",
    fix=(
        "Give the number of parameters of the encoder as an integer, such as 117000000; 0 for a "
        "method without parameters."
    ),
    check=reported("bad-parameter-count", __name__),
)
