"""unknown-metric: a cell has a metric that the benchmark does not."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="unknown-metric",
    severity=Severity.ERROR,
    what="A cell has a metric that the benchmark does not.",
    why="A misspelt metric is silently ignored by readers.",
    fix="Use exactly MCC, Acc and F1.",
    check=reported("unknown-metric", __name__),
)
