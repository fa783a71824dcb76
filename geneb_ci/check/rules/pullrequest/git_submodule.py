"""git-submodule: a path of the pull request is a submodule."""

from collections.abc import Iterator

from geneb_ci.check.change import SUBMODULE, Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "git-submodule"


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path that becomes a submodule."""
    for file in change.files:
        if file.after is not None and file.after.mode == SUBMODULE:
            message = f"{quoted(file.path)} is a submodule"
            yield ChangeFault(ID, file.path, message, f"mode {SUBMODULE}", "mode 100644")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A path of the pull request is a submodule.",
    why=(
        "A submodule points to another repository, whose content nobody reviewed and whose owner "
        "can replace it."
    ),
    fix="Remove it with `git rm --cached FILE`, and add the files themselves.",
    check=check,
)
