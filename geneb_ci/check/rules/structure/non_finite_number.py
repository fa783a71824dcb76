"""non-finite-number: a number is NaN or infinite, or would be read as infinity."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="non-finite-number",
    severity=Severity.ERROR,
    what="A number is NaN or infinite, or would be read as infinity.",
    why=(
        "NaN passes every comparison as neither too small nor too large, and spoils every mean it "
        "enters."
    ),
    fix=(
        "Find out why the score could not be computed, run that task again, and write the number; "
        "a cell that cannot be measured is a declared gap (format 1.1)."
    ),
    check=reported("non-finite-number", __name__),
)
