"""The target of an audit: an open pull request, or a row of main.

A pull request has comments and labels. A row of main has an issue for them: draws, states and
reasons are read and written there in the same way.
"""

from typing import NamedTuple

from geneb_ci.common.finding import first_and_more
from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import HeadMoved, UnexpectedReply
from geneb_ci.github.replies import REPORT_FIX, UNREADABLE_LABEL
from geneb_ci.github.report import AUDIT_LABEL

_ISSUE_MARKER = "<!-- geneb-ci:audited:1 {} -->"
"""Beginning of the issue with the audits of a row of main; it contains the model's id."""
_ISSUE_TEXT = (
    "Audits of `{}`, a row of main, written by geneb-ci. Each draw that was made stays in a "
    "comment here and counts, also while this is closed."
)
"""Text of the issue with the audits of one row of main."""


class AuditTarget(NamedTuple):
    """The row to be audited, and the conversation that keeps its draws."""

    number: int
    """Number of the pull request or of the issue."""
    head_sha: str = ""
    """Head of the pull request; "" for a row of main, which is audited at the head of main."""
    model: str = ""
    """Id of a row of main; "" for a pull request, whose files name its model."""
    is_locked: bool = False
    """Whether the conversation is locked, so that no comment can keep a draw."""

    @property
    def name(self) -> str:
        """The name of the target in messages."""
        return f"row {self.model} of main" if self.model else f"pull request {self.number}"

    @property
    def retry_text(self) -> str:
        """The command or the label that starts the audit again, in Markdown."""
        if self.model:
            return f"`gh workflow run audit.yml -f row={self.model}`"
        return f"set the label `{AUDIT_LABEL}` again"


def pull_to_audit(github: GitHub, number: int | None) -> AuditTarget | None:
    """Return the open pull request to audit: the given one, or the oldest with the label.

    Returns None if none has the label. A pull request with a locked conversation cannot be audited
    and comes after all others.
    Raises HeadMoved if the given one is closed or not to the default branch, and UnexpectedReply
    if none is found but an unreadable pull request may have the label.
    """
    if number is not None:
        pull = github.pull(number)
        fix = "pass --pr with the number of an open pull request to main"
        if pull.state != "open":
            raise HeadMoved(f"pull request {number} is {pull.state}", fix)
        if not pull.is_to_main:
            main = pull.base.repo.default_branch
            message = f"the base branch of pull request {number} is {pull.base.ref!a}, not {main!a}"
            raise HeadMoved(message, fix)
        return AuditTarget(number, pull.head.sha, is_locked=pull.locked)
    open_list = github.open_pulls()
    labelled = [pull for pull in open_list.pulls if AUDIT_LABEL in pull.labels]
    if not labelled:
        open_list.require_all(f"whether a pull request has the label {AUDIT_LABEL} is not known")
        unreadable = [
            str(pull.number) for pull in open_list.pulls if UNREADABLE_LABEL in pull.labels
        ]
        if unreadable:
            message = f"the labels of pull request {first_and_more(unreadable)} cannot be read"
            raise UnexpectedReply(message, REPORT_FIX)
        return None
    pull = min(labelled, key=lambda pull: (pull.locked, pull.number))
    return AuditTarget(pull.number, pull.head.sha, is_locked=pull.locked)


def row_to_audit(github: GitHub, model: str) -> AuditTarget:
    """Return a row of main as target, with the open issue of its audits; open it if missing.

    One request per 100 issues, and one write if it is opened.
    """
    mark = _ISSUE_MARKER.format(model)
    issue = github.marked_issue(mark)
    if issue is not None:
        return AuditTarget(issue.number, model=model)
    text = f"{mark}\n{_ISSUE_TEXT.format(model)}\n"
    return AuditTarget(github.open_issue(f"Audits of {model}", text), model=model)
