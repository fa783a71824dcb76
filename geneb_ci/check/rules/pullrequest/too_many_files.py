"""too-many-files: the pull request changes more files than a submission has."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity

ID = "too-many-files"

# A submission has three files. Above this limit the files are not listed one by one.
FILES_MAX = 50


def check(change: Change) -> Iterator[ChangeFault]:
    """Report a pull request that changes more than FILES_MAX files."""
    if len(change.files) > FILES_MAX:
        message = f"the pull request changes {len(change.files):,} files"
        found = f"{len(change.files)} files"
        yield ChangeFault(ID, "", message, found, "3: the row, its card, its extractor")


RULE = ChangeRule(
    id=ID,
    severity=Severity.ERROR,
    what="The pull request changes more files than a submission has.",
    why=(
        "Among many files a harmful change goes unnoticed, and GitHub lists only the first 3,000."
    ),
    fix="Open a pull request from a fresh branch of main, with the three files of one model.",
    check=check,
)
