"""card-disagrees: the model card and the submission contradict each other."""

import re
from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.card import Card, CardField
from geneb_ci.submission.fault import Fault

ID = "card-disagrees"
_NUMBER = re.compile(
    r"[0-9][0-9,_ ]*(?:\.[0-9]+)?\s*(?:[KMBT]\b|thousand|million|billion|trillion)?", re.IGNORECASE
)
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
# Relative. Cards round: "86M" may mean 81 to 91 million.
PARAMS_TOLERANCE = 0.06


def check(context: Context) -> Iterator[Fault]:
    """Report each field that both files state differently."""
    card = context.card
    if card is None:
        return
    yield from _parameters(context, card)
    for name, found, path in (
        ("display", card.find("display name"), ("meta", "display")),
        ("harness_version", card.find("harness version"), ("harness_version",)),
        ("submitted_by", card.find("submitted by"), ("meta", "submitted_by")),
    ):
        value = context.text(*path)
        if found and found.value and value and not _same(found.value, value):
            yield _fault(name, quoted(found.value), quoted(value), found)
    claim = card.find("zero-shot", "zero shot")
    zero_shot = context.member("meta", "zero_shot")
    said = claim and _YES_NO.get(claim.value.casefold().split(" ")[0].rstrip(".,;:"))
    if claim and said is not None and isinstance(zero_shot, bool) and said != zero_shot:
        yield _fault("zero_shot", quoted(claim.value), str(zero_shot).lower(), claim)


def _parameters(context: Context, card: Card) -> Iterator[Fault]:
    params = context.member("meta", "params")
    entry = card.find("parameters")
    if entry is None or type(params) is not int:
        return
    count = parameter_count(entry.value)
    if count is not None and abs(count - params) > PARAMS_TOLERANCE * max(params, 1):
        yield _fault("params", f"{count:,.0f}", f"{params:,}", entry)


_YES_NO = {"yes": True, "true": True, "no": False, "false": False, "not": False}


def parameter_count(text: str) -> float | None:
    """Read the first number of a text with its unit, as in "19,710,474 in all" or "86M"."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    token = match.group().strip().casefold()
    digits = re.sub(r"[^0-9.]", "", token)
    unit = re.search(r"[kmbt]", token)
    return float(digits) * (_UNITS[unit.group()] if unit else 1)


def _same(one: str, other: str) -> bool:
    return one.strip("` *_").casefold() == other.strip().casefold()


def _fault(name: str, in_card: str, in_submission: str, entry: CardField) -> Fault:
    message = f"{name} is {in_card} in the card and {in_submission} in the submission"
    return Fault(ID, (), message, in_card, in_submission, at=entry.line, card=True)


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The model card and the submission contradict each other.",
    why="One of the two is wrong, and a reader cannot tell which.",
    fix="Correct the wrong one; both should describe the same run.",
    check=check,
    needs=(Need.CARD,),
)
