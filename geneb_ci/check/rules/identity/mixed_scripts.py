"""mixed-scripts: the display name has letters of several scripts."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.skeleton import scripts

ID = "mixed-scripts"


def check(context: Context) -> Iterator[Fault]:
    """Report a display name with more than one script."""
    name = context.text("meta", "display") or ""
    found = sorted(script.capitalize() for script in scripts(name))
    if len(found) > 1:
        yield Fault(
            ID,
            ("meta", "display"),
            f"display {quoted(name)} has letters of {' and '.join(found)}",
            ", ".join(found),
            "letters of one script",
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The display name mixes letters of several scripts.",
    why="A Cyrillic or Greek letter among Latin ones looks like another name.",
    fix="Write the name with the letters of one script.",
    check=check,
)
