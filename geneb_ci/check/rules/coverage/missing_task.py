"""missing-task: tasks of the benchmark have no scores in a regime."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, plural
from geneb_ci.submission.fault import Fault

ID = "missing-task"


def check(context: Context) -> Iterator[Fault]:
    """Report, once per regime, the tasks that are neither scored nor declared missing."""
    wanted = context.benchmark.task_ids
    for regime in context.benchmark.regimes:
        tasks = context.member("results", regime)
        if not isinstance(tasks, dict):
            continue
        gaps = context.gaps(regime)
        missing = [task for task in wanted if task not in tasks and task not in gaps]
        if missing:
            noun = "task has" if len(missing) == 1 else "tasks have"
            yield Fault(
                ID,
                ("results", regime),
                f'{len(missing)} {noun} no scores in "{regime}": {first_and_more(missing)}',
                f"{len(wanted) - len(missing)} of {len(wanted)} tasks",
                plural(len(wanted), "task"),
                on_key=True,
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Tasks of the benchmark have no scores in a regime.",
    why="A mean over some tasks is not comparable with a mean over all tasks.",
    fix=(
        "Run the same `geneb-harness run` command again, with --resume and without --tasks: a run "
        "writes a submission of its own tasks only. If a task cannot be run, write the reason "
        'under "gaps" (format 1.1); the regime is then not ranked.'
    ),
    check=check,
)
