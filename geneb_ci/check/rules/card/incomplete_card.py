"""incomplete-card: the model card lacks required fields."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.card import Card
from geneb_ci.submission.fault import Fault

ID = "incomplete-card"
# Required fields, and the words by which each is recognised.
NEEDED: dict[str, tuple[str, ...]] = {
    "Architecture": ("architecture",),
    "Weights": ("weights", "checkpoint"),
    "Input": ("input", "tokenizer", "tokeniser"),
    "Pooling": ("pooling",),
    "Layer": ("layer",),
    "Training data": ("training data", "pretraining"),
    "Zero-shot": ("zero-shot", "zero shot"),
    "Known overlap": ("overlap", "contamination"),
}
_LAYER_WORDS = ("layer", "hidden state", "last hidden")


def check(context: Context) -> Iterator[Fault]:
    """Report all fields that are missing or empty, in one finding."""
    if context.card is None or context.card.fault is not None:
        return
    absent = [name for name, words in NEEDED.items() if not _says(context.card, name, words)]
    if absent:
        yield Fault(
            ID,
            (),
            f"the model card lacks: {', '.join(absent)}",
            f"{len(NEEDED) - len(absent)} of {len(NEEDED)} fields",
            ", ".join(NEEDED),
            at=1,
            card=True,
        )


def _says(card: Card, name: str, words: tuple[str, ...]) -> bool:
    entry = card.find(*words)
    if entry is not None and entry.value:
        return True
    pooling = card.find("pooling") if name == "Layer" else None
    return pooling is not None and any(word in pooling.value.casefold() for word in _LAYER_WORDS)


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The model card lacks required fields.",
    why=(
        "Layer and pooling change scores by more than most differences between neighbours on the "
        "board; an undisclosed overlap with test data makes scores worthless."
    ),
    fix=(
        f"Add what is missing of {', '.join(NEEDED)}: as a line such as `- **Pooling:** mean of "
        "the final hidden states`, or as a section such as `## Training data`. Write "
        '"unknown" if you do not know.'
    ),
    check=check,
    needs=(Need.CARD,),
)
