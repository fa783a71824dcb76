"""evidence-without-scores: evidence is given for a cell that has no scores."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "evidence-without-scores"


def check(context: Context) -> Iterator[Fault]:
    """Report each known task with evidence but without scores."""
    for regime in context.benchmark.regimes:
        scored = context.table("results", regime)
        for task in context.table("evidence", regime):
            if task in context.benchmark.by_id and task not in scored:
                yield Fault(
                    ID,
                    ("evidence", regime, task),
                    f"{quoted(task)} has evidence but no scores",
                    "evidence alone",
                    "scores and evidence",
                    on_key=True,
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Evidence is given for a cell that has no scores.",
    why="The scores were lost or removed: the row does not show what was measured.",
    fix='Restore the scores, or delete the evidence and declare the cell missing under "gaps".',
    check=check,
)
