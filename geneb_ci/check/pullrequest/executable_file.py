"""executable-file: a file of the pull request can be executed."""

from collections.abc import Iterator

from geneb_ci.check.change import EXECUTABLE, Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.finding import Severity, shown

ID = "executable-file"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path that becomes marked as executable."""
    for file in change.files:
        if file.after is not None and file.after.mode == EXECUTABLE:
            message = f"{shown(file.path)} is marked as executable"
            yield ChangeFault(ID, file.path, message, f"mode {EXECUTABLE}", "mode 100644")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A file of the pull request is marked as executable.",
    why=(
        "Rows, cards and modules are read, never executed: a mark that nothing needs is a "
        "trap or a slip."
    ),
    fix="Run `git update-index --chmod=-x FILE` and commit.",
    check=check,
)
