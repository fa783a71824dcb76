"""nested-tasks: scores of tasks that share their sequences do not fit together."""

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
# In standard deviations of the difference over the other rows. The largest of the 41 public rows,
# over all task relations, is 5.4 (JanusDNA without attention, H4).
LIMIT = 7.0


def check(context: Context) -> Iterator[Fault]:
    """Report each relation between tasks that holds in the other rows but not in this one."""
    view, tasks = context.view, context.benchmark.tasks
    metric = context.benchmark.primary_metric
    laws = laws_of(context.benchmark)
    for regime, part, shots in zip(
        context.benchmark.regimes, view.table.regimes, view.shots, strict=True
    ):
        if shots != float("inf"):  # few-shot sampling noise exceeds the differences of interest
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
                f"{metric} differs by {gap:+.3f} from {names}, which has the same sequences; "
                f"in other rows by {usual.usual:+.3f}, standard deviation {usual.scale:.3f}",
                f"{gap:+.4f}",
                f"about {usual.usual:+.3f}",
                score=score,
            )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The score of a task does not fit those of tasks with the same sequences.",
    why="One task is the union of two others, or another split of one assay: a score is wrong.",
    fix=(
        "Verify the data files, `geneb-ci data verify FOLDER` with your folder of task data, and "
        "run the evaluation again."
    ),
    check=check,
    needs=(Need.OTHER_ROWS, Need.MANY_ROWS),
)
