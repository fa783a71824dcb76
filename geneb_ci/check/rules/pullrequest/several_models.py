"""several-models: the pull request changes rows of more than one model."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "several-models"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each row other than that of the submitted model; all rows if it is not clear."""
    if len(change.rows) > 1:
        for file in change.rows:
            if file != change.row:
                message = f"{quoted(file.path)} is the row of another model"
                found = f"{len(change.rows)} rows"
                yield ChangeFault(ID, file.path, message, found, "the row of one model")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request changes the rows of more than one model.",
    why=(
        "Review, audit and revert work per model; an edit of another row could go unnoticed "
        "behind a new one."
    ),
    fix="Open one pull request for each model.",
    check=check,
)
