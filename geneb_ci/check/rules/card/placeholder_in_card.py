"""placeholder-in-card: the model card still has placeholder text."""

import re
from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "placeholder-in-card"
# A URL in angle brackets is Markdown, not a placeholder: it has a colon, a slash or an @.
_PLACEHOLDER = re.compile(r"<[a-z][^<>\n:/@]{2,80}>|\b(TODO|TBD|FIXME|XXX)\b|\(e\.g\. ")


def check(context: Context) -> Iterator[Fault]:
    """Report each entry whose value is a placeholder of a template."""
    for entry in context.card.entries if context.card is not None else ():
        match = _PLACEHOLDER.search(entry.value)
        if match:
            yield Fault(
                ID,
                (),
                f"{quoted(entry.name)} still has the placeholder {quoted(match.group())}",
                quoted(match.group()),
                "a statement about this model",
                at=entry.line,
                card=True,
            )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The model card still has placeholder text.",
    why="A placeholder passes as an answer in a program but tells a reader nothing.",
    fix='Replace it with a statement about this model, or with "unknown".',
    check=check,
    needs=(Need.CARD,),
)
