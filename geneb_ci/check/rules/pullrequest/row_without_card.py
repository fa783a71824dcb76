"""row-without-card: a new row has no model card."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "row-without-card"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report an added row whose card is not in the pull request."""
    row = change.row
    if row is not None and row.before is None and row.after is not None and change.card is None:
        card = f"{change.places.cards}/{change.model}.md"
        message = f"this pull request has no model card for {quoted(change.model)}"
        yield ChangeFault(ID, row.path, message, "no card", quoted(card))


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A new row has no model card.",
    why=(
        "Readers need architecture, pooling, layer and training data to interpret a score, and "
        "nobody adds a card later."
    ),
    fix=(
        "Copy `submissions/cards/splicebert-1024nt.md`, fill it in, and add it to this pull "
        "request as the card of your model."
    ),
    check=check,
)
