"""edited-without-note: a published row or its extractor is changed without a correction note."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "edited-without-note"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report an edited row or extractor if the card was not changed or has no correction note."""
    if change.correction and change.card is not None:
        return
    for file in (change.row, change.extractor):
        if file is not None and file.before is not None and file.after is not None:
            message = f"{quoted(file.path)} is already published, and no note explains the change"
            expected = "a line `- **Correction:**` in the card, added in the same pull request"
            yield ChangeFault(ID, file.path, message, "no correction note", expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A published row or its extractor is changed without a correction note.",
    why=(
        "Readers may have cited the old scores, and somebody else might edit a row to lower its "
        "scores."
    ),
    fix=(
        "Add to the card a line such as `- **Correction:** 2026-11-20, full regime rerun after a "
        "fix of the pooling`; a maintainer confirms it with the row's author."
    ),
    check=check,
)
