"""missing-submitter: the submission does not say who ran the evaluation."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "missing-submitter"
PLACEHOLDER = "unnamed"
"""What `geneb-harness run` writes without --submitted-by."""


def check(context: Context) -> Iterator[Fault]:
    """Report a submitted_by that is empty or the harness's placeholder."""
    name = context.member("meta", "submitted_by")
    if not isinstance(name, str):
        return
    if not name.strip():
        yield Fault(ID, ("meta", "submitted_by"), "submitted_by is empty", quoted(name), "a name")
    elif name.strip().casefold() == PLACEHOLDER:
        message = f"submitted_by is {quoted(name)}, the placeholder of a run without --submitted-by"
        yield Fault(ID, ("meta", "submitted_by"), message, quoted(name), "a name")


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The submission does not say who ran the evaluation.",
    why="Readers need somebody whom they can ask about a number.",
    fix=(
        'Write your name, your group or your GitHub handle in "meta.submitted_by", or pass it to '
        "the harness: `geneb-harness run --submitted-by NAME`."
    ),
    check=check,
)
