"""unknown-task: the file names a task that the benchmark does not have."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.structure import near

ID = "unknown-task"
_TABLES = ("results", "evidence", "gaps")
# "Did you mean" searches per file. Each takes a millisecond, so that a file with hundreds of
# unknown tasks would be slow without a limit.
HINTS_MAX = 20


def check(context: Context) -> Iterator[Fault]:
    """Report each task, in any table and known regime, that the benchmark does not know."""
    known = context.benchmark.by_id
    hints = 0
    for table in _TABLES:
        for regime in context.benchmark.regimes:
            for name in context.table(table, regime):
                if name in known:
                    continue
                hints += 1
                hint = near(name, list(known)) if hints <= HINTS_MAX else ""
                yield Fault(
                    ID,
                    (table, regime, name),
                    f"{quoted(name)} is not a task of {context.benchmark.name}{hint}",
                    quoted(name),
                    f"one of the {len(known)} task ids of benchmark.json",
                    on_key=True,
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The benchmark does not have this task.",
    why="Programs skip names that they do not know: a misspelt task becomes a missing cell.",
    fix="Use the task ids of benchmark.json: `geneb-harness tasks` lists them.",
    check=check,
)
