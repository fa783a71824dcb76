"""row-without-card: a new row comes without its model card."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "row-without-card"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report a row that is added while its card is not."""
    row = change.row
    if row is not None and row.before is None and row.after is not None and change.card is None:
        card = f"{change.places.cards}/{change.model}.md"
        message = f"there is no card for {quoted(change.model)} in this pull request"
        yield ChangeFault(ID, row.path, message, "nothing", quoted(card))


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A new row comes without its model card.",
    why=(
        "Architecture, pooling, layer and training data each change what a score means; later "
        "nobody adds them."
    ),
    fix=(
        "Copy `submissions/cards/splicebert-1024nt.md`, fill it in, and add it to this pull "
        "request as the card of your model."
    ),
    check=check,
)
