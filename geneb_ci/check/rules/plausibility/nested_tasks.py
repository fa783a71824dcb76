"""nested-tasks: tasks that hold the same sequences have scores that do not go together."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.neighbours import laws_of, usual_gap
from geneb_ci.statistics.reference import ROWS_MIN
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "nested-tasks"
# Standard deviations of the gap over the other rows. The largest of the 41 public rows, over all
# laws, is 5.4 (JanusDNA without attention, H4).
LIMIT = 7.0


def check(context: Context) -> Iterator[Fault]:
    """Report each law that the other rows obey and this one breaks."""
    view, tasks = context.view, context.benchmark.tasks
    metric = context.benchmark.primary_metric
    laws = laws_of(context.benchmark)
    for regime, part, shots in zip(
        context.benchmark.regimes, view.table.regimes, view.shots, strict=True
    ):
        if shots != float("inf"):  # a few training sequences differ more than the tasks do
            continue
        for number, law in enumerate(laws):
            usual = usual_gap(view.table, laws, number, part.start, view.own, ROWS_MIN)
            gap = law.gap(view.row, part.start)
            if usual is None or not abs(gap - usual.usual) > LIMIT * usual.scale:
                continue
            sizes = abs(gap - usual.usual) / usual.scale
            score = score_of(sizes, LIMIT)
            names = " and ".join(f'"{tasks[k].id}"' for k, _ in law.parts)
            yield Fault(
                ID,
                ("results", regime, tasks[law.task].id, metric),
                f"{metric} is {gap:+.3f} against {names}, which hold the same sequences; "
                f"other rows have {usual.usual:+.3f} with standard deviation {usual.scale:.3f}",
                f"{gap:+.4f}; score {score}",
                f"about {usual.usual:+.3f}",
                score=score,
            )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The score of a task does not go with those of the tasks that hold the same sequences.",
    why="One is the union of two others, or the same assay split anew: one number is wrong.",
    fix="Run these tasks again, and compare the data files with the pinned revision.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.MANY_ROWS),
)
