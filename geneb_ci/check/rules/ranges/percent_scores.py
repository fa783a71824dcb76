"""percent-scores: scores are in percent."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "percent-scores"
# Share of accuracies and F1 above 1. Below half, single wrong scores are reported one by one.
SHARE_MIN = 0.5


def in_percent(context: Context) -> bool:
    """Whether at least half of all accuracies and F1 are above 1 and at most 100."""
    values = [v for cell in context.cells for m, v in cell.scores.items() if m != "MCC"]
    over = sum(1 < value <= 100 for value in values)  # noqa: PLR2004 (percent ends at 100)
    return bool(values) and over >= SHARE_MIN * len(values)


def check(context: Context) -> Iterator[Fault]:
    """Report a file whose scores are percentages, once."""
    if in_percent(context):
        cell = context.cells[0]
        yield Fault(
            ID,
            ("results",),
            f"the scores are in percent: the first cell has {quoted(cell.scores)}",
            "values above 1",
            "fractions from 0 to 1 (MCC: -1 to 1)",
            on_key=True,
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Scores are in percent.",
    why=(
        "The board, its means and every comparison with other rows expect fractions; a percentage "
        "counts a hundred times too much. Scores are not converted automatically, since that would "
        "be a guess: it could turn an MCC of 0.5 into 0.005."
    ),
    fix="Divide every score by 100 and submit again.",
    check=check,
)
