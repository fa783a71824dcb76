"""foreign-file: a changed file does not belong to the submitted model."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.check.rules.pullrequest.generated_file import is_generated
from geneb_ci.common.finding import Severity, quoted

ID = "foreign-file"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path that is neither one of the model's files, nor a row, nor generated."""
    own = {file.path for file in (*change.own, *change.rows)}
    expected = "the row, the card and the extractor of one model"
    for file in change.files:
        if file.path not in own and not is_generated(file.path):
            message = f"{quoted(file.path)} does not belong to the submitted model"
            yield ChangeFault(ID, file.path, message, quoted(file.path), expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request changes a file that does not belong to the submitted model.",
    why=(
        "A submission is reviewed for its scores; changes of workflows, policy or other models "
        "could slip through."
    ),
    fix=(
        "Remove the change from this pull request: `git checkout main -- FILE` for a file that "
        "exists on main, `git rm FILE` for one that you added. Open a separate pull request for "
        "the change, which a maintainer reviews."
    ),
    check=check,
)
