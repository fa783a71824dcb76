"""missing-field: a required field is missing."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="missing-field",
    severity=Severity.ERROR,
    what="A required field is missing.",
    why="The board, or another person who repeats the run, needs it.",
    fix=(
        "Add the field; its meaning stands in schemas/submission-1.0.schema.json and "
        "submission-1.1.schema.json."
    ),
    check=reported("missing-field", __name__),
)
