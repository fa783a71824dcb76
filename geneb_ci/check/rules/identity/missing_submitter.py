"""missing-submitter: nobody is named as the one who ran the evaluation."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "missing-submitter"


def check(context: Context) -> Iterator[Fault]:
    """Report an empty submitted_by."""
    name = context.member("meta", "submitted_by")
    if isinstance(name, str) and not name.strip():
        yield Fault(ID, ("meta", "submitted_by"), "submitted_by is empty", quoted(name), "a name")


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="Nobody is named as the one who ran the evaluation.",
    why="Questions about a number need somebody who can answer them.",
    fix="Put your name, your group or your GitHub handle.",
    check=check,
)
