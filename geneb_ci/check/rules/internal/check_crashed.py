"""check-crashed: a rule of geneb-ci failed on this submission."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="check-crashed",
    severity=Severity.ERROR,
    what="A rule of geneb-ci failed on this submission.",
    why=(
        "The fault is ours, but what that rule looks for was not looked for: nothing passes "
        "unchecked."
    ),
    fix="Report it to the maintainers with the file; the other findings stand.",
    check=reported("check-crashed", __name__),
)
