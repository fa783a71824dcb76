"""truncated-tree: GitHub did not list every file."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity

ID = "truncated-tree"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report a tree of which a part is missing: what it hides could be anything."""
    if change.truncated:
        message = "GitHub left out files of the repository's tree"
        yield ChangeFault(ID, "", message, "a truncated tree", "every file")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="GitHub did not list every file of the repository.",
    why="A file that is not listed can be a workflow or another model's row: nobody looked at it.",
    fix="Nothing a contributor can do: a maintainer looks at the change by hand.",
    check=check,
)
