"""overlap-despite-zero-shot: zero_shot is true, but the card names an overlap."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "overlap-despite-zero-shot"
_NONE_KNOWN = ("none", "no ", "no.", "not ", "unknown", "n/a")


def check(context: Context) -> Iterator[Fault]:
    """Report a zero-shot claim when the card's overlap field does not begin with a denial."""
    if context.card is None or context.member("meta", "zero_shot") is not True:
        return
    entry = context.card.find("overlap", "contamination")
    if entry and entry.value and not f"{entry.value.casefold()} ".startswith(_NONE_KNOWN):
        yield Fault(
            ID,
            (),
            f"zero_shot is true, but the card states an overlap: {quoted(entry.value)}",
            "zero_shot true and an overlap",
            "zero_shot false, or no overlap",
            at=entry.line,
            card=True,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The submission claims zero-shot, but its card names an overlap with benchmark data.",
    why="A model that saw the test sequences in training is not zero-shot on them.",
    fix='Set "zero_shot" to false, or begin the overlap field of the card with "none" and explain.',
    check=check,
    needs=(Need.CARD,),
)
