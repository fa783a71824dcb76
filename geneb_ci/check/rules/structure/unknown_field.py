"""unknown-field: a field is not part of this format version."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="unknown-field",
    severity=Severity.ERROR,
    what="A field is not part of this format version.",
    why="A misspelt field is silently ignored by readers, so its value would be lost.",
    fix=('Correct the name, remove the field, or set "schema_version" to the version that has it.'),
    check=reported("unknown-field", __name__),
)
