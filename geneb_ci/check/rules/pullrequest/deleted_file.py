"""deleted-file: the pull request deletes or renames a file."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "deleted-file"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each deleted path; a rename deletes the old path."""
    for file in change.files:
        if file.after is None:
            message = f"{quoted(file.path)} is deleted or renamed"
            yield ChangeFault(ID, file.path, message, "no file", "the file unchanged")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request deletes or renames a file.",
    why="Deleting or renaming a row would separate it from its history and its audits.",
    fix=(
        "Restore it: `git checkout main -- FILE`. To withdraw your own row, open an issue; a "
        "maintainer will remove it from the board."
    ),
    check=check,
)
