"""blank-display-name: the display name has no letter or digit."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "blank-display-name"


def check(context: Context) -> Iterator[Fault]:
    """Report a display name without a letter or digit."""
    name = context.text("meta", "display")
    if name and not any(character.isalnum() for character in name):
        yield Fault(
            ID,
            ("meta", "display"),
            f"display is {quoted(name)}",
            quoted(name),
            "a name with letters or digits",
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The display name has no letter or digit.",
    why="Readers could not identify the row.",
    fix="Write the name under which the model is known.",
    check=check,
)
