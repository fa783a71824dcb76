"""row-without-extractor: a new row comes without the code that made it."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "row-without-extractor"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report a row that is added while the extractor it needs is neither added nor there."""
    row = change.row
    if row is None or row.before is not None or row.after is None or change.extractor is not None:
        return
    if not change.is_there:
        module = change.module or "<module>.py"
        message = f"there is no extractor for {quoted(change.model)} in this pull request"
        expected = quoted(f"{change.places.extractors}/{module}")
        yield ChangeFault(ID, row.path, message, "nothing", expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A new row comes without the extractor that made it.",
    why="An audit reruns the extractor: without it, no number of the row can ever be verified.",
    fix="Add the module as it ran, under the folder of extractors, to this pull request.",
    check=check,
)
