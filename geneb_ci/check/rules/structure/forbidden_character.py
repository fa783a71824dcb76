"""forbidden-character: a text holds a control character, or one that hides or reorders text."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="forbidden-character",
    severity=Severity.ERROR,
    what="A text holds a control character, or one that hides or reorders text.",
    why="Such characters make one name look like another, or write over what a terminal shows.",
    fix="Delete the character that is named and type the text again.",
    check=reported("forbidden-character", __name__),
)
