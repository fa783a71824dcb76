"""lone-surrogate: a text holds half of a surrogate pair."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="lone-surrogate",
    severity=Severity.ERROR,
    what="A text holds half of a surrogate pair.",
    why=(
        "It is no character: it cannot be written as UTF-8, so it breaks whatever shows or stores "
        "it."
    ),
    fix="Write the character itself as UTF-8, or both halves of the pair.",
    check=reported("lone-surrogate", __name__),
)
