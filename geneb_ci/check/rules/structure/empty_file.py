"""empty-file: the file has no text."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="empty-file",
    severity=Severity.ERROR,
    what="The file has no text.",
    why="An empty file would pass every check that looks for wrong values.",
    fix=(
        "Write the submission with `geneb-harness run --submission FILE`, and look whether the "
        "disk was full."
    ),
    check=reported("empty-file", __name__),
)
