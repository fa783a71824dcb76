"""file-name-mismatch: the file name is not <model_id>.json."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "file-name-mismatch"


def check(context: Context) -> Iterator[Fault]:
    """Report a file in a repository that is not named <model_id>.json."""
    if not context.in_repository or not context.model_id or "bad-model-id" in context.reported:
        return
    name, expected = context.document.path.name, f"{context.model_id}.json"
    if name != expected:
        yield Fault(
            ID,
            ("model_id",),
            f"the file is named {quoted(name)}, but its model_id is {quoted(context.model_id)}",
            quoted(name),
            quoted(expected),
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The file name is not <model_id>.json.",
    why=(
        "Rows are found, owned and corrected by file name: a file with the model_id of another "
        "model could replace its row."
    ),
    fix="Rename the file to <model_id>.json, or correct the model_id.",
    check=check,
    needs=(Need.FOLDER,),
)
