"""missing-card: a row of the repository has no model card."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "missing-card"


def check(context: Context) -> Iterator[Fault]:
    """Report a contributed row without a card; the paper describes the official rows."""
    if (
        context.in_repository
        and context.card is None
        and context.model_id
        and not context.is_official
    ):
        yield Fault(
            ID,
            ("model_id",),
            f"there is no model card for {quoted(context.model_id)}",
            "no card",
            f"a file {quoted(f'{context.model_id}.md')} in the folder of cards",
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The row has no model card.",
    why=(
        "Readers need architecture, pooling, layer and training data to interpret a score; the "
        "table has no room for them."
    ),
    fix=(
        "Save a card as submissions/cards/<model_id>.md (in upstream's layout, "
        "model_cards/<model_id>.md). `geneb-ci explain incomplete-card` lists its fields."
    ),
    check=check,
    needs=(Need.CARD,),
)
