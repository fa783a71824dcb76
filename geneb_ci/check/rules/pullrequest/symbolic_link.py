"""symbolic-link: a path of the pull request is a symbolic link."""

from collections.abc import Iterator

from geneb_ci.check.change import SYMLINK, Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "symbolic-link"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path that becomes a symbolic link."""
    for file in change.files:
        if file.after is not None and file.after.mode == SYMLINK:
            message = f"{quoted(file.path)} is a symbolic link"
            yield ChangeFault(ID, file.path, message, f"mode {SYMLINK}", "mode 100644")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A path of the pull request is a symbolic link.",
    why="A link can point to any file on the machine that reads it, such as a maintainer's keys.",
    fix="Run `git rm --cached FILE`, then add a regular file.",
    check=check,
)
