"""deleted-file: the pull request takes a file of the board away."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "deleted-file"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each deletion, and so each rename: the old path is gone."""
    for file in change.files:
        if file.after is None:
            message = f"{quoted(file.path)} is deleted or renamed"
            yield ChangeFault(ID, file.path, message, "nothing", "the file at its place")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request deletes or renames a file.",
    why="A row that disappears takes its history and its audits along; renamed, it escapes them.",
    fix=(
        "Restore it: `git checkout main -- FILE`. To withdraw your own row, open an issue; a "
        "maintainer takes it off the board."
    ),
    check=check,
)
