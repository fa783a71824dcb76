"""edited-without-note: a published row or its extractor is changed without a word why."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "edited-without-note"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report a row or an extractor that was there before, where the changed card says nothing."""
    if change.correction and change.card is not None:
        return
    for file in (change.row, change.extractor):
        if file is not None and file.before is not None and file.after is not None:
            message = f"{quoted(file.path)} is on the board already, and no note says what changed"
            expected = "a line `- **Correction:**` in the card, changed in the same pull request"
            yield ChangeFault(ID, file.path, message, "no correction note", expected)


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A published row or its extractor is changed without a correction note.",
    why=(
        "Readers have cited the old numbers; and whoever may rewrite another's row in silence "
        "may lower it."
    ),
    fix=(
        "Add to the card a line such as `- **Correction:** 2026-11-20, full regime rerun "
        "after a fix of the pooling`; a maintainer asks the row's author."
    ),
    check=check,
)
