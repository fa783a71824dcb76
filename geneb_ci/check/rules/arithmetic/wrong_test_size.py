"""wrong-test-size: n_test in the evidence is not the size of the test split."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "wrong-test-size"


def check(context: Context) -> Iterator[Fault]:
    """Report each cell whose n_test is not the benchmark's."""
    for regime in context.benchmark.regimes:
        cells = context.table("evidence", regime)
        for task in context.benchmark.tasks:
            found = (
                context.member("evidence", regime, task.id, "n_test") if task.id in cells else None
            )
            if task.n_test is not None and type(found) in {int, float} and found != task.n_test:
                yield Fault(
                    ID,
                    ("evidence", regime, task.id, "n_test"),
                    f'{quoted(task.id)} in "{regime}" was scored on {quoted(found)} sequences; its '
                    f"test split has {task.n_test}",
                    quoted(found),
                    str(task.n_test),
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The number of test sequences in the evidence is not the size of the test split.",
    why="Scores on a part of the test split, or on other data, are not comparable with other rows.",
    fix="Run `geneb-ci data pull` and `geneb-ci data verify`, then score the whole test split.",
    check=check,
    needs=(Need.TEST_SIZES,),
)
