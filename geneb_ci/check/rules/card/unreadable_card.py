"""unreadable-card: the model card cannot be read."""

from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="unreadable-card",
    severity=Severity.ERROR,
    what="The model card cannot be read.",
    why="What reviewers cannot read tells them nothing; a link can point anywhere.",
    fix="Save the card as an ordinary UTF-8 Markdown file of less than 100 kB.",
    check=reported("unreadable-card", __name__),
    needs=(Need.CARD,),
)
