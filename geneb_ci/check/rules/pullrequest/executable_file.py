"""executable-file: a file is executable, or has a mode that git never writes."""

from collections.abc import Iterator

from geneb_ci.check.change import EXECUTABLE, REGULAR, SUBMODULE, SYMLINK, Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "executable-file"
# Links and submodules have their own rules. Git otherwise writes 100644 and 100755, but a tree
# object can hold any mode.
_KNOWN = frozenset({REGULAR, SYMLINK, SUBMODULE})


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each path whose new mode is not that of a regular file."""
    for file in change.files:
        if file.after is not None and file.after.mode not in _KNOWN:
            is_executable = file.after.mode == EXECUTABLE
            what = "marked as executable" if is_executable else "not a regular file"
            found = f"mode {quoted(file.after.mode)[1:-1]}"
            yield ChangeFault(ID, file.path, f"{quoted(file.path)} is {what}", found, "mode 100644")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="A file of the pull request is executable, or is not a regular file.",
    why="Rows, cards and extractor modules are never executed directly, so none needs this mode.",
    fix="Run `git update-index --chmod=-x FILE` and commit; for other modes, add the file again.",
    check=check,
)
