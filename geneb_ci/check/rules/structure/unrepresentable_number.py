"""unrepresentable-number: a number is too long or too small to be read as it is written."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="unrepresentable-number",
    severity=Severity.ERROR,
    what="A number is too long or too small to be read as it is written.",
    why="What is published would differ from what was submitted.",
    fix="Write the number as your language prints a double: at most 17 significant digits.",
    check=reported("unrepresentable-number", __name__),
)
