"""incomplete-card: the model card leaves out what a reader must know."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.card import Card
from geneb_ci.submission.fault import Fault

ID = "incomplete-card"
# What a card must say, and the words under which it may say it.
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
    """Report the fields that are absent or empty, all in one finding."""
    if context.card is None or context.card.fault is not None:
        return
    absent = [name for name, words in NEEDED.items() if not _says(context.card, name, words)]
    if absent:
        yield Fault(
            ID,
            (),
            f"the model card does not give: {', '.join(absent)}",
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
    what="The model card leaves out what a reader must know.",
    why=(
        "A layer or a pooling not named moves scores by more than most gaps on the board; an "
        "overlap not named makes them worthless."
    ),
    fix=(
        "Add lines such as `- **Pooling:** mean of the final hidden states` or sections such as "
        '`## Training data`; write "unknown" where it is.'
    ),
    check=check,
    needs=(Need.CARD,),
)
