"""blended-rows: the row is close to a weighted mean of other rows, closer than related models."""

import math
from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, quoted
from geneb_ci.statistics.neighbours import is_near_copy
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "blended-rows"
# Residual spread, averaged over regimes, relative to that of real rows (about 1). The lowest of the
# 41 public rows is 0.55 (Omni-DNA-300M); 98 % of the means of two public rows are below 0.35.
LIMIT = 0.42
# Rows with a smaller weight are not named in the message.
WEIGHT = 0.15


def check(context: Context) -> Iterator[Fault]:
    """Report a row whose residuals from a fit on the other rows are smaller than any real row's."""
    view, standing = context.view, context.view.standing
    if standing is None:
        return
    spread = math.fsum(standing.spread) / len(standing.spread)
    heavy = sorted((-w, i) for i, w in standing.weights.items() if w > WEIGHT)
    if spread >= LIMIT or any(is_near_copy(view, i) for _, i in heavy):
        return
    score = score_of(LIMIT, max(spread, 1e-9))
    named = first_and_more([f"{-w:.2f} x {quoted(view.table.names[i])}" for w, i in heavy])
    yield Fault(
        ID,
        ("results",),
        f"the residuals from a weighted mean of other rows are {spread:.2f} of the usual size: "
        f"this row is about {named or 'an equal mix of many rows'}",
        f"{spread:.2f}",
        f"at least {LIMIT}",
        on_key=True,
        score=score,
    )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The row is closer to a weighted mean of other rows than related models are.",
    why="A real run has noise of its own; a mean of published numbers has not.",
    fix="Submit the scores of one run of one model.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)
