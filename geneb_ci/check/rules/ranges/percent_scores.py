"""percent-scores: scores are in percent."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "percent-scores"
# One score of 1 or less among many, such as an MCC near zero, does not make a file of fractions.
SHARE_MIN = 0.5


def in_percent(context: Context) -> bool:
    """Tell whether most accuracies and F1 lie above 1 and at most 100."""
    values = [v for cell in context.cells for m, v in cell.scores.items() if m != "MCC"]
    over = sum(1 < value <= 100 for value in values)  # noqa: PLR2004 (percent ends at 100)
    return bool(values) and over >= SHARE_MIN * len(values)


def check(context: Context) -> Iterator[Fault]:
    """Report once a file whose scores are percentages."""
    if in_percent(context):
        cell = context.cells[0]
        yield Fault(
            ID,
            ("results",),
            f"the scores are in percent: the first cell has {quoted(cell.scores)}",
            "values up to 100",
            "fractions up to 1",
            on_key=True,
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Scores are in percent.",
    why="Dividing by 100 at the other end would be a guess, and turns an MCC of 0.5 into 0.005.",
    fix="Divide every score by 100 and submit again.",
    check=check,
)
