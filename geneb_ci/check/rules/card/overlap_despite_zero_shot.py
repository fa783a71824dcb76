"""overlap-despite-zero-shot: the model claims zero-shot and the card names an overlap."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "overlap-despite-zero-shot"
_NONE_KNOWN = ("none", "no ", "no.", "not ", "unknown", "n/a")


def check(context: Context) -> Iterator[Fault]:
    """Report a zero-shot claim beside an overlap that the card does not deny."""
    if context.card is None or context.member("meta", "zero_shot") is not True:
        return
    entry = context.card.find("overlap", "contamination")
    if entry and entry.value and not f"{entry.value.casefold()} ".startswith(_NONE_KNOWN):
        yield Fault(
            ID,
            (),
            f"zero_shot is true, and the card says of overlap: {quoted(entry.value)}",
            "zero-shot and an overlap",
            "one of the two",
            at=entry.line,
            card=True,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The submission claims zero-shot, and its card names an overlap with benchmark data.",
    why="A model that saw the test sequences in training is not zero-shot on them.",
    fix='Set "zero_shot" to false, or say in the card why the overlap does not count.',
    check=check,
    needs=(Need.CARD,),
)
