"""wrong-dataset-revision: the run did not use the pinned task data."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "wrong-dataset-revision"


def check(context: Context) -> Iterator[Fault]:
    """Report a revision that is not the pinned one."""
    revision = context.text("run", "dataset", "revision")
    pinned = context.benchmark.dataset.revision
    if revision and revision != pinned and not context.is_reported("run", "dataset", "revision"):
        yield Fault(
            ID,
            ("run", "dataset", "revision"),
            f"the run used revision {quoted(revision)} of the task data",
            quoted(revision),
            f'"{pinned}"',
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The run did not use the pinned task data.",
    why="Different sequences or splits give different scores for the same model.",
    fix="Fetch the pinned data and run again: `geneb-ci data pull`.",
    check=check,
)
