"""row-without-extractor: a new row has no extractor."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "row-without-extractor"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report an added row whose extractor is neither added nor already in the repository."""
    row = change.row
    if row is None or row.before is not None or row.after is None or change.extractor is not None:
        return
    if not change.is_there:
        module = change.module or "<module>.py"
        message = f"this pull request has no extractor for {quoted(change.model)}"
        expected = quoted(f"{change.places.extractors}/{module}")
        yield ChangeFault(ID, row.path, message, "no extractor", expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A new row has no extractor.",
    why="An audit reruns the extractor: without it, no score of the row can be verified.",
    fix="Add the extractor module, exactly as used, to the folder of extractors.",
    check=check,
)
