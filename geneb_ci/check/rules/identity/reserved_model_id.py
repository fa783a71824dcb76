"""reserved-model-id: the model_id is a name that file systems or git reserve."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "reserved-model-id"
_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}
_ENDINGS = (".json", ".md", ".lock", ".git", ".")


def check(context: Context) -> Iterator[Fault]:
    """Report an id that some system cannot store, or that looks like another kind of file."""
    name = context.model_id.casefold()
    if name.split(".")[0] in _DEVICES or name.endswith(_ENDINGS) or ".." in name:
        yield Fault(
            ID,
            ("model_id",),
            f"model_id is {quoted(context.model_id)}, a reserved name",
            quoted(context.model_id),
            "a name that every file system can store",
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The model_id is a name that file systems or git reserve.",
    why=(
        "Windows cannot check out `aux.json`, git rejects refs that end in .lock, and two dots "
        "can lead out of a folder."
    ),
    fix="Choose another id, such as the name of the weights with the model size.",
    check=check,
)
