"""A verdict onto its pull request: a status, labels, one comment; three writes, or none."""

import time
from typing import NamedTuple

from geneb_ci.forge.comment import comment, found_line
from geneb_ci.forge.errors import HeadMoved, Unavailable
from geneb_ci.forge.github import GitHub
from geneb_ci.forge.receipt import own_comment
from geneb_ci.forge.replies import Pull
from geneb_ci.forge.verdict import Outcome, PullVerdict

LABELS = {
    Outcome.PASSED: "geneb: passed",
    Outcome.WARNINGS: "geneb: warnings",
    Outcome.CHANGES_NEEDED: "geneb: changes needed",
    Outcome.NEEDS_MAINTAINER: "needs-maintainer",
    Outcome.NOT_CHECKED: "geneb: not checked",
}
"""The only labels that are ever set or taken away."""
STATES = {
    Outcome.PASSED: "success",
    Outcome.WARNINGS: "success",
    Outcome.CHANGES_NEEDED: "failure",
    Outcome.NEEDS_MAINTAINER: "pending",
    Outcome.NOT_CHECKED: "error",
}
_DESCRIPTION_MAX = 140  # GitHub's limit
_QUEUED = "nothing was written; the new commits are queued, and a sweep finds them in 15 minutes"


class Written(NamedTuple):
    """What was written to one pull request."""

    status: bool
    labels: bool
    comment: bool


def publish(github: GitHub, verdict: PullVerdict) -> Written:
    """Write what is not there yet: two requests to read, at most three to write.

    Raises HeadMoved, before anything is written, where the verdict is about other commits.
    """
    # 1. What is there. The head is read last, right before the first write.
    text = comment(verdict)
    sticky = own_comment(github.comments(verdict.number), github.author)
    pull = github.pull(verdict.number)
    if pull.head.sha != verdict.head_sha or pull.state != "open":
        what = "is closed" if pull.state != "open" else f"has moved on to {pull.head.sha}"
        raise HeadMoved(f"pull request {verdict.number} {what}", _QUEUED)
    is_said = sticky is not None and _same(sticky.body, text)
    # 2. The label, while what was read of the others still holds.
    is_labelled = _label(github, pull, LABELS[verdict.outcome])
    # 3. The status, on the very commit that was checked. The comment comes last, so that one that
    #    stands says that the status does, too.
    if not is_said:
        github.set_status(verdict.head_sha, STATES[verdict.outcome], _description(verdict))
    # 4. The comment: the one that is there, or a first.
    if sticky is None:
        _comment_once(github, verdict.number, text)
    elif not is_said:
        github.edit_comment(sticky.id, text)
    return Written(status=not is_said, labels=is_labelled, comment=not is_said)


def _label(github: GitHub, pull: Pull, wanted: str) -> bool:
    """Leave one label of ours on a pull request, in one write at most; gives whether it took one.

    A first label is added: what others set meanwhile stays. Another verdict takes a label away and
    sets one, which is one write only where all labels are written anew.
    """
    names = [label.name for label in pull.labels]
    ours = set(LABELS.values())
    if ours & set(names) == {wanted}:
        return False
    if ours & set(names):
        github.set_labels(pull.number, [*(name for name in names if name not in ours), wanted])
    else:
        github.add_label(pull.number, wanted)
    return True


def _comment_once(github: GitHub, number: int, text: str) -> None:
    """Comment. Where GitHub fails, look whether the comment stands before it is sent again.

    Raises Unavailable where that fails, too.
    """
    try:
        github.add_comment(number, text)
    except Unavailable:
        time.sleep(github.wire.patience.between_writes)  # GitHub reads from copies that lag
        if own_comment(github.comments(number), github.author) is None:
            github.add_comment(number, text)


def _description(verdict: PullVerdict) -> str:
    if verdict.outcome is Outcome.NEEDS_MAINTAINER:
        return "this is not for a program to decide: a maintainer looks at it"
    return found_line(verdict)[:_DESCRIPTION_MAX]


def _same(one: str, other: str) -> bool:
    """Whether two comments are one text; GitHub may change line ends and cut blanks at the end."""
    return one.replace("\r\n", "\n").strip() == other.strip()
