"""not-an-object: the document is not a JSON object."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="not-an-object",
    severity=Severity.ERROR,
    what="The document is not a JSON object.",
    why="A submission is an object with named fields; a list, a text or null has none.",
    fix="Start from the file that `geneb-harness run --submission FILE` writes.",
    check=reported("not-an-object", __name__),
)
