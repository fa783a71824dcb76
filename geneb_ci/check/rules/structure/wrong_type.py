"""wrong-type: a value has the wrong JSON type."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="wrong-type",
    severity=Severity.ERROR,
    what="A value has the wrong JSON type.",
    why=(
        "A score in quotes or true in place of 1 is read as a number by some programs and refused "
        "by others."
    ),
    fix="Write the value in the type that is expected, without quotes around numbers.",
    check=reported("wrong-type", __name__),
)
