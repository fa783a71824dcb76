"""unknown-schema-version: the schema_version is missing or unknown."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="unknown-schema-version",
    severity=Severity.ERROR,
    what="The schema_version is missing or unknown.",
    why="The version says how the rest is to be read; guessing it could misread every score.",
    fix='Set "schema_version" to "1.0" or, with run details, to "1.1".',
    check=reported("unknown-schema-version", __name__),
)
