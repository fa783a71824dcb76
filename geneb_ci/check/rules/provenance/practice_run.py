"""practice-run: the run measured the synthetic practice benchmark."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "practice-run"


def check(context: Context) -> Iterator[Fault]:
    """Report a file outside a repository that is checked against the practice benchmark."""
    name = context.text("run", "benchmark", "name")
    if name == context.benchmark.name and context.practice:
        yield Fault(
            ID,
            ("run", "benchmark", "name"),
            f"the file was checked against {name}, the synthetic practice benchmark",
            name,
            "the benchmark of the board",
        )


RULE = Rule(
    id=ID,
    severity=Severity.NOTE,
    what="The run measured the synthetic practice benchmark.",
    why="It shows that extractor and harness work; its scores say nothing about real DNA.",
    fix="For a submission, run the harness with the real data: `geneb-harness run --data DIR`.",
    check=check,
)
