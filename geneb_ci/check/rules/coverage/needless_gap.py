"""needless-gap: a cell is declared missing although its scores are there."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "needless-gap"


def check(context: Context) -> Iterator[Fault]:
    """Report each cell that is both scored and declared missing."""
    for regime in context.benchmark.regimes:
        scored = context.table("results", regime)
        for task in context.gaps(regime):
            if task in scored:
                yield Fault(
                    ID,
                    ("gaps", regime, task),
                    f'{quoted(task)} is declared missing, but "results" has its scores',
                    'an entry in "gaps" and scores',
                    "only one of them",
                    on_key=True,
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="A cell is declared missing although its scores are there.",
    why="One of the two statements is wrong, and only the contributor knows which.",
    fix='Delete the entry in "gaps", or the scores.',
    check=check,
)
