"""colliding-paths: two changed paths are one file on some systems."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "colliding-paths"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path that another one equals, letter case aside."""
    seen: dict[str, str] = {}
    for file in change.files:
        if file.after is None:
            continue
        first = seen.setdefault(file.path.casefold(), file.path)
        if first != file.path:
            message = f"{quoted(file.path)} and {quoted(first)} differ in letter case only"
            expected = "paths that differ on every system"
            yield ChangeFault(ID, file.path, message, quoted(file.path), expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="Two paths of the pull request differ in letter case only.",
    why="On macOS and Windows the two are one file, and which one is read depends on the checkout.",
    fix="Keep one of the two.",
    check=check,
)
