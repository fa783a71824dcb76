"""blended-rows: the row is a mean of other rows, closer than any model is to its relatives."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, quoted
from geneb_ci.statistics.neighbours import is_near_copy
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "blended-rows"
# Spread of the residuals, mean over regimes, in units of what real rows show. The public row that
# the others predict best, Omni-DNA-300M, has 0.55; of means of two of them 98 in 100 have less than
# 0.35.
LIMIT = 0.42
# Rows with less weight than this are not worth naming.
WEIGHT = 0.15


def check(context: Context) -> Iterator[Fault]:
    """Report a row that other rows predict better than they predict any real model."""
    view, standing = context.view, context.view.standing
    if standing is None:
        return
    spread = sum(standing.spread) / len(standing.spread)
    heavy = sorted((-w, i) for i, w in standing.weights.items() if w > WEIGHT)
    if spread >= LIMIT or any(is_near_copy(view, i) for _, i in heavy):
        return
    score = score_of(LIMIT, max(spread, 1e-9))
    named = first_and_more([f"{-w:.2f} x {quoted(view.table.names[i])}" for w, i in heavy])
    yield Fault(
        ID,
        ("results",),
        f"other rows predict this one to {spread:.2f} of the noise between models: "
        f"about {named or 'equal parts of many rows'}",
        f"{spread:.2f}; score {score}",
        f"at least {LIMIT}",
        on_key=True,
        score=score,
    )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The row is a weighted mean of other rows, closer than any model is to its relatives.",
    why="A run on sequences has noise of its own; a mean of published numbers has none.",
    fix="Submit the scores of one run of one model.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)
