"""too-many-values: the document has more values than the format can hold."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="too-many-values",
    severity=Severity.ERROR,
    what="The document has more values than the format can hold.",
    why="A small file with many values can take a thousand times its size in memory.",
    fix="Remove what is not part of the format.",
    check=reported("too-many-values", __name__),
)
