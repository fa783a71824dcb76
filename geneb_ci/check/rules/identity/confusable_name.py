"""confusable-name: the display name or the id looks like that of another row."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, quoted
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.peers import normal_form
from geneb_ci.submission.skeleton import skeletons

ID = "confusable-name"


def check(context: Context) -> Iterator[Fault]:
    """Report a name whose skeleton, by Unicode Technical Standard 39, another row's name has."""
    given = {
        ("meta", "display"): context.text("meta", "display") or "",
        ("model_id",): context.model_id or "",
    }
    mine = normal_form(context.model_id or "")
    for path, name in given.items():
        alike = {
            (other, shown)
            for form in (skeletons(name) if name.strip() else ())
            for other, shown in context.peers.names.get(form, ())
            # Ids that differ in case and separators alone: model-id-collision reports them.
            if other != context.document.path and (path[0] == "meta" or normal_form(shown) != mine)
        }
        if alike:
            names = [f"{quoted(shown)} of {quoted(other.name)}" for other, shown in sorted(alike)]
            yield Fault(
                ID,
                path,
                f"{path[-1]} {quoted(name)} looks like {first_and_more(names)}",
                quoted(name),
                "a name that no other row has, nor one that looks like it",
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The display name or the id looks like the display name or the id of another row.",
    why="Readers would take one model for the other; letters of another script hide that.",
    fix=(
        "Write a name that differs visibly: size, context length, training corpus. To correct "
        "your own row, edit its file."
    ),
    check=check,
    needs=(Need.OTHER_ROWS,),
)
