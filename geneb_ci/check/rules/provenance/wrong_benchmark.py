"""wrong-benchmark: the run used another benchmark."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "wrong-benchmark"


def check(context: Context) -> Iterator[Fault]:
    """Report a run whose benchmark is not that of the board."""
    name = context.text("run", "benchmark", "name")
    if name and name != context.benchmark.name:
        yield Fault(
            ID,
            ("run", "benchmark", "name"),
            f"the run used the benchmark {quoted(name)}; this board is {context.benchmark.name}",
            quoted(name),
            f'"{context.benchmark.name}"',
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The run used another benchmark.",
    why="Scores of a practice run or of other tasks do not belong on this board.",
    fix="Run the harness with the real data: `geneb-harness run --data DIR`.",
    check=check,
)
