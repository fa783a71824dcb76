"""file-name-mismatch: the file is not called after its model_id."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "file-name-mismatch"


def check(context: Context) -> Iterator[Fault]:
    """Report a file of a repository whose name is not its id; a lone file may have any name."""
    if not context.in_repository or not context.model_id or "bad-model-id" in context.reported:
        return
    name, expected = context.document.path.name, f"{context.model_id}.json"
    if name != expected:
        yield Fault(
            ID,
            ("model_id",),
            f"the file is called {quoted(name)}, its model_id is {quoted(context.model_id)}",
            quoted(name),
            quoted(expected),
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The file is not called after its model_id.",
    why=(
        "The name is how a row is found, owned and corrected: a file that calls itself another "
        "model could replace it."
    ),
    fix="Rename the file to <model_id>.json, or correct the model_id.",
    check=check,
    needs=(Need.FOLDER,),
)
