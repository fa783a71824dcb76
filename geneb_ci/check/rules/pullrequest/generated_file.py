"""generated-file: a generated file is edited."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity, quoted

ID = "generated-file"

# Written by `make generate` and by audits. The files of the board are not in the repository.
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
            message = f"{quoted(file.path)} is generated and must not be edited"
            yield ChangeFault(ID, file.path, message, "an edit", "no edit")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request edits a generated file.",
    why="The board and the audit records are computed from evidence, never edited by hand.",
    fix=(
        "Remove the change from this pull request: `git checkout main -- FILE`. The file is "
        "regenerated after the merge."
    ),
    check=check,
)
