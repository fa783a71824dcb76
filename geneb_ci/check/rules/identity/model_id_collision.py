"""model-id-collision: two files have ids that differ only in letter case or separators."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.peers import normal_form

ID = "model-id-collision"


def check(context: Context) -> Iterator[Fault]:
    """Report each other file whose id is equal up to letter case and separators."""
    if not context.model_id:
        return
    for other in context.peers.ids.get(normal_form(context.model_id), ()):
        if other != context.document.path:
            yield Fault(
                ID,
                ("model_id",),
                f"model_id {quoted(context.model_id)} collides with {quoted(other.name)}",
                quoted(context.model_id),
                "an id that differs in more than letter case and separators (- _ .)",
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Two ids differ only in letter case or in the separators - _ .",
    why="On some file systems the two are one file, and readers confuse them.",
    fix=(
        "Choose an id that names the difference: size, context length, training corpus. To "
        "correct your own row, edit its file."
    ),
    check=check,
    needs=(Need.OTHER_ROWS,),
)
