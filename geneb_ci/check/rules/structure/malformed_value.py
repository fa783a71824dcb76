"""malformed-value: a value is not of the form its field demands."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="malformed-value",
    severity=Severity.ERROR,
    what="A value is not of the form its field demands.",
    why=(
        "A digest, a commit, a date or a keyword of another form cannot be compared with anything."
    ),
    fix="Write the value in the form that is expected.",
    check=reported("malformed-value", __name__),
)
