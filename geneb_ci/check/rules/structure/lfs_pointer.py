"""lfs-pointer: the file is a Git LFS pointer."""

from geneb_ci.check.rule import Rule, reported
from geneb_ci.common.finding import Severity

RULE = Rule(
    id="lfs-pointer",
    severity=Severity.ERROR,
    what="The file is a Git LFS pointer.",
    why="The pointer names the submission but does not hold it, so nothing can be checked.",
    fix=(
        'Run `git lfs untrack "*.json"`, add the file again and commit it: submissions are small '
        "and live in git itself."
    ),
    check=reported("lfs-pointer", __name__),
)
