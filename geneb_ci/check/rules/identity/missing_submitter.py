"""missing-submitter: the submission does not say who ran the evaluation."""

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
    what="The submission does not say who ran the evaluation.",
    why="Readers need somebody whom they can ask about a number.",
    fix='Write your name, your group or your GitHub handle in "submitted_by".',
    check=check,
)
