"""invalid-json: the text is not JSON as RFC 8259 has it."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="invalid-json",
    severity=Severity.ERROR,
    what="The text is not JSON as RFC 8259 has it.",
    why="Programs repair broken JSON in different ways, so they would not agree on the scores.",
    fix="Mend the place that is named; write the file with a JSON library rather than by hand.",
    check=reported("invalid-json", __name__),
)
