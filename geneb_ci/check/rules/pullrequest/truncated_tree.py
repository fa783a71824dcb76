"""truncated-tree: GitHub did not list every file."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity

ID = "truncated-tree"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report an incomplete tree: the missing entries could be anything."""
    if change.truncated:
        message = "GitHub truncated the list of files of the repository"
        yield ChangeFault(ID, "", message, "a truncated tree", "every file")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="GitHub did not list every file of the repository.",
    why="A changed workflow or another model's row could be among the files that are not listed.",
    fix="A contributor can do nothing about it: a maintainer reviews the change manually.",
    check=check,
)
