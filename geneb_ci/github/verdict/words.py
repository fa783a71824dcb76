"""Texts of a verdict, both for the comment on a pull request and for a contributor's terminal."""

from geneb_ci.github.errors import EFFECT_TIME
from geneb_ci.github.verdict.model import PullOutcome, PullVerdict

TITLES = {
    PullOutcome.PASSED: "passed",
    PullOutcome.WARNINGS: "passed, with warnings",
    PullOutcome.CHANGES_NEEDED: "changes needed",
    PullOutcome.NEEDS_MAINTAINER: "a maintainer decides",
    PullOutcome.NOT_CHECKED: "not checked",
}
"""Title of a verdict, by its outcome."""
_NEXT_STEP_BY_OUTCOME = {
    PullOutcome.PASSED: "You need not do anything: a maintainer will review and merge.",
    PullOutcome.WARNINGS: (
        "Explain each warning in a comment here, or push a correction. Warnings do not fail a "
        "submission: a maintainer reads your explanation and decides."
    ),
    PullOutcome.CHANGES_NEEDED: (
        "Fix the errors below and push to this branch; this comment is updated "
        f"{EFFECT_TIME}. To get this verdict on your own machine, commit, and run"
    ),
    PullOutcome.NEEDS_MAINTAINER: (
        "A submission changes only the row, the card and the extractor of one model; this pull "
        "request changes other files as well. Remove those changes and push, or wait for a "
        "maintainer's review."
    ),
    PullOutcome.NOT_CHECKED: (
        "You need not do anything: geneb-ci crashed on this pull request. The label notifies the "
        "maintainers."
    ),
}
"""Next step of the author for each outcome."""
_NO_SUBMISSION_STEP = (
    "No submission was found in this pull request. A submission changes `submissions/MODEL.json`, "
    "`submissions/cards/MODEL.md` and `submissions/extractors/MODULE.py`, and nothing else. A "
    "maintainer reviews any other change."
)
"""Next step of the author of a pull request without a submission."""
_EDIT_STEP = """You need not do anything: the row is already published, so a maintainer asks its \
author before merging."""
"""Next step of the author of a pull request that changes a published row."""


def next_step(pull: PullVerdict) -> str:
    """Return the next step of the author, as Markdown."""
    if pull.outcome is PullOutcome.NEEDS_MAINTAINER and pull.model is None:
        return _NO_SUBMISSION_STEP
    return (
        _EDIT_STEP
        if pull.outcome is PullOutcome.PASSED and pull.is_edit
        else _NEXT_STEP_BY_OUTCOME[pull.outcome]
    )
