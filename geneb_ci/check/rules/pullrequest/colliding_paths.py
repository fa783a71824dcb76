"""colliding-paths: two changed paths differ only in letter case."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "colliding-paths"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path that equals an earlier one up to letter case."""
    seen: dict[str, str] = {}
    for file in change.files:
        if file.after is None:
            continue
        first = seen.setdefault(file.path.casefold(), file.path)
        if first != file.path:
            message = f"{quoted(file.path)} and {quoted(first)} differ only in letter case"
            expected = "paths that differ in more than letter case"
            yield ChangeFault(ID, file.path, message, quoted(file.path), expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="Two paths of the pull request differ only in letter case.",
    why="On macOS and Windows both are one file, and the checkout decides which one is read.",
    fix="Keep one of the two.",
    check=check,
)
