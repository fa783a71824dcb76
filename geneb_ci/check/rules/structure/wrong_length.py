"""wrong-length: a text or a list is longer or shorter than the format allows."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="wrong-length",
    severity=Severity.ERROR,
    what="A text or a list is longer or shorter than the format allows.",
    why="Long texts break the table they are shown in; the model card is the place for prose.",
    fix="Shorten the text, or move it to the model card.",
    check=reported("wrong-length", __name__),
)
