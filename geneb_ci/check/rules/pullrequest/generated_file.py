"""generated-file: a file that is generated, never edited."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "generated-file"

# Written by `make generate` and by audits; the board's own files are not in the repository at all.
_FILES = frozenset({"RULES.md"})
_FOLDERS = ("schemas/", "leaderboard/audits/")
_BOARD = ("leaderboard/", ".json")
_POLICY = "leaderboard/policy/"


def is_generated(path: str) -> bool:
    """Whether a program writes this file."""
    in_board = path.startswith(_BOARD[0]) and path.endswith(_BOARD[1])
    return (
        path in _FILES or path.startswith(_FOLDERS) or (in_board and not path.startswith(_POLICY))
    )


def check(change: Change) -> Iterator[ChangeFault]:
    """Report each changed file that a program writes."""
    for file in change.files:
        if is_generated(file.path):
            message = f"{quoted(file.path)} is generated, not edited"
            yield ChangeFault(ID, file.path, message, "a change", "none: a program writes it")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request changes a file that a program writes.",
    why=(
        "The board and the audit records are computed from evidence: an edit by hand is a "
        "claim without any."
    ),
    fix=(
        "Take the file out of this pull request: `git checkout main -- FILE`. It is written "
        "anew after the merge."
    ),
    check=check,
)
