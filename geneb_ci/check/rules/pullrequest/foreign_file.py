"""foreign-file: a file that belongs to no submission, or to another's."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.check.rules.pullrequest.generated_file import is_generated
from geneb_ci.common.finding import Severity, quoted

ID = "foreign-file"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path that is neither the model's own, nor a row, nor generated."""
    own = {file.path for file in (*change.own, *change.rows)}
    expected = "the row, the card and the extractor of one model"
    for file in change.files:
        if file.path not in own and not is_generated(file.path):
            message = f"{quoted(file.path)} is not one of the model's own files"
            yield ChangeFault(ID, file.path, message, quoted(file.path), expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request changes a file that is not the model's own.",
    why=(
        "A submission that also changes a workflow, a policy or another model's files would "
        "smuggle that past the review of numbers."
    ),
    fix=(
        "Take the file out of this pull request: `git checkout main -- FILE`. What is meant "
        "for it goes into a pull request of its own, which a maintainer reviews."
    ),
    check=check,
)
