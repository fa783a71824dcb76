"""duplicate-key: a key stands twice in one object."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="duplicate-key",
    severity=Severity.ERROR,
    what="A key stands twice in one object.",
    why=(
        "Readers disagree on which of the two counts: one would check a score and another publish "
        "a different one."
    ),
    fix="Keep one of the two and delete the other.",
    check=reported("duplicate-key", __name__),
)
