"""The hidden first line of our comment: commit and verdict in machine-readable form, for `triage`.

It is base64 in an HTML comment, so that contributor text in it is inert and "-->" cannot occur. A
copy in somebody else's comment is ignored, because the author is checked.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field, ValidationError

from geneb_ci.common.types import Hex40, StrictModel
from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import ForgeProblem, RateLimited, Unavailable
from geneb_ci.github.replies import Comment, Pull
from geneb_ci.github.verdict import Count, Model, PullOutcome, PullVerdict, counts_of

# After so many unreadable pull requests, GitHub itself is taken to be unavailable.
FAILED_MAX = 10
MARKER = "<!-- geneb-ci:verdict:1 "
_LINE = re.compile(re.escape(MARKER) + r"([A-Za-z0-9+/=]{1,4000}) -->")


class Receipt(StrictModel):
    """The parts of a verdict that the queue shows."""

    number: Annotated[int, Field(ge=1)]
    head_sha: Hex40
    outcome: PullOutcome
    model: Model | None
    level: str | None
    is_edit: bool
    error: Count
    warning: Count
    weight: Annotated[float, Field(ge=0)]
    drawn: Count
    sequences: Count


def receipt_of(pull: PullVerdict) -> Receipt:
    """Return the receipt of a verdict."""
    counts = counts_of(pull.places)
    return Receipt(
        number=pull.number,
        head_sha=pull.head_sha,
        outcome=pull.outcome,
        model=pull.model,
        level=pull.level,
        is_edit=pull.is_edit,
        error=counts.error,
        warning=counts.warning,
        weight=pull.weight,
        drawn=pull.audit.drawn if pull.audit is not None else 0,
        sequences=pull.audit.sequences if pull.audit is not None else 0,
    )


def marker_line(receipt: Receipt) -> str:
    """Return a receipt as a hidden line."""
    packed = base64.b64encode(receipt.model_dump_json().encode()).decode()
    return f"{MARKER}{packed} -->\n"


def read_receipt(body: str) -> Receipt | None:
    """Return the receipt in a comment, or None if there is no valid one."""
    match = _LINE.match(body)
    if match is None:
        return None
    try:
        return Receipt.model_validate_json(base64.b64decode(match[1], validate=True))
    except (ValidationError, binascii.Error):
        return None


def receipt_on(github: GitHub, pull: Pull) -> Receipt | None:
    """Return the receipt on a pull request, for whichever commit; one request.

    The comment is written last, so that its presence proves that label and status were set.
    """
    comment = own_comment(github.comments(pull.number), github.author)
    receipt = read_receipt(comment.body) if comment is not None else None
    return receipt if receipt is not None and receipt.number == pull.number else None


def receipts_on(
    github: GitHub, pulls: Iterable[Pull]
) -> Iterator[tuple[Pull, Receipt | ForgeProblem | None]]:
    """Yield the receipt, or the error, for each pull request.

    Raises RateLimited, and Unavailable if GitHub itself is unavailable.
    """
    failed = 0
    for pull in pulls:
        said: Receipt | ForgeProblem | None
        try:
            said = receipt_on(github, pull)
        except RateLimited:
            raise
        except ForgeProblem as problem:  # too many comments, or invalid ones
            failed += isinstance(problem, Unavailable)
            if failed == FAILED_MAX:
                raise
            said = problem
        yield pull, said


def own_comment(comments: Iterable[Comment], author: int) -> Comment | None:
    """Return our comment, identified by both author and marker; None if there is none."""
    for comment in comments:
        if (
            comment.user is not None
            and comment.user.id == author
            and comment.body.startswith(MARKER)
        ):
            return comment
    return None
