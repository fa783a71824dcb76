"""executable-file: a file can be executed, or has a mode that git never writes."""

from collections.abc import Iterator

from geneb_ci.check.change import EXECUTABLE, REGULAR, SUBMODULE, SYMLINK, Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "executable-file"
# Links and submodules have rules of their own. Git writes 100755 besides; a tree can hold any mode.
_KNOWN = frozenset({REGULAR, SYMLINK, SUBMODULE})


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path whose mode becomes another than that of an ordinary file."""
    for file in change.files:
        if file.after is not None and file.after.mode not in _KNOWN:
            is_executable = file.after.mode == EXECUTABLE
            what = "marked as executable" if is_executable else "no ordinary file"
            found = f"mode {quoted(file.after.mode)[1:-1]}"
            yield ChangeFault(ID, file.path, f"{quoted(file.path)} is {what}", found, "mode 100644")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A file of the pull request is executable, or has another mode than an ordinary file.",
    why=(
        "Rows, cards and modules are read, never executed: a mark that nothing needs is a "
        "trap or a slip."
    ),
    fix="Run `git update-index --chmod=-x FILE` and commit; for any other mode, add the file anew.",
    check=check,
)
