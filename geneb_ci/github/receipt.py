"""The first line of our comment: who wrote it, on which commit, and what it said, for `triage`.

It is hidden in an HTML comment, in base64: nothing of a contributor's is readable in it, and it can
hold no "-->". Whoever copies it into a comment of their own writes as another author.
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

# So many that cannot be read: it is not they, it is GitHub.
FAILED_MAX = 10
MARKER = "<!-- geneb-ci:verdict:1 "
_LINE = re.compile(re.escape(MARKER) + r"([A-Za-z0-9+/=]{1,4000}) -->")


class Receipt(StrictModel):
    """What a maintainer's queue shows of a verdict."""

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
    """Write a receipt as one hidden line."""
    packed = base64.b64encode(receipt.model_dump_json().encode()).decode()
    return f"{MARKER}{packed} -->\n"


def read_receipt(body: str) -> Receipt | None:
    """Read the receipt of a comment of ours; None where it has none that can be read."""
    match = _LINE.match(body)
    if match is None:
        return None
    try:
        return Receipt.model_validate_json(base64.b64decode(match[1], validate=True))
    except (ValidationError, binascii.Error):
        return None


def receipt_on(github: GitHub, pull: Pull) -> Receipt | None:
    """Read what we said of a pull request, whatever its head was then: a request.

    The comment is the last thing that is written: where it stands, label and status stand, too.
    """
    comment = own_comment(github.comments(pull.number), github.author)
    receipt = read_receipt(comment.body) if comment is not None else None
    return receipt if receipt is not None and receipt.number == pull.number else None


def receipts_on(
    github: GitHub, pulls: Iterable[Pull]
) -> Iterator[tuple[Pull, Receipt | ForgeProblem | None]]:
    """Read what we said of each; one that cannot be read hides no other.

    Raises RateLimited, and Unavailable where GitHub itself is out of order.
    """
    failed = 0
    for pull in pulls:
        said: Receipt | ForgeProblem | None
        try:
            said = receipt_on(github, pull)
        except RateLimited:
            raise
        except ForgeProblem as problem:  # a flood of comments, or a fault with these
            failed += isinstance(problem, Unavailable)
            if failed == FAILED_MAX:
                raise
            said = problem
        yield pull, said


def own_comment(comments: Iterable[Comment], author: int) -> Comment | None:
    """Find our comment: by the account that wrote it and by its marker, never by one of the two."""
    for comment in comments:
        if (
            comment.user is not None
            and comment.user.id == author
            and comment.body.startswith(MARKER)
        ):
            return comment
    return None
