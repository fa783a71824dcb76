"""category-crown: the row leads a category by more than its other categories let expect."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.categories import crowns
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "category-crown"
# In standard deviations of the other rows' category means around their predictions. Seven public
# rows are first, or second to one row, in a category by more than 1.5; the largest is 2.9
# (LucaOne, lncRNA), the next 2.4.
LIMIT = 2.7


def check(context: Context) -> Iterator[Fault]:
    """Report each category that the row leads by more than LIMIT deviations over its prediction."""
    view = context.view
    for crown in crowns(view):
        if crown.size <= LIMIT:
            continue
        regime, task = view.cell(crown.cells[0])
        metric = context.benchmark.primary_metric
        yield Fault(
            ID,
            ("results", regime, task, metric),
            f"the row is among the best two in {quoted(crown.category)} with a mean {metric} of "
            f"{crown.mean:.3f}; its other categories let expect {crown.expected:.3f}, "
            f"{crown.size:.1f} standard deviations less",
            f"{crown.mean:.3f}",
            f"about {crown.expected:.3f}",
            score=score_of(crown.size, LIMIT),
        )


RULE = Rule(
    id=ID,
    severity=Severity.NOTE,
    what="The row leads a category by far more than its other categories let expect.",
    why="A specialist does that, and so does a row of which one category was raised.",
    fix="Nothing has to be changed: an audit reruns a task of this category first.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)
